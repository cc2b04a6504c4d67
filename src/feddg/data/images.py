"""Image files as one uint8 tensor, decoded once and kept (see `feddg.data.cache`)."""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from feddg.data.cache import common, entry, found, made
from feddg.data.counted import counted
from feddg.errors import DataError

FEW = 100  # images that are not worth a file


def stored(paths: Sequence[Path], size: int, channels: int, data: Path | None = None) -> Tensor:
    """All images, uint8 N×channels×size×size; a broken one raises.

    Decoded once: then mapped from a file in $FEDDG_CACHE, else in `.feddg-cache` beside the folder
    `data` (by default the one that holds these images), else in ~/.cache/feddg. Where nothing can
    be written they are decoded into memory.
    """

    def fill(rows: slice, block: Tensor) -> None:
        for row, image in zip(block, decoded(paths[rows], size, channels), strict=True):
            if isinstance(image, DataError):
                raise image
            row.copy_(image)

    if len(paths) >= FEW:
        data = data or common(paths)
        this = entry(paths, size, channels, data)
        x = found(this, data)
        if x is None:
            with counted(common(paths).name, len(paths)) as told:
                x = made(this, data, fill, told)
        if x is not None:
            return x
    x = torch.empty((len(paths), channels, size, size), dtype=torch.uint8)
    fill(slice(None), x)
    return x


def decode(path: Path, size: int, channels: int) -> Tensor:
    """An image file as uint8 channels×size×size: the aspect is not kept, as the papers do it."""
    from PIL import Image

    try:
        with Image.open(path) as image:
            if image.mode == "P":  # a palette may have transparent colours
                image = image.convert("RGBA")  # type: ignore[assignment]
            if image.mode.startswith("I;16"):  # Pillow would make all white that is not black
                image = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))  # type: ignore[assignment]
            plain = image.convert("L" if channels == 1 else "RGB")
        if plain.size != (size, size):
            plain = plain.resize((size, size), Image.Resampling.BILINEAR)
    except (OSError, SyntaxError, ValueError, EOFError, Image.DecompressionBombError) as why:
        raise DataError(
            f"{path} is not a readable image ({why}); replace it or take it out"
        ) from None
    pixels = torch.from_numpy(np.array(plain, np.uint8))
    return pixels.view(size, size, channels).permute(2, 0, 1).contiguous()


def decoded(paths: Sequence[Path], size: int, channels: int) -> Iterator[Tensor | DataError]:
    """Every image in order; a broken one is an error returned, not raised."""

    def attempt(path: Path) -> Tensor | DataError:
        try:
            return decode(path, size, channels)
        except DataError as error:
            return error

    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        yield from pool.map(attempt, paths)
