"""What the server keeps and what crosses the wire: always a model and notes."""

from dataclasses import dataclass, field, replace
from typing import Any, Self

import torch

from feddg.trees import Tree, moved
from feddg.weights import Weights


@dataclass(frozen=True, kw_only=True, eq=False)
class Packet:
    """`model` is exactly what gets merged; all else goes in `notes`, keyed by its owner."""

    model: Weights
    notes: Tree = field(default_factory=dict)

    def noting(self, key: str, value: Any) -> Self:
        return replace(self, notes={**self.notes, key: value})

    def to(self, device: torch.device) -> Self:
        model = Weights(self.model.vector.to(device), self.model.layout)
        return replace(self, model=model, notes=moved(self.notes, device))


@dataclass(frozen=True, kw_only=True, eq=False)
class State(Packet):
    """The server's, between rounds. `trace` is what the last merge decided, for the record."""

    trace: Tree = field(default_factory=dict)

    def tracing(self, key: str, value: Any) -> "State":
        return replace(self, trace={**self.trace, key: value})


@dataclass(frozen=True, kw_only=True, eq=False)
class Inbox(Packet):
    """Server to site: the same for every site of a round."""

    round: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Reply(Packet):
    """Site to server. `weight` is the site's say in a merge; wrappers may change it.

    `losses` has the mean of every term over the last epoch, for progress and the record.
    """

    site: str
    weight: float = 1.0
    steps: int = 1
    losses: dict[str, float] = field(default_factory=dict)
