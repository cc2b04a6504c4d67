"""Gradient surgery as merges: what sites disagree on is dropped, redrawn, projected or damped.

Made for the gradients of a batch (AgrSum, AgrRand: Mansilla et al., ICCVW 2021; PCGrad: Yu et al.,
NeurIPS 2020) or for federated updates (FedGMA: Tenison et al., TMLR 2023). Here a site's gradient
is its update of a round, and sums become means, as PPDG compares them; `scale="sum"` is as
published. Batch-norm buffers are averaged. All send the model only.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from feddg.errors import ConfigError, check_choices, within
from feddg.merges import Gathered, Merged, combined
from feddg.merges.geometry import gram, meetings, projected
from feddg.method import Method, Sees, Wrapper
from feddg.methods.fedavg import FedAvg

Scale = Literal["mean", "sum"]


@dataclass(frozen=True, eq=False)
class Agreement:
    """Entry by entry, in one pass over the replies: the updates themselves are never held."""

    mean: Tensor
    share: Tensor  # |sum_i sign Delta_i| / K
    still: Tensor  # where no site moved: nothing to disagree on


def agreement(got: Gathered) -> Agreement:
    start = got.old.parameters
    mean, signs = torch.zeros_like(start), torch.zeros_like(start)
    still = torch.ones_like(start, dtype=torch.bool)
    for a, reply in zip(got.shares.tolist(), got.replies, strict=True):
        update = reply.model.parameters - start
        mean.add_(update, alpha=a)
        still &= update == 0
        signs.add_(update.sign_())
    return Agreement(mean, signs.abs_() / len(got.replies), still)


def scaling(got: Gathered, scale: Scale) -> float:
    return float(len(got.replies)) if scale == "sum" else 1.0


def told(got: Gathered, **more: Any) -> dict[str, Any]:
    return {"weights": dict(zip(got.sites, got.shares.tolist(), strict=True)), **more}


@dataclass(frozen=True)
class Unanimous:
    """Keeps what all sites move the same way; the rest is 0, or noise as large as the kept."""

    redraw: bool = False
    scale: Scale = "mean"

    sees: ClassVar[Sees] = "everything"

    def __call__(self, got: Gathered) -> Merged:
        found = agreement(got)
        agreed = found.share == 1
        step = torch.where(agreed, found.mean * scaling(got, self.scale), 0.0)
        if self.redraw and agreed.any():
            noise = torch.randn(len(step), generator=got.rng).to(step)
            step = torch.where(agreed | found.still, step, noise * step[agreed].abs().mean())
        return Merged(step, told(got, agreement=agreed.double().mean().item()))


@dataclass(frozen=True)
class Projected:
    """Every update loses what points against another; from the Gram matrix."""

    scale: Scale = "mean"

    sees: ClassVar[Sees] = "gram"

    def __call__(self, got: Gathered) -> Merged:
        products = gram(got.updates).cpu().numpy()
        mixed = projected(products, meetings(len(products), got.rng))
        c = scaling(got, self.scale) * mixed.combined(got.shares)
        return Merged(combined(c, got.updates), told(got, **mixed.told(got.sites)))


@dataclass(frozen=True)
class Masked:
    """m * mean, m = 1 where the agreement is at least tau, else the agreement itself."""

    tau: float = 0.4
    server_lr: float = 1.0

    sees: ClassVar[Sees] = "everything"

    def __call__(self, got: Gathered) -> Merged:
        found = agreement(got)
        mask = torch.where(found.share >= self.tau, 1.0, found.share)
        return Merged(found.mean * mask * self.server_lr, told(got, mask=mask.mean().item()))


@dataclass(frozen=True)
class Surgery(Wrapper):
    """What the three that were made for gradients share."""

    inner: Method = FedAvg()
    scale: Scale = "mean"

    claims: ClassVar[frozenset[str]] = frozenset({"merge"})

    def __post_init__(self) -> None:
        check_choices(type(self).__name__.lower(), self)
        super().__post_init__()


@dataclass(frozen=True)
class AgrSum(Surgery):
    """Entries on whose sign not all sites agree do not move."""

    @property
    def leaf(self) -> FedAvg:
        return FedAvg(merge=Unanimous(False, self.scale), weights="uniform")


@dataclass(frozen=True)
class AgrRand(Surgery):
    """Entries on whose sign not all sites agree move by N(0, s^2), s the mean size of the others.

    Where no site moves, nothing is drawn; in the public code such entries count as disagreement.
    """

    @property
    def leaf(self) -> FedAvg:
        return FedAvg(merge=Unanimous(True, self.scale), weights="uniform")


@dataclass(frozen=True)
class PCGrad(Surgery):
    """g_i <- g_i - <g_i, g_j>/|g_j|^2 g_j wherever that product is negative.

    g_j is the update as it came, and each i meets the others in a random order of its own.
    """

    @property
    def leaf(self) -> FedAvg:
        return FedAvg(merge=Projected(self.scale), weights="uniform")


@dataclass(frozen=True)
class FedGMA(Wrapper):
    """Gradient-masked averaging; tau = 0 is FedAvg."""

    inner: Method = FedAvg()
    tau: float = 0.4
    server_lr: float = 1.0

    claims: ClassVar[frozenset[str]] = frozenset({"merge"})

    def __post_init__(self) -> None:
        if not 0 <= self.tau <= 1:
            raise ConfigError(f"fedgma: tau is a share of agreement, 0 to 1, not {self.tau}")
        within("fedgma: server_lr", self.server_lr)
        super().__post_init__()

    @property
    def leaf(self) -> FedAvg:
        return FedAvg(merge=Masked(self.tau, self.server_lr))
