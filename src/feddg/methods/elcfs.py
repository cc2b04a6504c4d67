"""FedDG-ELCFS (Liu et al., CVPR 2021): episodes in a continuous frequency space."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from feddg.data.transforms import Numbers, Scale
from feddg.errors import within
from feddg.local import Job, prepared
from feddg.method import Method, Reveals, Visit, Work, Wrapper
from feddg.methods.fedavg import FedAvg
from feddg.packets import Inbox, Reply, State
from feddg.parts.episodes import Episode, by_channel
from feddg.parts.spectra import half_width, low_amplitude, need_images
from feddg.trees import Tree


@dataclass(frozen=True)
class ELCFS(Wrapper):
    """Trains on a site's images and, after a trial step, on them in the style of other sites.

    Sends: the model and, once, low-frequency amplitudes of its images, which go to all sites.
    Keeps: nothing.

    A site sends amplitudes with its first reply, so the first round trains plainly. `bank` is
    the share of its images, `window` the paper's alpha: the window's half-width as a share of
    the shorter side; 0 is frequency zero alone, as in the released code. Pixels are restored
    before the transform, for amplitudes of normalised images lose the sign of the mean; they
    are not clipped to the range of pixels afterwards. Outside of the window the amplitude
    stays: the paper's Eq. 3, read literally, would scale it by 1 - l, and its code does not.

    official    hard swap, an eighth of the images, first-order gradient; the code averages no
                batch-norm statistics: set buffers = "keep" in the recipe for that
    left out    the boundary-oriented loss, which needs segmentations (CSAC leaves it out too)
    """

    inner: Method = FedAvg()
    rate: float = 1e-3
    clip: float = 100.0
    meta: float = 1.0
    window: float = 0.0
    bank: float = 1.0
    hard: bool = False
    second_order: bool = True

    claims: ClassVar[frozenset[str]] = frozenset({"step"})
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "official": {"hard": True, "bank": 0.125, "second_order": False}
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        within("elcfs: rate", self.rate)
        within("elcfs: clip", self.clip, above=True)
        within("elcfs: meta", self.meta)
        within("elcfs: window", self.window, 0, 0.5)
        within("elcfs: bank", self.bank, 0, 1, above=True)

    @property
    def reveals(self) -> Reveals:
        which = f"the amplitude spectrum of {self.bank:.0%} of the training images"
        what = (
            f"near frequency zero (window {self.window:g} of the shorter side)"
            if self.window
            else "at frequency zero, that is the mean brightness of each image and channel"
        )
        return Reveals({"elcfs": f"{which}, {what}; every other site gets it"}) | self.inner.reveals

    def init(self, model: nn.Module, sites: Sequence[str]) -> State:
        return self.inner.init(model, sites).noting("elcfs", {})

    def broadcast(self, state: State, round: int) -> Inbox:
        return self.inner.broadcast(state, round).noting("elcfs", state.notes["elcfs"])

    def local_update(self, inbox: Inbox, job: Job, memory: Tree) -> Visit:
        need_images(job, "elcfs")
        mean, std = pixel_scale(job.prepare)
        banks = inbox.notes["elcfs"]
        others = [banks[k] for k in sorted(banks) if k != job.name]
        here = job
        if others:
            chance = torch.cat([torch.full((len(b),), 1 / len(b)) for b in others])
            rule = (self.rate, self.clip, self.meta, self.hard, self.second_order)
            here = job.stepping(Episode(torch.cat(others), chance, *rule, mean, std))
        reply, memory = yield from self.inner.local_update(inbox, here, memory)
        if job.name not in banks:
            reply = reply.noting("elcfs", self.amplitudes(job, mean, std))
        return reply, memory

    def amplitudes(self, job: Job, mean: Numbers, std: Numbers) -> Tensor:
        n = len(job.train)
        rows = torch.randperm(n, generator=job.rng("elcfs"))[: max(1, int(n * self.bank))]
        b = half_width(job.train.store, self.window)
        found = []
        for some in job.train.take(rows).batches(256):
            x = prepared(some, job.prepare)
            found.append(low_amplitude(x * by_channel(std, x) + by_channel(mean, x), b))
        return torch.cat(found)

    def aggregate(self, state: State, replies: Sequence[Reply], job: Job) -> Work[State]:
        banks = dict(state.notes["elcfs"])
        state = yield from self.inner.aggregate(state, replies, job)
        new = {r.site: r.notes["elcfs"] for r in replies if "elcfs" in r.notes}
        return state.noting("elcfs", {**banks, **new})


def pixel_scale(prepare: Sequence[Any]) -> tuple[Numbers, Numbers]:
    """Mean and deviation by which the data was normalised."""
    scales = [t for t in prepare if isinstance(t, Scale)]
    return (scales[-1].mean, scales[-1].std) if scales else ((0.0,), (1.0,))
