"""oneDNN's linear maps are torch's own, and so are their slopes."""

import pytest
import torch
import torch.nn.functional as F
from torch.func import grad, vmap

from feddg.parts import products
from feddg.parts.products import linear, product, usable

NEAR = 1e-4  # float32, added up in another order


def given(dtype=torch.float32):
    rng = torch.Generator().manual_seed(0)
    shapes = (4, 7, 6), (5, 6), (5,)
    return [torch.randn(*s, generator=rng).to(dtype).requires_grad_() for s in shapes]


def slopes(of, again):
    x, weight, bias = given()
    found = torch.autograd.grad(
        of(x, weight, bias).sin().sum(), (x, weight, bias), create_graph=again
    )
    if again:
        steepness = torch.cat([s.flatten() for s in found]).sin().sum()
        found = torch.autograd.grad(steepness, (x, weight))
    return found


@pytest.mark.parametrize("again", [False, True])
def test_it_is_a_linear_map(again):
    torch.testing.assert_close(linear(*given()), F.linear(*given()))
    torch.testing.assert_close(slopes(linear, again), slopes(F.linear, again), rtol=NEAR, atol=NEAR)


def test_a_side_without_a_slope_costs_no_product(monkeypatch):
    """Of kept features only the map has a slope: one product forward, one back."""
    made = []
    monkeypatch.setattr(products, "usable", lambda *_: True)

    def mapped(x, weight, bias):
        made.append(x)
        return F.linear(x, weight, bias)

    monkeypatch.setattr(products, "mapped", mapped)
    x, weight, bias = given()
    torch.autograd.grad(linear(x.detach(), weight, bias).sum(), (weight, bias))
    assert len(made) == 2


def test_where_it_is_of_no_use_torch_does_it():
    """Stacked or traced sites, float64 and autocast."""
    x, weight, _ = (v.detach() for v in given())
    assert usable(x, weight)
    assert not usable(x.double(), weight.double())
    with torch.autocast("cpu", torch.bfloat16):
        assert not usable(x, weight)
        assert linear(x, weight).dtype == torch.bfloat16
    for of in (linear, product):
        stacked = vmap(grad(lambda w, x, of=of: of(x, w).square().sum()), (None, 0))(weight, x)
        wanted = torch.stack(
            [grad(lambda w, r=r: F.linear(r, w).square().sum())(weight) for r in x]
        )
        torch.testing.assert_close(stacked, wanted)


def test_what_is_fixed_within_a_traced_gradient_is_torchs_too():
    """A function of the tape alone would be refused there, whatever it is given."""
    x, weight, _ = (v.detach() for v in given())
    scale = torch.tensor([1.0, 2.0])
    found = grad(lambda s: linear(x, weight).sum() * s.sum())(scale)
    torch.testing.assert_close(found, F.linear(x, weight).sum().expand(2))


def test_a_torch_without_the_private_operator_goes_by_its_own(monkeypatch):
    """The same numbers to rounding, by F.linear."""
    x, w = torch.randn(8, 6), torch.randn(4, 6)
    before = products.linear(x, w)
    monkeypatch.setattr(products, "one_dnn", lambda: False)
    monkeypatch.setattr(products, "mapped", None)  # calling it would fail
    torch.testing.assert_close(products.linear(x, w), before, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(products.product(x, w), before, rtol=1e-5, atol=1e-5)
