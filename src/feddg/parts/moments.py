"""Batch norm's statistics of several models as those of their domains' mixture."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from feddg.weights import Weights


def mixed_moments(
    model: nn.Module, merged: Weights, members: Sequence[Weights], say: Sequence[float]
) -> Weights:
    """μ = Σ a_i μ_i and σ² = Σ a_i (σ_i² + μ_i²) − μ², layer by layer; all else is `merged`'s.

    (KD3A, section 3.4: the first two moments are averaged, not the variances.)
    """
    named, parts = merged.views(), [m.views() for m in members]
    for name, module in model.named_modules():
        keys = [f"{name}.{k}" if name else k for k in ("running_mean", "running_var")]
        if not isinstance(getattr(module, "running_mean", None), Tensor) or keys[1] not in named:
            continue
        means, variances = ([p[k] for p in parts] for k in keys)
        mean = weighted(say, means)
        square = weighted(say, [v + m * m for m, v in zip(means, variances, strict=True)])
        named = {**named, keys[0]: mean, keys[1]: (square - mean * mean).clamp_min(0)}
    vector = torch.cat([named[k].reshape(-1) for k in merged.layout.names])
    return Weights(vector, merged.layout)


def weighted(say: Sequence[float], values: Sequence[Tensor]) -> Tensor:
    return torch.stack([a * v for a, v in zip(say, values, strict=True)]).sum(0)
