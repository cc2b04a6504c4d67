"""KD3A (Feng et al., ICML 2021): what the sites' models agree on, distilled at the server."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import torch

from feddg.errors import ConfigError, within
from feddg.local import Job
from feddg.method import Method, Reveals, Work, Wrapper
from feddg.methods.fedavg import FedAvg
from feddg.packets import Reply, State
from feddg.parts.alignment import Rows
from feddg.parts.knowledge import Distilled, consensus_focus, focused, knowledge_vote
from feddg.parts.moments import mixed_moments
from feddg.parts.tuning import classifying, tuning
from feddg.weights import Weights


@dataclass(frozen=True)
class KD3A(Wrapper):
    """w <- Σ_k α_k w_k + α_T w_T, where w_T has learned the sites' consensus on the target.

    gate      above which a prediction counts in the vote: from the first round's to the last one's
    focus     α_k by size and consensus focus, else by size alone; α_T = N_T / (Σ N_k + N_T)
    mixup     of the target's images and what is known of them
    moments   batch norm's first two moments are averaged, else its variances
    epochs    of the distillation, which starts from the model that the sites were sent; None: as
              many as the sites'

    One vote a round, by the sites' models as they come back (the released code asks them anew for
    every batch, which is the same); a site without which more were known has no say, not a
    negative one.
    """

    inner: Method = FedAvg()
    gate: tuple[float, ...] = (0.9, 0.95)
    focus: bool = True
    mixup: bool = True
    moments: bool = True
    epochs: int | None = None

    adapts: ClassVar[bool] = True
    claims: ClassVar[frozenset[str]] = frozenset({"weights"})
    own: ClassVar[Reveals] = Reveals(server_sees="everything")

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.gate) != 2:
            raise ConfigError(f"kd3a: gate is (first, last), not {self.gate}")
        for gate in self.gate:
            within("kd3a: gate", gate, 0, 1)
        within("kd3a: epochs", self.epochs or 0)

    def aggregate(self, state: State, replies: Sequence[Reply], job: Job) -> Work[State]:
        classifying(job, "kd3a")
        seen = yield [job.prediction(self.inner.predictor(r, job.model)) for r in replies]
        p, gate = torch.stack(seen).softmax(2), self.gate_at(job)
        knowledge, support = knowledge_vote(p, gate)
        taught = Distilled(Rows(knowledge=knowledge, support=support), self.mixup)
        epochs = job.local.epochs if self.epochs is None else self.epochs
        target = state.model
        if epochs:
            done = yield tuning(job, epochs, taught).training(target)
            target, state = done.model, state.tracing("tuning_loss", done.losses["total"])

        sizes = [r.weight for r in replies]
        focus = consensus_focus(p, gate) if self.focus else [1.0] * len(replies)
        say, share = focused(sizes, focus), len(job.train) / (sum(sizes) + len(job.train))
        heard = [(r, a) for r, a in zip(replies, say, strict=True) if a]
        weighed = [replace(r, weight=a) for r, a in heard]
        merged = yield from self.inner.aggregate(state, weighed, job)
        whole = merged.model.vector + share * (target.vector - merged.model.vector)
        model = Weights(whole, merged.model.layout)
        if self.moments:
            members = [*(r.model for r, _ in heard), target]
            shares = [*((1 - share) * a for _, a in heard), share]
            model = mixed_moments(job.model, model, members, shares)
        merged = replace(merged, model=model).tracing("target", share)
        known = (support >= 1).double().mean().item()
        return merged.tracing("labelled", known)

    def gate_at(self, job: Job) -> float:
        first, last = self.gate
        return first + (last - first) * job.round / max(job.rounds - 1, 1)
