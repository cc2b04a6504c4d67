"""FedNova (Wang et al., NeurIPS 2020): updates count per unit of local work, then are rescaled."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from feddg.local import Job
from feddg.merges import Gathered
from feddg.method import Method, Reveals, Visit, Work, Wrapper
from feddg.methods.fedavg import FedAvg
from feddg.packets import Inbox, Reply, State
from feddg.trees import Tree
from feddg.weights import Weights


def reach(job: Job, momentum_aware: bool = True) -> float:
    """How far this round's training would carry a weight whose gradient is always one.

    FedNova's rate * ||a_i||_1, with the rate inside of the sum: sum_t rate_t v_t, where
    v_t = momentum v_{t-1} + 1 (nesterov: 1 + momentum v_t). Without momentum, and for Adam, whose
    steps are no sums of gradients, it is the sum of the rates: steps * rate where that is constant.
    Velocity kept from earlier rounds and proximal terms are left out.
    """
    recipe = job.recipe
    momentum = recipe.momentum if momentum_aware and recipe.optimizer == "sgd" else 0.0
    total = v = 0.0
    for rate in recipe.rates(job.round, job.rounds, len(job.train)):
        v = momentum * v + 1
        total += rate * (1 + momentum * v if recipe.nesterov else v)
    return total


@dataclass(frozen=True)
class FedNova(Wrapper):
    """w <- w + tau_eff sum_i p_i Delta_i / ||a_i||_1,  tau_eff = sum_i p_i ||a_i||_1.

    p_i is the site's say, whoever decides it (its size, or GA's a_i). Only the length of the
    updates changes, so any merge may follow. Batch-norm buffers are merged as they come.
    """

    inner: Method = FedAvg()
    momentum_aware: bool = True  # False: ||a_i||_1 is the number of steps (times the rate)

    own: ClassVar[Reveals] = Reveals(
        {"fednova": "how much local work its update stands for"}, server_sees="numbers"
    )

    def local_update(self, inbox: Inbox, job: Job, memory: Tree) -> Visit:
        reply, memory = yield from self.inner.local_update(inbox, job, memory)
        return reply.noting("fednova", reach(job, self.momentum_aware)), memory

    def aggregate(self, state: State, replies: Sequence[Reply], job: Job) -> Work[State]:
        shares = Gathered(state.model, replies, job.rng("fednova")).shares.tolist()
        work = [r.notes["fednova"] for r in replies]
        effective = sum(p * a for p, a in zip(shares, work, strict=True))
        scales = [effective / a for a in work]
        rescaled = [stretched(r, state.model, c) for r, c in zip(replies, scales, strict=True)]
        after = yield from self.inner.aggregate(state, rescaled, job)
        named = {r.site: c for r, c in zip(replies, scales, strict=True)}
        return after.tracing("fednova", named)


def stretched(reply: Reply, old: Weights, scale: float) -> Reply:
    """The same reply with its update of the parameters `scale` times as long."""
    vector = reply.model.vector.clone()
    vector[: old.layout.cut].sub_(old.parameters).mul_(scale).add_(old.parameters)
    return replace(reply, model=Weights(vector, old.layout))
