"""Visits in pieces, so that no worker idles while another works on the round's last visit.

Five equal visits keep two workers busy for three of them; McNaughton's rule (1959) says two and a
half: fill worker after worker up to the mean, and cut the visit that does not fit. Its end goes to
the end of one worker's line, its beginning to the beginning of the next one's, so they never meet.
A piece ends between two steps of the visit's first training; whoever goes on has all that the rest
depends on, so the bits are those of one go.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from feddg.engines.alone import Paused, train_on
from feddg.engines.inprocess import InProcess, attempted
from feddg.local import Answer, Evaluation, Request, Training
from feddg.method import Visit
from feddg.packets import Reply
from feddg.stages import stage
from feddg.tasks import Scores
from feddg.trees import Tree

SLACK = 1.05  # a round that much longer than it need be is not worth a cut
LEAST = 4  # steps of a piece


def cuts(costs: Sequence[float], workers: int) -> list[float]:
    """The share of every visit that is to be its first piece; 1 where it stays whole."""
    shares = [1.0] * len(costs)
    if not costs:
        return shares
    length = max(sum(costs) / workers, *costs)
    if whole(costs, workers) <= SLACK * length:
        return shares
    room = length
    for i, cost in enumerate(costs):
        if cost > room * (1 + 1e-9):
            shares[i] = 1 - room / cost
            room += length
        room -= cost
        if room <= 1e-9 * length:
            room = length
    return shares


def whole(costs: Sequence[float], workers: int) -> float:
    """How long the round takes when idle workers take the longest visit left, uncut."""
    busy = [0.0] * workers
    for cost in sorted(costs, reverse=True):
        busy[busy.index(min(busy))] += cost
    return max(busy)


@dataclass(frozen=True, eq=False)
class Handed:
    """A visit on its way: what it was answered, and the training that is not finished."""

    answers: list[Scores]
    paused: Paused


class Stop(Exception):
    """Carries a visit's state out of its drive."""

    def __init__(self, handed: Handed):
        super().__init__()
        self.handed = handed


@dataclass(eq=False)
class Shift(InProcess):
    """Drives one visit up to the step `until` of its first training, or `since` there on."""

    until: int | None = None
    since: Handed | None = None
    told: list[Any] = field(default_factory=list)

    def answer(self, requests: Sequence[Request]) -> list[Answer]:
        if not requests:
            return []
        if len(requests) > 1:  # at once, before any training: their answers are not handed on
            self.until = None
            return super().answer(requests)
        [request] = requests
        if self.since and len(self.told) < len(self.since.answers):
            found: Answer = self.since.answers[len(self.told)]
        elif self.until is None and self.since is None:
            return [attempted(request)]
        elif isinstance(request, Training):
            found = self.trained(request)
        else:
            found = attempted(request)
            if not isinstance(request, Evaluation) or isinstance(found, Exception):
                self.until = self.since = None  # such an answer is not handed on
        self.told.append(found)
        return [found]

    def trained(self, request: Training) -> Answer:
        try:
            paused = self.since.paused if self.since else None
            with stage("training"):
                found = train_on(request, paused, self.until)
        except Exception as error:
            return error
        if isinstance(found, Paused):
            raise Stop(Handed(self.told, found))
        self.until = self.since = None
        return found


def shifted(
    visit: Visit, until: int | None = None, since: Handed | None = None
) -> tuple[Reply, Tree] | Exception | Handed:
    try:
        [found] = Shift(until=until, since=since).drive([visit])
    except Stop as stop:
        return stop.handed
    return found
