"""What a worker process is told of the system: how it is born, what it keeps, when it dies."""

import ctypes
import os
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from feddg.interrupts import deferred


@contextmanager
def quietly() -> Iterator[None]:
    """Fork without a Ctrl-C that the child would answer, and without Python's warning.

    It warns where other threads run (a notebook's, say), for a lock that one of them holds stays
    locked in the child. A worker takes no lock that they could hold: it computes and uses its pipe.
    """
    with deferred(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*fork", DeprecationWarning)
        yield


def die_with(parent: int) -> None:
    """On Linux the end of the parent ends a worker in the midst of its work, too."""
    if sys.platform == "linux":
        set_death_signal = 1  # PR_SET_PDEATHSIG
        ctypes.CDLL(None).prctl(set_death_signal, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(0)


def keep_memory() -> None:
    """glibc gives large blocks back at once, and each step would have the system clear them anew.

    Up to 32 MiB a block, the most that can be asked for, and 1 GiB in all.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        trim_threshold, mmap_threshold = -1, -3
        mallopt(mmap_threshold, 32 << 20)
        mallopt(trim_threshold, 1 << 30)
