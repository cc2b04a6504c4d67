"""Proj of CSAC (Eq. 5): features of all layers, of both models, to one common size."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod, sqrt
from typing import Any

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from feddg.errors import ConfigError
from feddg.parts.products import linear
from feddg.trees import Tensors
from feddg.weights import Layout

Size = tuple[int, int, int]  # channels, height, width
SIDES = ("fused", "local")


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

    @property
    def pixels(self) -> tuple[int, int]:
        """d and c of what comes out."""
        return self.to[1] * self.to[2], self.to[0]

    def window(self, size: Size) -> tuple[list[int], list[int]]:
        """Kernel and stride."""
        stride = [size[i] // self.to[i] for i in (1, 2)]
        kernel = [size[i] - (self.to[i] - 1) * s for i, s in zip((1, 2), stride, strict=True)]
        return kernel, stride

    @cached_property
    def layout(self) -> Layout:
        """All convolutions are one vector, fused side first; layers are named side:tap.

        Weights have their channels last, as patches have.
        """
        names, shapes = [], []
        for side in SIDES[: 1 if self.shared else 2]:
            for tap, size in zip(self.taps, self.sizes, strict=True):
                names += [f"{side}:{tap}.weight", f"{side}:{tap}.bias"]
                shapes += [(self.to[0], *self.window(size)[0], size[0]), (self.to[0],)]
        return Layout(tuple(names), tuple(shapes), len(names))

    @cached_property
    def tiled(self) -> bool:
        """No windows overlap, so that Proj is linear in patches."""
        return all(kernel == stride for kernel, stride in map(self.window, self.sizes))

    def init(self, rng: Generator) -> Tensor:
        """As torch's own convolutions start: uniform in +-1/sqrt(fan in).

        Drawn with channels first, as torch draws: the numbers do not depend on how they lie here.
        """
        start = torch.empty(self.layout.size).uniform_(-1, 1, generator=rng)
        views = self.layout.views(start)
        for layer, at in self.layout.layers.items():
            weight = views[f"{layer}.weight"]
            kernel, channels = weight.shape[1:3], weight.shape[3]
            drawn = weight.reshape(-1, channels, *kernel).permute(0, 2, 3, 1)
            weight.copy_(drawn.clone())
            start[at] /= sqrt(prod(weight.shape[1:]))
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
                found.append(linear(x, weight.flatten(1), bias))
            else:
                x = F.conv2d(x, weight.permute(0, 3, 1, 2), bias, stride)
                found.append(x.permute(0, 2, 3, 1).flatten(1, 2))
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

    def whole(self, patches: Tensor, size: Size) -> Tensor:
        """The maps of which windows that do not overlap see these patches."""
        kernel, _ = self.window(size)
        x = patches.view(-1, *self.to[1:], *kernel, size[0]).permute(0, 1, 3, 2, 4, 5)
        return x.flatten(3, 4).flatten(1, 2).permute(0, 3, 1, 2)

    def cut(self, features: Mapping[str, Tensor]) -> Tensors:
        """Features to be kept, in patches."""
        pairs = zip(self.taps, self.sizes, strict=True)
        return {tap: self.patches(features[tap], size).contiguous() for tap, size in pairs}
