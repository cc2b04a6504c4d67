"""Augmentations of images: drawn anew in every training step, every image with its own draw.

They come before `prepare`, on uint8 or float N×C×H×W; pure, so also under `vmap`. uint8 images
stay uint8 (see `feddg.data.levels`).
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Generator, Tensor

from feddg.data.colour import Grayscale, Jitter
from feddg.data.crop import Crop
from feddg.data.levels import singly
from feddg.data.randaugment import RandAugment
from feddg.errors import ConfigError, unknown
from feddg.parts.spectra import AmplitudeMix
from feddg.trees import Tensors, part


@part()
class Flip:
    """Left becomes right with probability `p`."""

    p: float = 0.5
    at: str = ""

    def __post_init__(self) -> None:
        if not 0 <= self.p <= 1:
            raise ConfigError(f"flip: p must be a probability, not {self.p:g}")

    def draw(self, rng: Generator, n: int) -> Tensors:
        return {"flipped": torch.rand(n, generator=rng) < self.p}

    def apply(self, value: Tensor, draw: Tensors) -> Tensor:
        if singly(value):
            out = value.clone()
            for i in draw["flipped"].nonzero()[:, 0].tolist():
                out[i] = value[i].flip(-1)
            return out
        return torch.where(draw["flipped"][:, None, None, None], value.flip(-1), value)


@part()
class Shift:
    """Down and to the right by −pixels … pixels each; 0 comes in from outside."""

    pixels: int = 4
    at: str = ""

    def __post_init__(self) -> None:
        if self.pixels < 0:
            raise ConfigError(f"shift: pixels must not be negative, not {self.pixels}")

    def draw(self, rng: Generator, n: int) -> Tensors:
        return {"by": torch.randint(-self.pixels, self.pixels + 1, (n, 2), generator=rng)}

    def apply(self, value: Tensor, draw: Tensors) -> Tensor:
        shape = value.shape
        down, right = draw["by"].unbind(1)
        row = torch.arange(shape[2], device=value.device) - down[:, None]
        column = torch.arange(shape[3], device=value.device) - right[:, None]
        rows = row.clamp(0, shape[2] - 1)[:, None, :, None].expand(shape)
        columns = column.clamp(0, shape[3] - 1)[:, None, None, :].expand(shape)
        inside = _inside(row, shape[2])[:, None, :, None] & _inside(column, shape[3])[:, None, None]
        return torch.where(inside, value.gather(2, rows).gather(3, columns), 0)


__all__ = ["IMAGES", "Crop", "Flip", "Grayscale", "Jitter", "Shift", "augmentation"]

IMAGES = (Crop, Flip, Shift, Jitter, Grayscale, RandAugment, AmplitudeMix)
KINDS: dict[str, Callable[[str], Any]] = {  # by the text after "=", if there is any
    "crop": lambda text: Crop(float(text)) if text else Crop(),
    "flip": lambda text: Flip(float(text)) if text else Flip(),
    "shift": lambda text: Shift(int(text)) if text else Shift(),
    "jitter": lambda text: _jitter(text) if text else Jitter(),
    "grayscale": lambda text: Grayscale(float(text)) if text else Grayscale(),
    "randaugment": lambda text: RandAugment(int(text)) if text else RandAugment(),
    "cutout": lambda text: RandAugment(0, cutout=int(text) if text else 16),
    "amplitude-mix": lambda text: AmplitudeMix(0.5, float(text) if text else 1.0),
}


def augmentation(given: str | tuple[Any, ...]) -> tuple[Any, ...]:
    """From text such as "crop=0.7,flip,jitter=0.4,grayscale=0.1", in this order.

    Transforms stay as they are.

    crop=S             a random rectangle of S … 1 of the area, magnified
    flip=P             left to right, with probability P
    shift=N            by up to N pixels
    jitter=X           brightness, contrast, saturation, hue; X/X/X/X, the last may be missing: 0
    grayscale=P        with probability P
    randaugment=N      N random operations
    cutout=N           a black square of N pixels a side
    amplitude-mix=X    up to the share X of another image's amplitude spectrum
    """
    if not isinstance(given, str):
        return given
    made = []
    for item in filter(None, (piece.strip() for piece in given.split(","))):
        name, _, text = item.partition("=")
        if name not in KINDS:
            raise unknown("augmentation", name, KINDS)
        try:
            made.append(KINDS[name](text))
        except ValueError:
            raise ConfigError(f"augmentation {item!r}: {text!r} is not a fit number") from None
    return tuple(made)


def _jitter(text: str) -> Jitter:
    """One number for all four, or each its own."""
    given = [float(v) for v in text.split("/")]
    if len(given) > 4:
        raise ValueError
    b, c, s, h = given * 4 if len(given) == 1 else (*given, 0.0, 0.0, 0.0)[:4]
    return Jitter(b, c, s, h)


def _inside(at: Tensor, size: int) -> Tensor:
    return (at >= 0) & (at < size)
