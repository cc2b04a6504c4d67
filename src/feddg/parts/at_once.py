"""CSAC's term and its slope in one function, for a site alone on a CPU.

There a hundred little operations and their slopes cost as much as the products, so all that
autograd would do from the features and Proj to lambda L_AL is done by hand. Everywhere else, and
for slopes of the slope, `Matching` of the projected features is the very same formula.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from feddg.parts.discrepancy import steepness
from feddg.parts.matching import Matching
from feddg.parts.products import mapped, product, usable
from feddg.parts.projections import Projections


def possible(project: Projections, how: Matching, given: Iterable[Tensor]) -> bool:
    return project.tiled and not project.shared and how.discrepancy == "mmd" and usable(*given)


def aligned(
    project: Projections,
    how: Matching,
    vector: Tensor,
    fused: Mapping[str, Tensor],
    patches: Mapping[str, Tensor],
) -> Tensor:
    """lambda L_AL of the fused side's features and the local side's patches."""
    mine, theirs = ([side[t] for t in project.taps] for side in (fused, patches))
    found: Tensor = Aligned.apply(project, how, theirs, vector, *mine)  # type: ignore[no-untyped-call]
    return found


class Aligned(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        project: Projections,
        how: Matching,
        theirs: list[Tensor],
        vector: Tensor,
        *fused: Tensor,
    ) -> Tensor:
        ctx.project, ctx.how, L = project, how, len(fused)
        sizes = zip(fused, project.sizes, strict=True)
        patches = [project.patches(channels_last(x), size) for x, size in sizes] + theirs
        own = list(project.layout.views(vector).values())
        weights = [w.flatten(1) for w in own[::2]]
        maps = zip(patches, weights, own[1::2], strict=True)
        z = torch.cat([mapped(x, w, bias) for x, w, bias in maps]).view(2 * L, -1, *project.pixels)
        alpha, z = how.alpha(z[:L], z[L:]), z.flatten(2)
        z = z.sub_(z.mean((0, 1))).flatten(0, 1)
        value, steep = steepness(z, alpha, how.biased)
        ctx.save_for_backward(vector, z, steep, *fused, *patches, *weights[:L])
        return value * how.share

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> Any:
        vector, z, steep, *rest = ctx.saved_tensors
        project, how, wanted = ctx.project, ctx.how, ctx.needs_input_grad[3:]
        L = len(project.taps)
        fused, patches, weights = rest[:L], rest[L : 3 * L], rest[3 * L :]
        dz = product(steep * (slope * how.share), z.T).view(2 * L, -1, project.to[0])
        dvector = None
        if wanted[0]:
            parts = []
            for x, s, bias in zip(patches, dz, dz.sum(1), strict=True):
                parts += [mapped(s.T, x.flatten(0, 1).T, None).flatten(), bias]
            dvector = torch.cat(parts)
        dfused = [
            project.whole(mapped(s, w.T, None), size).view_as(x) if needed else None
            for s, w, size, x, needed in zip(dz, weights, project.sizes, fused, wanted[1:])
        ]
        return None, None, None, dvector, *dfused


def channels_last(feature: Tensor) -> Tensor:
    """Two plain copies are faster than one of patches across all channels."""
    return feature.contiguous(memory_format=torch.channels_last) if feature.dim() == 4 else feature
