"""FedIIR (Guo et al., ICML 2023): the classifier's gradient shall be the same at every site."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.func import functional_call

from feddg.errors import within
from feddg.local import Forward, Job, prepared
from feddg.method import Method, Reveals, Visit, Work, Wrapper
from feddg.methods.fedavg import FedAvg
from feddg.models import anatomy
from feddg.packets import Inbox, Reply, State
from feddg.parts.passes import head_values
from feddg.tasks import Task
from feddg.training import forward
from feddg.trees import Tensors, Tree, each, part


def head_slope(
    head: nn.Module, task: Task, learned: Tensors, z: Tensor, y: Tensor, smoothing: float
) -> Tensors:
    """The gradient of the task's loss by the head's parameters, itself differentiable."""

    def loss(values: Tensors) -> Tensor:
        return task.loss(functional_call(head, values, (z,)), y, smoothing)

    found: Tensors = torch.func.grad(loss)(learned)
    return found


@part("mean")
class Invariance:
    """weight * ||g - mean||^2 for the gradient g of the batch's task loss by the head."""

    mean: Tensors
    head: str
    weight: float

    @property
    def taps(self) -> tuple[str, ...]:
        return (f"{self.head}:in",)

    def loss(self, fwd: Forward) -> Tensor:
        [tap] = self.taps
        head = fwd.module.get_submodule(self.head)
        own = head_values(fwd, self.head)
        g = head_slope(head, fwd.task, own, fwd.taps[tap], fwd.y, fwd.smoothing)
        apart = [(g[k] - self.mean[k]).square().sum() for k in self.mean]
        return self.weight * torch.stack(apart).sum()


@dataclass(frozen=True)
class FedIIR(Wrapper):
    """Adds weight * ||g - m||^2: g the head's gradient on the batch, m the mean of the sites'.

    m is averaged over rounds: m <- ema m + (1 - ema) (mean of the new ones), from zero on.

    Sends: the model and the gradient of the head on the site's data at the model that was sent,
    the mean over the batches of an epoch (by the number of which the server weighs it).
    Keeps: nothing.

    The released code asks every site for its gradient before the round's training, in an
    exchange of its own. Here the gradient comes with the reply, so m is that of the round
    before. `weight` is the code's for PACS; 1e-2 for Rotated MNIST, 5e-3 VLCS, 5e-4 OfficeHome.
    """

    inner: Method = FedAvg()
    weight: float = 1e-3
    ema: float = 0.95

    claims: ClassVar[frozenset[str]] = frozenset({"head"})
    own: ClassVar[Reveals] = Reveals(
        {"fediir": "the mean gradient of the head on the site's data, and its number of batches"}
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        within("fediir: weight", self.weight)
        within("fediir: ema", self.ema, 0, 1)

    def init(self, model: nn.Module, sites: Sequence[str]) -> State:
        head = model.get_submodule(anatomy(model).head)
        zero = {k: torch.zeros_like(v) for k, v in head.named_parameters() if v.requires_grad}
        return self.inner.init(model, sites).noting("fediir", zero)

    def broadcast(self, state: State, round: int) -> Inbox:
        return self.inner.broadcast(state, round).noting("fediir", state.notes["fediir"])

    def local_update(self, inbox: Inbox, job: Job, memory: Tree) -> Visit:
        slope = mean_slope(inbox, job)
        near = Invariance(dict(inbox.notes["fediir"]), anatomy(job.model).head, self.weight)
        reply, memory = yield from self.inner.local_update(inbox, job.adding(near), memory)
        return reply.noting("fediir", slope), memory

    def aggregate(self, state: State, replies: Sequence[Reply], job: Job) -> Work[State]:
        before = state.notes["fediir"]
        state = yield from self.inner.aggregate(state, replies, job)
        sent = [r.notes["fediir"] for r in replies]
        batches = [s["batches"] for s in sent]
        shares = [b / sum(batches) for b in batches]

        def moved(m: Tensor, *g: Tensor) -> Tensor:
            new = torch.stack([a * v for a, v in zip(shares, g, strict=True)]).sum(0)
            return self.ema * m + (1 - self.ema) * new

        return state.noting("fediir", each(moved, before, *(s["gradient"] for s in sent)))


def mean_slope(inbox: Inbox, job: Job) -> Tree:
    """Over one shuffled epoch, unaugmented, with batch statistics but none of them kept."""
    layers, data, recipe = anatomy(job.model), job.train, job.local
    head, n = job.model.get_submodule(layers.head), len(job.train)
    rows = torch.randperm(n, generator=job.rng("fediir")).split(recipe.batch(n))
    rows = rows[: recipe.per_epoch(n)]
    inside = f"{layers.head}."
    counters = {k: v for k, v in job.model.named_buffers() if not v.is_floating_point()}
    values = {**counters, **inbox.model.views()}
    learned = {
        k.removeprefix(inside): values[k]
        for k in inbox.model.layout.parameters().names
        if k.startswith(inside)
    }
    total = {k: torch.zeros_like(v) for k, v in learned.items()}
    for batch in rows:
        x = prepared(data.inputs(batch), job.prepare)
        fresh = {k: v.clone() for k, v in values.items()}
        with torch.no_grad():
            _, seen = forward(job.model, fresh, x, [layers.features], training=True)
        z = seen[layers.features]
        g = head_slope(head, job.task, learned, z, data.y[batch], recipe.label_smoothing)
        total = {k: total[k] + g[k] for k in total}
    return {"gradient": {k: v / len(rows) for k, v in total.items()}, "batches": len(rows)}
