"""Trainings of one form as one program: small models stacked under vmap, large ones side by side.

A *lane* is one program at work: all sites of a stack at once, or the sites of a large model one
after the other. Lanes advance in turns; on a GPU each has a stream of its own, and they overlap.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from itertools import count
from typing import Any, ClassVar

import torch

from feddg.data.domain import Examples
from feddg.engines.forms import Form, form
from feddg.engines.inprocess import InProcess, attempted, evaluations
from feddg.engines.judged import Asked as Judged
from feddg.engines.judged import Kind, judge, kind
from feddg.engines.lanes import Asked, Pool, Stack, Stores
from feddg.engines.loop import Question
from feddg.engines.programs import Eager, Program, Recorded, Step
from feddg.errors import explained
from feddg.local import Answer, Request, Training
from feddg.stages import stage
from feddg.tasks import Scores
from feddg.training import begin, refuse
from feddg.weights import Layout

SMALL_MODEL, SMALL_INPUT = 2_000_000, 4096  # weights, numbers of an example: beyond, no stacking
TALLEST = 512  # sites of one stack
STREAMS = 4  # sites of a large model at a time
KEPT = 3  # turns after which a program that is not used is dropped, with its memory and pool


def small(layout: Layout, data: Examples) -> bool:
    return layout.cut <= SMALL_MODEL and data.shape.numel() <= SMALL_INPUT


class SlowPath(UserWarning):
    """Something is carried out right, but not in the fast way that was meant for it."""


@dataclass(eq=False)
class Stacked(InProcess):
    """`stacking` None: small models are stacked, large ones take turns; else all or none are."""

    gathers: ClassVar[bool] = True
    stacking: bool | None = None
    precision: Callable[[], AbstractContextManager[Any]] = nullcontext
    streams: int = STREAMS
    forms: dict[tuple[Any, ...], list[tuple[Form, int]]] = field(default_factory=dict)
    programs: dict[tuple[Any, ...], Program] = field(default_factory=dict)
    used: dict[tuple[Any, ...], int] = field(default_factory=dict)  # program -> its last turn
    turn: int = 0
    pools: list[Stores] = field(default_factory=list)
    seats: dict[tuple[int, int], int] = field(default_factory=dict)  # form, which of its lanes
    side: dict[int, Any] = field(default_factory=dict)  # lane -> its CUDA stream
    slow: set[int] = field(default_factory=set)  # forms that cannot be carried out here
    alone: list[Kind] = field(default_factory=list)  # evaluations likewise

    def answer(self, requests: Sequence[Request]) -> list[Answer]:
        answers: list[Answer] = [None] * len(requests)
        groups: dict[int, list[Asked]] = {}
        judged = [(i, r) for i, r in enumerate(requests) if not isinstance(r, Training)]
        with stage("evaluation"):
            self.judge(judged, answers)
        for i, request in enumerate(requests):
            if not isinstance(request, Training):
                continue
            try:
                refuse(request)
                asked = Asked(i, request, begin(request))
                number = self.number(asked)
            except Exception as error:  # of this site alone
                answers[i] = error
                continue
            if number is None or number in self.slow:
                answers[i] = attempted(request)
            else:
                groups.setdefault(number, []).append(asked)
        if groups:
            self.turn += 1
            with stage("training"):
                self.carry_out(groups, answers)
            for key in [k for k, at in self.used.items() if self.turn - at >= KEPT]:
                self.programs.pop(key, None)
                del self.used[key]
            read = {pool for *_, pool, _ in self.used}
            self.pools = [stores for stores in self.pools if id(stores.x) in read]
        return answers

    def score(self, questions: Sequence[Question]) -> list[dict[str, Scores]]:
        asked = [(at, *part) for at, q in enumerate(questions) for part in evaluations(q)]
        found: list[dict[str, Scores]] = [{} for _ in questions]
        answers = self.answer([request for _, _, request in asked])
        for (at, name, _), answer in zip(asked, answers, strict=True):
            if isinstance(answer, Exception):
                raise answer
            found[at][name] = answer
        return found

    def judge(self, asked: Sequence[tuple[int, Judged]], answers: list[Answer]) -> None:
        """Small networks of one kind together, all else one by one."""
        kinds: list[tuple[Kind, list[tuple[int, Judged]]]] = []
        for i, request in asked:
            found = self.kind(request)
            if found is None:
                answers[i] = attempted(request)
                continue
            same = [members for other, members in kinds if other == found]
            if same:
                same[0].append((i, request))
            else:
                kinds.append((found, [(i, request)]))
        for found, members in kinds:
            try:
                alike = [r for _, r in members]
                scores = judge(alike) if len(alike) > 1 else [attempted(alike[0])]
            except Exception as error:
                self.alone.append(found)
                self.slower("judged", type(members[0][1].predictor).__name__, error)
                scores = [attempted(r) for _, r in members]
            for (i, _), score in zip(members, scores, strict=True):
                answers[i] = score

    def kind(self, request: Judged) -> Kind | None:
        if self.stacking is False:
            return None
        try:
            found = kind(request)
        except Exception:  # it says so itself when it is carried out
            return None
        if found is None or found in self.alone or not small(found[1], request.data):
            return None
        return found

    def number(self, asked: Asked) -> int | None:
        """Of the training's form; None where it has none."""
        found = form(asked.training, asked.begun)
        if found is None:
            return None
        known = self.forms.setdefault(found.name, [])
        for other, number in known:
            if other.details == found.details:
                return number
        known.append((found, sum(map(len, self.forms.values()))))
        return known[-1][1]

    def together(self, request: Training) -> bool:
        if self.stacking is not None:
            return self.stacking
        return small(request.start.layout, request.data)

    def carry_out(self, groups: dict[int, list[Asked]], answers: list[Answer]) -> None:
        """All lanes in turns, until none has anything left to do."""
        lanes: list[Iterator[None]] = []
        taken: set[int] = set()
        for number, members in groups.items():
            together = self.together(members[0].training)
            height = TALLEST if together else 1
            queue = [members[at : at + height] for at in range(0, len(members), height)]
            wide = 1 if together else min(self.streams, len(queue))
            for first in range(wide):
                seat = self.seat((number, first), taken)
                lanes.append(self.lane(seat, number, queue[first::wide], together, answers))
        while lanes:
            lanes = [lane for lane in lanes if next(lane, self) is not self]
        for stream in self.side.values():
            torch.cuda.current_stream().wait_stream(stream)

    def seat(self, who: tuple[int, int], taken: set[int]) -> int:
        """A lane that nobody has in this turn: that of last time, where the programs are, if so."""
        last = self.seats.get(who)
        if last is None or last in taken:
            last = next(lane for lane in count() if lane not in taken)
        self.seats[who] = last
        taken.add(last)
        return last

    def lane(
        self,
        lane: int,
        number: int,
        queue: list[list[Asked]],
        together: bool,
        answers: list[Answer],
    ) -> Iterator[None]:
        for members in queue:
            one = members[0].training
            where = self.stream(lane, one)
            try:
                with where():
                    stack = Stack(members, together, self.precision)
                    pool = Pool.of(stack.members, self.pools)
                    find = self.finder(lane, number, pool, stack.room)
                    steps = stack.steps(find, pool, answers)
                while True:
                    with where():
                        if next(steps, self) is self:
                            break
                    yield
            except Exception as error:
                self.stumbled(number, one, error)
                for asked in members:
                    answers[asked.at] = attempted(asked.training)

    def stumbled(self, number: int, request: Training, error: Exception) -> None:
        """One by one it may work; if it does not, the sites say so themselves."""
        self.slow.add(number)
        self.slower("trained", type(request.job.model).__name__, error)

    def slower(self, done: str, name: str, error: Exception) -> None:
        line = f"{name} is {done} site by site, which is slower: {explained(error)}"
        warnings.warn(line, SlowPath, stacklevel=2)

    def finder(
        self, lane: int, number: int, pool: Pool, room: int
    ) -> Callable[[int, int, Callable[[], Step]], Program]:
        """Programs made before, or anew; a server may train on more examples than there is room."""

        def find(sites: int, size: int, step: Callable[[], Step]) -> Program:
            key = (lane, number, sites, size, id(pool.x), room)
            self.used[key] = self.turn
            if key not in self.programs:
                shared = [] if pool.x is None else [pool.x]
                self.programs[key] = (
                    Recorded(step(), shared=shared) if lane in self.side else Eager(step())
                )
            return self.programs[key]

        return find

    def stream(self, lane: int, request: Training) -> Callable[[], AbstractContextManager[Any]]:
        """A context for a lane's work; its stream goes on from where the main one is."""
        if not request.start.vector.is_cuda:
            return nullcontext
        if lane not in self.side:
            self.side[lane] = torch.cuda.Stream()
        mine = self.side[lane]
        mine.wait_stream(torch.cuda.current_stream())
        return lambda: torch.cuda.stream(mine)
