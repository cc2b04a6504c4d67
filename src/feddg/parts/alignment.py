"""CSAC's cross-layer semantic calibration (Yuan et al., TKDE, Eq. 5-9) as a term of the loss.

The layers l of the model in training (the copy of the fused model) are matched with the layers m
of the site's own model L^h on the same batch:

    L_AL = sum_l sum_m alpha_lm D(Proj(M_l), Proj(L_m))                    (Eq. 6)

The equations normalise alpha over m: each fused layer chooses among the local layers. TKDE's
prose tells it the other way round; v1's prose and both versions' equations agree with this.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod, sqrt
from typing import Any, ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from feddg.errors import ConfigError
from feddg.local import Forward
from feddg.parts.discrepancy import WIDTHS, weighted_mmd
from feddg.parts.products import linear
from feddg.training import forward
from feddg.trees import Tensors, part
from feddg.weights import Layout

Pairs = Literal["cross", "same", "logits", "none"]
Side = Literal["local", "fused"]
Kernels = Literal["sum", "mean"]
Size = tuple[int, int, int]  # channels, height, width
SIDES = ("fused", "local")


class Rows(dict[str, Tensor]):
    """A row per training example.

    Parts whose rows have the same form may be stacked, whatever the number of examples: the rows
    reach a term batch by batch, never through the part.
    """

    def form(self) -> dict[str, torch.Size]:
        return {k: v.shape[1:] for k, v in self.items()}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rows) and self.form() == other.form()

    def __ne__(self, other: object) -> bool:  # dict has one of its own
        return not self == other

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))


def as_map(feature: Tensor) -> Tensor:
    """B x c x g x w; a dense feature is a map of one pixel."""
    if feature.dim() > 4 or feature.dim() < 2:
        raise ConfigError(
            f"CSAC aligns features of 2 to 4 dimensions, not {feature.dim()}: name other `layers`"
        )
    return feature.reshape(*feature.shape, *[1] * (4 - feature.dim()))


@dataclass(frozen=True)
class Projections:
    """Proj (Eq. 5): per side and layer one convolution to a common size; `shared`: per layer.

    kernel = stride = the size ratio; where that is no whole number, the stride is rounded down
    and the kernel covers the rest.
    """

    taps: tuple[str, ...]
    sizes: tuple[Size, ...]
    to: Size
    shared: bool = False

    @staticmethod
    def of(
        features: Tensors, channels: int = 0, size: int = 0, shared: bool = False
    ) -> "Projections":
        """To the c x g x w of the last adopted layer, or to `channels` and at most `size` x `size`.

        Where an earlier layer is smaller, to its g x w: no convolution here makes maps larger.
        """
        seen: list[Any] = [tuple(as_map(f).shape[1:]) for f in features.values()]
        g, w = (min(s[i] for s in seen) for i in (1, 2))
        to = (channels or seen[-1][0], min(size or g, g), min(size or w, w))
        return Projections(tuple(features), tuple(seen), to, shared)

    def window(self, size: Size) -> tuple[list[int], list[int]]:
        """Kernel and stride."""
        stride = [size[i] // self.to[i] for i in (1, 2)]
        kernel = [size[i] - (self.to[i] - 1) * s for i, s in zip((1, 2), stride, strict=True)]
        return kernel, stride

    @cached_property
    def layout(self) -> Layout:
        """All convolutions are one vector, fused side first; layers are named side:tap."""
        names, shapes = [], []
        for side in SIDES[: 1 if self.shared else 2]:
            for tap, size in zip(self.taps, self.sizes, strict=True):
                names += [f"{side}:{tap}.weight", f"{side}:{tap}.bias"]
                shapes += [(self.to[0], size[0], *self.window(size)[0]), (self.to[0],)]
        return Layout(tuple(names), tuple(shapes), len(names))

    def init(self, rng: Generator) -> Tensor:
        """As torch's own convolutions start: uniform in +-1/sqrt(fan in)."""
        start = torch.empty(self.layout.size).uniform_(-1, 1, generator=rng)
        shapes = dict(zip(self.layout.names, self.layout.shapes, strict=True))
        for layer, at in self.layout.layers.items():
            start[at] /= sqrt(prod(shapes[f"{layer}.weight"][1:]))
        return start

    def __call__(
        self, side: str, convolutions: Tensors, features: Mapping[str, Tensor], cut: bool = False
    ) -> Tensor:
        """layers x B x d x c, with d = g w pixels: channels last, as torch is fastest on CPU."""
        found = []
        side = SIDES[0] if self.shared else side
        for tap, size in zip(self.taps, self.sizes, strict=True):
            x = features[tap] if cut else self.patches(features[tap], size)
            weight, bias = (convolutions[f"{side}:{tap}.{k}"] for k in ("weight", "bias"))
            kernel, stride = self.window(size)
            if kernel == stride:
                found.append(linear(x, weight.permute(0, 2, 3, 1).flatten(1), bias))
            else:
                found.append(F.conv2d(x, weight, bias, stride).permute(0, 2, 3, 1).flatten(1, 2))
        return torch.stack(found)

    def patches(self, feature: Tensor, size: Size) -> Tensor:
        """B x d x (kernel c): what the windows see, which Proj then maps linearly.

        Windows that overlap are left to the convolution. On patches a product is several times
        faster than a convolution in large strides, on CPUs and for stacked sites.
        """
        x, (kernel, stride) = as_map(feature), self.window(size)
        if kernel != stride:
            return x
        x = x.permute(0, 2, 3, 1)  # first, so that the slope comes back with channels last, too
        x = x.unflatten(2, (-1, kernel[1])).unflatten(1, (-1, kernel[0]))
        return x.permute(0, 1, 3, 2, 4, 5).flatten(3).flatten(1, 2)

    def cut(self, features: Mapping[str, Tensor]) -> Tensors:
        """Features to be kept, in patches."""
        pairs = zip(self.taps, self.sizes, strict=True)
        return {tap: self.patches(features[tap], size).contiguous() for tap, size in pairs}


