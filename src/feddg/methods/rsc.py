"""RSC (Huang et al., ECCV 2020): the features that help most are taken away, so others learn."""

from dataclasses import dataclass, replace
from math import ceil

import torch
from torch import Tensor

from feddg.errors import ConfigError, within
from feddg.local import Forward, Job, TaskLoss
from feddg.method import Method, Visit, Wrapper
from feddg.methods.fedavg import FedAvg
from feddg.models import anatomy
from feddg.packets import Inbox
from feddg.parts.passes import head_values, through_head
from feddg.tasks import Classification
from feddg.trees import Tree, part


def count(share: float, n: int) -> int:
    """The share as a number, rounded up: what a percentile of n values leaves on top."""
    return ceil(share * n - 1e-9)


def top(values: Tensor, share: float) -> Tensor:
    """Which of the values along the last dimension belong to the largest `share`."""
    k = count(share, values.shape[-1])
    if k == 0:
        return torch.zeros_like(values, dtype=torch.bool)
    return values >= values.sort(-1, descending=True)[0][..., k - 1 : k]


@part()
class SelfChallenged:
    """The task's loss on challenged features, z where(muted, 0).

    s(z) = the true class's output, g = ds/dz. Muted are, in the `batch` share of examples whose
    softmax score of the true class falls most by it, the `features` share with the largest g.
    """

    head: str
    features: float
    batch: float
    weight: float = 1.0

    @property
    def taps(self) -> tuple[str, ...]:
        return (f"{self.head}:in",)

    def loss(self, fwd: Forward) -> Tensor:
        [tap] = self.taps
        z = fwd.taps[tap]
        if self.features == 0 or self.batch == 0:
            logits = fwd.logits
        else:
            muted = self.muted(fwd, z.detach(), fwd.y[:, None])
            logits = through_head(fwd, self.head, torch.where(muted, 0.0, z))
        value = fwd.task.loss(logits, fwd.y, fwd.smoothing)
        return value if self.weight == 1.0 else self.weight * value

    def muted(self, fwd: Forward, z: Tensor, true: Tensor) -> Tensor:
        fixed = {k: v.detach() for k, v in head_values(fwd, self.head).items()}

        def score(z: Tensor) -> Tensor:
            return through_head(fwd, self.head, z, fixed).gather(1, true).sum()

        def chance(z: Tensor) -> Tensor:
            return through_head(fwd, self.head, z, fixed).softmax(1).gather(1, true)[:, 0]

        best = top(torch.func.grad(score)(z), self.features)
        fall = chance(z) - chance(torch.where(best, 0.0, z))
        return best & top(fall, self.batch)[:, None]


@dataclass(frozen=True)
class RSC(Wrapper):
    """Representation self-challenging at the head's input, in place of the plain task loss.

    Sends: nothing besides the model. Keeps: nothing.

    As in DomainBed: one third of the features, of one third of the batch. Percentages are
    rounded up (DomainBed's percentile gives the same number). The paper's variants that mute
    positions or channels of the last feature map are left out. FedDG-GA's released RSC is
    FedAvg, for its network is never given the labels; this one is not.
    """

    inner: Method = FedAvg()
    features: float = 1 / 3
    batch: float = 1 / 3

    def __post_init__(self) -> None:
        super().__post_init__()
        within("rsc: features", self.features, 0, 1)
        within("rsc: batch", self.batch, 0, 1)

    def local_update(self, inbox: Inbox, job: Job, memory: Tree) -> Visit:
        head = anatomy(job.model).head
        if not isinstance(job.task, Classification):
            raise ConfigError("rsc mutes by the true class's score, so it needs a classification")
        if not any(isinstance(p, TaskLoss) for p in job.parts):
            raise ConfigError("rsc finds no plain task loss to challenge; another method took it")
        parts = tuple(
            SelfChallenged(head, self.features, self.batch, p.weight)
            if isinstance(p, TaskLoss)
            else p
            for p in job.parts
        )
        return (yield from self.inner.local_update(inbox, replace(job, parts=parts), memory))
