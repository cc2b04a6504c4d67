"""Augmentations of uint8 images on a GPU in one or two passes each, in Triton.

What `feddg.data.crop` and `feddg.data.colour` do at once takes a hundred small kernels, which
would cost a small network a third of its step. The same arithmetic; only .5 is rounded up.
"""
# mypy: ignore-errors
# Triton's language is not Python's: its pointers and sizes have no types.

import torch
import triton
import triton.language as tl
from torch import Tensor

constexpr = tl.constexpr
BLOCK = 1024  # pixels that one program holds
CONTRAST, HUE = constexpr(1), constexpr(3)  # the numbers that feddg.data.colour gives them


@triton.jit
def within(x, low, high):
    return tl.minimum(tl.maximum(x, low), high)


@triton.jit
def luminance(r, g, b):
    return 0.299 * r + 0.587 * g + 0.114 * b


@triton.jit
def channel(low, chroma, hue, peak):
    away = hue - peak
    away = tl.abs(away - 6 * tl.floor(away * (1 / 6) + 0.5))
    return low + chroma * within(2 - away, 0.0, 1.0)


@triton.jit
def turned(r, g, b, turns):
    """See feddg.data.colour.turned."""
    low = tl.minimum(tl.minimum(r, g), b)
    chroma = tl.maximum(tl.maximum(r, g), b) - low
    hue = (g + b - r - low) / tl.maximum(chroma, 1e-12) + 1
    hue = tl.where(g >= b, hue, -hue) + 6 * turns
    return (
        channel(low, chroma, hue, 0.0),
        channel(low, chroma, hue, 2.0),
        channel(low, chroma, hue, -2.0),
    )


@triton.jit
def changed(r, g, b, kind, factor, mean):
    """One of the four, by its number."""
    if kind == HUE:
        r, g, b = turned(r, g, b, factor)
    else:
        grey = luminance(r, g, b)
        base = tl.where(kind == CONTRAST, mean, tl.where(kind == 0, 0.0, grey))
        base = base * (1 - factor)
        r = within(r * factor + base, 0.0, 255.0)
        g = within(g * factor + base, 0.0, 255.0)
        b = within(b * factor + base, 0.0, 255.0)
    return r, g, b


@triton.jit
def pixels(x, image, size, at, inside):
    first = x + image * 3 * size + at
    return (
        tl.load(first, inside, other=0).to(tl.float32),
        tl.load(first + size, inside, other=0).to(tl.float32),
        tl.load(first + 2 * size, inside, other=0).to(tl.float32),
    )


@triton.jit
def written(y, image, size, at, inside, r, g, b):
    first = y + image * 3 * size + at
    tl.store(first, (r + 0.5).to(tl.uint8), inside)
    tl.store(first + size, (g + 0.5).to(tl.uint8), inside)
    tl.store(first + 2 * size, (b + 0.5).to(tl.uint8), inside)


@triton.jit
def sums(x, factors, order, part, size, WIDE: constexpr):
    """Of the luminance as the contrast finds it, by image and piece."""
    image, piece = tl.program_id(0).to(tl.int64), tl.program_id(1)
    at = piece * WIDE + tl.arange(0, WIDE)
    inside = at < size
    r, g, b = pixels(x, image, size, at, inside)
    before = 1
    for t in range(4):
        kind = tl.load(order + 4 * image + t)
        if kind == CONTRAST:
            before = 0
        if before == 1:
            r, g, b = changed(r, g, b, kind, tl.load(factors + 4 * image + kind), 0.0)
    grey = tl.where(inside, luminance(r, g, b), 0.0)
    tl.store(part + image * tl.num_programs(1) + piece, tl.sum(grey, 0))


@triton.jit
def jittered(x, y, factors, order, part, size, count, WIDE: constexpr, MOST: constexpr):
    image = tl.program_id(0).to(tl.int64)
    p = tl.arange(0, MOST)
    mean = tl.sum(tl.load(part + image * count + p, p < count, other=0.0), 0) / size
    at = tl.program_id(1) * WIDE + tl.arange(0, WIDE)
    inside = at < size
    r, g, b = pixels(x, image, size, at, inside)
    for t in range(4):
        kind = tl.load(order + 4 * image + t)
        r, g, b = changed(r, g, b, kind, tl.load(factors + 4 * image + kind), mean)
    written(y, image, size, at, inside, r, g, b)


@triton.jit
def greyed(x, y, chosen, size, WIDE: constexpr):
    image = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * WIDE + tl.arange(0, WIDE)
    inside = at < size
    r, g, b = pixels(x, image, size, at, inside)
    if tl.load(chosen + image) != 0:
        grey = luminance(r, g, b)
        r, g, b = grey, grey, grey
    written(y, image, size, at, inside, r, g, b)


@triton.jit
def near(at, side, extent, place):
    """The two pixels of the rectangle that a pixel of the result lies between, and how far on."""
    long = tl.maximum(tl.floor(extent * side + 0.5), 1.0)
    start = tl.floor(place * (side - long + 1))
    where = within((at.to(tl.float32) + 0.5) * (long / side) - 0.5, 0.0, long - 1)
    first = tl.floor(where)
    share = where - first
    one = (start + first).to(tl.int32)
    return one, (start + tl.minimum(first + 1, long - 1)).to(tl.int32), share


@triton.jit
def cropped(x, y, extent, place, rows, columns, C: constexpr, WIDE: constexpr):
    image, size = tl.program_id(0).to(tl.int64), rows * columns
    at = tl.program_id(1) * WIDE + tl.arange(0, WIDE)
    inside = at < size
    up, down, low = near(
        at // columns, rows, tl.load(extent + 2 * image), tl.load(place + 2 * image)
    )
    left, right, far = near(
        at % columns, columns, tl.load(extent + 2 * image + 1), tl.load(place + 2 * image + 1)
    )
    for c in tl.static_range(C):
        first = x + (image * C + c) * size
        a = tl.load(first + up * columns + left, inside, other=0).to(tl.float32)
        b = tl.load(first + up * columns + right, inside, other=0).to(tl.float32)
        top = a + far * (b - a)
        a = tl.load(first + down * columns + left, inside, other=0).to(tl.float32)
        b = tl.load(first + down * columns + right, inside, other=0).to(tl.float32)
        v = top + low * (a + far * (b - a) - top)
        tl.store(y + (image * C + c) * size + at, (v + 0.5).to(tl.uint8), inside)


def grid(x: Tensor) -> tuple[int, int]:
    return len(x), triton.cdiv(x.shape[2] * x.shape[3], BLOCK)


def crop(x: Tensor, extent: Tensor, place: Tensor) -> Tensor:
    y = torch.empty_like(x)
    channels, rows, columns = x.shape[1:]
    extent, place = extent.contiguous(), place.contiguous()
    cropped[grid(x)](x, y, extent, place, rows, columns, channels, BLOCK)
    return y


def jitter(x: Tensor, factors: Tensor, order: Tensor) -> Tensor:
    y, size, count = torch.empty_like(x), x.shape[2] * x.shape[3], grid(x)[1]
    part = torch.empty((len(x), count), dtype=torch.float32, device=x.device)
    factors, order = factors.contiguous(), order.contiguous()
    sums[grid(x)](x, factors, order, part, size, BLOCK)
    most = triton.next_power_of_2(count)
    jittered[grid(x)](x, y, factors, order, part, size, count, BLOCK, most)
    return y


def grayscale(x: Tensor, chosen: Tensor) -> Tensor:
    y = torch.empty_like(x)
    greyed[grid(x)](x, y, chosen.contiguous(), x.shape[2] * x.shape[3], BLOCK)
    return y
