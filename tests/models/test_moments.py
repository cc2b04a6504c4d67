"""Statistics of images with their slopes by hand, beside autograd over the plain formulas."""

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.func import grad, vmap

from feddg.models.moments import Moments, Scaled


def close(a, b, tolerance=1e-6):
    torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)


def normalised(x, scale, shift):
    """Uses both functions, and the statistics in more than one place."""
    mean, var = Moments.apply(x)
    mix = (var + var.mean(0, keepdim=True) + 0.1).rsqrt() * scale
    return Scaled.apply(x, mix, shift - mean * mix)


def plain(x, scale, shift):
    mean = x.mean((2, 3), keepdim=True)
    var = (x - mean).square().mean((2, 3), keepdim=True)
    mix = (var + var.mean(0, keepdim=True) + 0.1).rsqrt() * scale
    return (x - mean) * mix + shift


def given(kind=torch.float32, *more):
    rng = torch.Generator().manual_seed(0)
    shapes = ((3, 2, 4, 5), (3, 2, 1, 1), (3, 2, 1, 1))
    return [torch.randn(*more, *s, generator=rng, dtype=torch.float64).to(kind) for s in shapes]


def test_reference_by_hand():
    """(1, 3) has mean 2 and variance 1; 2 x + 1 of it is (3, 7)."""
    x = torch.tensor([1.0, 3.0]).view(1, 1, 1, 2)
    mean, var = Moments.apply(x)
    assert (mean.item(), var.item()) == (2.0, 1.0)
    found = Scaled.apply(x, torch.full((1, 1, 1, 1), 2.0), torch.ones(1, 1, 1, 1))
    assert found.flatten().tolist() == [3.0, 7.0]


def test_slopes_are_the_derivatives_once_and_twice():
    values = [v.requires_grad_() for v in given(torch.float64)]
    assert gradcheck(normalised, values)
    assert gradgradcheck(normalised, values)


def test_equal_to_the_plain_formulas():
    close(normalised(*given()), plain(*given()), 1e-5)


def test_a_stack_of_sites_is_one_site_after_the_other():
    """Values and slopes; also where only some of what is given differs from site to site."""

    def slopes(*values):
        return grad(lambda *v: (normalised(*v) * values[0].cos()).sum(), argnums=(0, 1, 2))(*values)

    stacked = given(torch.float32, 2)
    together = vmap(slopes)(*stacked)
    shared = vmap(slopes, (0, None, 0))(stacked[0], stacked[1][0], stacked[2])
    for i in range(2):
        own = [v[i] for v in stacked]
        for a, b in zip(together, slopes(*own), strict=True):
            close(a[i], b, 1e-5)
        for a, b in zip(shared, slopes(own[0], stacked[1][0], own[2]), strict=True):
            close(a[i], b, 1e-5)


def found_and_slopes(function, *values):
    """What comes out, and how a sum of it depends on each of what goes in."""

    def total(*values):
        return (function(*values) * values[0].cos()).sum()

    return function(*values), *grad(total, argnums=(0, 1, 2))(*values)


def as_on_a_gpu(move, *shape):
    """Beside the plain formulas in float64: by itself; and two sites, who may share a scale."""

    def shaped(*more):
        x, scale, shift = (torch.randn(*more, *s) for s in (shape, *[(*shape[:2], 1, 1)] * 2))
        return 2 * x + 1, scale, shift

    def both(values, mapped=lambda f: f):
        ours = mapped(lambda *v: found_and_slopes(normalised, *v))(*map(move, values))
        plainly = mapped(lambda *v: found_and_slopes(plain, *v))(*(v.double() for v in values))
        for a, b in zip(ours, plainly, strict=True):
            assert a.dtype == torch.float32
            close(a.cpu().double(), b, 1e-4)

    both(shaped())
    x, scale, shift = shaped(2)
    both((x, scale, shift), vmap)
    both((x, scale[1], shift), lambda f: vmap(f, (0, None, 0)))


@pytest.mark.gpu
@pytest.mark.parametrize("shape", [(3, 2, 4, 5), (5, 7, 1, 9), (16, 64, 28, 28)])
def test_on_a_gpu_they_are_the_plain_formulas(shape):
    as_on_a_gpu(torch.Tensor.cuda, *shape)


@pytest.mark.parametrize("shape", [(3, 2, 4, 5), (5, 7, 1, 9)])
def test_a_gpus_way_is_right_on_a_cpu_too(shape, monkeypatch):
    """Where it is slow: the same calls, taken for once."""
    monkeypatch.setattr(torch.Tensor, "is_cuda", True, raising=False)
    as_on_a_gpu(torch.Tensor.clone, *shape)
