"""All of the term in one function is `Matching` of what Proj makes of the features."""

from dataclasses import replace

import pytest
import torch

from feddg.catalogue import compose
from feddg.parts import at_once
from feddg.parts.at_once import aligned, possible
from feddg.parts.matching import Matching
from feddg.parts.projections import Projections
from tests import toy

NEAR = 1e-4  # float32, added up in another order
HOW = Matching(0.7)


def given(size=12):
    """Maps in windows of 3x3 and of one pixel, and a dense feature; the third Proj has 1x1."""
    rng = torch.Generator().manual_seed(0)

    def features():
        shapes = {"early": (6, 3, size, size), "late": (6, 5, 4, 4)}
        return {k: torch.randn(*s, generator=rng).relu() for k, s in shapes.items()}

    fused, local = features(), features()
    project = Projections.of(fused)
    return project, project.init(rng), fused, local


def formula(project, how, vector, fused, patches):
    own = project.layout.views(vector)
    return how(project("fused", own, fused), project("local", own, patches, cut=True))


def value_and_slopes(loss, how, frozen=(), again=False):
    project, vector, fused, local = given()
    inputs = {"vector": vector, **fused}
    inputs = {k: v.requires_grad_(k not in frozen) for k, v in inputs.items()}
    wanted = [v for k, v in inputs.items() if k not in frozen]
    vector, *_ = inputs.values()
    value = loss(project, how, vector, {k: inputs[k] for k in fused}, project.cut(local))
    slopes = torch.autograd.grad(value**2, wanted, create_graph=again)
    if again:
        steepness = torch.cat([s.flatten() for s in slopes]).sin().sum()
        slopes = torch.autograd.grad(steepness, wanted)
    return value, slopes


@pytest.mark.parametrize(
    "change",
    [
        {}, {"alignment": "same"}, {"position": False}, {"channel": False}, {"over": "fused"},
        {"estimator": "off-diagonal"}, {"kernels": "sum"},
    ],
)  # fmt: skip
def test_value_and_slopes_are_the_formulas(change):
    how = replace(HOW, **change)
    value, slopes = value_and_slopes(aligned, how)
    wanted, theirs = value_and_slopes(formula, how)
    torch.testing.assert_close(value, wanted)
    torch.testing.assert_close(slopes, theirs, rtol=NEAR, atol=NEAR * float(theirs[0].abs().max()))


@pytest.mark.parametrize("frozen", [("vector",), ("early",), ("early", "late")])
def test_what_is_frozen_has_no_slope(frozen):
    _, slopes = value_and_slopes(aligned, HOW, frozen)
    _, theirs = value_and_slopes(formula, HOW, frozen)
    torch.testing.assert_close(slopes, theirs, rtol=NEAR, atol=NEAR)


@pytest.mark.parametrize("frozen", [(), ("vector",)])
def test_slopes_of_slopes_are_the_formulas(frozen):
    _, slopes = value_and_slopes(aligned, HOW, frozen, again=True)
    _, theirs = value_and_slopes(formula, HOW, frozen, again=True)
    assert all(s.abs().max() > 0 for s in theirs)
    torch.testing.assert_close(slopes, theirs, rtol=NEAR, atol=NEAR)


def test_a_dense_feature_is_a_map_of_one_pixel():
    features = {"maps": torch.randn(6, 4, 6, 6), "dense": torch.randn(6, 10).requires_grad_()}
    project = Projections.of(features)
    vector = project.init(torch.Generator()).requires_grad_()
    patches = project.cut({k: v.detach() + 1 for k, v in features.items()})
    ours, theirs = (
        torch.autograd.grad(f(project, HOW, vector, features, patches), (features["dense"], vector))
        for f in (aligned, formula)
    )
    torch.testing.assert_close(ours, theirs, rtol=NEAR, atol=NEAR)


def test_everywhere_else_it_is_not_possible():
    project, vector, fused, local = given()
    assert possible(project, HOW, vector, fused, local)
    assert not possible(given(13)[0], HOW, vector, fused, local)  # windows overlap
    assert not possible(replace(project, shared=True), HOW, vector, fused, local)
    assert not possible(project, replace(HOW, discrepancy="mse"), vector, fused, local)
    assert not possible(project, HOW, vector.double(), fused, local)
    sloping = {k: v.clone().requires_grad_() for k, v in local.items()}
    assert not possible(project, HOW, vector, fused, sloping)
    with torch.autocast("cpu", torch.bfloat16):
        assert not possible(project, HOW, vector, fused, local)


def test_nor_is_it_within_a_traced_gradient():
    project, vector, fused, local = given()

    def traced(v):
        assert not possible(project, HOW, v, fused, local)
        return formula(project, HOW, v, fused, project.cut(local))

    slope = torch.func.grad(traced)(vector)
    _, [wanted, *_] = value_and_slopes(lambda *args: formula(*args).sqrt(), HOW)
    torch.testing.assert_close(slope, wanted, rtol=NEAR, atol=NEAR)


@pytest.mark.parametrize("cache", ["on", "off"])
def test_a_visit_alone_goes_by_it_and_comes_to_the_same(monkeypatch, cache):
    """To one pixel, for the toy network's other windows overlap."""
    made = []

    def counted(*args):
        made.append(args)
        return aligned(*args)

    monkeypatch.setattr(at_once, "aligned", counted)
    method = compose(f"csac(size=1, cache_features='{cache}')")
    ours = toy.vector(method, 2)
    assert made
    monkeypatch.setattr(at_once, "possible", lambda *_: False)
    torch.testing.assert_close(ours, toy.vector(method, 2), rtol=1e-4, atol=1e-5)
