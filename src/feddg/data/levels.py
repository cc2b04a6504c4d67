"""What augmentations of images share: whole levels 0…255, and whether images can be taken singly.

An augmentation of uint8 images gives uint8 images again, rounded once, as Pillow's do: what
stands between two of them is a quarter of the memory that floats would be. Floats, whose range
is not known, stay floats and are not clipped.
"""

from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch._C import _functorch

TOP = 255
LARGE = 8192  # numbers of an image: of smaller ones the batch fits the cache


def levels(x: Tensor) -> Tensor:
    return x.round().clamp(0, TOP).to(torch.uint8)


def singly(value: Tensor) -> bool:
    """Whether a CPU is faster with one image after the other.

    A large one fits the cache where a batch does not, and what is not drawn can be left out. Not
    under `vmap`, where nobody may look at a draw.
    """
    large = value.dim() == 4 and value.shape[1:].numel() >= LARGE
    return large and value.device.type == "cpu" and not wrapped(value)


def wrapped(value: Tensor) -> bool:
    """Whether a transform of functions, `vmap` say, stands behind it."""
    found: bool = _functorch.is_functorch_wrapped_tensor(value)
    return found


@cache
def kernels() -> Any:
    """Triton's programs, where there is Triton; None elsewhere."""
    try:
        from feddg.data import image_kernels
    except ImportError:
        return None
    return image_kernels


def fused(value: Tensor, *channels: int) -> Any:
    """`kernels()` for a GPU's uint8 images of so many channels, any number if none is given."""
    whole = value.dtype == torch.uint8 and value.dim() == 4 and value.is_contiguous()
    fits = whole and (not channels or value.shape[1] in channels)
    return kernels() if value.is_cuda and fits and not wrapped(value) else None
