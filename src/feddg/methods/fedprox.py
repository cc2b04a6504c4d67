"""FedProx (Li et al., MLSys 2020): stay near the model that was sent."""

from dataclasses import dataclass

from feddg.errors import within
from feddg.local import Job
from feddg.method import Method, Visit, Wrapper
from feddg.methods.fedavg import FedAvg
from feddg.packets import Inbox
from feddg.parts.terms import Proximal
from feddg.trees import Tree


@dataclass(frozen=True)
class FedProx(Wrapper):
    """Adds mu/2 ||w - w_sent||^2 to the local loss: squared, of the parameters, not of buffers.

    Public code differs: the penalty enters the momentum buffer in FedDG-GA, and its norm is
    not squared in FedDG_Benchmark. Here it is a term of the loss, as in the paper.
    """

    inner: Method = FedAvg()
    mu: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        within("fedprox: mu", self.mu)

    def local_update(self, inbox: Inbox, job: Job, memory: Tree) -> Visit:
        near = Proximal(inbox.model.parameters, inbox.model.layout.parameters(), self.mu)
        return (yield from self.inner.local_update(inbox, job.adding(near), memory))
