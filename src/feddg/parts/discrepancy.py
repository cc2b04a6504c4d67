"""MMD^2 between layers of features, and its weighted sum with the slope in closed form."""

from typing import Any

import torch
from torch import Tensor
from torch.func import grad, vjp

from feddg.constants import constant
from feddg.errors import ConfigError
from feddg.parts.products import product

WIDTHS = tuple(3.0**k for k in range(-3, 2))  # of the Gaussian kernels


def mmd(a: Tensor, b: Tensor, biased: bool = True) -> Tensor:
    """MMD^2 of each a[l] (n x D) with each b[m], layers of a x layers of b.

    Five Gaussian kernels, added up as in the public code: exp(-d^2 / (2 s 3^k)), k = -3 ... 1, with
    s the (detached) mean d^2 over all ordered pairs of the 2n points. biased: the means of the
    kernel over all pairs within a, within b and, twice, less those across; else without i = j.
    """
    apart = distances(*centred(a, b))
    return contrast((apart * rates(apart.detach())).exp(), biased)


def weighted_mmd(a: Tensor, b: Tensor, alpha: Tensor, biased: bool = True) -> Tensor:
    """sum_lm alpha_lm MMD^2_lm, as `(alpha * mmd(a, b, biased)).sum()`; alpha is a constant.

    On small batches many little operations and their slopes cost more than the products, so here
    all points are multiplied with all, and so are their slopes, needless pairs of layers included.
    """
    value, *_ = WeightedMMD.apply(a, b, alpha.detach(), biased)  # type: ignore[no-untyped-call]
    found: Tensor = value
    return found


def centred(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Distances stay, their rounding errors shrink."""
    middle = (a.detach().mean((0, 1)) + b.detach().mean((0, 1))) / 2
    return a - middle, b - middle


def distances(a: Tensor, b: Tensor) -> Tensor:
    """3 x L x M x n x n squares: within a, within b, across."""
    L, M, n = len(a), len(b), a.shape[1]
    aa, bb = a @ a.mT, b @ b.mT
    ab = (a.flatten(0, 1) @ b.flatten(0, 1).T).view(L, n, M, n).transpose(1, 2)
    u, v = aa.diagonal(0, 1, 2), bb.diagonal(0, 1, 2)  # |x|^2, so that d(x, x) is exactly 0
    u, v = u[:, None].expand(L, M, n), v[None].expand(L, M, n)
    inner = torch.stack([aa[:, None].expand(L, M, n, n), bb[None].expand(L, M, n, n), ab])
    sizes = torch.stack([u, v, u])[..., None] + torch.stack([u, v, v])[..., None, :]
    return (sizes - 2 * inner).clamp_min(0)


def rates(apart: Tensor) -> Tensor:
    """-1 / (2 s 3^k) of every kernel and pair of layers."""
    total = apart.sum((3, 4))
    scale = (total[0] + total[1] + 2 * total[2]) / (4 * apart.shape[-1] ** 2)
    widths = constant(WIDTHS, apart).view(-1, 1, 1)
    return (-0.5 / (scale.clamp_min(1e-30) * widths))[:, None, :, :, None, None]


def shares(n: int, biased: bool) -> tuple[float, float]:
    """What one ordered pair counts, within a side and across."""
    if n < 2 and not biased:
        raise ConfigError(
            "csac(estimator='off-diagonal') compares the examples of a batch with each other, and a"
            " batch has one: set drop_last=true, another batch_size or estimator='biased'"
        )
    return 1 / (n * n if biased else n * (n - 1)), -2 / (n * n)


def contrast(kernels: Tensor, biased: bool) -> Tensor:
    """L x M; k(x, x) = 1 is left out where the estimator is without i = j."""
    n = kernels.shape[-1]
    within, across = shares(n, biased)
    total = kernels.sum((0, 4, 5))
    same = total[0] + total[1]
    return (same if biased else same - 2 * n * len(WIDTHS)) * within + total[2] * across


def steepness(z: Tensor, alpha: Tensor, biased: bool) -> tuple[Tensor, Tensor]:
    """The sum, and the small matrix S of which S z are the slopes to all its points.

    z has the layers of a, then those of b, an example a row. With w_ij the slope to
    d_ij^2 = |z_i - z_j|^2, that to z_i is sum_j 2 w_ij (z_i - z_j).
    """
    (L, M), P = alpha.shape, sum(alpha.shape)
    n = len(z) // P
    inner = product(z, z)
    size = inner.diagonal()
    apart = (size[:, None] + size).sub_(inner, alpha=2).clamp_min_(0).view(P, n, P, n)
    own = apart.diagonal(0, 0, 2).permute(2, 0, 1)  # within each layer
    apart = torch.stack([
        own[:L, None].expand(L, M, n, n), own[L:].expand(L, M, n, n),
        apart[:L, :, L:].transpose(1, 2),
    ])  # fmt: skip
    rate = rates(apart)
    kernels = (apart * rate).exp_()
    value = (alpha * contrast(kernels, biased)).sum()
    within, across = shares(n, biased)
    steep = kernels.mul_(rate).sum(0) * (2 * alpha[:, :, None, None])
    own = torch.cat([steep[0].sum(1), steep[1].sum(0)]) * (-2 * within)  # both ends move
    ab = (steep[2].transpose(1, 2) * -across).reshape(L * n, M * n)
    whole = own.permute(1, 2, 0).diag_embed(0, 0, 2).flatten(0, 1).flatten(1)
    whole[: L * n, L * n :] = ab
    whole[L * n :, : L * n] = ab.T
    whole.diagonal().sub_(whole.sum(1))
    return value, whole


class WeightedMMD(torch.autograd.Function):
    """The sum and its slopes to a and b, which are products of the features with a small matrix."""

    @staticmethod
    def forward(a: Tensor, b: Tensor, alpha: Tensor, biased: bool) -> tuple[Tensor, Tensor, Tensor]:
        z = torch.cat([a, b])
        z = (z - z.mean((0, 1))).flatten(0, 1)
        value, steep = steepness(z, alpha, biased)
        dz = product(steep, z.T).view(-1, *a.shape[1:])
        return value, dz[: len(a)].to(a.dtype), dz[len(a) :].to(b.dtype)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        a, b, alpha, ctx.biased = inputs
        _, da, db = output
        ctx.mark_non_differentiable(da, db)
        ctx.save_for_backward(a, b, alpha, da, db)

    @staticmethod
    def backward(ctx: Any, slope: Tensor, *_: Any) -> Any:
        kept = ctx.saved_tensors
        if torch.is_grad_enabled():  # for a slope of the slope
            da, db = Slopes.apply(*kept, ctx.biased)  # type: ignore[no-untyped-call]
        else:
            *_, da, db = kept
        return slope * da, slope * db, None, None

    generate_vmap_rule = True


class Slopes(torch.autograd.Function):
    """The slopes as they were found; their own ones are the plain formula's."""

    generate_vmap_rule = True

    @staticmethod
    def forward(
        a: Tensor, b: Tensor, alpha: Tensor, da: Tensor, db: Tensor, biased: bool
    ) -> tuple[Tensor, Tensor]:
        return da.clone(), db.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        a, b, alpha, *_, ctx.biased = inputs
        ctx.save_for_backward(a, b, alpha)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> Any:
        a, b, alpha = ctx.saved_tensors

        def plain(a: Tensor, b: Tensor) -> Tensor:
            return (alpha * mmd(a, b, ctx.biased)).sum()

        da, db = vjp(grad(plain, (0, 1)), a, b)[1](slopes)
        return da, db, None, None, None, None
