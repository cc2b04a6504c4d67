"""The real command line in a forked child: no interpreter starts, and it can be killed."""

import os
import signal
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import feddg.cli.run  # noqa: F401 (what the children need is imported once, here)
from feddg.benchmark import driver


def start(argv: list[str], said: Path, before: Callable[[], None] = lambda: None) -> int:
    """The pid of a child that runs `feddg ARGV`, its output in the file `said`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # pytest-xdist has a thread of its own
        pid = os.fork()
    if pid:
        return pid
    code = 70
    try:
        out = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(out, 1)
        os.dup2(out, 2)
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115
        # A shell starts background jobs deaf to Ctrl-C, and so their children.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        before()
        code = called(argv)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def called(argv: list[str]) -> int:
    from feddg.cli import main

    sys.argv = ["feddg", *argv]
    try:
        main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    except BaseException:
        import traceback

        traceback.print_exc()
        return 70
    return 0


def ended(pid: int) -> int:
    """Wait for a child; its exit code, or minus the signal that killed it."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def finish(argv: list[str], said: Path, before: Callable[[], None] = lambda: None) -> int:
    return ended(start(argv, said, before))


def every_round() -> None:
    driver.SECONDS_BETWEEN_CHECKPOINTS = 0.0


def never() -> None:
    driver.SECONDS_BETWEEN_CHECKPOINTS = 3600.0


def until(true: Callable[[], object], seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it never came to be"
        time.sleep(0.002)


def children(pid: int) -> list[int]:
    try:
        return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def gone(pid: int) -> bool:
    """Ended; whether somebody has asked for its exit code does not matter."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True
