"""A training or a test set of digits: pixels in memory, or image files still to be decoded."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from feddg.data.images import stored
from feddg.errors import DataError

CLASSES = 10
TOGETHER = 4096  # images that are resized in one call


@dataclass(frozen=True, eq=False)
class Part:
    """`pixels` as N×H×W×channels bytes, or `paths`; a label 0…9 for each."""

    labels: NDArray[np.int64]
    pixels: NDArray[np.uint8] | None = None
    paths: tuple[Path, ...] = ()

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, rows: Tensor, size: int, channels: int) -> Tensor:
        """These rows, uint8 N×channels×size×size."""
        if self.pixels is None:
            return stored([self.paths[k] for k in rows.tolist()], size, channels)
        pixels = self.pixels[rows.numpy()]
        if pixels.shape[1:3] != (size, size) or (channels == 1 and pixels.shape[3] == 3):
            pixels = _resized(pixels, size, channels)
        made = torch.from_numpy(np.ascontiguousarray(pixels.transpose(0, 3, 1, 2)))
        return made if made.shape[1] == channels else made.repeat(1, channels, 1, 1)


def of_arrays(images: Any, labels: Any, where: Path) -> Part:
    """However the images lie (see `pixels`), and labels as numbers or one-hot; 10 means 0."""
    numbers = numbered(np.asarray(labels), where)
    return Part(numbers, pixels(np.asarray(images), len(numbers), where))


def numbered(labels: NDArray[Any], where: Path) -> NDArray[np.int64]:
    if labels.ndim == 2 and labels.shape[1] == CLASSES and labels.shape[0] > 1:
        labels = labels.argmax(1)
    if labels.dtype.kind not in "iuf" or labels.size == 0:
        raise DataError(f"{where} has labels that are no numbers; get it again")
    numbers = labels.reshape(-1).astype(np.int64)
    numbers = np.where(numbers == CLASSES, 0, numbers)
    wrong = numbers[(numbers < 0) | (numbers >= CLASSES)]
    if len(wrong):
        raise DataError(f"{where}: label {wrong[0]} is out of range 0…9")
    return numbers


def pixels(images: NDArray[Any], count: int, where: Path) -> NDArray[np.uint8]:
    """To bytes N×H×W×channels, from N×H×W, N×H·W, N×C×H×W, N×H×W×C or H×W×C×N.

    Real numbers in 0…1 or −1…1 are stretched to 0…255.
    """
    x = images
    if x.dtype.kind not in "iuf" or x.size == 0:
        raise DataError(f"{where} has images that are no numbers; get it again")
    if x.ndim == 4 and x.shape[-1] == count and x.shape[2] in (1, 3):
        x = x.transpose(3, 0, 1, 2)
    elif x.ndim == 4 and x.shape[1] in (1, 3) and x.shape[3] not in (1, 3):
        x = x.transpose(0, 2, 3, 1)
    elif x.ndim == 2 and round(x.shape[1] ** 0.5) ** 2 == x.shape[1]:
        side = round(x.shape[1] ** 0.5)
        x = x.reshape(len(x), side, side, 1)
    elif x.ndim == 3:
        x = x[..., None]
    if x.ndim != 4 or x.shape[3] not in (1, 3):
        raise DataError(f"{where} has images of shape {images.shape}, which is no known layout")
    if len(x) != count:
        raise DataError(f"{where} has {len(x)} images but {count} labels; get it again")
    return _bytes(x, where)


def _bytes(x: NDArray[Any], where: Path) -> NDArray[np.uint8]:
    low, high = float(x.min()), float(x.max())
    if not (low >= -1 and high <= 255 and np.isfinite(low + high)) or (low < 0 and high > 1):
        raise DataError(f"{where} has pixels from {low:g} to {high:g}, not 0…255, 0…1 or −1…1")
    if x.dtype.kind == "f" and high <= 1:
        x = (x + 1) * 127.5 if low < 0 else x * 255
    return np.ascontiguousarray(np.rint(x).astype(np.uint8))


def _resized(pixels: NDArray[np.uint8], size: int, channels: int) -> NDArray[np.uint8]:
    """As Pillow resizes each image, but many in one call.

    Its bilinear filter goes along the rows, rounds, then along the columns: no matter which rows
    lie above, images one below the other make one high image whose width alone is changed.
    """
    out = []
    for at in range(0, len(pixels), TOGETHER):
        x = _mode(pixels[at : at + TOGETHER], channels)
        for _ in range(2):  # the width, then, turned over, the height
            x = _narrowed(x, size).transpose(0, 2, 1, 3)
        out.append(x)
    return np.concatenate(out)


def _mode(pixels: NDArray[np.uint8], channels: int) -> NDArray[np.uint8]:
    """Colours to grey, where grey is wanted."""
    if channels == 3 or pixels.shape[3] == 1:
        return pixels
    from PIL import Image

    count, height, width, _ = pixels.shape
    high = Image.fromarray(np.ascontiguousarray(pixels).reshape(count * height, width, 3))
    return np.asarray(high.convert("L")).reshape(count, height, width, 1)


def _narrowed(pixels: NDArray[np.uint8], size: int) -> NDArray[np.uint8]:
    from PIL import Image

    count, height, width, depth = pixels.shape
    rows = np.ascontiguousarray(pixels).reshape(count * height, width, *(depth,) * (depth > 1))
    done = Image.fromarray(rows).resize((size, count * height), Image.Resampling.BILINEAR)
    return np.asarray(done).reshape(count, height, size, depth)
