"""Linear maps by oneDNN, which on AMD takes half of MKL's time for float32 in one thread."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch._C._functorch import is_functorch_wrapped_tensor  # type: ignore[attr-defined]


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """As torch's own; stacked sites, GPUs and other types have no use for oneDNN."""
    if not all(usable(v) for v in (x, weight)):
        return F.linear(x, weight, bias)
    found: Tensor = Linear.apply(x, weight, bias)  # type: ignore[no-untyped-call]
    return found


def product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`linear` without a slope."""
    if not all(usable(v) for v in (x, weight)):
        return F.linear(x, weight, bias)
    found: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    return found


def usable(x: Tensor) -> bool:
    if x.dtype != torch.float32 or x.device.type != "cpu" or is_functorch_wrapped_tensor(x):
        return False
    return torch.backends.mkldnn.is_available() and not torch.is_autocast_enabled("cpu")


class Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return product(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> Any:
        x, weight = ctx.saved_tensors
        rows = slope.flatten(0, -2)
        wanted = ctx.needs_input_grad
        dx = linear(slope, weight.mT) if wanted[0] else None
        dw = linear(rows.mT, x.flatten(0, -2).mT) if wanted[1] else None
        return dx, dw, rows.sum(0) if wanted[2] else None
