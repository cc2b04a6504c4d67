"""HarmoFL (Jiang et al., AAAI 2022): images of one brightness for all sites, and flat minima."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from feddg.errors import check_choices, within
from feddg.local import Job, prepared
from feddg.method import Method, Reveals, Visit, Work, Wrapper
from feddg.methods.fedavg import FedAvg
from feddg.packets import Inbox, Packet, Reply, State
from feddg.parts.spectra import half_width, low_amplitude, need_images, with_low_amplitude
from feddg.parts.terms import SAM
from feddg.trees import Tree, part


@dataclass(frozen=True)
class HarmoFL(Wrapper):
    """Amplitude normalisation and weight perturbation; uniform say, unless others decide it.

    Every image keeps its phase and gets the mean amplitude of all sites at its lowest frequencies.
    Every step descends the gradient found at w + alpha g / ||g|| (SAM).
    In the first round a site uses its own images' mean, which the server averages; that average
    then stays, is sent with the model and is part of the predictor. `low` is the half-width of the
    replaced frequencies as a share of the image's side: 0, as in the public code, is the mean of
    each channel; 0.5 the whole amplitude. Public code lets the mean run over the first round's
    batches, with a momentum of 0.1 that it declares an integer, and has batch norm without running
    statistics; that is the network's affair here.
    """

    inner: Method = FedAvg()
    alpha: float = 0.05
    amplitude: bool = True
    low: float = 0.0
    weights: Literal["uniform", "size"] = "uniform"

    claims: ClassVar[frozenset[str]] = frozenset({"step"})
    own: ClassVar[Reveals] = Reveals(
        {"harmofl": "the mean amplitude of the lowest frequencies of its images"}
    )
    deploys: ClassVar[tuple[str, ...]] = ("harmofl",)

    def __post_init__(self) -> None:
        check_choices("harmofl", self)
        super().__post_init__()
        within("harmofl: alpha", self.alpha)
        within("harmofl: low", self.low, 0, 0.5)

    @property
    def reveals(self) -> Reveals:
        return super().reveals if self.amplitude else self.inner.reveals

    def broadcast(self, state: State, round: int) -> Inbox:
        inbox = self.inner.broadcast(state, round)
        known = state.notes.get("harmofl")
        return inbox if known is None else inbox.noting("harmofl", known)

    def local_update(self, inbox: Inbox, job: Job, memory: Tree) -> Visit:
        job = job.stepping(SAM(self.alpha))
        if self.amplitude:
            amplitude = inbox.notes.get("harmofl")
            amplitude = mean_amplitude(job, self.low) if amplitude is None else amplitude
            job = job.adding(AmplitudeNorm(amplitude))
        reply, memory = yield from self.inner.local_update(inbox, job, memory)
        if self.amplitude:
            reply = reply.noting("harmofl", amplitude)
        return (replace(reply, weight=1.0) if self.weights == "uniform" else reply), memory

    def aggregate(self, state: State, replies: Sequence[Reply], job: Job) -> Work[State]:
        after = yield from self.inner.aggregate(state, replies, job)
        if not self.amplitude or "harmofl" in state.notes:
            return after
        return after.noting("harmofl", torch.stack([r.notes["harmofl"] for r in replies]).mean(0))

    def predictor(self, packet: Packet, model: nn.Module) -> nn.Module:
        net, known = self.inner.predictor(packet, model), packet.notes.get("harmofl")
        return net if known is None else Normalised(net, known)


@part("amplitude")
class AmplitudeNorm:
    """A transform of the batch, after the data's own."""

    amplitude: Tensor
    at: str = ""

    def apply(self, value: Tensor, draw: Tree) -> Tensor:
        return normalised(value, self.amplitude)


class Normalised(nn.Module):
    """The network behind the same normalisation."""

    def __init__(self, net: nn.Module, amplitude: Tensor) -> None:
        super().__init__()
        self.net = net
        self.register_buffer("amplitude", amplitude)
        self.amplitude: Tensor

    def forward(self, x: Tensor) -> Tensor:
        return self.net(normalised(x, self.amplitude))


def mean_amplitude(job: Job, low: float) -> Tensor:
    """Over the site's training images, unaugmented."""
    need_images(job, "harmofl")
    b = half_width(job.train.store, low)
    batches = job.train.batches(256)
    parts = [low_amplitude(prepared(p, job.prepare), b).sum(0) for p in batches]
    return torch.stack(parts).sum(0) / len(job.train)


def normalised(x: Tensor, amplitude: Tensor) -> Tensor:
    return with_low_amplitude(x, amplitude, torch.ones_like(x[:1, :1, :1, :1]))
