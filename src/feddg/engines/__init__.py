"""Where rounds run. An engine reaches sites; it never looks into a method."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch

from feddg.engines.inprocess import InProcess
from feddg.engines.loop import Run
from feddg.errors import ConfigError


@contextmanager
def open_engine(runs: Sequence[Run], workers: int | None = None) -> Iterator[InProcess]:
    """Worker processes where there is more than one site and core, else this process."""
    from feddg.engines.workers import Workers

    check_workers(workers)
    count = min(workers or cores(), sum(len(r.sites) for r in runs))
    with one_thread():
        if count == 1:
            yield InProcess()
        else:
            with Workers(runs=runs, count=count) as engine:
                yield engine


def check_workers(workers: int | None) -> None:
    if workers is not None and workers < 1:
        raise ConfigError(f"--workers must be at least 1, not {workers}")


@contextmanager
def one_thread() -> Iterator[None]:
    """The same arithmetic, hence the same bits, for any number of workers and cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def cores() -> int:
    """That this process may use, where the system tells."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
