"""What windows over an image see and give back, in Triton: each a single pass over memory.

Images are B x H x W x C, contiguous. Every program makes BLOCK numbers of the result; all sizes are
constants of the compiled program, so that places cost shifts and multiplications.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

constexpr = tl.constexpr
BLOCK = 1024
LONGEST = 2**31 - 1  # indices are of 32 bits
Window = tuple[int, int, int, int]


@triton.jit
def see(
    x, out, total, H: constexpr, W: constexpr, C: constexpr, h: constexpr, w: constexpr,
    DOWN: constexpr, RIGHT: constexpr, UP: constexpr, LEFT: constexpr, BLOCK: constexpr,
):  # fmt: skip
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    c = at % C
    j = (at // C) % RIGHT
    i = (at // (C * RIGHT)) % DOWN
    pixel = at // (C * RIGHT * DOWN)
    b = pixel // (w * h)
    row = (pixel // w) % h * UP + i
    column = pixel % w * LEFT + j
    value = tl.load(x + ((b * H + row) * W + column) * C + c, at < total)
    tl.store(out + at, value, at < total)


@triton.jit
def overlay(
    x, out, total, H: constexpr, W: constexpr, C: constexpr, h: constexpr, w: constexpr,
    DOWN: constexpr, RIGHT: constexpr, UP: constexpr, LEFT: constexpr, SUM: constexpr,
    BLOCK: constexpr,
):  # fmt: skip
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    c = at % C
    column = (at // C) % W
    row = (at // (C * W)) % H
    b = at // (C * W * H)
    found = tl.zeros([BLOCK], SUM)
    for i in tl.static_range(DOWN):
        for j in tl.static_range(RIGHT):
            y = (row - i) // UP
            z = (column - j) // LEFT
            fits = (row >= i) & (column >= j) & (y < h) & (z < w) & (at < total)
            fits = fits & (y * UP == row - i) & (z * LEFT == column - j)
            place = (((b * h + y) * w + z) * DOWN + i) * RIGHT + j
            found += tl.load(x + place * C + c, fits, other=0.0).to(SUM)
    tl.store(out + at, found, at < total)


@triton.jit
def pool(
    x, out, which, total, H: constexpr, W: constexpr, C: constexpr, h: constexpr, w: constexpr,
    SIDE: constexpr, BLOCK: constexpr,
):  # fmt: skip
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    c = at % C
    column = (at // C) % w * SIDE
    row = (at // (C * w)) % h * SIDE
    first = (((at // (C * w * h)) * H + row) * W + column) * C + c
    best = tl.load(x + first, at < total)
    where = tl.zeros([BLOCK], tl.int8)
    for i in tl.static_range(SIDE):
        for j in tl.static_range(SIDE):
            value = tl.load(x + first + (i * W + j) * C, at < total)
            better = (value > best) | (value != value)  # of equals the first; NaN wins
            best = tl.where(better, value, best)
            where = tl.where(better, i * SIDE + j, where).to(tl.int8)
    tl.store(out + at, best, at < total)
    tl.store(which + at, where, at < total)


@triton.jit
def unpool(
    slope, which, out, total, H: constexpr, W: constexpr, C: constexpr, h: constexpr, w: constexpr,
    SIDE: constexpr, BLOCK: constexpr,
):  # fmt: skip
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    c = at % C
    column = (at // C) % W
    row = (at // (C * W)) % H
    y = row // SIDE
    z = column // SIDE
    inside = (y < h) & (z < w) & (at < total)
    place = (((at // (C * W * H)) * h + y) * w + z) * C + c
    mine = tl.load(which + place, inside, other=-1) == (row % SIDE) * SIDE + column % SIDE
    tl.store(out + at, tl.load(slope + place, inside & mine, other=0.0), at < total)


def grid(result: Tensor) -> tuple[int]:
    return (triton.cdiv(result.numel(), BLOCK),)


def seen(x: Tensor, window: Window) -> Tensor:
    """B x h x w x (DOWN RIGHT C): what every output pixel sees."""
    batch, H, W, C = x.shape
    down, right, up, left = window
    h, w = (H - down) // up + 1, (W - right) // left + 1
    out = x.new_empty(batch, h, w, down * right * C)
    see[grid(out)](x.contiguous(), out, out.numel(), H, W, C, h, w, *window, BLOCK)
    return out


def overlaid(patches: Tensor, window: Window, size: tuple[int, int]) -> Tensor:
    """Back to images of `size`, adding up where patches overlap."""
    batch, h, w, numbers = patches.shape
    C = numbers // (window[0] * window[1])
    out = patches.new_empty(batch, *size, C)
    total = tl.float64 if patches.dtype == torch.float64 else tl.float32
    overlay[grid(out)](
        patches.contiguous(), out, out.numel(), *size, C, h, w, *window, total, BLOCK
    )
    return out


def pooled(x: Tensor, side: int) -> tuple[Tensor, Tensor]:
    """The greatest of every side x side square, and which one it is."""
    batch, H, W, C = x.shape
    out = x.new_empty(batch, H // side, W // side, C)
    which = torch.empty_like(out, dtype=torch.int8)
    h, w = out.shape[1:3]
    pool[grid(out)](x.contiguous(), out, which, out.numel(), H, W, C, h, w, side, BLOCK)
    return out, which


def unpooled(slope: Tensor, which: Tensor, side: int, size: tuple[int, int]) -> Tensor:
    batch, h, w, C = slope.shape
    out = slope.new_empty(batch, *size, C)
    unpool[grid(out)](slope.contiguous(), which, out, out.numel(), *size, C, h, w, side, BLOCK)
    return out
