"""Convolutions of a stack as batched matrix products, which a GPU does many times faster.

Under vmap a convolution of K sites is one of K groups, and grouped convolutions of small networks
reach few per cent of a GPU. The same sums are patches times weights: one copy of the input, one
batched product. Inside `as_products()` every convolution that is small enough takes this way.

Windows treat every image by itself, so a stack's sites are just more images to them. On a GPU with
Triton they and max pooling are a kernel each (`window_kernels`).
"""

from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from feddg.vmapped import more_images

LARGEST = 1 << 22  # numbers in one site's patches; more of them cost more than they save
Window = tuple[int, int, int, int]  # kernel and stride, down and to the right


@cache
def kernels() -> Any:
    """Triton's programs, where there is Triton; None elsewhere."""
    try:
        from feddg.engines import window_kernels
    except ImportError:
        return None
    return window_kernels


def usable(x: Tensor, times: int = 1) -> bool:
    """Whether the kernels can take it, and make of it something so many times as large."""
    return x.is_cuda and x.numel() * times < 2**31 and kernels() is not None


class Patches(torch.autograd.Function):
    """B×H×W×C to B×h×w×(kernel C): what each output pixel sees."""

    @staticmethod
    def forward(x: Tensor, window: Window) -> Tensor:
        if usable(x, window[0] * window[1]):
            found: Tensor = kernels().seen(x, window)
            return found
        down, right, *steps = window
        seen = x.unfold(1, down, steps[0]).unfold(2, right, steps[1])
        return seen.permute(0, 1, 2, 4, 5, 3).flatten(3)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        x, ctx.window = inputs
        ctx.size = tuple(x.shape[1:3])

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> Any:
        return Overlaid.apply(slope, ctx.window, ctx.size), None  # type: ignore[no-untyped-call]

    @staticmethod
    def vmap(info: Any, dims: tuple[Any, ...], x: Tensor, window: Window) -> Any:
        return more_images(Patches, dims, (x,), window)


class Overlaid(torch.autograd.Function):
    """Patches put back and added up where they overlap: the transpose of `Patches`."""

    @staticmethod
    def forward(patches: Tensor, window: Window, size: tuple[int, int]) -> Tensor:
        if usable(patches):
            found: Tensor = kernels().overlaid(patches, window, size)
            return found
        down, right, *steps = window
        batch, h, w, numbers = patches.shape
        pieces = patches.unflatten(3, (down, right, numbers // (down * right)))
        whole = patches.new_zeros(batch, *size, pieces.shape[-1])
        for i in range(down):
            for j in range(right):
                rows = slice(i, i + steps[0] * (h - 1) + 1, steps[0])
                columns = slice(j, j + steps[1] * (w - 1) + 1, steps[1])
                whole[:, rows, columns] += pieces[:, :, :, i, j]
        return whole

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        _, ctx.window, _ = inputs

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> Any:
        return Patches.apply(slope, ctx.window), None, None  # type: ignore[no-untyped-call]

    @staticmethod
    def vmap(
        info: Any, dims: tuple[Any, ...], patches: Tensor, window: Window, size: tuple[int, int]
    ) -> Any:
        return more_images(Overlaid, dims, (patches,), window, size)


class Pooled(torch.autograd.Function):
    """The greatest of every square of B×H×W×C, and which one it is; on a GPU only."""

    @staticmethod
    def forward(x: Tensor, side: int) -> tuple[Tensor, Tensor]:
        found: tuple[Tensor, Tensor] = kernels().pooled(x, side)
        return found

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        x, ctx.side = inputs
        ctx.size = tuple(x.shape[1:3])
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(output[1])

    @staticmethod
    def backward(ctx: Any, slope: Tensor, _: Any) -> Any:
        [which] = ctx.saved_tensors
        return Unpooled.apply(slope, which, ctx.side, ctx.size), None  # type: ignore[no-untyped-call]

    @staticmethod
    def vmap(info: Any, dims: tuple[Any, ...], x: Tensor, side: int) -> Any:
        return more_images(Pooled, dims, (x,), side)


class Unpooled(torch.autograd.Function):
    """The slope goes to the greatest."""

    @staticmethod
    def forward(slope: Tensor, which: Tensor, side: int, size: tuple[int, int]) -> Tensor:
        found: Tensor = kernels().unpooled(slope, which, side, size)
        return found

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.side = inputs[2]
        ctx.save_for_backward(inputs[1])

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> Any:
        [which] = ctx.saved_tensors
        h, w = (n * ctx.side for n in which.shape[1:3])
        squares = slope[:, :h, :w].unflatten(2, (-1, ctx.side)).unflatten(1, (-1, ctx.side))
        squares = squares.permute(0, 1, 3, 5, 2, 4).flatten(4)
        return squares.gather(4, which.long().unsqueeze(4)).squeeze(4), None, None, None

    @staticmethod
    def vmap(
        info: Any, dims: tuple[Any, ...], slope: Tensor, which: Tensor, side: int,
        size: tuple[int, int],
    ) -> Any:  # fmt: skip
        return more_images(Unpooled, dims, (slope, which), side, size)


def convolved(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor | None:
    """As `torch.conv2d`; None where the product would not pay, or is another sum."""
    if groups != 1 or two(dilation) != (1, 1) or isinstance(padding, str) or x.dim() != 4:
        return None
    (down, right), (up, left) = two(padding), two(stride)
    kernel = (weight.shape[2], weight.shape[3])
    h = (x.shape[2] + 2 * down - kernel[0]) // up + 1
    w = (x.shape[3] + 2 * right - kernel[1]) // left + 1
    if x.shape[0] * h * w * weight[0].numel() > LARGEST:
        return None
    last = F.pad(x, (right, right, down, down)) if down or right else x
    window = (*kernel, up, left)
    patches = Patches.apply(last.permute(0, 2, 3, 1), window)  # type: ignore[no-untyped-call]
    columns = weight.permute(0, 2, 3, 1).flatten(1)
    return F.linear(patches.flatten(0, 2), columns, bias).view(-1, h, w, len(columns)).permute(
        0, 3, 1, 2
    )  # fmt: skip


def pooled(
    x: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor | None:
    """As `F.max_pool2d` over squares side by side; None for other windows, and off a GPU."""
    (side, other), steps = two(kernel_size), two(stride or kernel_size)
    square = side == other and steps == (side, side) and side * side < 128
    whole = two(padding) == (0, 0) and two(dilation) == (1, 1)
    if not (square and whole and x.dim() == 4 and usable(x)) or ceil_mode or return_indices:
        return None
    y, _ = Pooled.apply(x.permute(0, 2, 3, 1), side)  # type: ignore[no-untyped-call]
    found: Tensor = y.permute(0, 3, 1, 2)
    return found


def two(value: Any) -> tuple[int, int]:
    """One number for both directions, or one each."""
    first, *rest = (value,) if isinstance(value, int) else tuple(value)
    return first, rest[0] if rest else first


class as_products(TorchFunctionMode):  # noqa: N801 (used as a function)
    """Within it `torch.conv2d` is `convolved` wherever that has an answer.

    Batch norm takes torch's own kernels: the gradient of cuDNN's asks vmap for what it cannot do.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        more = kwargs or {}
        if func is F.batch_norm:
            with torch.backends.cudnn.flags(enabled=False):
                return func(*args, **more)
        found = None
        if func is torch.conv2d:
            found = convolved(*args, **more)
        elif func is F.max_pool2d:
            found = pooled(*args, **more)
        return func(*args, **more) if found is None else found
