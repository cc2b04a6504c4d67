"""Live progress: rounds done, loss, source validation, time left."""

import sys
import time
from collections.abc import Iterable
from itertools import chain
from statistics import fmean
from typing import TYPE_CHECKING

from feddg.benchmark.driver import Event
from feddg.benchmark.experiment import Experiment

if TYPE_CHECKING:
    from rich.console import Console

QUIET_SECONDS = 10.0  # between lines where the output is no terminal


def follow(
    events: Iterable[Event], experiments: list[Experiment], done: int = 0, quiet: bool = False
) -> None:
    """Drive the events to their end, showing them on standard error.

    `done` rounds were finished before: they count as done, but not in the time left.
    """
    if quiet:
        for _ in events:
            pass
        return
    from rich.console import Console

    total = sum(e.rounds for e in experiments)
    console = Console(stderr=True)
    if console.is_terminal:
        bars(events, total, done, console)
    else:
        lines(events, total, done)


def bars(events: Iterable[Event], total: int, done: int, console: "Console") -> None:
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed}/{task.total} rounds"),
        TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(), TextColumn("{task.fields[now]}"),
    )  # fmt: skip
    # The bar starts with the first round: its thread must not be there when workers are forked.
    events = iter(events)
    first = next(events, None)
    if first is None:
        return
    with Progress(*columns, console=console, transient=False) as progress:
        task = progress.add_task("training", total=total, completed=done, now="")
        for event in chain([first], events):
            progress.update(task, advance=1, now=summary(event))


def lines(events: Iterable[Event], total: int, done: int) -> None:
    began = last = time.monotonic()
    fresh = 0
    for event in events:
        fresh += 1
        now = time.monotonic()
        if now - last >= QUIET_SECONDS or done + fresh == total:
            last = now
            left = (now - began) / fresh * (total - done - fresh)
            print(
                f"{done + fresh}/{total} rounds, {left:.0f} s left; {summary(event)}",
                file=sys.stderr, flush=True,
            )  # fmt: skip


def summary(event: Event) -> str:
    record = event.record
    parts = [event.label]
    if "total" in record["losses"]:
        parts.append(f"loss {record['losses']['total']:.3f}")
    found = [v for k, v in record["scores"].items() if k.startswith("val/")]
    if found:
        name = event.metric
        parts.append(f"source val {name.replace('_', ' ')} {100 * fmean(v[name] for v in found):.1f}%")
    if record["failures"]:
        parts.append(f"failed: {', '.join(record['failures'])}")
    return "  ".join(parts)
