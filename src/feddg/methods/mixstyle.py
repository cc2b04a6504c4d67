"""MixStyle (Zhou et al., ICLR 2021): features of one image, with the statistics of another."""

from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from feddg.errors import ConfigError, within
from feddg.local import Job
from feddg.method import Method, Visit, Wrapper
from feddg.methods.fedavg import FedAvg
from feddg.models import anatomy
from feddg.packets import Inbox
from feddg.trees import Tensors, Tree, part

EPS = 1e-6  # the authors': added to the variance


def beta(rng: Generator, alpha: float, n: int) -> Tensor:
    """n draws of Beta(alpha, alpha).

    X / (X + Y) for two gammas; in double precision, for with a small alpha both are tiny.
    """
    shape = torch.full((2, n), alpha, dtype=torch.float64)
    x, y = torch._standard_gamma(shape, generator=rng)
    return (x / (x + y)).float()


@part()
class MixStatistics:
    """A channel's statistics, mixed with those of another image.

    With probability p, for the whole batch: mean and deviation become l (mine) +
    (1 - l) (another's), l ~ Beta(alpha, alpha) for each image; constants for the gradient.
    """

    at: str
    p: float
    alpha: float

    def draw(self, rng: Generator, n: int) -> Tensors:
        return {
            "on": torch.rand((), generator=rng) < self.p,
            "other": torch.randperm(n, generator=rng),
            "share": beta(rng, self.alpha, n),
        }

    def apply(self, value: Tensor, draw: Tensors) -> Tensor:
        if value.dim() < 3:
            raise ConfigError(
                f"mixstyle: the output of {self.at!r} has no positions to take statistics over;"
                " name convolutional layers, mixstyle(taps=('block1',)), or choose another method"
            )
        over = tuple(range(2, value.dim()))
        mine = value.detach()
        mean = mine.mean(over, keepdim=True)
        deviation = (mine.var(over, correction=0, keepdim=True) + EPS).sqrt()
        share = draw["share"].to(value).view(-1, *(1,) * (value.dim() - 1))
        new_mean, new_deviation = (
            share * v + (1 - share) * v[draw["other"]] for v in (mean, deviation)
        )
        styled = (value - mean) / deviation * new_deviation + new_mean
        return torch.where(draw["on"], styled, value)


@dataclass(frozen=True)
class MixStyle(Wrapper):
    """Mixes styles between the images of a batch, at the outputs of `taps`, in training only.

    Sends: nothing besides the model. Keeps: nothing.

    No `taps`: the early layers, that is all that the network's anatomy names but the last; the
    paper, too, spares the last blocks. A batch is one site's, hence of one domain: this is the
    paper's random shuffle, not its cross-domain one. The variance is the biased one of its
    equations (the authors' code takes the unbiased one).
    """

    inner: Method = FedAvg()
    p: float = 0.5
    alpha: float = 0.1
    taps: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        within("mixstyle: p", self.p, 0, 1)
        within("mixstyle: alpha", self.alpha, above=True)

    def local_update(self, inbox: Inbox, job: Job, memory: Tree) -> Visit:
        taps = self.taps or early(anatomy(job.model).taps)
        mixes = [MixStatistics(tap, self.p, self.alpha) for tap in taps]
        return (yield from self.inner.local_update(inbox, job.adding(*mixes), memory))


def early(taps: tuple[str, ...]) -> tuple[str, ...]:
    return taps[:-1] or taps
