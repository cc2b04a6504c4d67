"""FADA (Peng et al., ICLR 2020): features of sources and target that no judge can tell apart."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp
from typing import ClassVar

from torch import nn

from feddg.errors import within
from feddg.local import Job
from feddg.method import Method, Reveals, Visit, Work, Wrapper
from feddg.methods.fedavg import FedAvg
from feddg.methods.shot import extractor
from feddg.models.anatomy import anatomy
from feddg.packets import Inbox, Reply, State
from feddg.parts.confusion import Confusion, Judge, spread
from feddg.parts.heads import kept_head, parted
from feddg.parts.shared import width
from feddg.parts.tuning import classifying, tuning
from feddg.trees import Tree, moved
from feddg.weights import Weights


@dataclass(frozen=True)
class FADA(Wrapper):
    """Dynamic attention merges; then F_t makes the target's features look like every source's.

    attention   α = softmax of how much tighter site i's model clusters the target than the model
                that all were sent (k-means with a group a class; the within-group spread is
                taken as a share of the whole, for features of two models differ in scale), else
                by size
    weight      of fooling the judges, one a site, which the server trains on the features that
                the site sends of all its examples
    epochs      of this, each round; the classifier stays as it was merged

    Without the paper's disentangling (class-irrelevant features, mutual information and
    reconstruction). Its sites are paired with the target step by step, here once a round; their
    features stand still, as their own models show them in eval mode, while the target's move.
    """

    inner: Method = FedAvg()
    attention: bool = True
    weight: float = 0.1
    epochs: int = 1

    adapts: ClassVar[bool] = True
    claims: ClassVar[frozenset[str]] = frozenset({"weights"})
    own: ClassVar[Reveals] = Reveals(
        {"features": "the network's features of every training example"}, "everything"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        within("fada: weight", self.weight)
        within("fada: epochs", self.epochs)

    def init(self, model: nn.Module, sites: Sequence[str]) -> State:
        width(model, anatomy(model).head)  # a clear word where the head does not tell
        return self.inner.init(model, sites).noting("fada", {})

    def local_update(self, inbox: Inbox, job: Job, memory: Tree) -> Visit:
        reply, memory = yield from self.inner.local_update(inbox, job, memory)
        z = yield job.prediction(extractor(reply.model, job.model))
        return reply.noting("features", z), memory

    def aggregate(self, state: State, replies: Sequence[Reply], job: Job) -> Work[State]:
        classifying(job, "fada")
        if self.attention:
            before = yield from self.spread(state.model, job)
            gains = []
            for reply in replies:
                after = yield from self.spread(reply.model, job)
                gains.append(before - after)
            replies = [replace(r, weight=exp(g)) for r, g in zip(replies, gains, strict=True)]
        merged = yield from self.inner.aggregate(state, replies, job)
        if not self.epochs:
            return merged
        tap, features = anatomy(job.model).features, replies[0].notes["features"].shape[1]
        at = merged.model.vector.device
        judges = {
            r.site: state.notes["fada"].get(r.site)
            or moved(Judge(features).start(job.rng(f"judge/{r.site}")), at)
            for r in replies
        }
        sources = {r.site: r.notes["features"] for r in replies}
        term = Confusion(judges, sources, tap, self.weight)
        done = yield tuning(job, self.epochs, term).training(merged.model)
        _, head = parted(merged.model, job.model)
        model = kept_head(done.model, head, job.model)
        learned = {**state.notes["fada"], **done.learned[term.key]}
        merged = replace(merged, model=model).noting("fada", learned)
        return merged.tracing("tuning_loss", done.losses["total"])

    def spread(self, weights: Weights, job: Job) -> Work[float]:
        """Of the target's features by this model."""
        z = yield job.prediction(extractor(weights, job.model))
        return spread(z, job.task.outputs)
