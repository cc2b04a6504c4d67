"""A large network's weights laid out once a step as a GPU's convolutions read them.

The travelling vector has every kernel as torch writes it down, O×C×h×w. Convolutions in
channels-last want O×h×w×C and, under autocast, bfloat16; each of them would convert its own, there
and back. Here one gather and one cast do it for all, and one of each brings the slopes back.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import torch
from torch import Tensor, nn

from feddg.trees import Tensors
from feddg.weights import Layout

MANY = 8  # networks whose order is kept
LAID = (nn.Conv2d, nn.Linear)  # modules whose weight is read in the form and the type of products


def products_weights(network: nn.Module) -> frozenset[str]:
    found = (k for k, m in network.named_modules() if isinstance(m, LAID))
    return frozenset(f"{k}.weight".lstrip(".") for k in found)


@dataclass(frozen=True)
class Laid:
    """First the weights in `cast`, by the form in which products read them, then all others."""

    layout: Layout
    cast: frozenset[str]
    dtype: torch.dtype  # of products
    vectors: torch.dtype  # of the travelling vector
    device: torch.device

    @cached_property
    def names(self) -> list[str]:
        return sorted(self.layout.names, key=lambda k: k not in self.cast)

    @cached_property
    def shapes(self) -> list[tuple[int, ...]]:
        shapes = dict(zip(self.layout.names, self.layout.shapes, strict=True))
        return [shapes[k] for k in self.names]

    @cached_property
    def sizes(self) -> list[int]:
        return [torch.Size(s).numel() for s in self.shapes]

    @cached_property
    def count(self) -> int:
        """Of the weights in the type of products."""
        return sum(k in self.cast for k in self.names)

    @cached_property
    def order(self) -> Tensor:
        """Where each number of the new vector stands in the old one."""
        return orders(self.layout, tuple(self.names), self.device)[0]

    @cached_property
    def back(self) -> Tensor:
        return orders(self.layout, tuple(self.names), self.device)[1]

    def views(self, vector: Tensor) -> Tensors:
        """The weights by name, as `Layout.views` but for the form in memory and the type."""
        parts = Split.apply(vector, self)  # type: ignore[no-untyped-call]
        return dict(zip(self.names, parts, strict=True))

    def split(self, vector: Tensor) -> tuple[Tensor, ...]:
        inside, n = vector.index_select(0, self.order), self.count
        cut = sum(self.sizes[:n])
        large = inside[:cut].to(self.dtype).split(self.sizes[:n])
        parts = (*large, *inside[cut:].split(self.sizes[n:]))
        return tuple(formed(p, s) for p, s in zip(parts, self.shapes, strict=True))

    def joined(self, parts: Sequence[Tensor]) -> Tensor:
        inside = torch.empty(self.layout.size, dtype=self.vectors, device=self.device)
        torch._foreach_copy_(inside.split(self.sizes), [flat(p) for p in parts])
        return inside.index_select(0, self.back)


@lru_cache(MANY)
def orders(layout: Layout, names: tuple[str, ...], device: torch.device) -> tuple[Tensor, Tensor]:
    """To the order of `names`, channels last, and back."""
    places = layout.views(torch.arange(layout.size, dtype=torch.int32, device=device))
    there = torch.cat([flat(places[k]) for k in names])
    back = torch.empty_like(there)
    back[there.long()] = torch.arange(len(there), dtype=torch.int32, device=device)
    return there, back


def flat(weight: Tensor) -> Tensor:
    """Channels last, as one row."""
    return (weight.permute(0, 2, 3, 1) if weight.dim() == 4 else weight).reshape(-1)


def formed(row: Tensor, shape: tuple[int, ...]) -> Tensor:
    if len(shape) != 4:
        return row.view(shape)
    out, into, height, width = shape
    return row.view(out, height, width, into).permute(0, 3, 1, 2)


class Split(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, vector: Tensor, laid: Laid) -> Any:
        ctx.laid = laid
        return laid.split(vector)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> Any:
        return ctx.laid.joined(slopes), None
