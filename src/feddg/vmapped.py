"""The vmap rule of a function that treats every image by itself: sites are just more images."""

from typing import Any

from torch import Tensor


def more_images(
    function: Any, dims: tuple[Any, ...], tensors: tuple[Tensor, ...], *rest: Any
) -> Any:
    """`dims` says where the sites are in each tensor; None: all share it. `rest` are numbers."""
    where = list(zip(tensors, dims, strict=False))
    sites = next(t.shape[d] for t, d in where if d is not None)
    whole = [t.expand(sites, *t.shape) if d is None else t.movedim(d, 0) for t, d in where]
    found = function.apply(*(t.flatten(0, 1) for t in whole), *rest)
    if isinstance(found, Tensor):
        return found.unflatten(0, (sites, -1)), 0
    return tuple(f.unflatten(0, (sites, -1)) for f in found), (0,) * len(found)
