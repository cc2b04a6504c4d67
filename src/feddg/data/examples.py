"""Inputs and labels as tensors, where they lie and where they are used."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor
from torch.utils.data import Dataset
from torch.utils.weak import WeakIdKeyDictionary

from feddg.data.placing import brought, placed


@dataclass(frozen=True, eq=False)
class Examples:
    """Inputs and labels as tensors. `x` may be uint8 and memory-mapped; `prepare` scales it.

    With `rows`, the examples are these rows of `store`, of which nothing is copied before it is
    asked for: parts of a split share one (mapped) tensor. `x` copies all; `inputs` copies some.
    They are used where `y` lies, and batches come out there; a store that is too large for the
    device stays on the host, and `rows` with it.
    """

    store: Tensor
    y: Tensor
    groups: Tensor | None = None  # an integer per example, for worst-group metrics; < 0: in none
    rows: Tensor | None = None

    def __len__(self) -> int:
        return len(self.y)

    @property
    def x(self) -> Tensor:
        return self.store if self.rows is None else self.store[self.rows]

    @property
    def shape(self) -> torch.Size:
        """Of one input."""
        return self.store.shape[1:]

    def inputs(self, at: Tensor) -> Tensor:
        """The inputs of these examples."""
        at = at.to(self.store.device)
        return brought(self.store, at if self.rows is None else self.rows[at], self.y.device)

    def batches(self, size: int) -> Iterator[Tensor]:
        """All inputs in order."""
        if self.rows is None:
            yield from (part.to(self.y.device) for part in self.store.split(size))
        else:
            yield from (brought(self.store, r, self.y.device) for r in self.rows.split(size))

    def take(self, index: Tensor) -> "Examples":
        rows, at = index.to(self.store.device), index.to(self.y.device)
        rows = rows if self.rows is None else self.rows[rows]
        groups = None if self.groups is None else self.groups[at]
        return Examples(self.store, self.y[at], groups, rows)

    def to(self, device: torch.device) -> "Examples":
        """For use on a device; what is shared here (a store, these examples) is shared there."""
        if self.y.device == device:
            return self
        moved = MOVED.get(self)
        if moved is None or moved.y.device != device:
            store = STORES.get(self.store)
            if store is None or store.device != device:
                store = placed(self.store, device)
            if store is not self.store:
                STORES[self.store] = store
            groups = None if self.groups is None else self.groups.to(device)
            rows = None if self.rows is None else self.rows.to(store.device)
            MOVED[self] = moved = Examples(store, self.y.to(device), groups, rows)
        return moved

    @staticmethod
    def of(data: "Examples | tuple[Tensor, Tensor] | Dataset[Any]") -> "Examples":
        """From tensors, or from any map-style torch data set of (input, label) pairs."""
        if isinstance(data, Examples):
            return data
        if isinstance(data, tuple):
            return Examples(*(torch.as_tensor(v) for v in data))
        size = len(data)  # type: ignore[arg-type]
        columns = zip(*(data[i] for i in range(size)), strict=True)
        x, y = (torch.stack([torch.as_tensor(v) for v in c]) for c in columns)
        return Examples(x, y)


# What lies on a device already, as long as the original is in use.
MOVED: "WeakKeyDictionary[Examples, Examples]" = WeakKeyDictionary()
STORES = WeakIdKeyDictionary()
