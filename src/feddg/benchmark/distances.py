"""How far the sites' models are from each other, layer by layer (CSAC's Fig. 4)."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from statistics import fmean

import torch

from feddg.packets import Reply
from feddg.weights import Weights

Distances = dict[str, dict[str, float]]  # layer -> site -> the mean L2 distance to the others


def distances(replies: Sequence[Reply]) -> Distances:
    """Of a round's replies, as they came. One reply has no others, hence no distance."""
    found: dict[str, dict[str, list[float]]] = {}
    by_pair = between({r.site: r.model for r in replies})
    for (a, b), layers in by_pair.items():
        for layer, far in layers.items():
            for site in (a, b):
                found.setdefault(layer, {}).setdefault(site, []).append(far)
    return {k: {site: fmean(far) for site, far in v.items()} for k, v in found.items()}


def between(models: Mapping[str, Weights]) -> dict[tuple[str, str], dict[str, float]]:
    """{pair of names: {layer: L2 distance}}; a layer is a weight with its bias."""
    return {
        (a, b): {
            layer: torch.linalg.vector_norm(
                models[a].parameters[at] - models[b].parameters[at], dtype=torch.float64
            ).item()
            for layer, at in models[a].layout.layers.items()
        }
        for a, b in combinations(models, 2)
    }
