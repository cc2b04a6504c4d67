"""A large network's weights laid out once a step as a GPU's convolutions read them.

The travelling vector has every weight as torch writes it down, O×C×h×w. Convolutions in
channels-last want O×h×w×C and, under autocast, bfloat16; each of them would convert its own, there
and back. Here one gather and one cast do it for all of them, and one of each brings the slopes back.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from feddg.trees import Tensors
from feddg.weights import Layout


@dataclass(frozen=True, eq=False)
class Laid:
    """Matrices and kernels first, by the form in which they are used, then all other weights."""

    layout: Layout
    dtype: torch.dtype  # of matrices and kernels
    device: torch.device

    @cached_property
    def names(self) -> list[str]:
        shapes = dict(zip(self.layout.names, self.layout.shapes, strict=True))
        return sorted(shapes, key=lambda k: len(shapes[k]) < 2)

    @cached_property
    def shapes(self) -> list[tuple[int, ...]]:
        shapes = dict(zip(self.layout.names, self.layout.shapes, strict=True))
        return [shapes[k] for k in self.names]

    @cached_property
    def sizes(self) -> list[int]:
        return [torch.Size(s).numel() for s in self.shapes]

    @cached_property
    def matrices(self) -> int:
        return sum(len(s) >= 2 for s in self.shapes)

    @cached_property
    def cut(self) -> int:
        return sum(self.sizes[: self.matrices])

    @cached_property
    def order(self) -> Tensor:
        """Where each number of the new vector stands in the old one."""
        places = self.layout.views(torch.arange(self.layout.size, dtype=torch.int32))
        found = [self.stored(places[k]).reshape(-1) for k in self.names]
        return torch.cat(found).to(self.device)

    @cached_property
    def back(self) -> Tensor:
        place = torch.empty_like(self.order)
        place[self.order.long()] = torch.arange(
            len(self.order), dtype=torch.int32, device=self.device
        )
        return place

    @staticmethod
    def stored(weight: Tensor) -> Tensor:
        return weight.permute(0, 2, 3, 1) if weight.dim() == 4 else weight

    @staticmethod
    def used(stored: Tensor) -> Tensor:
        return stored.permute(0, 3, 1, 2) if stored.dim() == 4 else stored

    def form(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return (shape[0], *shape[2:], shape[1]) if len(shape) == 4 else shape

    def views(self, vector: Tensor) -> Tensors:
        """The weights by name, as `Layout.views` but for the form in memory and the type."""
        return dict(zip(self.names, Split.apply(vector, self), strict=True))

    def split(self, vector: Tensor) -> tuple[Tensor, ...]:
        inside = vector.index_select(0, self.order)
        large, small = inside[: self.cut].to(self.dtype), inside[self.cut :]
        parts = [
            *large.split(self.sizes[: self.matrices]), *small.split(self.sizes[self.matrices :])
        ]  # fmt: skip
        return tuple(
            self.used(p.view(self.form(s))) for p, s in zip(parts, self.shapes, strict=True)
        )

    def joined(self, parts: Sequence[Tensor]) -> Tensor:
        flat = [self.stored(p).reshape(-1) for p in parts]
        large, small = flat[: self.matrices], flat[self.matrices :]
        inside = torch.cat([torch.cat(large).to(torch.float32), *small])
        return inside.index_select(0, self.back)


class Split(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, vector: Tensor, laid: Laid) -> Any:
        ctx.laid = laid
        return laid.split(vector)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> Any:
        return ctx.laid.joined(slopes), None
