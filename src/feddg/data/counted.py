"""A bar for what takes a while before a run has begun: on a terminal only."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def counted(title: str, total: int) -> Iterator[Callable[[int], None]]:
    """A function to be told how many more are done."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.errors import LiveError
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    text = TextColumn("{task.description}: images decoded, once")
    columns = (text, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    # Nothing is refreshed by a thread, see feddg.cli.progress.
    bar = Progress(*columns, console=Console(stderr=True), transient=True, auto_refresh=False)
    try:
        bar.start()
    except LiveError:  # another display is on
        yield lambda _: None
        return
    task = bar.add_task(title, total=total)
    try:
        yield lambda n: bar.update(task, advance=n, refresh=True)
    finally:
        bar.stop()
