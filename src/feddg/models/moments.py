"""Mean and variance of every image's channels, and what they are used for, in few passes.

Left to autograd, a layer that normalises by statistics of its own reads and writes its maps some
thirty times a step. The same derivatives by hand need half of that. Both functions treat every
image by itself, so that under vmap a stack's sites are just more images.
"""

from typing import Any

import torch
from torch import Tensor

from feddg.vmapped import more_images

PIXELS = (2, 3)


class Moments(torch.autograd.Function):
    """Mean and (biased) variance over each image's channel, B x C x 1 x 1 both.

    dL/dx = dL/dmean / n + dL/dvar 2 (x - mean) / n
    """

    @staticmethod
    def forward(x: Tensor) -> tuple[Tensor, Tensor]:
        if x.is_cuda:
            var, mean = torch.var_mean(x, PIXELS, correction=0, keepdim=True)
            return mean, var
        mean = x.mean(PIXELS, keepdim=True)  # on a CPU var_mean is ten times slower than these
        return mean, (x - mean).square_().mean(PIXELS, keepdim=True)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(inputs[0], output[0])

    @staticmethod
    def backward(ctx: Any, of_mean: Tensor, of_var: Tensor) -> Any:
        x, mean = ctx.saved_tensors
        pixels = x.shape[2] * x.shape[3]
        slope = of_var * (2 / pixels)
        return Scaled.apply(x, slope, of_mean / pixels - mean * slope)  # type: ignore[no-untyped-call]

    @staticmethod
    def vmap(info: Any, dims: tuple[Any, ...], x: Tensor) -> Any:
        return more_images(Moments, dims, (x,))


class Scaled(torch.autograd.Function):
    """x * scale + shift, with one number of each for every image's channel."""

    @staticmethod
    def forward(x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
        if x.is_cuda:  # one kernel
            return torch.addcmul(shift, x, scale)
        return (x * scale).add_(shift)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        ctx.save_for_backward(*inputs[:2])

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> Any:
        x, scale = ctx.saved_tensors
        return slope * scale, (slope * x).sum(PIXELS, True), slope.sum(PIXELS, True)

    @staticmethod
    def vmap(info: Any, dims: tuple[Any, ...], x: Tensor, scale: Tensor, shift: Tensor) -> Any:
        return more_images(Scaled, dims, (x, scale, shift))
