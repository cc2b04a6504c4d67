"""Trainings of one form as one program: small models stacked under vmap, large ones side by side.

A *lane* is one program at work: all sites of a stack at once, or the sites of a large model one
after the other. Lanes advance in turns; on a GPU each has a stream of its own, and they overlap.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from feddg.engines.forms import Form, form
from feddg.engines.inprocess import InProcess, attempted
from feddg.engines.lanes import Asked, Pool, Stack
from feddg.engines.programs import Eager, Program, Recorded, Step
from feddg.errors import explained
from feddg.local import Answer, Request, Training
from feddg.training import begin, refuse

SMALL_MODEL, SMALL_INPUT = 2_000_000, 4096  # weights, numbers of an example: beyond, no stacking
TALLEST = 512  # sites of one stack
STREAMS = 4  # sites of a large model at a time


class SlowPath(UserWarning):
    """Something is carried out right, but not in the fast way that was meant for it."""


@dataclass(eq=False)
class Stacked(InProcess):
    """`stacking` None: small models are stacked, large ones take turns; else all or none are."""

    stacking: bool | None = None
    precision: Callable[[], AbstractContextManager[Any]] = nullcontext
    streams: int = STREAMS
    forms: dict[tuple[Any, ...], list[tuple[Form, int]]] = field(default_factory=dict)
    programs: dict[tuple[Any, ...], Program] = field(default_factory=dict)
    used: dict[tuple[Any, ...], int] = field(default_factory=dict)  # in which call, last
    calls: int = 0  # sites' and server's trainings take turns: one call's programs outlive the next
    pools: dict[tuple[int, ...], tuple[Any, Tensor]] = field(default_factory=dict)
    side: dict[int, Any] = field(default_factory=dict)  # lane -> its CUDA stream
    slow: set[int] = field(default_factory=set)  # forms that cannot be carried out here

    def answer(self, requests: Sequence[Request]) -> list[Answer]:
        answers: list[Answer] = [None] * len(requests)
        groups: dict[int, list[Asked]] = {}
        for i, request in enumerate(requests):
            if not isinstance(request, Training):
                answers[i] = attempted(request)
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
            self.calls += 1
            self.carry_out(groups, answers)
            for key in [k for k, last in self.used.items() if last < self.calls - 1]:
                self.programs.pop(key, None)
                del self.used[key]
        return answers

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
        small = request.start.layout.cut <= SMALL_MODEL
        return small and request.data.shape.numel() <= SMALL_INPUT

    def carry_out(self, groups: dict[int, list[Asked]], answers: list[Answer]) -> None:
        """All lanes in turns, until none has anything left to do."""
        lanes: list[Iterator[None]] = []
        for number, members in groups.items():
            together = self.together(members[0].training)
            height = TALLEST if together else 1
            queue = [members[at : at + height] for at in range(0, len(members), height)]
            wide = 1 if together else min(self.streams, len(queue))
            for first in range(wide):
                mine = queue[first::wide]
                lanes.append(self.lane(len(lanes), number, mine, together, answers))
        while lanes:
            lanes = [lane for lane in lanes if next(lane, self) is not self]
        for stream in self.side.values():
            torch.cuda.current_stream().wait_stream(stream)

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
                    examples = sum(len(m.training.data) for m in members)
                    find = self.finder(lane, number, pool, examples)
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
        name = type(request.job.model).__name__
        warnings.warn(
            f"{name} is trained site by site, which is slower: {explained(error)}",
            SlowPath,
            stacklevel=2,
        )

    def finder(
        self, lane: int, number: int, pool: Pool, examples: int
    ) -> Callable[[int, int, Callable[[], Step]], Program]:
        """Programs made before, or anew; a server may train on more examples than last time."""

        def find(sites: int, size: int, step: Callable[[], Step]) -> Program:
            key = (lane, number, sites, size, id(pool.x), examples)
            self.used[key] = self.calls
            if key not in self.programs:
                shared = [] if pool.x is None else [pool.x]
                self.programs[key] = (
                    Recorded(step(), shared) if lane in self.side else Eager(step())
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
