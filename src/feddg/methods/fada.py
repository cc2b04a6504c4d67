"""FADA (Peng et al., ICLR 2020): features of sources and target that no judge can tell apart."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import exp
from typing import Any, ClassVar

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
            models = [state.model, *(r.model for r in replies)]
            seen = yield [job.prediction(extractor(w, job.model)) for w in models]
            before, *after = [spread(z, job.task.outputs) for z in seen]
            replies = [
                replace(r, weight=exp(before - a)) for r, a in zip(replies, after, strict=True)
            ]
        merged = yield from self.inner.aggregate(state, replies, job)
        if not self.epochs:
            return merged
        tap, features = anatomy(job.model).features, replies[0].notes["features"].shape[1]
        at = merged.model.vector.device
        heard = {r.site: r.notes["features"] for r in sorted(replies, key=lambda r: r.site)}
        judges = [
            state.notes["fada"].get(site)
            or moved(Judge(features).start(job.rng(f"judge/{site}")), at)
            for site in heard
        ]
        # by number, not by name: so the servers of runs with other sites train alike
        term = Confusion(numbered(judges), numbered(heard.values()), tap, self.weight)
        done = yield tuning(job, self.epochs, term).training(merged.model)
        _, head = parted(merged.model, job.model)
        model = kept_head(done.model, head, job.model)
        learned = dict(zip(heard, done.learned[term.key].values(), strict=True))
        learned = {**state.notes["fada"], **learned}
        merged = replace(merged, model=model).noting("fada", learned)
        return merged.tracing("tuning_loss", done.losses["total"])


def numbered(values: Iterable[Any]) -> dict[str, Any]:
    return {str(i): v for i, v in enumerate(values)}
