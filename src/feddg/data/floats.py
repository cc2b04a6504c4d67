"""Images of real values as one memory-mapped tensor: unpacked once, kept by `feddg.data.cache`.

PovertyMap's eight bands are float arrays, one .npz each, which take minutes to unpack. The cache
holds bytes; those of a row are a row of float16 or float32.
"""

import os
import zipfile
import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from feddg.data.cache import Entry, common, entry, found, made
from feddg.data.counted import counted
from feddg.errors import DataError

Array = NDArray[Any]
Shape = tuple[int, ...]
DTYPES = {"half": torch.float16, "full": torch.float32}


def stored_floats(
    paths: Sequence[Path],
    shape: Shape,
    precision: str = "half",
    data: Path | None = None,
    key: str = "x",
) -> Tensor:
    """Array `key` of every .npz, float16 or float32 of len(paths)×`shape`; a broken one raises.

    The file lies where that of `images.stored` would. Where nothing can be written the arrays are
    read into memory.
    """
    dtype = DTYPES[precision]

    def one(path: Path) -> Tensor:
        return narrowed(read_array(path, shape, key), path, dtype)

    def fill(rows: slice, block: Tensor) -> None:
        with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
            for row, array in zip(block, pool.map(one, paths[rows]), strict=True):
                row.copy_(array.view(torch.uint8))

    home = data or common(paths)
    this = as_bytes(paths, shape, precision, home)
    x = found(this, home)
    if x is None:
        with counted(home.name, len(paths)) as told:
            x = made(this, home, fill, told)
    if x is None:
        x = torch.empty(this.shape, dtype=torch.uint8)
        fill(slice(None), x)
    return x.view(dtype)


def as_bytes(paths: Sequence[Path], shape: Shape, precision: str, data: Path) -> Entry:
    """The cache's file: the last dimension is so many bytes."""
    this = entry(paths, shape[-1], shape[0], data)
    *outer, last = shape
    bytes_each = (len(paths), *outer, last * DTYPES[precision].itemsize)
    return replace(this, name=f"{this.name}-{precision}", shape=bytes_each)


def read_array(path: Path, shape: Shape, key: str) -> Array:
    """Array `key` of an .npz, of real finite values and the right shape; nothing is unpickled."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            if key not in arrays:
                raise DataError(f"{path} has no array {key!r}; fetch it again")
            array: Array = arrays[key]
    except (OSError, EOFError, ValueError, TypeError, zipfile.BadZipFile, zlib.error) as why:
        raise DataError(
            f"{path} is not a readable .npz without pickled objects ({why}); fetch it again"
        ) from None
    if array.shape != shape:
        raise DataError(f"{path} holds {array.shape} values where {shape} are expected")
    if not np.issubdtype(array.dtype, np.floating) or not np.isfinite(array).all():
        raise DataError(f"{path} holds values that are no finite real numbers; fetch it again")
    return array


def narrowed(array: Array, path: Path, dtype: torch.dtype) -> Tensor:
    x = torch.from_numpy(array.astype(np.float32)).to(dtype)
    if not x.isfinite().all():
        raise DataError(f"{path} has values beyond half precision; use precision=full")
    return x
