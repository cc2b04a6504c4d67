"""Federated averaging (McMahan et al., AISTATS 2017): the leaf that every method wraps."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import nn

from feddg.local import Job
from feddg.merges import Gathered, Merge, WeightedMean, buffered
from feddg.method import Reveals, Visit, Work
from feddg.packets import Inbox, Packet, Reply, State
from feddg.trees import Tree
from feddg.weights import Weights, load


@dataclass(frozen=True)
class FedAvg:
    """w <- sum_i (n_i / n) w_i, or another `merge` of the sites' models.

    Sends: the model. Keeps at a site: what parts of the loss have learned and, where the
    recipe says so, the optimiser's state.
    """

    merge: Merge = WeightedMean()
    weights: Literal["size", "uniform"] = "size"

    @property
    def reveals(self) -> Reveals:
        return Reveals(server_sees=self.merge.sees)

    def architecture(self, model: nn.Module) -> nn.Module:
        return model

    def init(self, model: nn.Module, sites: Sequence[str]) -> State:
        return State(model=Weights.of(model))

    def broadcast(self, state: State, round: int) -> Inbox:
        return Inbox(round=round, model=state.model)

    def asks(self, round: int, names: Sequence[str]) -> Sequence[str] | None:
        return None

    def local_update(self, inbox: Inbox, job: Job, memory: Tree) -> Visit:
        trained = yield job.training(inbox.model, memory.get("optimizer"))
        say = float(len(job.train)) if self.weights == "size" else 1.0
        reply = Reply(
            site=job.name, model=trained.model, weight=say, steps=trained.steps,
            losses=trained.losses,
        )  # fmt: skip
        if trained.learned:
            memory = {**memory, "learned": {**memory.get("learned", {}), **trained.learned}}
        if job.recipe.optimizer_state == "keep" and trained.optimizer:
            memory = {**memory, "optimizer": trained.optimizer}
        return reply, memory

    def aggregate(self, state: State, replies: Sequence[Reply], job: Job) -> Work[State]:
        yield from ()  # the mean is light work; other methods ask the engine for more here
        got = Gathered(state.model, replies, job.rng("merge"))
        merged = self.merge(got)
        parameters = state.model.parameters + merged.step
        vector = torch.cat([parameters, buffered(got, job.recipe.buffers)])
        model = Weights(vector, state.model.layout)
        return replace(state, model=model, trace={**state.trace, **merged.trace})

    def predictor(self, packet: Packet, model: nn.Module) -> nn.Module:
        return load(model, packet.model)
