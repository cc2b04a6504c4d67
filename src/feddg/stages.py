"""Where time goes: every moment belongs to the innermost stage that was entered.

Nothing is measured unless `profiled` is on; `active` is then what collects, else None. Workers
collect their own, which comes back with each of their answers. On a GPU it is the host's time.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

STAGES = {
    "data": "batches gathered, drawn, augmented, prepared",
    "training": "forward, backward, the optimiser's step",
    "evaluation": "outputs and scores",
    "wire": "packets packed and unpacked",
    "waiting": "for workers",
    "guard": "replies checked",
    "aggregation": "the merge, and the server's own work",
    "record": "results written, checkpoints",
    "other": "all else",
}

Spent = dict[str, float]


@dataclass(eq=False)
class Stages:
    """Seconds by stage, here and in the workers together, and of every round that is over."""

    spent: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    workers: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    rounds: list[dict[str, Any]] = field(default_factory=list)
    entered: list[str] = field(default_factory=list)
    since: float = field(default_factory=lambda: perf_counter())

    def mark(self) -> None:
        now = perf_counter()
        self.spent[self.entered[-1] if self.entered else "other"] += now - self.since
        self.since = now

    def enter(self, name: str) -> None:
        self.mark()
        self.entered.append(name)

    def leave(self) -> None:
        self.mark()
        self.entered.pop()

    def take(self) -> Spent:
        """What was spent since the last time."""
        self.mark()
        found, self.spent = dict(self.spent), defaultdict(float)
        return found

    def add(self, spent: Mapping[str, float]) -> None:
        for name, seconds in spent.items():
            self.workers[name] += seconds

    def end_round(self, which: Mapping[str, int]) -> None:
        """`which` round it was of each of the runs that went in lockstep."""
        here, self.workers, there = self.take(), defaultdict(float), dict(self.workers)
        row = {"rounds": dict(which), "seconds": sum(here.values()), "here": here}
        self.rounds.append({**row, "workers": there})


active: Stages | None = None


@contextmanager
def profiled() -> Iterator[Stages]:
    global active
    before, active = active, Stages()
    try:
        yield active
    finally:
        active = before


@contextmanager
def stage(name: str) -> Iterator[None]:
    """Whatever was entered within and not left, for an error came, is left with it."""
    clock = active
    if clock is None:
        yield
        return
    depth = len(clock.entered)
    clock.enter(name)
    try:
        yield
    finally:
        clock.mark()
        del clock.entered[depth:]


def table(found: Sequence[Mapping[str, Any]]) -> list[tuple[str, str, str, str]]:
    """Per stage: seconds here, their share, and the workers' seconds."""
    here, there = ({k: sum(r[side].get(k, 0.0) for r in found) for k in STAGES} for side in SIDES)
    total = sum(here.values())
    return [
        (
            f"{name}: {line}", f"{here[name]:.2f}", f"{here[name] / total:.0%}" if total else "",
            f"{there[name]:.2f}" if there[name] else "",
        )
        for name, line in STAGES.items() if here[name] or there[name]
    ]  # fmt: skip


SIDES = ("here", "workers")