@dataclass(frozen=True)
class Matching:
    """How pairs of layers are weighed and compared: lambda, Table 5's switches, open readings.

    kernels  the five are averaged: k(x, x) = 1, as for a single kernel; or added, as in the public
             code, which makes the loss five times as large
    over     what alpha is a share of: the local layers (the equations' sum over m), or the fused
             ones (TKDE's prose, which matches a local layer with each of the fused model)
    """

    lam: float = 0.6
    alignment: Pairs = "cross"
    position: bool = True
    channel: bool = True
    discrepancy: Literal["mmd", "mse"] = "mmd"
    estimator: Literal["biased", "off-diagonal"] = "biased"
    kernels: Kernels = "mean"
    over: Side = "local"

    def __call__(self, a: Tensor, b: Tensor) -> Tensor:
        """lambda L_AL (Eq. 6, 11) of fused a and local b, both layers x B x d x c."""
        if self.alignment == "cross":
            alpha = attention(a.detach(), b.detach(), self.position, self.channel, self.over)
        else:  # one local layer to choose from: alpha is 1
            alpha = torch.eye(len(a), dtype=a.dtype, device=a.device)
        a, b = a.flatten(2), b.flatten(2)
        if self.discrepancy == "mse":
            return self.lam * (alpha * (a[:, None] - b[None]).square().mean((2, 3))).sum()
        share = self.lam / len(WIDTHS) if self.kernels == "mean" else self.lam
        return share * weighted_mmd(a, b, alpha, self.estimator == "biased")


def attention(a: Tensor, b: Tensor, position: bool, channel: bool, over: Side = "local") -> Tensor:
    """alpha_lm of Eq. 7-9; without either similarity every local layer counts 1/|R|.

    avg(A'B) = <mean_d A, mean_d B> and avg(AB') = <mean_c A, mean_c B> exactly, so no d x d map
    is made. Both are averaged over the batch, one alpha a pair.
    """
    shares = []
    for wanted, dim in ((position, -2), (channel, -1)):
        if wanted:
            u, v = a.mean(dim).flatten(1), b.mean(dim).flatten(1)
            shares.append((u @ v.T / a.shape[1]).softmax(1 if over == "local" else 0))
    if not shares:
        return a.new_full((len(a), len(b)), 1 / len(b if over == "local" else a))
    return torch.stack(shares).mean(0)


@part("teacher", "projection")
class CrossLayerAlignment:
    """Eq. 6 times lambda, with Proj frozen as given; logits are compared as they are.

    L^h's features come from `columns` where they hold for the batch, else from a forward pass of
    `teacher`, in eval mode, on the same (augmented) inputs.
    """

    teacher: Tensor
    projection: Tensor
    project: Projections | None
    layout: Layout
    taps: tuple[str, ...]
    how: Matching
    columns: Rows

    name: ClassVar[str] = "alignment"

    def vector(self, fwd: Forward) -> Tensor:
        return self.projection

    def loss(self, fwd: Forward) -> Tensor:
        kept = bool(self.columns) and fwd.plain
        if kept:
            local = fwd.columns
        else:
            local = forward(fwd.module, self.layout.views(self.teacher), fwd.x, self.taps)[1]
        return self.how(*self.projected(self.vector(fwd), fwd.taps, local, kept))

    def projected(
        self, vector: Tensor, fused: Tensors, local: Tensors, kept: bool
    ) -> tuple[Tensor, Tensor]:
        """Both sides of Eq. 5, layers x B x d x c; `kept` says that local comes from `columns`."""
        if self.project is None:
            a, b = (
                torch.stack([as_map(f[t]).flatten(2).mT for t in self.taps]) for f in (fused, local)
            )
            return a, b
        own = self.project.layout.views(vector)
        return self.project("fused", own, fused), self.project("local", own, local, kept)


@part("teacher", "projection")
class TrainedAlignment(CrossLayerAlignment):
    """With Proj trained along, from `projection`."""

    key: ClassVar[str] = "csac"

    @property
    def learned(self) -> Tensor:
        return self.projection

    def vector(self, fwd: Forward) -> Tensor:
        own: Tensor = fwd.theta[self.key]
        return own


def variances(a: Tensor, b: Tensor) -> dict[str, float]:
    """Over examples, averaged over layers and features: 0 where Proj has collapsed."""
    found = torch.stack([x.var(1, correction=0).mean() for x in (a, b)]).tolist()
    return dict(zip(SIDES, found, strict=True))
