"""The closed-form slope of the weighted MMD against autograd over the plain formula."""

from functools import partial

import pytest
import torch
from torch.func import grad, vmap

from feddg.errors import ConfigError
from feddg.parts.discrepancy import mmd, weighted_mmd
from feddg.parts.matching import Matching, attention


def numbers(*shape):
    rng = torch.Generator().manual_seed(len(shape))
    return torch.randn(*shape, generator=rng, dtype=torch.float64)


def sides(*stack):
    """Two fused and three local layers of six examples, and what each pair counts."""
    return numbers(*stack, 2, 6, 5) + 3, 2 * numbers(*stack, 3, 6, 5), numbers(*stack, 2, 3).abs()


def plain(a, b, alpha, biased):
    return (alpha * mmd(a, b, biased)).sum()


def twice(loss, biased):
    """Something whose slope needs the slope of the slope."""

    def steepness(a, b, alpha):
        slopes = grad(lambda a, b: loss(a, b, alpha, biased) ** 2, (0, 1))(a, b)
        return torch.cat([s.flatten() for s in slopes]).sin().sum()

    return grad(steepness, (0, 1))


def once(loss, biased):
    return grad(lambda a, b, alpha: loss(a, b, alpha, biased), (0, 1))


def on_tape(loss, again):
    a, b, alpha = sides()
    a, b = a.requires_grad_(), b.requires_grad_()
    found = torch.autograd.grad(loss(a, b, alpha) ** 2, (a, b), create_graph=again)
    if again:
        steepness = torch.cat([s.flatten() for s in found]).sin().sum()
        found = torch.autograd.grad(steepness, (a, b))
    return found


@pytest.mark.parametrize("biased", [True, False])
def test_the_sum_and_its_slopes_are_the_plain_formulas(biased):
    """Alone on the tape and traced; also the slopes of the slopes, as second-order steps need."""
    a, b, alpha = sides()
    torch.testing.assert_close(weighted_mmd(a, b, alpha, biased), plain(a, b, alpha, biased))
    for again in (False, True):
        ours = on_tape(partial(weighted_mmd, biased=biased), again)
        torch.testing.assert_close(ours, on_tape(partial(plain, biased=biased), again))
    for slopes in (once, twice):
        ours = slopes(weighted_mmd, biased)(*sides())
        torch.testing.assert_close(ours, slopes(plain, biased)(*sides()))


@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("slopes", [once, twice])
def test_every_site_of_a_stack_has_its_own(biased, slopes):
    """Also where the weights of the pairs, or one side, are shared by all."""
    a, b, alpha = sides(4)
    for dims, args in (
        ((0, 0, 0), (a, b, alpha)),
        ((0, 0, None), (a, b, alpha[0])),
        ((0, None, 0), (a, b[0], alpha)),
    ):
        ours = vmap(slopes(weighted_mmd, biased), dims)(*args)
        torch.testing.assert_close(ours, vmap(slopes(plain, biased), dims)(*args))


@pytest.mark.parametrize("kernels", ["mean", "sum"])
@pytest.mark.parametrize("estimator", ["biased", "off-diagonal"])
@pytest.mark.parametrize("alignment", ["cross", "same"])
def test_the_slope_of_the_whole_term(kernels, estimator, alignment):
    """lambda L_AL by autograd alone, with alpha constant; 1/5 where the kernels are averaged."""
    how = Matching(0.7, alignment, estimator=estimator, kernels=kernels)
    a, b = numbers(2, 6, 4, 3), numbers(3 if alignment == "cross" else 2, 6, 4, 3) * 2

    def literal(a, b):
        alpha = torch.eye(2, dtype=a.dtype)
        if alignment == "cross":
            alpha = attention(a.detach(), b.detach(), True, True)
        share = 0.7 / (5 if kernels == "mean" else 1)
        return share * plain(a.flatten(2), b.flatten(2), alpha, estimator == "biased")

    torch.testing.assert_close(grad(how, (0, 1))(a, b), grad(literal, (0, 1))(a, b))


def test_a_common_shift_changes_nothing():
    """So the slopes of all points add up to zero."""
    a, b, alpha = sides()
    da, db = once(weighted_mmd, True)(a, b, alpha)
    torch.testing.assert_close(da.sum((0, 1)) + db.sum((0, 1)), torch.zeros(5).double())
    assert da.abs().max() > 1e-3


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_it_stays_in_the_type_that_it_gets(dtype):
    a, b = (torch.randn(2, 8, 16).to(dtype).requires_grad_() for _ in range(2))
    with torch.autocast("cpu", torch.bfloat16):
        value = weighted_mmd(a, b, torch.full((2, 2), 0.5, dtype=dtype))
        wanted = (0.5 * mmd(a, b)).sum()
    slopes = torch.autograd.grad(value, (a, b))
    assert all(s.dtype == dtype and s.isfinite().all() for s in slopes)
    assert value.item() == pytest.approx(wanted.item(), rel=0.02)


@pytest.mark.parametrize("loss", [weighted_mmd, plain])
def test_one_example_has_no_other_to_be_compared_with(loss):
    """The biased estimate of one example a side is k(a, a) + k(b, b) - 2 k(a, b), and stays."""
    a, b, alpha = numbers(1, 1, 5), 2 * numbers(1, 1, 5), numbers(1, 1).abs()
    assert torch.isfinite(loss(a, b, alpha, True))
    with pytest.raises(ConfigError, match="drop_last"):
        loss(a, b, alpha, False)
