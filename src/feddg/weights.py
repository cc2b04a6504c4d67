"""A model on the wire: one contiguous vector and the layout that names its parts."""

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from math import prod

import torch
from torch import Tensor, nn

from feddg.trees import Tensors


@dataclass(frozen=True)
class Layout:
    """Parameters first, then floating-point buffers. Integer buffers do not travel."""

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    learned: int  # how many of the names are trained; the rest is carried along

    @staticmethod
    def of(model: nn.Module) -> "Layout":
        """Frozen parameters (requires_grad=False) travel with the buffers: nobody trains them."""
        named: Tensors = dict(model.named_parameters())
        learned = {k: v for k, v in named.items() if v.requires_grad}
        kept = {k: v for k, v in named.items() if not v.requires_grad}
        stored = model.state_dict(keep_vars=True)
        for k, v in model.named_buffers():
            if k in stored and v.is_floating_point():
                kept[k] = v
        everything = {**learned, **kept}
        shapes = tuple(tuple(v.shape) for v in everything.values())
        return Layout(tuple(everything), shapes, len(learned))

    @cached_property
    def sizes(self) -> list[int]:
        return [prod(s) for s in self.shapes]

    @cached_property
    def offsets(self) -> list[int]:
        return [0, *accumulate(self.sizes)][:-1]

    @cached_property
    def size(self) -> int:
        return sum(self.sizes)

    @cached_property
    def cut(self) -> int:
        """Where the parameters end and the buffers begin."""
        return sum(self.sizes[: self.learned])

    def select(self, keep: Callable[[str], bool]) -> "Layout":
        at = [i for i, k in enumerate(self.names) if keep(k)]
        learned = sum(i < self.learned for i in at)
        return Layout(tuple(self.names[i] for i in at), tuple(self.shapes[i] for i in at), learned)

    def parameters(self) -> "Layout":
        return Layout(self.names[: self.learned], self.shapes[: self.learned], self.learned)

    def buffers(self) -> "Layout":
        return Layout(self.names[self.learned :], self.shapes[self.learned :], 0)

    @cached_property
    def layers(self) -> dict[str, slice]:
        """The parameters by layer, a weight with its bias; each layer is one slice.

        A module registers its own parameters together, so they are neighbours.
        """
        layers: dict[str, slice] = {}
        last = ""
        for k, o, n in list(zip(self.names, self.offsets, self.sizes, strict=True))[: self.learned]:
            layer = k.rpartition(".")[0]
            if layer in layers and layer == last:
                layers[layer] = slice(layers[layer].start, o + n)
            else:
                layers[layer if layer not in layers else k] = slice(o, o + n)
            last = layer
        return layers

    def views(self, vector: Tensor) -> Tensors:
        """By `split`, whose gradient is one concatenation (slices would cost a vector each)."""
        parts = vector.split(self.sizes)
        return {k: p.view(s) for k, p, s in zip(self.names, parts, self.shapes, strict=True)}

    def take(self, whole: "Layout", vector: Tensor) -> Tensor:
        """My part of a vector that is laid out as `whole`."""
        if self == whole:
            return vector
        named = whole.views(vector)
        parts = [named[k].reshape(-1) for k in self.names]
        return torch.cat(parts) if parts else vector[:0]


@dataclass(frozen=True, eq=False)
class Weights:
    vector: Tensor
    layout: Layout

    @staticmethod
    def of(model: nn.Module) -> "Weights":
        layout, named = Layout.of(model), model.state_dict()
        parts = [named[k].detach().reshape(-1) for k in layout.names]
        return Weights(torch.cat(parts) if parts else torch.zeros(0), layout)

    @property
    def parameters(self) -> Tensor:
        return self.vector[: self.layout.cut]

    @property
    def buffers(self) -> Tensor:
        return self.vector[self.layout.cut :]

    def views(self) -> Tensors:
        return self.layout.views(self.vector)

    def select(self, keep: Callable[[str], bool]) -> "Weights":
        part = self.layout.select(keep)
        return Weights(part.take(self.layout, self.vector), part)

    def joined(self, other: "Weights", whole: Layout) -> "Weights":
        """The whole model from two parts of it."""
        named = {**self.views(), **other.views()}
        return Weights(torch.cat([named[k].reshape(-1) for k in whole.names]), whole)


def rows(weights: Sequence[Weights]) -> Tensor:
    return torch.stack([w.vector for w in weights])


def load(model: nn.Module, weights: Weights) -> nn.Module:
    """A fresh copy of `model`; what `weights` does not name keeps its initial value."""
    fresh = deepcopy(model)
    fresh.load_state_dict(weights.views(), strict=False)
    return fresh
