"""What sites reach without each other: the bounds of COPA's Table 7."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor, nn

from feddg.local import Job
from feddg.method import Method, Reveals, Visit, Work, Wrapper
from feddg.methods.fedavg import FedAvg
from feddg.packets import Inbox, Packet, Reply, State
from feddg.trees import Tree
from feddg.weights import Weights

KEY = "independent"


@dataclass(frozen=True)
class IndependentAverage(Wrapper):
    """All sites set out from one model and go on from their own; the state is the average.

    So the average is formed once, after the last round, as far as training is concerned: COPA's
    Ind-ParamAvg, which is its "FedAvg w/o Iter". Earlier rounds show what it would have been.
    """

    inner: Method = FedAvg()

    claims: ClassVar[frozenset[str]] = frozenset({"start"})

    def init(self, model: nn.Module, sites: Sequence[str]) -> State:
        state = self.inner.init(model, sites)
        return state.noting(KEY, {"start": state.model.vector})

    def broadcast(self, state: State, round: int) -> Inbox:
        inbox = self.inner.broadcast(state, round)
        return replace(inbox, model=Weights(state.notes[KEY]["start"], state.model.layout))

    def local_update(self, inbox: Inbox, job: Job, memory: Tree) -> Visit:
        own = Weights(memory.get(KEY, inbox.model.vector), inbox.model.layout)
        reply, memory = yield from self.inner.local_update(replace(inbox, model=own), job, memory)
        return reply, {**memory, KEY: reply.model.vector}


@dataclass(frozen=True)
class IndependentEnsemble(IndependentAverage):
    """As IndependentAverage, but the sites' models stay apart: the mean of their logits predicts.

    The server keeps every site's model and sees it in the clear (Ind-Ensemble).
    """

    own: ClassVar[Reveals] = Reveals(server_sees="everything")
    deploys: ClassVar[tuple[str, ...]] = (KEY,)

    def aggregate(self, state: State, replies: Sequence[Reply], job: Job) -> Work[State]:
        merged = yield from self.inner.aggregate(state, replies, job)
        kept = {**state.notes[KEY].get("models", {}), **{r.site: r.model.vector for r in replies}}
        return merged.noting(KEY, {**state.notes[KEY], "models": kept})

    def predictor(self, packet: Packet, model: nn.Module) -> nn.Module:
        vectors: dict[str, Tensor] = packet.notes.get(KEY, {}).get("models", {})
        if not vectors:  # an inbox, a reply, or nobody has answered yet
            return self.inner.predictor(packet, model)
        models = [Weights(vectors[k], packet.model.layout) for k in sorted(vectors)]
        return Ensemble([self.inner.predictor(replace(packet, model=w), model) for w in models])


class Ensemble(nn.Module):
    """The mean of the members' outputs."""

    def __init__(self, members: Sequence[nn.Module]):
        super().__init__()
        self.members = nn.ModuleList(members)

    def forward(self, x: Tensor) -> Tensor:
        return torch.stack([member(x) for member in self.members]).mean(0)
