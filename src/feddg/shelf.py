"""Where a round's replies wait for the merge: in memory up to a budget, beyond it in a file.

What lies in the file is mapped: its pages come when they are read and are the system's to drop. A
merge sees tensors and computes the same bits, whichever it is. Sums take one reply at a time; what
needs all updates at once (`Gathered.updates`) has the matrix in a file, too, where it is too large.

The replies have to wait, for a site's share is known when all have answered: of a sum of sizes, or
of what a wrapper makes of all sites' numbers.
"""

import ctypes
import sys
import tempfile
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
import torch
from torch import Tensor

from feddg.checkpoint import unwritable

BUDGET = 512 << 20  # bytes of replies, and as many of their matrix


@dataclass(eq=False)
class Shelf:
    """Of one round. The file has no name: it goes when nothing on it is in use."""

    left: int = -1
    file: IO[bytes] | None = None
    filed: int = 0  # bytes since what was free was given back

    def __post_init__(self) -> None:
        self.left = BUDGET if self.left < 0 else self.left

    def placed(self, vector: Tensor) -> Tensor:
        """The same numbers; a GPU's stay where they are."""
        if vector.device.type != "cpu" or vector.nbytes <= self.left:
            self.left -= vector.nbytes if vector.device.type == "cpu" else 0
            return vector
        values = vector.detach().contiguous().numpy()
        with room():
            if self.file is None:
                self.file = tempfile.TemporaryFile(prefix="feddg-")  # noqa: SIM115 (till the end)
            at = self.file.seek(0, 2)
            self.file.write(values.tobytes())
            self.file.flush()
            self.filed += values.nbytes
            if self.filed > BUDGET // 8:
                trim()
                self.filed = 0
            own = np.memmap(self.file, values.dtype, "c", at, values.shape)
        return torch.from_numpy(own)

    def __enter__(self) -> "Shelf":
        return self

    def __exit__(self, *_: object) -> None:
        """What is mapped stays."""
        if self.file is not None:
            self.file.close()


def matrix(rows: int, columns: int, like: Tensor) -> Tensor:
    """Not yet filled."""
    size = rows * columns * like.element_size()
    if like.device.type != "cpu" or size <= BUDGET:
        return torch.empty(rows, columns, dtype=like.dtype, device=like.device)
    kind = torch.empty(0, dtype=like.dtype).numpy().dtype
    with room(), tempfile.TemporaryFile(prefix="feddg-") as file:
        file.truncate(size)
        return torch.from_numpy(np.memmap(file, kind, "r+", 0, (rows, columns)))


def trim() -> None:
    """glibc keeps what is free between what is in use; a thousand replies leave many such holes."""
    give_back = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if give_back is not None:
        give_back(0)


def room() -> AbstractContextManager[None]:
    return unwritable(Path(tempfile.gettempdir()), "make room there, or set TMPDIR to another disk")
