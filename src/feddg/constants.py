"""Numbers as tensors, made once for every device: a CUDA graph cannot bring them along."""

from functools import cache

import numpy as np
import torch
from torch import Tensor

Numbers = tuple[float, ...] | tuple[tuple[float, ...], ...]


def constant(numbers: Numbers, like: Tensor) -> Tensor:
    """To be read only: everybody shares it."""
    return _made(numbers, like.dtype, like.device)


@cache
def _made(numbers: Numbers, dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.from_numpy(np.array(numbers, np.float64)).to(device, dtype)
