"""Where rounds run. An engine reaches sites; it never looks into a method."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch

from feddg.engines.compute import Compute, exact
from feddg.engines.inprocess import InProcess
from feddg.engines.loop import Run


@contextmanager
def open_engine(runs: Sequence[Run], how: Compute | int | None = None) -> Iterator[InProcess]:
    """On a GPU, stacks and streams; else worker processes where there are sites and cores.

    The runs are where the computing is to be (`Compute.placed`).
    """
    compute = Compute.of(how)
    with one_thread(), exact(compute):
        if compute.on_gpu or compute.execution in ("stacked", "streams"):
            yield stacks(compute)
            return
        count = min(compute.workers or cores(), sum(len(r.sites) for r in runs))
        if count == 1 or compute.execution == "one-by-one":
            yield InProcess()
            return
        from feddg.engines.workers import Workers

        with Workers(runs=runs, count=count) as engine:
            yield engine


def stacks(compute: Compute) -> InProcess:
    from feddg.engines.stacked import Stacked

    if compute.execution == "one-by-one":
        return InProcess()
    stacking = {"stacked": True, "streams": False}.get(compute.execution)
    return Stacked(stacking=stacking, precision=compute.autocast())


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
