"""Parts of local training are pytrees: their tensors are leaves, all else is structure.

Two parts of equal structure and equal leaf shapes can be stacked and run under vmap.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar, dataclass_transform

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

T = TypeVar("T")
Tree = Mapping[str, Any]  # leaves: Tensor | float | int; what notes and memory are made of
Tensors = dict[str, Tensor]


@dataclass_transform(frozen_default=True)
def part(*tensors: str) -> Callable[[type[T]], type[T]]:
    """A frozen dataclass whose fields `tensors` are leaves (tensors, or trees of tensors)."""

    def register(cls: type[T]) -> type[T]:
        frozen: Any = dataclass(frozen=True)(cls)
        static = [f.name for f in fields(frozen) if f.name not in tensors]
        pytree.register_pytree_node(
            frozen,
            lambda p: ([getattr(p, k) for k in tensors], tuple(getattr(p, k) for k in static)),
            lambda leaves, fixed: frozen(
                **dict(zip(tensors, leaves, strict=True)), **dict(zip(static, fixed, strict=True))
            ),
            serialized_type_name=f"{cls.__module__}.{cls.__qualname__}",
        )
        made: type[T] = frozen
        return made

    return register


def structure(tree: Any) -> tuple[Any, ...]:
    """What two trees must share to be stacked."""
    leaves, spec = pytree.tree_flatten(tree)
    return spec, tuple((x.shape, x.dtype) for x in leaves)


def stack(trees: Sequence[Any]) -> Any:
    return pytree.tree_map(lambda *xs: torch.stack(xs), *trees)


def pick(tree: Any, rows: int | slice) -> Any:
    return pytree.tree_map(lambda x: x[rows], tree)


def each(f: Callable[..., Any], *trees: Any) -> Any:
    """Apply `f` to the corresponding leaves of trees of one structure.

    Plain dicts of tensors, which every step has, without pytree's machinery.
    """
    first = trees[0]
    if isinstance(first, Tensor):
        return f(*trees)
    if type(first) is dict and all(type(t) is dict and t.keys() == first.keys() for t in trees):
        return {k: each(f, *(t[k] for t in trees)) for k in first}
    return pytree.tree_map(f, *trees)


def moved(tree: Any, device: torch.device) -> Any:
    """A tree of tensors and numbers; the numbers stay."""
    return each(lambda v: v.to(device) if isinstance(v, Tensor) else v, tree)
