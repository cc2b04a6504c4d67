"""COPA (Wu & Gong, ICCV 2021): one shared extractor and a head per site, for unseen domains.

Collaborative Optimization and Aggregation for Decentralized Domain Generalization and Adaptation.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import torch
from torch import nn

from feddg.data.randaugment import RandAugment, fitted
from feddg.errors import ConfigError, check_choices
from feddg.local import Job
from feddg.method import Method, Reveals, Visit, Work, Wrapper
from feddg.methods.fedavg import FedAvg
from feddg.models.normalise import Normalisation, normalised
from feddg.packets import Inbox, Packet, Reply, State
from feddg.parts.heads import (
    Collaboration,
    assembled,
    collaboration,
    grown,
    head_layout,
    parted,
    trained,
    voting,
)
from feddg.trees import Tensors, Tree
from feddg.weights import Layout, Weights


@dataclass(frozen=True)
class COPA(Wrapper):
    """L_i = CE(C_i F_i(x)) + Σ_{j≠i} CE(C'_j F_i(A(x)))  (Eq. 5);  F <- Σ_i α_i F_i  (Eq. 6).

    norm, where   hbin (Eq. 2-4) | bn | in | sn | ibn-a | ibn-b | none, everywhere or at names
    branch        cofc: Eq. 5, with A = RandAugment and Cutout; cofc-plain: A is the identity;
                  augmented: own CE on A(x) as well; consistency: DAEL's, which trains copies of
                  the others' heads, averaged by the server; none
    cutout        side in pixels; None: 16 as for the paper's photos, 0 as for its digits (< 64)
    statistics    whether the pass of A(x) moves the running statistics too
    weights       α: uniform | size; or `alpha`, one per site. Wrappers such as GA may change it
    noise         the standard deviation of white noise, added to the merged extractor
    iterate       False: no site hears of another, the state is the average ("w/o Iter")
    vote          the mean over heads is of: softmax | logits

    Every head starts as the network's own; until it is trained it has no vote, but CoFC uses it
    (there is no other in the first round). Tables have no A: for them cofc is cofc-plain.
    """

    inner: Method = FedAvg()
    norm: Normalisation = "hbin"
    where: tuple[str, ...] = ()
    branch: Collaboration = "cofc"
    operations: int = 2
    chance: float = 0.6
    geometric: bool = True
    cutout: int | None = None
    statistics: bool = False
    weights: Literal["uniform", "size"] = "uniform"
    alpha: tuple[float, ...] = ()
    noise: float = 0.0
    iterate: bool = True
    vote: Literal["softmax", "logits"] = "softmax"

    claims: ClassVar[frozenset[str]] = frozenset({"head", "start"})
    deploys: ClassVar[tuple[str, ...]] = ("head", "heads")
    own: ClassVar[Reveals] = Reveals({"heads": "the site's head, which every other site is sent"})
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "office-home": {"where": ("bn1", "layer1.0")},
        "office-caltech": {"where": ("bn1", "layer1")},
        "digits": {"cutout": 0},
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choices("copa", self)
        _ = self.augment  # which checks its own settings
        if self.noise < 0 or any(a <= 0 for a in self.alpha):
            raise ConfigError("copa: noise must not be negative, and every alpha positive")

    @property
    def augment(self) -> RandAugment:
        return RandAugment(self.operations, self.chance, self.geometric, self.cutout or 0)

    def architecture(self, model: nn.Module) -> nn.Module:
        return normalised(self.inner.architecture(model), self.norm, self.where)

    def init(self, model: nn.Module, sites: Sequence[str]) -> State:
        if self.alpha and len(self.alpha) != len(sites):
            raise ConfigError(f"copa: alpha has {len(self.alpha)} numbers for {len(sites)} sites")
        state = self.inner.init(model, sites)
        shared, head = parted(state.model, model)
        notes = {"head": head, "heads": dict.fromkeys(sites, head)}
        notes |= {"alpha": dict(zip(sites, self.alpha, strict=False)), "start": shared.vector}
        if self.iterate:
            del notes["start"]
        return replace(state, model=shared, notes={**state.notes, **notes})

    def broadcast(self, state: State, round: int) -> Inbox:
        inbox, notes = self.inner.broadcast(state, round), state.notes
        sent = {k: notes[k] for k in ("head", "heads", "alpha")}
        if not self.iterate:
            inbox = replace(inbox, model=Weights(notes["start"], state.model.layout))
            sent["heads"] = dict.fromkeys(notes["heads"], notes["head"])
        return replace(inbox, notes={**inbox.notes, **sent})

    def local_update(self, inbox: Inbox, job: Job, memory: Tree) -> Visit:
        last = memory.get("copa", {})  # what this site made, where nothing is iterated
        others: Tensors = {**inbox.notes["heads"], **last.get("heads", {})}
        mine = Weights(others.pop(job.name, inbox.notes["head"]), head_layout(job.model))
        start = Weights(last.get("model", inbox.model.vector), inbox.model.layout)
        whole = replace(inbox, model=start.joined(mine, Layout.of(job.model)))
        augment = fitted(self.augment, self.cutout, job)
        job = job.adding(*collaboration(self.branch, others, augment, self.statistics, job))
        reply, memory = yield from self.inner.local_update(whole, job, memory)
        shared, head = parted(reply.model, job.model)
        copies, memory = trained(others, memory)
        heads = {**copies, job.name: head}
        if not self.iterate:
            memory = {**memory, "copa": {"model": shared.vector, "heads": heads}}
        say = reply.weight if self.weights == "size" else 1.0
        say = inbox.notes["alpha"].get(job.name, say)
        return replace(reply, model=shared, weight=say).noting("heads", heads), memory

    def aggregate(self, state: State, replies: Sequence[Reply], job: Job) -> Work[State]:
        merged = yield from self.inner.aggregate(state, replies, job)
        if self.noise:
            model = merged.model
            white = torch.randn(model.layout.cut, generator=job.rng("noise")).to(model.vector)
            noisy = torch.cat([model.parameters + self.noise * white, model.buffers])
            merged = replace(merged, model=Weights(noisy, model.layout))
        return merged.noting("heads", assembled(state.notes["heads"], replies))

    def predictor(self, packet: Packet, model: nn.Module) -> nn.Module:
        """All heads on the extractor; for a reply, that site's alone."""
        found, heads = self.inner.predictor(packet, model), packet.notes.get("heads", {})
        if not heads:  # a bare extractor, of which others want the features
            return found
        if isinstance(packet, Reply):
            heads = {packet.site: heads[packet.site]}
        else:
            heads = grown(heads, packet.notes["head"]) or heads
        return voting(found, model, heads, self.vote)
