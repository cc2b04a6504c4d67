"""Image files as one uint8 tensor."""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from feddg.errors import DataError


def stored(paths: Sequence[Path], size: int, channels: int) -> Tensor:
    """All images, uint8 N×channels×size×size; a broken one raises."""
    x = torch.empty((len(paths), channels, size, size), dtype=torch.uint8)
    for row, image in zip(x, decoded(paths, size, channels), strict=True):
        if isinstance(image, DataError):
            raise image
        row.copy_(image)
    return x


def decode(path: Path, size: int, channels: int) -> Tensor:
    """An image file as uint8 channels×size×size: the aspect is not kept, as the papers do it."""
    from PIL import Image

    try:
        with Image.open(path) as image:
            if image.mode == "P":  # a palette may have transparent colours
                image = image.convert("RGBA")  # type: ignore[assignment]
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
