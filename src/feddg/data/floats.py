"""Images of real values as one memory-mapped tensor: read once, kept as a file.

PovertyMap's eight bands are float arrays, one .npz each, which take minutes to unpack. The file
is written row by row under a lock; what was interrupted goes on where it stopped.
"""

import fcntl
import json
import os
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from feddg.checkpoint import unwritable, write_whole
from feddg.errors import DataError

Array = NDArray[Any]
Shape = tuple[int, ...]
DTYPES = {"half": torch.float16, "full": torch.float32}
AT_ONCE = 64  # arrays between two notes of how far it is


@dataclass(frozen=True)
class Store:
    """Where the rows lie: `raw` when all are there, `part` with `done` before that."""

    raw: Path

    @property
    def part(self) -> Path:
        return self.raw.with_name(self.raw.name + ".part")

    @property
    def done(self) -> Path:
        return self.raw.with_name(self.raw.name + ".done")

    @property
    def rows(self) -> int:
        """How many rows of `part` are whole."""
        try:
            return int(json.loads(self.done.read_text("ascii"))) if self.part.exists() else 0
        except (OSError, ValueError):
            return 0


def stored_floats(
    paths: Sequence[Path], shape: Shape, precision: str = "half", key: str = "x"
) -> Tensor:
    """Array `key` of every .npz, float16 or float32 of len(paths)×`shape`, mapped from a file.

    The file lies in `$FEDDG_CACHE`, else beside the images' folder, else in ~/.cache/feddg, named
    by the paths, sizes and times of what it was made from: changed files make a new one.
    """
    dtype = DTYPES[precision]
    beside = paths[0].parent.parent
    store = Store(cache_folder(beside) / "floats" / f"{name_of(paths, shape, precision)}.raw")
    if not store.raw.exists():
        with unwritable(store.raw), locked(store.raw.with_suffix(".lock")):
            if not store.raw.exists():  # another process was first
                fill(store, paths, shape, dtype, key)
    size = int(np.prod((len(paths), *shape)))
    mapped = torch.from_file(str(store.raw), size=size, dtype=dtype)
    return mapped.view(len(paths), *shape)


def cache_folder(beside: Path) -> Path:
    if given := os.environ.get("FEDDG_CACHE"):
        return Path(given).expanduser()
    if os.access(beside, os.W_OK):
        return beside / ".feddg-cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "feddg"


def name_of(paths: Sequence[Path], shape: Shape, precision: str) -> str:
    found = blake2b(f"{shape} {precision}".encode(), digest_size=12)
    for path in paths:
        try:
            at = path.stat()
        except OSError:
            raise DataError(f"{path} is missing; fetch it again") from None
        found.update(f"\n{path.resolve()} {at.st_size} {at.st_mtime_ns}".encode())
    return found.hexdigest()


def fill(store: Store, paths: Sequence[Path], shape: Shape, dtype: torch.dtype, key: str) -> None:
    """From the first row that is missing to the end; then the file gets its name."""
    row = int(np.prod(shape)) * dtype.itemsize
    begun = store.rows
    with open(store.part, "r+b" if begun else "wb") as file:
        file.truncate(begun * row)
        file.seek(begun * row)
        for first in range(begun, len(paths), AT_ONCE):
            for array in read(paths[first : first + AT_ONCE], shape, dtype, key):
                file.write(array.numpy().tobytes())
            file.flush()
            os.fsync(file.fileno())
            write_whole(store.done, str(min(first + AT_ONCE, len(paths))).encode())
    os.replace(store.part, store.raw)
    store.done.unlink(missing_ok=True)


def read(paths: Sequence[Path], shape: Shape, dtype: torch.dtype, key: str) -> Iterator[Tensor]:
    def one(path: Path) -> Tensor:
        return narrowed(read_array(path, shape, key), path, dtype)

    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        yield from pool.map(one, paths)


def read_array(path: Path, shape: Shape, key: str) -> Array:
    """Array `key` of an .npz, of real finite values and the right shape; nothing is unpickled."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            if key not in stored:
                raise DataError(f"{path} has no array {key!r}; fetch it again")
            found: Array = stored[key]
    except (OSError, EOFError, ValueError, TypeError, zipfile.BadZipFile, zlib.error) as why:
        raise DataError(
            f"{path} is not a readable .npz without pickled objects ({why}); fetch it again"
        ) from None
    if found.shape != shape:
        raise DataError(f"{path} holds {found.shape} values where {shape} are expected")
    if not np.issubdtype(found.dtype, np.floating) or not np.isfinite(found).all():
        raise DataError(f"{path} holds values that are no finite real numbers; fetch it again")
    return found


def narrowed(array: Array, path: Path, dtype: torch.dtype) -> Tensor:
    x = torch.from_numpy(array.astype(np.float32)).to(dtype)
    if not x.isfinite().all():
        raise DataError(f"{path} has values beyond half precision; use precision=full")
    return x


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """One process at a time; the lock goes with the process that holds it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        yield
