"""A bench on several machines that share a folder: each takes its part of the runs.

Records merge by themselves, for a run's folder is its key; whoever prints the table prints what
is there. A shard that was killed goes on when it is started again.
"""

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b

from feddg.errors import ConfigError

TASK = "SLURM_ARRAY_TASK_"


@dataclass(frozen=True)
class Shard:
    """Number `index` (from 1) of `of`."""

    index: int = 1
    of: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.index <= self.of:
            raise ConfigError(
                f"--shard {self.index}/{self.of}: the first number counts from 1 to the second"
            )

    def mine(self, keys: Iterable[str]) -> tuple[str, ...]:
        """By the keys alone, so that all shards agree; dealt in turn, so that none has two more.

        The keys are shuffled by a digest of their own: neighbours, such as all seeds of one slow
        method, do not end up in one shard.
        """
        order = sorted(dict.fromkeys(keys), key=lambda k: blake2b(k.encode()).digest())
        return tuple(order[self.index - 1 :: self.of])

    def __str__(self) -> str:
        return f"{self.index}/{self.of}"


WHOLE = Shard()


def shard(text: str | None, around: Mapping[str, str] | None = None) -> Shard:
    """From "2/8"; "auto" is the task of a SLURM array; None is all of it."""
    if text is None:
        return WHOLE
    if text == "auto":
        return of_slurm(os.environ if around is None else around)
    match = re.fullmatch(r"(\d+)/(\d+)", text.strip())
    if not match:
        raise ConfigError(f"--shard {text!r}: write i/n, such as 2/8, or auto in a SLURM array")
    return Shard(int(match[1]), int(match[2]))


def of_slurm(around: Mapping[str, str]) -> Shard:
    """--array=0-7, 1-8 or 10-80:10: the tasks of the array in order."""
    try:
        task, count, first = (int(around[TASK + k]) for k in ("ID", "COUNT", "MIN"))
        step = int(around.get(TASK + "STEP", "1"))
    except (KeyError, ValueError):
        raise ConfigError(
            "--shard auto reads SLURM_ARRAY_TASK_ID, _COUNT and _MIN, which are not set; start it"
            " by sbatch --array=1-8, or write --shard i/n"
        ) from None
    return Shard((task - first) // step + 1, count)
