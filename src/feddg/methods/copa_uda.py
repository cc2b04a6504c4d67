"""COPA with unlabelled data of the target at the server (Wu & Gong, ICCV 2021, Algorithm 2)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from feddg.data.domain import Examples
from feddg.data.randaugment import fitted
from feddg.errors import ConfigError, within
from feddg.local import Job, TaskLoss
from feddg.method import Reveals, Work
from feddg.methods.copa import COPA
from feddg.packets import Reply, State
from feddg.parts.heads import collaboration, grown, head_layout, parted, voting
from feddg.parts.tuning import FEWEST, classifying, labelled, tuning
from feddg.parts.votes import Rule, agreement_weights, agreements, pseudo_labels
from feddg.trees import Tensors
from feddg.weights import Layout, Weights

TARGET = "target"


@dataclass(frozen=True)
class COPAUDA(COPA):
    """COPA; before merging, the sites' models label the target; then F_t and C_t learn from that.

    labels        of p_i, the mean softmax over the heads of site i (Eq. 7: its own, and the others'
                  as they were sent): mean | max | most (see feddg.parts.votes)
    threshold     the probability above which a label is used
    agreement     α_i by how many of the labels p_i says (Eq. 8), else as in COPA, where alone
                  `alpha` and weights='size' have a meaning
    counted       for that: all labels, or the sure ones, those above the threshold. Of a mean above
                  0.95 up to ten sites cannot but agree, and Eq. 8 is uniform (docs/adr/0012)
    target_head   whether there is a C_t; the source heads, frozen, tune F_t in any case
    from_start    sites train with C_t from round 0 on, before it has learned anything, and not from
                  the round after its first tuning
    epochs        of the server's tuning, each round; at the sites' rate, without label smoothing

    The labels are found once a round, with the sites' models, for weights and tuning alike. All
    heads that have been trained vote, C_t among them.
    """

    labels: Rule = "mean"
    threshold: float = 0.95
    agreement: bool = True
    counted: Literal["all", "sure"] = "all"
    target_head: bool = True
    from_start: bool = False
    epochs: int = 1

    adapts: ClassVar[bool] = True
    claims: ClassVar[frozenset[str]] = COPA.claims | {"weights"}
    own: ClassVar[Reveals] = Reveals(COPA.own.notes, "everything")

    def __post_init__(self) -> None:
        super().__post_init__()
        within("copa-uda: threshold", self.threshold)
        within("copa-uda: epochs", self.epochs)
        if self.branch == "consistency" or not self.iterate:
            raise ConfigError(
                "copa-uda: the sites hold the others' heads, and the target's, frozen in every"
                " round; branch='consistency' and iterate=False are copa's"
            )
        if self.agreement and (self.alpha or self.weights != "uniform"):
            raise ConfigError(
                "copa-uda: agreement decides every site's say; with alpha or weights='size' give"
                " agreement=False"
            )
        if self.branch == "augmented" and not self.target_head:
            raise ConfigError(
                "copa-uda: branch='augmented' tunes the target's head, which target_head=False"
                " leaves out; take another branch"
            )

    def init(self, model: nn.Module, sites: Sequence[str]) -> State:
        state = super().init(model, sites)
        if TARGET in sites:
            raise ConfigError(f"copa-uda: a site cannot be called {TARGET!r}; rename it")
        first = {TARGET: state.notes["head"]} if self.from_start and self.target_head else {}
        return state.noting("heads", {**state.notes["heads"], **first})

    def aggregate(self, state: State, replies: Sequence[Reply], job: Job) -> Work[State]:
        classifying(job, "copa-uda")
        ensembles = [self.local_ensemble(state, r, job.model) for r in replies]
        seen = yield [job.prediction(e) for e in ensembles]
        p = torch.stack(seen).exp()
        label, confidence = pseudo_labels(p, self.labels)
        sure = confidence > self.threshold
        if self.agreement:
            heard = sure if self.counted == "sure" else torch.ones_like(sure)
            say = agreement_weights(agreements(p, label, heard))
            replies = [replace(r, weight=a) for r, a in zip(replies, say, strict=True)]
        merged = yield from super().aggregate(state, replies, job)
        rows = sure.nonzero()[:, 0]
        merged = merged.tracing("labelled", len(rows) / len(sure))
        if not self.epochs or len(rows) < FEWEST:
            return merged
        return (yield from self.tuned(merged, labelled(job.train, label, rows), job))

    def local_ensemble(self, state: State, reply: Reply, model: nn.Module) -> nn.Module:
        """{F_i, C_i, {C'_j}} as site i has it after training, without C_t."""
        heads: Tensors = {**state.notes["heads"], **reply.notes["heads"]}
        heads.pop(TARGET, None)
        return voting(self.inner.predictor(reply, model), model, heads, "softmax")

    def tuned(self, state: State, data: Examples, job: Job) -> Work[State]:
        """L_t: CE(C_t F_t(x)) + Σ_j CE(C'_j F_t(A(x))), by the pseudo-labels."""
        first: Tensor = state.notes["head"]
        sources = grown({k: h for k, h in state.notes["heads"].items() if k != TARGET}, first)
        augment = fitted(self.augment, self.cutout, job)
        frozen = collaboration(self.branch, sources, augment, self.statistics, job)
        own = (TaskLoss(),) if self.target_head else ()
        if not (own + frozen):
            return state
        mine = Weights(state.notes["heads"].get(TARGET, first), head_layout(job.model))
        start = state.model.joined(mine, Layout.of(job.model))
        done = yield tuning(job, self.epochs, *own, *frozen).training(start, data=data)
        shared, head = parted(done.model, job.model)
        heads = {**state.notes["heads"], **({TARGET: head} if self.target_head else {})}
        state = replace(state, model=shared).noting("heads", heads)
        return state.tracing("tuning_loss", done.losses.get("total", 0.0))
