"""How CSAC weighs and compares pairs of layers (Eq. 6-9)."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from feddg.parts.discrepancy import WIDTHS, weighted_mmd

Pairs = Literal["cross", "same", "logits", "none"]
Side = Literal["local", "fused"]
Kernels = Literal["sum", "mean"]


@dataclass(frozen=True)
class Matching:
    """How pairs of layers are weighed and compared: lambda, Table 5's switches, open readings.

    kernels  the five are averaged: k(x, x) = 1, as for a single kernel; or added, as in the public
             code, which makes the loss five times as large
    over     what alpha is a share of: the local layers (the equations' sum over m), or the fused
             ones (TKDE's prose, which matches a local layer with each of the fused model)
    """

    lam: float = 0.6
    alignment: Pairs = "cross"
    position: bool = True
    channel: bool = True
    discrepancy: Literal["mmd", "mse"] = "mmd"
    estimator: Literal["biased", "off-diagonal"] = "biased"
    kernels: Kernels = "mean"
    over: Side = "local"

    def __call__(self, a: Tensor, b: Tensor) -> Tensor:
        """lambda L_AL (Eq. 6, 11) of fused a and local b, both layers x B x d x c."""
        alpha, a, b = self.alpha(a.detach(), b.detach()), a.flatten(2), b.flatten(2)
        if self.discrepancy == "mse":
            return self.lam * (alpha * (a[:, None] - b[None]).square().mean((2, 3))).sum()
        return self.share * weighted_mmd(a, b, alpha, self.biased)

    def alpha(self, a: Tensor, b: Tensor) -> Tensor:
        if self.alignment == "cross":
            return attention(a, b, self.position, self.channel, self.over)
        return torch.eye(len(a), dtype=a.dtype, device=a.device)  # one local layer to choose from

    @property
    def share(self) -> float:
        """What one kernel counts."""
        return self.lam / len(WIDTHS) if self.kernels == "mean" else self.lam

    @property
    def biased(self) -> bool:
        return self.estimator == "biased"


def attention(a: Tensor, b: Tensor, position: bool, channel: bool, over: Side = "local") -> Tensor:
    """alpha_lm of Eq. 7-9; without either similarity every local layer counts 1/|R|.

    avg(A'B) = <mean_d A, mean_d B> and avg(AB') = <mean_c A, mean_c B> exactly, so no d x d map
    is made. Both are averaged over the batch, one alpha a pair.
    """
    shares = []
    for wanted, dim in ((position, -2), (channel, -1)):
        if wanted:
            u, v = a.mean(dim).flatten(1), b.mean(dim).flatten(1)
            shares.append((u @ v.T / a.shape[1]).softmax(1 if over == "local" else 0))
    if not shares:
        return a.new_full((len(a), len(b)), 1 / len(b if over == "local" else a))
    return torch.stack(shares).mean(0)
