"""RandAugment and Cutout on a batch, every image with its own draw; pure, so also under vmap.

The reading of Dassl's `randaugment2`, which COPA's settings are those of: `n` operations, drawn
with replacement, each applied with probability `p` at a uniform magnitude; then one black square.

photometric   autocontrast, brightness, colour, contrast (0.1 … 1.9), equalise, identity, invert,
              posterise (4 … 7 bits), sharpness (0.1 … 1.9), solarise (0 … 256)
geometric     rotate (±30°), shear in x and y (±0.3), shift in x and y (±0.3 of the side);
              bilinear, black outside (PIL's, which Dassl calls, take the nearest pixel)
"""

from collections.abc import Callable
from dataclasses import replace
from math import pi
from typing import Any

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from feddg.constants import constant
from feddg.data.levels import TOP, levels, singly
from feddg.errors import ConfigError
from feddg.local import Job, prepared
from feddg.trees import Tensors, part

Numbers = tuple[float, ...]


def blend(base: Tensor | float, x: Tensor, v: Tensor) -> Tensor:
    return (base + v * (x - base)).clamp(0, 1)


def grey(x: Tensor) -> Tensor:
    """Luminance (ITU-R 601) of three channels, the mean of any other number."""
    if x.shape[1] != 3:
        return x.mean(1, keepdim=True)
    return 0.299 * x[:, :1] + 0.587 * x[:, 1:2] + 0.114 * x[:, 2:]


def autocontrast(x: Tensor, v: Tensor) -> Tensor:
    low, high = x.amin((2, 3), keepdim=True), x.amax((2, 3), keepdim=True)
    return torch.where(high > low, (x - low) / (high - low).clamp_min(1e-12), x)


def brightness(x: Tensor, v: Tensor) -> Tensor:
    return (v * x).clamp(0, 1)


def colour(x: Tensor, v: Tensor) -> Tensor:
    return blend(grey(x), x, v)


def contrast(x: Tensor, v: Tensor) -> Tensor:
    return blend(grey(x).mean((2, 3), keepdim=True), x, v)


def equalise(x: Tensor, v: Tensor) -> Tensor:
    """Per channel, by the histogram of 256 levels, in integers as PIL does it."""
    level = (255 * x).round().long().flatten(2)
    bins = torch.zeros_like(level[..., :1]).repeat(1, 1, 256)
    histogram = bins.scatter_add(2, level, torch.ones_like(level))
    brightest = histogram.gather(2, level.amax(2, keepdim=True))
    step = (level.shape[2] - brightest).div(255, rounding_mode="floor")
    start = histogram.cumsum(2) - histogram + step.div(2, rounding_mode="floor")
    table = start.div(step.clamp_min(1), rounding_mode="floor")
    spread = table.clamp_max(255).gather(2, level).view(x.shape).to(x.dtype) / 255
    return torch.where(step[..., None] > 0, spread, x)


def identity(x: Tensor, v: Tensor) -> Tensor:
    return x


def invert(x: Tensor, v: Tensor) -> Tensor:
    return 1 - x


def posterise(x: Tensor, v: Tensor) -> Tensor:
    """Keeps the upper ⌊v⌋ bits of 8."""
    width = 2 ** (8 - v.floor())
    return ((255 * x).round() / width).floor() * (width / 255)


def sharpness(x: Tensor, v: Tensor) -> Tensor:
    """Against a 3×3 smoothing (centre 5, others 1, of 13) that leaves the border alone."""
    inner = x[..., 1:-1, 1:-1]
    rows = x[..., :-2, :] + x[..., 1:-1, :] + x[..., 2:, :]
    square = rows[..., :-2] + rows[..., 1:-1] + rows[..., 2:]
    return blend(x + F.pad((square - 9 * inner) / 13, (1, 1, 1, 1)), x, v)


def solarise(x: Tensor, v: Tensor) -> Tensor:
    return torch.where(255 * x < v, x, 1 - x)


def moved(x: Tensor, angle: Tensor, shear: Tensor, shift: Tensor) -> Tensor:
    """Turned by `angle` degrees about the centre, sheared from the upper left corner, shifted.

    `shear` and `shift`, a share of the side, are B×2, for x and y.
    """
    height, width = x.shape[-2:]
    X, Y = (
        ((torch.arange(n, device=x.device) + 0.5) * (2 / n) - 1).to(x.dtype)
        for n in (width, height)
    )
    X, Y = X[None, None, :], Y[None, :, None]
    turn = (angle * (pi / 180))[:, None, None]
    tall, shear, shift = height / width, shear[:, :, None, None], shift[:, :, None, None]
    at_x = turn.cos() * X - tall * turn.sin() * Y + tall * shear[:, 0] * (Y + 1) + 2 * shift[:, 0]
    at_y = turn.sin() / tall * X + turn.cos() * Y + shear[:, 1] / tall * (X + 1) + 2 * shift[:, 1]
    return F.grid_sample(x, torch.stack([at_x, at_y], -1), align_corners=False)


Operation = Callable[[Tensor, Tensor], Tensor]
PHOTOMETRIC: tuple[tuple[Operation, float, float], ...] = (
    (autocontrast, 0, 1),
    (brightness, 0.1, 1.9),
    (colour, 0.1, 1.9),
    (contrast, 0.1, 1.9),
    (equalise, 0, 1),
    (identity, 0, 1),
    (invert, 0, 1),
    (posterise, 4, 8),
    (sharpness, 0.1, 1.9),
    (solarise, 0, 256),
)
ROTATE, SHEAR_X, SHEAR_Y, SHIFT_X, SHIFT_Y = range(len(PHOTOMETRIC), len(PHOTOMETRIC) + 5)
RANGES = (*((low, high) for _, low, high in PHOTOMETRIC), (-30, 30), *[(-0.3, 0.3)] * 4)


