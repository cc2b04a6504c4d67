"""Normalisation layers that lose less, or more, of a domain's style than batch norm does.

Each can take over from a BatchNorm2d with its affine part and running statistics (`from_batch`),
and runs under functional_call and vmap: buffers are written in place, as batch norm does.
"""

from typing import ClassVar, Self, cast

import torch
from torch import Tensor, nn

from feddg.models.moments import Moments, Scaled


class Mixed(nn.Module):
    """(x − Σ_k ω_k μ_k) / √(Σ_k ω'_k σ²_k + ε) · γ + β, where ω and ω' are softmaxes of logits.

    One logit per statistic and layer, means and variances apart; all start at 1, an even mix.
    At test, batch norm's statistics are the running ones, kept as BatchNorm2d keeps them.
    """

    statistics: ClassVar[tuple[str, ...]]

    def __init__(self, width: int, eps: float = 1e-5, momentum: float = 0.1):
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))
        self.mean_logits = nn.Parameter(torch.ones(len(self.statistics)))
        self.var_logits = nn.Parameter(torch.ones(len(self.statistics)))
        self.running_mean: Tensor
        self.running_var: Tensor
        self.register_buffer("running_mean", torch.zeros(width))
        self.register_buffer("running_var", torch.ones(width))

    @classmethod
    def from_batch(cls, bn: nn.BatchNorm2d) -> Self:
        layer = cls(bn.num_features, bn.eps, 0.1 if bn.momentum is None else bn.momentum)
        adopt(layer, bn)
        return layer

    def forward(self, x: Tensor) -> Tensor:
        # Eq. (3): of every image and channel; then over the batch, by the law of total variance,
        # E(σ²_in + μ²_in) − μ²_bn = E σ²_in + Var μ_in, which rounding cannot make negative
        x = x.to(self.weight.dtype)  # under autocast it comes in fewer bits
        mean_in, var_in = Moments.apply(x)  # type: ignore[no-untyped-call]
        if self.training:
            mean_bn, var_bn = total(mean_in, var_in, 0)
            self.track(mean_bn, var_bn, x.numel() // x.shape[1])
        else:
            mean_bn = self.running_mean.view(1, -1, 1, 1)
            var_bn = self.running_var.view(1, -1, 1, 1)
        every = [(mean_bn, var_bn), (mean_in, var_in)]
        if "ln" in self.statistics:
            every.append(total(mean_in, var_in, 1))
        # Eq. (4) and Eq. (2): one scale and one shift of each image's channel
        mean = mixed(self.mean_logits, [m for m, _ in every])
        var = mixed(self.var_logits, [v for _, v in every])
        scale = self.weight.view(1, -1, 1, 1) * (var + self.eps).rsqrt()
        shift = self.bias.view(1, -1, 1, 1) - mean * scale
        return cast(Tensor, Scaled.apply(x, scale, shift))  # type: ignore[no-untyped-call]

    @torch.no_grad()
    def track(self, mean: Tensor, var: Tensor, count: int) -> None:
        """Running statistics as BatchNorm2d's: exponential, the variance unbiased."""
        m, unbiased = self.momentum, count / max(count - 1, 1)
        self.running_mean.mul_(1 - m).add_(mean.detach().flatten(), alpha=m)
        self.running_var.mul_(1 - m).add_(var.detach().flatten(), alpha=m * unbiased)


def total(mean: Tensor, var: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Mean and variance over `dim` as well, from those of its parts of equal size."""
    within, between = var.mean(dim, keepdim=True), mean.var(dim, correction=0, keepdim=True)
    return mean.mean(dim, keepdim=True), within + between


def mixed(logits: Tensor, values: list[Tensor]) -> Tensor:
    shares = logits.softmax(0).unbind(0)
    total = shares[0] * values[0]
    for share, value in zip(shares[1:], values[1:], strict=True):
        total = total + share * value
    return total


class HBIN(Mixed):
    """COPA's hybrid batch-instance normalisation, Eq. (2)–(4)."""

    statistics = ("bn", "in")


class SwitchableNorm(Mixed):
    """HBIN and layer normalisation (Luo et al., ICLR 2019)."""

    statistics = ("bn", "in", "ln")


class InstanceNorm(nn.InstanceNorm2d):
    """Each image and channel by its own statistics, at test too; γ and β are learned."""

    @classmethod
    def from_batch(cls, bn: nn.BatchNorm2d) -> Self:
        layer = cls(bn.num_features, bn.eps, affine=True)
        adopt(layer, bn)
        return layer


class HalfInstanceNorm(nn.Module):
    """IBN-a (Pan et al., ECCV 2018): instance norm on half of the channels, batch norm on half."""

    def __init__(self, width: int, eps: float = 1e-5, momentum: float | None = 0.1):
        super().__init__()
        half = width // 2
        self.instance = InstanceNorm(half, eps, affine=True)
        self.batch = nn.BatchNorm2d(width - half, eps, momentum)

    @classmethod
    def from_batch(cls, bn: nn.BatchNorm2d) -> Self:
        layer = cls(bn.num_features, bn.eps, bn.momentum)
        half = layer.instance.num_features
        adopt(layer.instance, bn, slice(None, half))
        adopt(layer.batch, bn, slice(half, None))
        return layer

    def forward(self, x: Tensor) -> Tensor:
        half = self.instance.num_features
        return torch.cat([self.instance(x[:, :half]), self.batch(x[:, half:])], dim=1)


class ResidualInstanceNorm(nn.Module):
    """IBN-b: a residual block with instance norm between its sum and its last ReLU.

    Takes over a block's submodules under their names (conv1, bn1, …, downsample, relu).
    """

    def __init__(self, block: nn.Module):
        super().__init__()
        for name, child in block.named_children():
            self.add_module(name, child)
        self.depth = sum(name.startswith("conv") for name, _ in block.named_children())
        last: nn.BatchNorm2d = self.get_submodule(f"bn{self.depth}")  # type: ignore[assignment]
        self.norm = InstanceNorm(last.num_features, affine=True)

    def forward(self, x: Tensor) -> Tensor:
        part, y = dict(self.named_children()), x
        for i in range(1, self.depth + 1):
            y = part[f"bn{i}"](part[f"conv{i}"](y))
            y = part["relu"](y) if i < self.depth else y
        z: Tensor = y + (part["downsample"](x) if "downsample" in part else x)
        return cast(Tensor, part["relu"](self.norm(z)))


@torch.no_grad()
def adopt(layer: nn.Module, bn: nn.BatchNorm2d, channels: slice = slice(None)) -> None:
    """Copy what both have: the affine part and the running statistics, of these channels."""
    theirs = bn.state_dict()
    for name, value in layer.state_dict().items():
        if name in theirs and value.dim():
            value.copy_(theirs[name][channels])
