"""A model on the wire: one contiguous vector and the layout that names its parts."""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from itertools import accumulate
from math import prod
from typing import Any

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


PLAIN = (int, float, str, bool, type(None), type, torch.dtype, torch.device)
TORCHS_OWN = {*vars(nn.Module()), "training"}  # a module's weights, buffers, children, hooks


def load(model: nn.Module, weights: Weights) -> nn.Module:
    """A fresh copy of `model`; what `weights` does not name keeps its initial value."""
    if all(is_plain(v) for m in model.modules() for v in attributes(m).values()):
        return _copied(model, weights.views(), {}, "")
    fresh = deepcopy(model)
    fresh.load_state_dict(weights.views(), strict=False)
    return fresh


def attributes(module: nn.Module) -> dict[str, Any]:
    """What a module has besides what torch gives every module."""
    return {k: v for k, v in vars(module).items() if k not in TORCHS_OWN}


def is_plain(value: Any) -> bool:
    """Nothing in it is a tensor, a module or something of unknown kind."""
    if isinstance(value, tuple | list):
        return all(map(is_plain, value))
    if isinstance(value, Mapping):
        return all(map(is_plain, value.values()))
    if is_dataclass(value) and not isinstance(value, type):
        return all(is_plain(getattr(value, f.name)) for f in fields(value))
    return isinstance(value, PLAIN)


def _copied(module: nn.Module, values: Tensors, made: dict[int, Any], prefix: str) -> Any:
    """As deepcopy, in a tenth of the time; `made` keeps shared modules and weights shared."""
    if id(module) in made:
        return made[id(module)]
    fresh = made[id(module)] = module.__new__(type(module))
    own = {k: same_kind(v) if isinstance(v, dict) else v for k, v in vars(module).items()}
    for k, v in {**own["_parameters"], **own["_buffers"]}.items():
        if v is not None and id(v) not in made:
            value = values.get(prefix + k, v).detach()
            if value.shape != v.shape:
                raise ValueError(f"{prefix}{k} is {tuple(v.shape)}, not {tuple(value.shape)}")
            value = value.to(v.device, v.dtype, copy=True)
            trained = isinstance(v, nn.Parameter)
            made[id(v)] = nn.Parameter(value, v.requires_grad) if trained else value
    for kind in ("_parameters", "_buffers"):
        own[kind] = {k: v if v is None else made[id(v)] for k, v in own[kind].items()}
    for k, inner in own["_modules"].items():
        if inner is not None:
            own["_modules"][k] = _copied(inner, values, made, f"{prefix}{k}.")
    fresh.__dict__.update(own)
    return fresh


def same_kind(value: Any) -> Any:
    """A shallow copy of a dict; one of a subclass is of that class, whatever its `copy` makes."""
    return value.copy() if type(value) in (dict, OrderedDict) else copy(value)
