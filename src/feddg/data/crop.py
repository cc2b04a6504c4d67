"""Random resized crop: a rectangle of the image, its own for each, magnified to the whole size."""

from math import log

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from feddg.constants import constant
from feddg.data.levels import fused, levels, singly
from feddg.errors import ConfigError
from feddg.trees import Tensors, part

TRIES = 10  # of a rectangle that fits; then it is the whole image


@part()
class Crop:
    """A rectangle of whole pixels, a share `scale` … 1 of the area, 1/ratio … ratio wide to high.

    As torchvision's RandomResizedCrop: the share is uniform, the ratio log-uniform, the first of
    ten tries that fits is taken, its place is uniform. The ratio is that of an image with equal
    sides, which all ours are that come from files. Bilinear, pixels beyond the rectangle's edge
    repeat the edge; antialiasing would change nothing, since nothing is ever made smaller.
    """

    scale: float = 0.7
    ratio: float = 4 / 3
    at: str = ""

    def __post_init__(self) -> None:
        if not 0 < self.scale <= 1 or self.ratio < 1:
            raise ConfigError(
                f"crop: the least share must be above 0 and at most 1, not {self.scale:g}, and the"
                f" ratio at least 1, not {self.ratio:g}"
            )

    def draw(self, rng: Generator, n: int) -> Tensors:
        """`extent`: height and width as shares of the sides; `place`: where, of what is left."""
        area = self.scale + (1 - self.scale) * torch.rand(n, TRIES, generator=rng)
        shape = (log(self.ratio) * (2 * torch.rand(n, TRIES, generator=rng) - 1)).exp()
        tried = torch.stack([area / shape, area * shape], 2).sqrt()
        fits = (tried <= 1).all(2)
        first = fits.int().argmax(1)
        extent = tried[torch.arange(n), first].where(fits.any(1)[:, None], torch.ones(()))
        return {"extent": extent, "place": torch.rand(n, 2, generator=rng)}

    def apply(self, value: Tensor, draw: Tensors) -> Tensor:
        if program := fused(value):
            return program.crop(value, draw["extent"], draw["place"])
        start, size = rectangles(value, draw)
        return one_by_one(value, start, size) if singly(value) else at_once(value, start, size)


def rectangles(value: Tensor, draw: Tensors) -> tuple[Tensor, Tensor]:
    """First row and column, and height and width, n×2 whole numbers as floats."""
    sides = constant(tuple(map(float, value.shape[-2:])), draw["extent"])
    size = (draw["extent"] * sides).round().clamp_min(1)
    return (draw["place"] * (sides - size + 1)).floor(), size


def one_by_one(value: Tensor, start: Tensor, size: Tensor) -> Tensor:
    out, shape = torch.empty_like(value), value.shape[-2:]
    corners, extents = start.int().tolist(), size.int().tolist()
    for i, ((top, left), (high, wide)) in enumerate(zip(corners, extents, strict=True)):
        cut = value[i : i + 1, :, top : top + high, left : left + wide]
        same = (high, wide) == tuple(shape)
        out[i] = (cut if same else F.interpolate(cut, shape, mode="bilinear"))[0]
    return out


def at_once(value: Tensor, start: Tensor, size: Tensor) -> Tensor:
    """The same numbers by one sampling of the batch."""
    x = value if value.is_floating_point() else value.float()
    (rows, columns), n = value.shape[-2:], len(value)
    down, right = (
        sampled(side, start[:, i, None], size[:, i, None]) for i, side in enumerate((rows, columns))
    )
    across = right[:, None, :].expand(n, rows, columns)
    grid = torch.stack([across, down[:, :, None].expand(n, rows, columns)], -1)
    found = F.grid_sample(x, grid.to(x.dtype), padding_mode="border", align_corners=False)
    return found if value.is_floating_point() else levels(found)


def sampled(side: int, start: Tensor, size: Tensor) -> Tensor:
    """Where the pixels of the result lie along one axis, between −1 and 1 from edge to edge."""
    pixel = torch.arange(side, device=start.device, dtype=start.dtype) + 0.5
    within = torch.minimum((pixel * (size / side)).clamp_min(0.5), size - 0.5)
    return (start + within) * (2 / side) - 1
