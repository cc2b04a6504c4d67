"""Consistency regularisation: two views of an example shall get the same answer.

The squared distance of softmax outputs, as in DAEL (Zhou et al., TIP 2021), which COPA (Wu and
Gong, ICCV 2021) ablates as "CR".
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Generator, Tensor

from feddg.data.randaugment import RandAugment, extremes
from feddg.errors import ConfigError, check_choices, within
from feddg.local import Forward, Job, Transform
from feddg.method import Method, Visit, Wrapper
from feddg.methods.fedavg import FedAvg
from feddg.packets import Inbox
from feddg.parts.passes import again
from feddg.tasks import Classification
from feddg.trees import Tensors, Tree, part


def moved(x: Tensor, down: Tensor, right: Tensor) -> Tensor:
    """Images shifted by whole pixels, each by its own; the edge is repeated."""
    for dim, by in ((-2, down), (-1, right)):
        n = x.shape[dim]
        at = (torch.arange(n, device=x.device) - by[:, None]).clamp(0, n - 1)
        at = at[:, None, :, None] if dim == -2 else at[:, None, None, :]
        x = torch.take_along_dim(x, at.expand(-1, *x.shape[1:-2], -1, -1), dim)
    return x


@part()
class Jitter:
    """Images are shifted by up to `shift` pixels; everything gets Gaussian noise."""

    noise: float
    shift: int
    shape: tuple[int, ...]  # of one example
    at: str = ""

    def draw(self, rng: Generator, n: int) -> Tensors:
        noise = self.noise * torch.randn(n, *self.shape, generator=rng)
        reach = (-self.shift, self.shift + 1)
        down, right = (torch.randint(*reach, (n,), generator=rng) for _ in range(2))
        return {"noise": noise, "down": down, "right": right}

    def apply(self, value: Tensor, draw: Tensors) -> Tensor:
        if self.shift and value.dim() == 4:
            value = moved(value, draw["down"], draw["right"])
        return value + draw["noise"]


@part()
class Agreement:
    """weight * mean_i sum_c (p_c(view of x_i) - p_c(x_i))^2."""

    weight: float
    fixed: bool
    view: Transform
    taps: tuple[str, ...] = ()

    def draw(self, rng: Generator, n: int) -> Tensors:
        return self.view.draw(rng, n)

    def loss(self, fwd: Forward) -> Tensor:
        logits, _ = again(fwd, self.view.apply(fwd.x, fwd.draw))
        plain = fwd.logits.softmax(1)
        target = plain.detach() if self.fixed else plain
        return self.weight * (logits.softmax(1) - target).square().sum(1).mean()


@dataclass(frozen=True)
class Consistency(Wrapper):
    """Adds the squared distance between the softmax outputs of the batch and of a second view.

    Sends: nothing besides the model. Keeps: nothing.

    The first view is the batch as training sees it, the data's own augmentation included; the
    second is that after RandAugment (DAEL's: 2 operations, each with p = 0.6), or, with
    view='jitter' and always for tables, with `noise` and shifted by up to `shift` pixels. DAEL
    compares experts of different domains; here one model is compared with itself. `fixed`
    stops the gradient at the first view, as DAEL does.
    """

    inner: Method = FedAvg()
    weight: float = 1.0
    view: Literal["randaugment", "jitter"] = "randaugment"
    geometric: bool = True
    cutout: int = 0
    noise: float = 0.1
    shift: int = 2
    fixed: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choices("consistency", self)
        for name in ("weight", "cutout", "noise", "shift"):
            within(f"consistency: {name}", getattr(self, name))

    def local_update(self, inbox: Inbox, job: Job, memory: Tree) -> Visit:
        if not isinstance(job.task, Classification):
            raise ConfigError("consistency compares class probabilities: it needs a classification")
        agree = Agreement(self.weight, self.fixed, self.second(job))
        return (yield from self.inner.local_update(inbox, job.adding(agree), memory))

    def second(self, job: Job) -> Transform:
        x = job.train.store
        if self.view == "jitter" or x.dim() != 4:
            return Jitter(self.noise, self.shift, tuple(x.shape[1:]))
        low, high = extremes(x, job.prepare)
        return RandAugment(geometric=self.geometric, cutout=self.cutout, low=low, high=high)
