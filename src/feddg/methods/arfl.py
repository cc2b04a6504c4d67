"""ARFL (Li et al., 2021): sites on whose data the model is bad have less say, or none."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from feddg.errors import ConfigError
from feddg.local import Job
from feddg.method import Method, Reveals, Visit, Work, Wrapper
from feddg.methods.fedavg import FedAvg
from feddg.packets import Inbox, Reply, State
from feddg.trees import Tree


@dataclass(frozen=True)
class ARFL(Wrapper):
    """w_i = n_i max(eta - L_i, 0) / lambda, with the one eta for which the w_i sum to 1.

    That minimises sum_i w_i L_i + lambda/2 sum_i w_i^2 / n_i over the simplex. L_i is the loss of
    the model that was sent, on the site's training data, as in the authors' code; n_i is its say in
    the inner method. `lam` is lambda in units of sum_i n_i (their default: 1); large means FedAvg.
    Absent sites play no part in a round; the authors' code keeps their last loss.
    """

    inner: Method = FedAvg()
    lam: float = 1.0

    claims: ClassVar[frozenset[str]] = frozenset({"weights"})
    own: ClassVar[Reveals] = Reveals(
        {"arfl": "the loss, on its training data, of the model it was sent"}, server_sees="numbers"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.lam <= 0:
            raise ConfigError(f"arfl: lam must be positive, not {self.lam}")

    def local_update(self, inbox: Inbox, job: Job, memory: Tree) -> Visit:
        scores = yield job.evaluation(self.predictor(inbox, job.model))
        reply, memory = yield from self.inner.local_update(inbox, job, memory)
        return reply.noting("arfl", float(scores["loss"])), memory

    def aggregate(self, state: State, replies: Sequence[Reply], job: Job) -> Work[State]:
        losses = [r.notes["arfl"] for r in replies]
        say = weights(losses, [r.weight for r in replies], self.lam)
        weighed = [replace(r, weight=w) for r, w in zip(replies, say, strict=True)]
        return (yield from self.inner.aggregate(state, weighed, job))


def weights(losses: Sequence[float], sizes: Sequence[float], lam: float) -> list[float]:
    """The best p sites share the weight; p grows while the next one's loss stays below eta."""
    total = lam * sum(sizes)
    mass = risk = 0.0
    eta = float("inf")
    for loss, n in sorted(zip(losses, sizes, strict=True)):
        if loss >= eta:
            break
        mass, risk = mass + n, risk + n * loss
        eta = (risk + total) / mass
    return [n * max(eta - loss, 0.0) / total for loss, n in zip(losses, sizes, strict=True)]
