"""Convolutions as batched products: the same function and slopes as torch's, alone and stacked.

Triton's kernels need a GPU; for max pooling something in plain torch stands in for them.
"""

from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from torch.func import grad, vmap

from feddg.engines import products
from feddg.engines.products import LARGEST, as_products, convolved

WINDOWS = [(5, 1, 0), (3, 1, 1), (3, 2, 1), ((2, 3), (2, 1), (0, 1)), (1, 1, 0)]


def numbers(*shape):
    return torch.randn(
        *shape, generator=torch.Generator().manual_seed(len(shape)), dtype=torch.float64
    )


@pytest.mark.parametrize("window", WINDOWS)
def test_it_is_the_convolution(window):
    kernel, stride, padding = window
    down, right = (kernel, kernel) if isinstance(kernel, int) else kernel
    x, w, b = numbers(4, 3, 9, 8), numbers(6, 3, down, right), numbers(6)

    def loss(x, w, b):
        return torch.conv2d(x, w, b, stride, padding).sin().sum()

    with as_products():
        ours = grad(loss, (0, 1, 2))(x, w, b)
        assert convolved(x, w, b, stride, padding) is not None
    for mine, theirs in zip(ours, grad(loss, (0, 1, 2))(x, w, b), strict=True):
        torch.testing.assert_close(mine, theirs)


def test_every_site_of_a_stack_has_its_own_kernel():
    x, w = numbers(3, 4, 2, 7, 7), numbers(3, 5, 2, 3, 3)

    def loss(w, x):
        return torch.conv2d(x, w).square().sum()

    with as_products():
        ours = vmap(grad(loss))(w, x)
    theirs = torch.stack([grad(loss)(a, b) for a, b in zip(w, x, strict=True)])
    torch.testing.assert_close(ours, theirs)


def test_what_is_no_such_product_stays_a_convolution():
    x, w = numbers(2, 4, 8, 8), numbers(4, 2, 3, 3)
    assert convolved(x, w, groups=2) is None
    assert convolved(x, numbers(4, 4, 3, 3), dilation=2) is None
    assert convolved(x, numbers(4, 4, 3, 3), padding="same") is None
    side = int((LARGEST // 9) ** 0.5) + 3
    assert convolved(torch.zeros(1, 1, side, side), torch.zeros(1, 1, 3, 3)) is None
    with as_products():
        assert torch.conv2d(x, w, groups=2).equal(torch.conv2d(x, w, None, 1, 0, 1, 2))


def squares(x, side):
    """B x h x w x C x side side, of what fits."""
    h, w = (n // side for n in x.shape[1:3])
    cut = x[:, : h * side, : w * side].unflatten(2, (w, side)).unflatten(1, (h, side))
    return cut.permute(0, 1, 3, 5, 2, 4).flatten(4)


def stand_in_pool(x, side):
    value, which = squares(x, side).max(4)
    return value, which.to(torch.int8)


def stand_in_unpool(slope, which, side, size):
    b, h, w, c = slope.shape
    spread = F.one_hot(which.long(), side * side) * slope[..., None]
    spread = spread.view(b, h, w, c, side, side).permute(0, 1, 4, 2, 5, 3)
    whole = slope.new_zeros(b, *size, c)
    whole[:, : h * side, : w * side] = spread.reshape(b, h * side, w * side, c)
    return whole


@pytest.fixture
def pools(monkeypatch):
    """Max pooling by the stand-in."""
    kernels = SimpleNamespace(pooled=stand_in_pool, unpooled=stand_in_unpool)
    monkeypatch.setattr(products, "kernels", lambda: kernels)
    monkeypatch.setattr(products, "usable", lambda x, times=1: True)


@pytest.mark.parametrize("side", [2, 3])
def test_max_pooling_of_a_stack(pools, side):
    x = numbers(3, 2, 4, 7, 9)

    def loss(x):
        return F.max_pool2d(x, side).sin().sum()

    def steep(x):
        return grad(loss)(x).square().sum()

    for function in (loss, grad(loss), grad(steep)):
        with as_products():
            ours = vmap(function)(x)
        torch.testing.assert_close(ours, torch.stack([function(one) for one in x]))


def test_other_windows_stay_torch_s(pools, monkeypatch):
    monkeypatch.setattr(products.Pooled, "apply", lambda *_: pytest.fail("pooled"))
    x = numbers(2, 3, 8, 8)
    for options in ({"stride": 1}, {"padding": 1}, {"dilation": 2}, {"ceil_mode": True}):
        with as_products():
            assert F.max_pool2d(x, 2, **options).equal(F.max_pool2d(x, 2, **options))
    with as_products():
        assert F.max_pool2d(x, (2, 4)).shape == (2, 3, 4, 2)
