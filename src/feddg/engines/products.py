"""Convolutions of a stack as batched matrix products, which a GPU does many times faster.

Under vmap a convolution of K sites is one of K groups, and grouped convolutions of small networks
reach few per cent of a GPU. The same sums are patches times weights: one copy of the input, one
batched product. Inside `as_products()` every convolution that is small enough takes this way.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

LARGEST = 1 << 22  # numbers in one site's patches; more of them cost more than they save
Window = tuple[int, int, int, int]  # kernel and stride, down and to the right


class Patches(torch.autograd.Function):
    """B×H×W×C to B×h×w×(kernel C): what each output pixel sees."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, window: Window) -> Tensor:
        down, right, *steps = window
        seen = x.unfold(1, down, steps[0]).unfold(2, right, steps[1])
        return seen.permute(0, 1, 2, 4, 5, 3).flatten(3)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        x, ctx.window = inputs
        ctx.size = x.shape[1:3]

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> Any:
        return Overlaid.apply(slope, ctx.window, ctx.size), None  # type: ignore[no-untyped-call]


class Overlaid(torch.autograd.Function):
    """Patches put back and added up where they overlap: the transpose of `Patches`."""

    generate_vmap_rule = True

    @staticmethod
    def forward(patches: Tensor, window: Window, size: tuple[int, int]) -> Tensor:
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


def two(value: Any) -> tuple[int, int]:
    """One number for both directions, or one each."""
    first, *rest = (value,) if isinstance(value, int) else tuple(value)
    return first, rest[0] if rest else first


class as_products(TorchFunctionMode):  # noqa: N801 (used as a function)
    """Within it `torch.conv2d` is `convolved` wherever that has an answer.

    Batch norm takes torch's own kernels: the gradient of cuDNN's asks vmap for what it cannot do.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is F.batch_norm:
            with torch.backends.cudnn.flags(enabled=False):
                return func(*args, **(kwargs or {}))
        found = convolved(*args, **(kwargs or {})) if func is torch.conv2d else None
        return func(*args, **(kwargs or {})) if found is None else found
