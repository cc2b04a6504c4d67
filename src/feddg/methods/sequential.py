"""Sequential training: one site after the other passes the model on; a bound, not a contender."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from feddg.errors import ConfigError
from feddg.method import Method, Wrapper
from feddg.methods.fedavg import FedAvg


@dataclass(frozen=True)
class Sequential(Wrapper):
    """In every round one site trains and its model is the next state; nothing is averaged.

    The model stays `stay` rounds at a site, so 1 is cyclic training and rounds / sites a single
    visit to each (COPA's "sequential"). A round has one site's work: as much work as FedAvg's takes
    as many times the rounds as there are sites. The run's participation plays no part.
    """

    inner: Method = FedAvg()
    stay: int = 1

    claims: ClassVar[frozenset[str]] = frozenset({"merge", "weights"})

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.stay < 1:
            raise ConfigError(f"sequential: stay must be at least 1 round, not {self.stay}")

    def asks(self, round: int, names: Sequence[str]) -> Sequence[str] | None:
        return [names[round // self.stay % len(names)]]
