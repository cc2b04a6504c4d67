"""CSAC's term and its slope in one function, for a site alone on a CPU.

There a hundred little operations and their slopes cost as much as the products, so all that
autograd would do from the features and Proj to lambda L_AL is done by hand. Everywhere else, and
for slopes of the slope, `Matching` of the projected features is the very same formula.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from feddg.parts.discrepancy import steepness
from feddg.parts.matching import Matching
from feddg.parts.products import mapped, product, usable
from feddg.parts.projections import Projections
from feddg.trees import Tensors


def possible(
    project: Projections, how: Matching, vector: Tensor, fused: Tensors, local: Tensors
) -> bool:
    return (
        project.tiled
        and not project.shared
        and how.discrepancy == "mmd"
        and usable(vector, *fused.values(), *local.values())
        and not any(x.requires_grad for x in local.values())
    )


def aligned(
    project: Projections, how: Matching, vector: Tensor, fused: Tensors, patches: Tensors
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
        own = list(project.layout.views(vector).values())
        weights, biases = [w.flatten(1) for w in own[::2]], own[1::2]
        patches, seen = [], []
        for i, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
            if i < L:
                x = project.patches(channels_last(fused[i]), project.sizes[i])
            else:
                x = theirs[i - L]
            patches.append(x)
            seen.append(mapped(x, weight, bias))  # while the patches are in the processor's cache
        z = torch.cat(seen).view(2 * L, -1, *project.pixels)
        alpha, z = how.alpha(z[:L], z[L:]), z.flatten(2)
        z = z.sub_(z.mean((0, 1))).flatten(0, 1)
        value, steep = steepness(z, alpha, how.biased)
        ctx.save_for_backward(vector, *fused, *patches, *weights[:L], z, steep)
        return value * how.share

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> Any:
        project, how, wanted = ctx.project, ctx.how, ctx.needs_input_grad[3:]
        L = len(project.taps)
        vector, *rest, z, steep = ctx.saved_tensors
        fused, patches, weights = rest[:L], rest[L : 3 * L], rest[3 * L :]
        if torch.is_grad_enabled():  # for a slope of the slope
            found = again(project, how, vector, fused, patches[L:], slope, wanted)
            return None, None, None, *found
        dz = product(steep * (slope * how.share), z.T).view(2 * L, -1, project.to[0])
        found = [None] * (1 + L)
        if wanted[0]:
            parts = []
            for x, s, bias in zip(patches, dz, dz.sum(1), strict=True):
                parts += [mapped(s.T, x.flatten(0, 1).T, None).flatten(), bias]
            found[0] = torch.cat(parts)
        for i, (weight, size) in enumerate(zip(weights, project.sizes, strict=True)):
            if wanted[1 + i]:
                dx = mapped(dz[i], weight.T, None)
                found[1 + i] = project.whole(dx, size).view_as(fused[i])
        return None, None, None, *found


def again(
    project: Projections,
    how: Matching,
    vector: Tensor,
    fused: Sequence[Tensor],
    patches: Sequence[Tensor],
    slope: Tensor,
    wanted: Sequence[bool],
) -> list[Tensor | None]:
    """The slopes as functions of the inputs, by the formula itself."""
    own = project.layout.views(vector)
    mine, theirs = (dict(zip(project.taps, xs, strict=True)) for xs in (fused, patches))
    value = how(project("fused", own, mine), project("local", own, theirs, cut=True))
    given = [x for x, needed in zip((vector, *fused), wanted, strict=True) if needed]
    found = iter(torch.autograd.grad(value, given, slope, create_graph=True))
    return [next(found) if needed else None for needed in wanted]


def channels_last(feature: Tensor) -> Tensor:
    """Two plain copies are faster than one of patches across all channels."""
    return feature.contiguous(memory_format=torch.channels_last) if feature.dim() == 4 else feature
