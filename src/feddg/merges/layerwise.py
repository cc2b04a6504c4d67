"""CSAC's data-free semantic aggregation (Yuan et al., TKDE): every layer has weights of its own.

    mean_l  = 1/H sum_h G_l^h                                              (Eq. 3)
    w_l^h   = a_h dist(G_l^h, mean_l) / sum_k a_k dist(G_l^k, mean_l)      (Eq. 4; there a = 1)
    M_l     = sum_h w_l^h G_l^h

A layer is a weight with its bias. The distances are tiny beside the parameters, so they are taken
from rows centred on their mean, block by block, in float64: never as a difference of products.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from feddg.errors import check_choices
from feddg.merges import Gathered, Merged, WeightedMean
from feddg.method import Sees
from feddg.weights import Layout

Strategy = Literal["divergence", "similarity", "average"]
Distance = Literal["l2", "l1", "cosine"]
Per = Literal["layer", "tensor"]
BLOCK = 1 << 18  # columns held in float64 at once


@dataclass(frozen=True)
class ByLayerDivergence:
    """Eq. 3-4: the further from the plain mean, the more say, in each layer by itself.

    strategy   similarity turns it round (w ~ a / distance; the paper gives no formula), average
               leaves the sites' own weights: the two other rows of Table 4
    per        "tensor" weighs a bias apart from its weight, as the public code does
    """

    strategy: Strategy = "divergence"
    distance: Distance = "l2"
    per: Per = "layer"

    def __post_init__(self) -> None:
        check_choices("the merge by layer", self)

    @property
    def sees(self) -> Sees:
        """L2 follows from the Gram matrix of each layer; L1 and cosine need the models."""
        if self.strategy == "average":
            return "sums"
        return "gram" if self.distance == "l2" else "everything"

    def __call__(self, got: Gathered) -> Merged:
        cuts = slices(got.old.layout, self.per)
        if self.strategy == "average":
            step, table = WeightedMean()(got).step, got.shares.expand(len(cuts), -1)
        else:
            rows = [r.model.parameters for r in got.replies]
            found = [distances([r[cut] for r in rows], self.distance) for cut in cuts.values()]
            shares = got.shares.to(found[0])
            table = torch.stack([weights(d, shares, self.strategy) for d in found]).cpu()
            step = combined_by_layer(table, got, list(cuts.values()))
        named = zip(cuts, table.tolist(), strict=True)
        layers = {layer: dict(zip(got.sites, row, strict=True)) for layer, row in named}
        return Merged(step, {"layers": layers})


def slices(layout: Layout, per: Per) -> dict[str, slice]:
    """Where each layer (or each tensor) lies in the vector of parameters."""
    if per == "layer":
        return layout.layers
    cut = slice(layout.learned)
    at = zip(layout.names[cut], layout.offsets[cut], layout.sizes[cut], strict=True)
    return {name: slice(o, o + n) for name, o, n in at}


def combined_by_layer(table: Tensor, got: Gathered, cuts: Sequence[slice]) -> Tensor:
    """sum_h w_l^h (G_l^h - old_l) for every layer l; streams over replies."""
    start = got.old.parameters
    step = torch.zeros_like(start)
    for reply, column in zip(got.replies, table.T.tolist(), strict=True):
        update = reply.model.parameters - start
        for cut, w in zip(cuts, column, strict=True):
            step[cut].add_(update[cut], alpha=w)
    return step


def weights(distance: Tensor, shares: Tensor, strategy: Strategy) -> Tensor:
    """Eq. 4 for one layer. Where all are equally far (sum of distances 0), the sites' own say."""
    if strategy == "similarity":
        nearest = distance.min()
        distance = nearest / distance if nearest > 0 else (distance == 0).to(distance)
    raw = shares * distance
    total = raw.sum()
    return raw / total if total > 0 else shares


def distances(rows: Sequence[Tensor], kind: Distance) -> Tensor:
    """Of each row to the plain mean of the rows, in float64.

    cosine: 1 - cos(u, v) = 1/2 ||u/|u| - v/|v|||^2, which loses no digits where u is close to v.
    """
    if kind == "l2":
        return torch.stack([centred(x).square().sum(1) for x in blocks(rows)]).sum(0).sqrt()
    if kind == "l1":
        return torch.stack([centred(x).abs().sum(1) for x in blocks(rows)]).sum(0)
    sizes = torch.stack([with_mean(x).square().sum(1) for x in blocks(rows)]).sum(0).sqrt()
    unit = torch.where(sizes > 0, 1 / sizes, 0.0)[:, None]
    units = (with_mean(x) * unit for x in blocks(rows))
    return torch.stack([(x[:-1] - x[-1]).square().sum(1) for x in units]).sum(0) / 2


def blocks(rows: Sequence[Tensor]) -> Iterator[Tensor]:
    for parts in zip(*(r.split(BLOCK) for r in rows), strict=True):
        yield torch.stack(parts).double()


def centred(x: Tensor) -> Tensor:
    return x - x.sum(0) / len(x)  # not .mean(): equal rows must give exactly 0 on any device


def with_mean(x: Tensor) -> Tensor:
    return torch.cat([x, (x.sum(0) / len(x))[None]])
