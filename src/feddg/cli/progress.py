"""Live progress: rounds done, loss, source validation, time left."""

import sys
import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from feddg.benchmark.driver import Event
from feddg.benchmark.experiment import Experiment
from feddg.benchmark.records import finished

if TYPE_CHECKING:
    from rich.console import Console

    from feddg.report.sinks import Sink

QUIET_SECONDS = 10.0  # between lines where the output is no terminal


@dataclass(eq=False)
class Tally:
    """How far all runs are. Time left is by the work of the rounds: the first may be longer."""

    experiments: Mapping[str, Experiment]
    done: dict[str, int] = field(default_factory=dict)  # rounds of each, old ones too
    fresh: float = 0.0  # work done by us
    began: float = field(default_factory=lambda: time.monotonic())

    @staticmethod
    def of(experiments: Mapping[str, Experiment], root: Path) -> "Tally":
        ended = {key: e.rounds for key, e in experiments.items() if finished(root / key)}
        return Tally(experiments, ended)

    @property
    def total(self) -> int:
        return sum(e.rounds for e in self.experiments.values())

    @property
    def rounds(self) -> int:
        return sum(self.done.values())

    def note(self, event: Event) -> None:
        k = event.record["round"]
        self.done[event.key] = k + 1
        self.fresh += work(self.experiments[event.key], k)

    @property
    def left(self) -> float:
        """Seconds."""
        rest = sum(
            work(e, k)
            for key, e in self.experiments.items()
            for k in range(self.done.get(key, 0), e.rounds)
        )
        return (time.monotonic() - self.began) / self.fresh * rest if self.fresh else 0.0


def work(experiment: Experiment, round: int) -> float:
    recipe = experiment.recipe.at(round)
    return recipe.steps or recipe.epochs


def follow(
    events: Iterable[Event],
    experiments: Mapping[str, Experiment],
    root: Path,
    quiet: bool = False,
    sinks: "Sequence[Sink]" = (),
) -> None:
    """Drive the events to their end, showing them on standard error and to the sinks.

    On an interrupt they are closed here and now, so that all is kept before anything is said.
    """
    from rich.console import Console

    driven = generated(events)
    if sinks:
        from feddg.report.sinks import tracked

        driven = tracked(driven, experiments, root, sinks, warned)
    with closing(driven):
        console = Console(stderr=True)
        tally = Tally.of(experiments, root)
        if quiet:
            for _ in driven:
                pass
        elif console.is_terminal:
            bars(driven, tally, console)
        else:
            lines(driven, tally)


def warned(sentence: str) -> None:
    print(f"feddg: {sentence}", file=sys.stderr)


def profiling(
    events: Iterable[Event],
    experiments: Mapping[str, Experiment],
    root: Path,
    quiet: bool = False,
    sinks: "Sequence[Sink]" = (),
) -> None:
    """As `follow`, and then a table of where time went, on standard error too."""
    from feddg.stages import profiled, table

    with profiled() as found:
        follow(events, experiments, root, quiet, sinks)
    print(f"where time went in {len(found.rounds)} rounds:", file=sys.stderr)
    head = ("stage", "s", "share", "s in workers")
    rows = [head, *table(found.rounds)]
    wide = [max(len(row[i]) for row in rows) for i in range(len(head))]
    for first, *more in rows:
        numbers = (v.rjust(w) for v, w in zip(more, wide[1:], strict=True))
        print("  ".join([first.ljust(wide[0]), *numbers]), file=sys.stderr)


def generated(events: Iterable[Event]) -> Generator[Event, None, None]:
    yield from events


def bars(events: Iterator[Event], tally: Tally, console: "Console") -> None:
    from rich.console import Group
    from rich.live import Live
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.text import Text

    progress = Progress(
        BarColumn(), TextColumn("{task.completed}/{task.total} rounds"), TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"), console=console, auto_refresh=False,
    )  # fmt: skip
    task = progress.add_task("", total=tally.total, completed=tally.rounds, left="")
    # Nothing is refreshed by a thread: one that holds a lock when workers are forked would leave
    # it locked in them.
    with Live(progress, console=console, auto_refresh=False, transient=True) as live:
        for event in events:
            live.transient = False  # before the first round it leaves no trace, say on bad data
            tally.note(event)
            progress.update(task, completed=tally.rounds, left=f"{clock(tally.left)} left")
            live.update(Group(progress, Text(summary(event), overflow="fold")), refresh=True)


def lines(events: Iterable[Event], tally: Tally) -> None:
    last = time.monotonic()
    for event in events:
        tally.note(event)
        now = time.monotonic()
        if now - last >= QUIET_SECONDS or tally.rounds == tally.total:
            last = now
            at = f"{tally.rounds}/{tally.total} rounds, {clock(tally.left)} left"
            print(f"{at}; {summary(event)}", file=sys.stderr, flush=True)


def clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def summary(event: Event) -> str:
    record, metric = event.record, event.metric
    parts = [event.label]
    if record["losses"].get("total") is not None:
        parts.append(f"loss {record['losses']['total']:.3f}")
    scored = [v.get(metric) for k, v in record["scores"].items() if k.startswith("val/")]
    known = [v for v in scored if v is not None]
    if known:
        parts.append(f"source val {metric.replace('_', ' ')} {fmean(known):.3f}")
    if record["failures"]:
        parts.append(f"failed: {', '.join(record['failures'])}")
    return "  ".join(parts)
