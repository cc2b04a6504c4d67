"""FedCSA (Ma et al., J. Systems Architecture 2021): a classifier is merged class by class."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from feddg.errors import ConfigError
from feddg.local import Job
from feddg.merges import Gathered
from feddg.method import Method, Reveals, Visit, Work, Wrapper
from feddg.methods.fedavg import FedAvg
from feddg.models import anatomy
from feddg.packets import Inbox, Reply, State
from feddg.trees import Tree
from feddg.weights import Layout, Weights


@dataclass(frozen=True)
class FedCSA(Wrapper):
    """Row c of the head: sum_i (n_ic / n_c) of the sites' rows; all else as in the inner method.

    No code is public; the rule is as GA's paper tells it. Where others decide a site's say a_i, the
    row weight is in proportion to a_i n_ic / n_i, which for a_i = n_i is the same. A class that no
    site of the round has is averaged by the sites' say.
    """

    inner: Method = FedAvg()

    claims: ClassVar[frozenset[str]] = frozenset({"merge", "head"})
    own: ClassVar[Reveals] = Reveals(
        {"fedcsa": "how many training examples of each class it has"}, server_sees="numbers"
    )

    def local_update(self, inbox: Inbox, job: Job, memory: Tree) -> Visit:
        y = job.train.y
        if y.is_floating_point():
            raise ConfigError("fedcsa weighs classes; it cannot run where the labels are numbers")
        reply, memory = yield from self.inner.local_update(inbox, job, memory)
        counts = torch.bincount(y.cpu(), minlength=job.task.outputs)
        return reply.noting("fedcsa", counts), memory

    def aggregate(self, state: State, replies: Sequence[Reply], job: Job) -> Work[State]:
        after = yield from self.inner.aggregate(state, replies, job)
        whole = after.model.layout
        say = by_class(
            Gathered(state.model, replies, job.rng("fedcsa")).shares,
            torch.stack([r.notes["fedcsa"] for r in replies]).double(),
        )
        prefix = anatomy(job.model).head + "."
        head = whole.parameters().select(lambda name: name.startswith(prefix))
        old = head.take(whole, state.model.vector)
        each = say.to(old)[:, rows(head, say.shape[1])]
        merged = old.clone()
        for a, reply in zip(each, replies, strict=True):
            merged += a * (head.take(whole, reply.model.vector) - old)
        return replace(after, model=after.model.joined(Weights(merged, head), whole))


def by_class(shares: Tensor, counts: Tensor) -> Tensor:
    """Sites x classes; every column sums to 1."""
    say = shares[:, None] * counts / counts.sum(1, keepdim=True)
    total = say.sum(0)
    return torch.where(total > 0, say / total.clamp_min(1e-300), shares[:, None])


def rows(head: Layout, classes: int) -> Tensor:
    """The class to which every entry of the head belongs."""
    for name, shape in zip(head.names, head.shapes, strict=True):
        if shape[0] != classes:
            raise ConfigError(
                f"fedcsa: {name} has {shape[0]} rows, but there are {classes} classes; name the"
                " last layer in the model's anatomy"
            )
    kinds = [torch.arange(classes).repeat_interleave(n // classes) for n in head.sizes]
    return torch.cat(kinds)
