"""Features of a fixed model on fixed examples: computed once, kept while they may be of use."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any
from weakref import ref

import torch
from torch import Tensor, nn
from torch.utils.weak import WeakIdKeyDictionary

from feddg.data.domain import Examples
from feddg.errors import unknown
from feddg.local import batches, prepared
from feddg.training import forward
from feddg.trees import Tensors


@torch.no_grad()
def tap_features(
    module: nn.Module,
    x: Tensor | Examples,
    prepare: tuple[Any, ...],
    taps: Sequence[str],
    values: Tensors | None = None,
    batch: int = 256,
) -> Tensors:
    """What the taps show for all examples: eval mode, unaugmented; with `values` as weights."""
    own = values or {}
    parts = [forward(module, own, prepared(b, prepare), taps)[1] for b in batches(x, batch)]
    return {tap: torch.cat([p[tap] for p in parts]) for tap in taps}


def known_taps(module: nn.Module, taps: Sequence[str]) -> None:
    """A clear error for a layer that the network does not have."""
    names = {name for name, _ in module.named_modules() if name}
    for tap in taps:
        if tap.partition(":")[0] not in names:
            raise unknown(f"layer of {type(module).__name__}", tap, names)


def weight_of(features: Tensors) -> int:
    return sum(v.numel() * v.element_size() for v in features.values())


def digest(vector: Tensor) -> str:
    """Of the very bytes."""
    return blake2b(vector.detach().cpu().contiguous().numpy().tobytes(), digest_size=16).hexdigest()


def digest_inputs(data: Examples) -> str:
    """`digest(data.x)`, of which no copy is made."""
    found = blake2b(digest_size=16)
    for part in data.batches(64):
        found.update(part.detach().cpu().contiguous().numpy().tobytes())
    return found.hexdigest()


def digest_once(vector: Tensor) -> str:
    """Of a tensor that nobody writes to: a device is waited for once."""
    found = DIGESTS.get(vector)
    if found is None:
        DIGESTS[vector] = found = digest(vector)
    return str(found)


DIGESTS = WeakIdKeyDictionary()


@dataclass(eq=False)
class Remembered:
    """A bounded, process-local store of what can be computed anew at any time.

    Features are kept by the examples (the object itself, as long as it lives) and a key; the
    least recently used go first.
    """

    limit: int = 1 << 30  # bytes; on a GPU, which is not shared, a quarter of what it has
    kept: OrderedDict[tuple[int, Hashable], tuple[ref[Examples], Tensors]] = field(
        default_factory=OrderedDict
    )

    def get(self, data: Examples, key: Hashable, compute: Callable[[], Tensors]) -> Tensors:
        owner, found = self.kept.pop((id(data), key), (None, {}))
        if owner is None or owner() is not data:
            found = compute()
            self.kept[id(data), key] = (ref(data), found)
            self._trim()
        else:
            self.kept[id(data), key] = (owner, found)  # the last to go
        return found

    def room(self) -> int:
        *_, (_, last) = self.kept.values()
        on = next((v.device for v in last.values() if v.is_cuda), None)
        return self.limit if on is None else max(self.limit, torch.cuda.mem_get_info(on)[1] // 4)

    def _trim(self) -> None:
        for at in [k for k, (owner, _) in self.kept.items() if owner() is None]:
            del self.kept[at]
        total = sum(weight_of(v) for _, v in self.kept.values())
        room = self.room() if total > self.limit else total
        while total > room:
            total -= weight_of(self.kept.popitem(last=False)[1][1])
