"""Convolutions as batched products: the same function and slopes as torch's, alone and stacked."""

import pytest
import torch
from torch.func import grad, vmap

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
