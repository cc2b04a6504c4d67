"""Augmentations of images: drawn anew in every training step, every image with its own draw.

They come before `prepare`, on uint8 or float N×C×H×W; pure, so also under `vmap`.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Generator, Tensor

from feddg.errors import ConfigError, unknown
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


@part()
class Jitter:
    """x ← bx, then x ← x + (c − 1)(x − its mean); b in 1 ± brightness, c in 1 ± contrast.

    uint8 is rounded and kept within 0…255; floats, whose range is not known, are not clipped.
    """

    brightness: float = 0.4
    contrast: float = 0.4
    at: str = ""

    def __post_init__(self) -> None:
        if not (0 <= self.brightness <= 1 and 0 <= self.contrast <= 1):
            given = f"{self.brightness:g} and {self.contrast:g}"
            raise ConfigError(f"jitter: brightness and contrast must be in 0…1, not {given}")

    def draw(self, rng: Generator, n: int) -> Tensors:
        b, c = 2 * torch.rand(2, n, generator=rng) - 1
        return {"brightness": 1 + self.brightness * b, "contrast": 1 + self.contrast * c}

    def apply(self, value: Tensor, draw: Tensors) -> Tensor:
        b, c = (draw[k][:, None, None, None] for k in ("brightness", "contrast"))
        whole = value.dtype == torch.uint8
        x = (value.float() if whole else value) * b.to(torch.float32 if whole else value.dtype)
        x = x + (c.to(x.dtype) - 1) * (x - x.mean((1, 2, 3), keepdim=True))
        return x.round().clamp(0, 255).to(torch.uint8) if whole else x


IMAGES = (Flip, Shift, Jitter)
KINDS: dict[str, Callable[[str], Any]] = {  # by the text after "=", if there is any
    "flip": lambda text: Flip(float(text)) if text else Flip(),
    "shift": lambda text: Shift(int(text)) if text else Shift(),
    "jitter": lambda text: Jitter(float(text), float(text)) if text else Jitter(),
}


def augmentation(given: str | tuple[Any, ...]) -> tuple[Any, ...]:
    """From text such as "flip,shift=4,jitter=0.4", in this order; transforms stay as they are."""
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


def _inside(at: Tensor, size: int) -> Tensor:
    return (at >= 0) & (at < size)
