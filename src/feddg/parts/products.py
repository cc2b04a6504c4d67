"""Linear maps by oneDNN, which on AMD takes half of MKL's time for float32 in one thread."""

from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

TRACED: Any = getattr(torch._C, "_are_functorch_transforms_active", None)  # private: docs/adr/0014


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """As torch's own; stacked sites, GPUs and other types have no use for oneDNN."""
    if not usable(x, weight):
        return F.linear(x, weight, bias)
    found: Tensor = Linear.apply(x, weight, bias)  # type: ignore[no-untyped-call]
    return found


def product(x: Tensor, weight: Tensor) -> Tensor:
    """x weight', without a slope of its own."""
    return mapped(x, weight, None) if usable(x, weight) else F.linear(x, weight)


def usable(*given: Tensor) -> bool:
    return (
        TRACED is not None
        and not TRACED()
        and not torch.is_autocast_enabled("cpu")
        and all(x.dtype == torch.float32 and x.device.type == "cpu" for x in given)
        and one_dnn()
    )


@cache
def one_dnn() -> bool:
    """Whether this torch has its private door to oneDNN (docs/adr/0014)."""
    return torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")


def mapped(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    found: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    return found


class Linear(torch.autograd.Function):
    """Where oneDNN is usable; its slopes are linear maps as well."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return mapped(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> Any:
        x, weight = ctx.saved_tensors
        again = linear if torch.is_grad_enabled() else product  # for a slope of the slope
        rows, wanted = slope.flatten(0, -2), ctx.needs_input_grad
        dx = again(slope, weight.mT) if wanted[0] else None
        dw = again(rows.mT, x.flatten(0, -2).mT) if wanted[1] else None
        return dx, dw, rows.sum(0) if wanted[2] else None
