"""FedSR (Nguyen et al., NeurIPS 2022), a simple representation; FedL2R and FedCMI, its halves."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from feddg.errors import ConfigError, within
from feddg.local import Forward, Job
from feddg.method import Method, Visit, Wrapper
from feddg.methods.fedavg import FedAvg
from feddg.models import anatomy
from feddg.packets import Inbox
from feddg.parts.gaussian import Noise, Prior, priors, with_gaussian_head
from feddg.parts.shared import width
from feddg.tasks import Classification
from feddg.trees import Tree, moved, part


@part()
class Norm:
    """weight * mean_i ||z_i||, or of the squares."""

    tap: str
    weight: float
    squared: bool

    @property
    def taps(self) -> tuple[str, ...]:
        return (self.tap,)

    def loss(self, fwd: Forward) -> Tensor:
        size = torch.linalg.vector_norm(fwd.taps[self.tap].flatten(1), dim=1)
        return self.weight * (size.square() if self.squared else size).mean()


@dataclass(frozen=True)
class FedSR(Wrapper):
    """The head reads z ~ N(mu(x), sigma(x)); ||z|| and KL(p(z|x) || r(z|y)) are kept small.

    Sends: the model. Keeps: the classes' priors r_y and their scale, trained along.

    As the released code: the norm (`squared`: its square, as the paper's text), sigma by
    softplus, one sample in training, the mean of the softmax over `samples` at test, here with
    the same seeded noise for every example (0: mu alone). The head becomes a linear layer to
    mu and sigma and another from z to the classes; `size` of z is that of the features unless
    given. The code has its own optimiser for the priors, here they share the recipe's.
    """

    inner: Method = FedAvg()
    l2r: float = 0.01
    cmi: float = 0.001
    size: int = 0
    samples: int = 20
    squared: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("l2r", "cmi", "size", "samples"):
            within(f"fedsr: {name}", getattr(self, name))

    def architecture(self, model: nn.Module) -> nn.Module:
        return with_gaussian_head(self.inner.architecture(model), self.size, self.samples)

    def local_update(self, inbox: Inbox, job: Job, memory: Tree) -> Visit:
        if not isinstance(job.task, Classification):
            raise ConfigError("fedsr's priors belong to classes: it needs a classification")
        layers = anatomy(job.model)
        at, size = layers.head.rpartition(".")[0], width(job.model, layers.head)
        start = memory.get("learned", {}).get("fedsr") or moved(
            priors(job.task.outputs, size), inbox.model.vector.device
        )
        near = Prior(dict(start), f"{at}.encode", self.cmi)
        short = Norm(layers.features, self.l2r, self.squared)
        job = job.adding(Noise(f"{at}.code:in", size), short, near)
        return (yield from self.inner.local_update(inbox, job, memory))


@dataclass(frozen=True)
class FedCMI(FedSR):
    """FedSR without the norm: the conditional mutual information alone."""

    l2r: float = 0.0


@dataclass(frozen=True)
class FedL2R(Wrapper):
    """FedSR's norm alone, on the features as they are: nothing is drawn, the network stays.

    Sends: nothing besides the model. Keeps: nothing.
    """

    inner: Method = FedAvg()
    l2r: float = 0.01
    squared: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        within("fedl2r: l2r", self.l2r)

    def local_update(self, inbox: Inbox, job: Job, memory: Tree) -> Visit:
        short = Norm(anatomy(job.model).features, self.l2r, self.squared)
        return (yield from self.inner.local_update(inbox, job.adding(short), memory))
