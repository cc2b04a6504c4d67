"""SHOT (Liang et al., ICML 2020): every site's model adapts to the target without the site."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor, nn

from feddg.errors import within
from feddg.local import Job
from feddg.method import Work, together
from feddg.methods.independent import KEY, IndependentEnsemble
from feddg.models.anatomy import anatomy
from feddg.packets import Packet, Reply, State
from feddg.parts.heads import Branch, Vote, head_layout, kept_head, parted
from feddg.parts.sourcefree import InformationMaximisation, clustered
from feddg.parts.tuning import classifying, tuning
from feddg.weights import Weights, load


@dataclass(frozen=True)
class SHOT(IndependentEnsemble):
    """Sites train each on their own; after the last round the server adapts each model by itself.

    That round is the one to report. The classifier is frozen. The extractor makes predictions sure
    and diverse, and learns labels that clusters of its features give anew before every epoch. The
    mean softmax of all adapted models predicts, as in the paper's multi-source runs; before the
    last round, that of the sites'.

    beta      of the clusters' labels; 0 leaves information maximisation alone
    epochs    of it. They are a run of their own: the recipe's schedule begins anew, an epoch to a
              round (in the last round of a cosine the sites' rate is next to nothing). The paper's
              own decay, rates by layer and bottleneck belong to the recipe and the network, and
              label smoothing at the sites to the recipe
    """

    beta: float = 0.3
    epochs: int = 15

    adapts: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        within("shot: beta", self.beta)
        within("shot: epochs", self.epochs)

    def aggregate(self, state: State, replies: Sequence[Reply], job: Job) -> Work[State]:
        classifying(job, "shot")
        merged = yield from super().aggregate(state, replies, job)
        if job.round + 1 < job.rounds:
            return merged
        kept = merged.notes[KEY]
        starts = {
            k: Weights(kept["models"][k], merged.model.layout) for k in sorted(kept["models"])
        }
        found = yield from together([self.adapted(w, k, job) for k, w in starts.items()])
        adapted = {k: w.vector for k, w in zip(starts, found, strict=True)}
        return merged.noting(KEY, {**kept, "models": adapted})

    def adapted(self, model: Weights, site: str, job: Job) -> Work[Weights]:
        _, head = parted(model, job.model)
        branch = Branch(head_layout(job.model), anatomy(job.model).head)
        term, optimizer = InformationMaximisation(head, branch, self.beta), None
        for epoch in range(self.epochs):
            z = yield job.prediction(extractor(model, job.model))
            label = clustered(z, classified(z, model, job.model)).to(job.train.y.dtype)
            anew = replace(job, round=epoch, rounds=self.epochs)
            work = tuning(anew, 1, term, name=site)
            done = yield work.training(model, optimizer, replace(job.train, y=label))
            model, optimizer = kept_head(done.model, head, job.model), done.optimizer
        return model

    def predictor(self, packet: Packet, model: nn.Module) -> nn.Module:
        """The vote of the models, by softmax; alone, that of an inbox or a reply."""
        found = super().predictor(packet, model)
        members = getattr(found, "members", None)
        return found if members is None else Vote(list(members), "softmax")


def extractor(weights: Weights, model: nn.Module) -> nn.Module:
    """The network up to its head."""
    network = load(model, weights)
    network.set_submodule(anatomy(model).head, nn.Identity())
    return network


@torch.no_grad()
def classified(z: Tensor, weights: Weights, model: nn.Module) -> Tensor:
    head = load(model, weights).get_submodule(anatomy(model).head)
    p: Tensor = head(z).softmax(1)
    return p