@part()
class RandAugment:
    """A transform of images, normalised or not.

    low, high   black and white per channel as the model sees them (see `extremes`); where they
                are not known they are 0 and 255 of uint8, the batch's own extremes of floats
    cutout      the square's side in pixels, 0 for none; its centre is uniform, so that it may
                stick out
    """

    n: int = 2
    p: float = 0.6
    geometric: bool = True
    cutout: int = 0
    low: Numbers = ()
    high: Numbers = ()
    at: str = ""

    def __post_init__(self) -> None:
        if self.n < 0 or not 0 <= self.p <= 1 or self.cutout < 0:
            raise ConfigError(
                f"RandAugment: n={self.n} and cutout={self.cutout} must not be negative,"
                f" and p={self.p} must be a probability"
            )

    def draw(self, rng: Generator, n: int) -> Tensors:
        kinds = len(RANGES) if self.geometric else len(PHOTOMETRIC)
        return {
            "operation": torch.randint(kinds, (n, self.n), generator=rng),
            "applied": torch.rand(n, self.n, generator=rng) < self.p,
            "magnitude": torch.rand(n, self.n, generator=rng),
            "centre": torch.rand(n, 2, generator=rng),
        }

    def apply(self, value: Tensor, draw: Tensors) -> Tensor:
        if value.dtype == torch.uint8:
            known = replace(self, low=(0.0,), high=(float(TOP),))
            return levels(known.apply(value.float(), draw))
        black, span = self.scale(value)
        x = before = ((value - black) / span).clamp(0, 1)
        for i in range(self.n):
            operation = torch.where(draw["applied"][:, i], draw["operation"][:, i], -1)
            x = self.operated(x, operation, draw["magnitude"][:, i].to(x.dtype))
        changed = (draw["applied"].any(1)[:, None, None, None]) & (x != before)
        value = torch.where(changed, x * span + black, value)  # else to the bit what it was
        if self.cutout:
            value = torch.where(self.square(value, draw["centre"]), black, value)
        return value

    def scale(self, value: Tensor) -> tuple[Tensor, Tensor]:
        """Black, and the way from there to white."""
        if self.low:
            low, high = (constant(v, value)[:, None, None] for v in (self.low, self.high))
        else:
            low, high = value.amin((0, 2, 3))[:, None, None], value.amax((0, 2, 3))[:, None, None]
        return low, (high - low).clamp_min(1e-6)

    def operated(self, x: Tensor, operation: Tensor, magnitude: Tensor) -> Tensor:
        """One operation on every image, its own; −1 is none."""
        ends = constant(RANGES, x)
        low, high = ends[:, 0][operation], ends[:, 1][operation]
        v = low + magnitude * (high - low)
        if singly(x):
            return one_by_one(x, operation.tolist(), v)
        op, wide, y = operation[:, None, None, None], v[:, None, None, None], x
        for i, (apply, _, _) in enumerate(PHOTOMETRIC):
            if apply is not identity:
                y = torch.where(op == i, apply(x, wide), y)
        if not self.geometric:
            return y
        angle, *rest = (torch.where(operation == i, v, 0) for i in range(ROTATE, len(RANGES)))
        shear, shift = torch.stack(rest[:2], 1), torch.stack(rest[2:], 1)
        return torch.where(op >= ROTATE, moved(x, angle, shear, shift), y)

    def square(self, x: Tensor, centre: Tensor) -> Tensor:
        """Where the black square lies, B×1×H×W."""
        sides = []
        for size, at in zip(x.shape[-2:], centre.unbind(1), strict=True):
            start = (at * size).floor() - self.cutout // 2
            pixel = torch.arange(size, device=x.device)
            sides.append((pixel >= start[:, None]) & (pixel < start[:, None] + self.cutout))
        return (sides[0][:, :, None] & sides[1][:, None])[:, None]


def one_by_one(x: Tensor, operation: list[int], v: Tensor) -> Tensor:
    out = x.clone()
    for i, k in enumerate(operation):
        image, value = x[i : i + 1], v[i : i + 1]
        if k >= ROTATE:
            angle, *rest = (
                value if k == kind else 0 * value for kind in range(ROTATE, len(RANGES))
            )
            out[i] = moved(image, angle, torch.stack(rest[:2], 1), torch.stack(rest[2:], 1))[0]
        elif k >= 0:
            out[i] = PHOTOMETRIC[k][0](image, value[:, None, None, None])[0]
    return out


PHOTO = 64  # pixels: COPA cuts 16×16 out of photos (224) and nothing out of digits (32)


def fitted(augment: RandAugment, cutout: int | None, job: Job) -> RandAugment | None:
    """For a site's images, between its black and white; None for tables. `cutout` None: by size."""
    x = job.train.store
    if x.dim() != 4:
        return None
    side = (16 if min(x.shape[-2:]) >= PHOTO else 0) if cutout is None else cutout
    low, high = extremes(x, job.prepare)
    return replace(augment, cutout=side, low=low, high=high)


def extremes(x: Tensor, prepare: tuple[Any, ...]) -> tuple[Numbers, Numbers]:
    """Black and white per channel after `prepare`, for uint8 images; else unknown, () and ()."""
    if x.dtype != torch.uint8:
        return (), ()
    one = torch.zeros((1, *x.shape[1:]), dtype=torch.uint8)
    ends = (prepared(v, prepare).float().mean((0, 2, 3)) for v in (one, one + 255))
    low, high = (tuple(v.tolist()) for v in ends)
    return low, high
