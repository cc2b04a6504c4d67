"""FedSAM (Qu et al., ICML 2022): sites look for flat minima."""

from dataclasses import dataclass
from typing import ClassVar

from feddg.errors import within
from feddg.local import Job
from feddg.method import Method, Visit, Wrapper
from feddg.methods.fedavg import FedAvg
from feddg.packets import Inbox
from feddg.parts.terms import SAM
from feddg.trees import Tree


@dataclass(frozen=True)
class FedSAM(Wrapper):
    """Every local step descends the gradient found at w + rho g / ||g||, from w itself.

    The default rho is FedLESAM's (of the GA authors' group), for GA's paper states none. Momentum
    and weight decay act on the second gradient. Twice the cost of FedAvg.
    """

    inner: Method = FedAvg()
    rho: float = 0.1

    claims: ClassVar[frozenset[str]] = frozenset({"step"})

    def __post_init__(self) -> None:
        super().__post_init__()
        within("fedsam: rho", self.rho)

    def local_update(self, inbox: Inbox, job: Job, memory: Tree) -> Visit:
        return (yield from self.inner.local_update(inbox, job.stepping(SAM(self.rho)), memory))
