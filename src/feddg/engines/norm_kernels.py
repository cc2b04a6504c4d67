"""The programs of `fast_norms`, in Triton. A map is read as rows (pixels) of channels.

`part` holds two sums for every piece of the rows; `kept` the mean and 1 / standard deviation.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from feddg.engines.fast_norms import MOST, pieces

constexpr = tl.constexpr
CHANNELS = 16  # that one program adds up


@triton.jit
def spread(x, part, rows, C, STEPS: constexpr, TALL: constexpr, WIDE: constexpr):
    """Sums of x - s and (x - s)^2, s the first pixel: near enough to the mean to lose no digits."""
    piece = tl.program_id(0)
    c = tl.program_id(1) * WIDE + tl.arange(0, WIDE)
    shift = tl.load(x + c, c < C, other=0.0).to(tl.float32)
    one = tl.zeros([TALL, WIDE], tl.float32)
    two = tl.zeros([TALL, WIDE], tl.float32)
    for k in range(STEPS):
        r = (piece * STEPS + k) * TALL + tl.arange(0, TALL)
        inside = (r < rows)[:, None] & (c < C)[None, :]
        v = tl.load(x + r[:, None] * C + c[None, :], inside, other=0.0).to(tl.float32)
        v = tl.where(inside, v - shift[None, :], 0.0)
        one += v
        two += v * v
    tl.store(part + 2 * piece * C + c, tl.sum(one, 0), c < C)
    tl.store(part + (2 * piece + 1) * C + c, tl.sum(two, 0), c < C)


@triton.jit
def settle(
    x, part, kept, mean, var, rows, C, count, momentum, eps, COUNT: constexpr, WIDE: constexpr
):
    """Mean and 1 / deviation of the batch; the running ones follow."""
    c = tl.program_id(0) * WIDE + tl.arange(0, WIDE)
    p = tl.arange(0, COUNT)
    inside = (p < count)[:, None] & (c < C)[None, :]
    at = 2 * p[:, None] * C + c[None, :]
    one = tl.sum(tl.load(part + at, inside, other=0.0), 0) / rows
    two = tl.sum(tl.load(part + at + C, inside, other=0.0), 0) / rows
    middle = one + tl.load(x + c, c < C, other=0.0).to(tl.float32)
    scatter = tl.maximum(two - one * one, 0.0)
    tl.store(kept + c, middle, c < C)
    tl.store(kept + C + c, 1.0 / tl.sqrt(scatter + eps), c < C)
    before = tl.load(mean + c, c < C, other=0.0).to(tl.float32)
    tl.store(mean + c, before + momentum * (middle - before), c < C)
    before = tl.load(var + c, c < C, other=0.0).to(tl.float32)
    unbiased = scatter * (rows / tl.maximum(rows - 1.0, 1.0))
    tl.store(var + c, before + momentum * (unbiased - before), c < C)


@triton.jit
def normalise(x, y, weight, bias, kept, rows, C, TALL: constexpr, WIDE: constexpr):
    r = tl.program_id(0) * TALL + tl.arange(0, TALL)
    c = tl.program_id(1) * WIDE + tl.arange(0, WIDE)
    inside = (r < rows)[:, None] & (c < C)[None, :]
    at = r[:, None] * C + c[None, :]
    scale = tl.load(kept + C + c, c < C, other=0.0) * tl.load(weight + c, c < C, other=0.0)
    offset = tl.load(bias + c, c < C, other=0.0) - tl.load(kept + c, c < C, other=0.0) * scale
    v = tl.load(x + at, inside, other=0.0).to(tl.float32)
    tl.store(y + at, v * scale[None, :] + offset[None, :], inside)


@triton.jit
def slopes(g, x, part, kept, rows, C, STEPS: constexpr, TALL: constexpr, WIDE: constexpr):
    """Sums of the slope and of the slope times the normalised x."""
    piece = tl.program_id(0)
    c = tl.program_id(1) * WIDE + tl.arange(0, WIDE)
    middle = tl.load(kept + c, c < C, other=0.0)
    narrow = tl.load(kept + C + c, c < C, other=0.0)
    one = tl.zeros([TALL, WIDE], tl.float32)
    two = tl.zeros([TALL, WIDE], tl.float32)
    for k in range(STEPS):
        r = (piece * STEPS + k) * TALL + tl.arange(0, TALL)
        inside = (r < rows)[:, None] & (c < C)[None, :]
        at = r[:, None] * C + c[None, :]
        d = tl.load(g + at, inside, other=0.0).to(tl.float32)
        v = tl.load(x + at, inside, other=0.0).to(tl.float32)
        one += d
        two += d * (v - middle[None, :]) * narrow[None, :]
    tl.store(part + 2 * piece * C + c, tl.sum(one, 0), c < C)
    tl.store(part + (2 * piece + 1) * C + c, tl.sum(two, 0), c < C)


@triton.jit
def total(part, sums, C, count, COUNT: constexpr, WIDE: constexpr):
    """First the bias's slope, then the weight's."""
    c = tl.program_id(0) * WIDE + tl.arange(0, WIDE)
    p = tl.arange(0, COUNT)
    inside = (p < count)[:, None] & (c < C)[None, :]
    at = 2 * p[:, None] * C + c[None, :]
    tl.store(sums + c, tl.sum(tl.load(part + at, inside, other=0.0), 0), c < C)
    tl.store(sums + C + c, tl.sum(tl.load(part + at + C, inside, other=0.0), 0), c < C)


@triton.jit
def descend(g, x, dx, weight, kept, sums, rows, C, TALL: constexpr, WIDE: constexpr):
    r = tl.program_id(0) * TALL + tl.arange(0, TALL)
    c = tl.program_id(1) * WIDE + tl.arange(0, WIDE)
    inside = (r < rows)[:, None] & (c < C)[None, :]
    at = r[:, None] * C + c[None, :]
    middle = tl.load(kept + c, c < C, other=0.0)
    narrow = tl.load(kept + C + c, c < C, other=0.0)
    one = tl.load(sums + c, c < C, other=0.0) / rows
    two = tl.load(sums + C + c, c < C, other=0.0) / rows
    scale = narrow * tl.load(weight + c, c < C, other=0.0)
    d = tl.load(g + at, inside, other=0.0).to(tl.float32)
    v = (tl.load(x + at, inside, other=0.0).to(tl.float32) - middle[None, :]) * narrow[None, :]
    tl.store(dx + at, (d - one[None, :] - v * two[None, :]) * scale[None, :], inside)


def sizes(x: Tensor) -> tuple[int, int, tuple[int, int, int, int], tuple[int, int]]:
    """Rows, channels, `pieces`, and the grid of tiles."""
    channels = x.shape[1]
    rows = x.numel() // channels
    cut = pieces(rows, channels)
    tiles = (triton.cdiv(rows, cut[0]), triton.cdiv(channels, cut[1]))
    return rows, channels, cut, tiles


def forward(
    x: Tensor, weight: Tensor, bias: Tensor, mean: Tensor, var: Tensor, momentum: float, eps: float
) -> tuple[Tensor, Tensor]:
    """The normalised map, and what the way back needs."""
    rows, C, (tall, wide, count, steps), tiles = sizes(x)
    part = torch.empty(2 * count * C, dtype=torch.float32, device=x.device)
    kept, y = torch.empty(2 * C, dtype=torch.float32, device=x.device), torch.empty_like(x)
    spread[(count, tiles[1])](x, part, rows, C, steps, tall, wide)
    settle[(triton.cdiv(C, CHANNELS),)](
        x, part, kept, mean, var, rows, C, count, momentum, eps, MOST, CHANNELS
    )
    normalise[tiles](x, y, weight, bias, kept, rows, C, tall, wide)
    return y, kept


def backward(slope: Tensor, x: Tensor, weight: Tensor, kept: Tensor) -> Any:
    """The slopes of the map, of the weight and of the bias."""
    rows, C, (tall, wide, count, steps), tiles = sizes(x)
    slope = slope.contiguous(memory_format=torch.channels_last)
    part = torch.empty(2 * count * C, dtype=torch.float32, device=x.device)
    sums, dx = torch.empty(2 * C, dtype=torch.float32, device=x.device), torch.empty_like(x)
    slopes[(count, tiles[1])](slope, x, part, kept, rows, C, steps, tall, wide)
    total[(triton.cdiv(C, CHANNELS),)](part, sums, C, count, MOST, CHANNELS)
    descend[tiles](slope, x, dx, weight, kept, sums, rows, C, tall, wide)
    return dx, sums[C:].to(weight.dtype), sums[:C].to(weight.dtype)
