"""The Gram matrix and the rules that need nothing else."""

import time

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from feddg.merges import blas, whole_products
from feddg.merges.geometry import (
    BLOCK,
    MANY,
    RECORDED,
    Mixing,
    Order,
    cosine,
    drawn_together,
    gram,
    meetings,
    projected,
)
from feddg.seeds import generator

TIE = 1e-6  # closer to a right angle than this, rounding decides


def rows(k, p, common=0.0, seed=0):
    """Random rows with a part in common: the larger it is, the rarer the conflicts."""
    rng = generator("rows", seed)
    x = torch.randn(k, p, generator=rng, dtype=torch.float64)
    size = torch.logspace(-1, 1, k, dtype=torch.float64)[torch.randperm(k, generator=rng)]
    return size[:, None] * (x + common * torch.randn(p, generator=rng, dtype=torch.float64))


def close(x, y):
    return torch.dot(x, y) / (x.norm() * y.norm())


def literal_ppdg(x, lam, order, test=True):
    """The paper's Algorithm 1, and how close to a tie its tests came."""
    g, nearest = list(x), 1.0
    for i, others in order:
        for j in others:
            nearest = min(nearest, abs(float(close(g[i], g[j]))))
            if torch.dot(g[i], g[j]) < 0 or not test:
                g[i] = g[i] - 2 * lam * (g[i] - g[j])
    return torch.stack(g), nearest


def literal_pcgrad(x, order):
    """Algorithm 1 of Yu et al. (2020)."""
    g, nearest = list(x), 1.0
    for i, others in order:
        for j in others:
            nearest = min(nearest, abs(float(close(g[i], x[j]))))
            if torch.dot(g[i], x[j]) < 0:
                g[i] = g[i] - torch.dot(g[i], x[j]) / torch.dot(x[j], x[j]) * x[j]
    return torch.stack(g), nearest


def test_gram_by_hand():
    """Rows (1, 2), (3, -1), (0, 4): squares 5, 10, 16; products 3-2=1, 8, -4."""
    x = torch.tensor([[1.0, 2.0], [3.0, -1.0], [0.0, 4.0]])
    want = torch.tensor([[5.0, 1.0, 8.0], [1.0, 10.0, -4.0], [8.0, -4.0, 16.0]])
    assert torch.equal(gram(x), want.double())
    assert torch.equal(gram(x, slice(1, 2)), torch.outer(x[:, 1], x[:, 1]).double())


@pytest.mark.parametrize("k", [1, 3, MANY - 1, MANY, 110])
@pytest.mark.parametrize("p", [1, BLOCK, BLOCK + 1, blas.BLOCK, blas.BLOCK + 1, 3 * blas.BLOCK - 5])
def test_gram_is_that_of_float64_to_float32_rounding(k, p):
    x = torch.randn(k, p)
    exact = x.double() @ x.double().T
    sizes = x.double().norm(dim=1)
    assert torch.equal(gram(x), gram(x).T)
    assert ((gram(x) - exact).abs() / torch.outer(sizes, sizes)).max() < 1e-6


def test_gram_of_slices_adds_up_to_the_whole():
    x, cut = torch.randn(5, 2 * BLOCK + 100), BLOCK + 7
    parts = gram(x, slice(0, cut)) + gram(x, slice(cut, None))
    assert torch.allclose(parts, gram(x), rtol=0, atol=1e-6 * x.shape[1])


@pytest.mark.parametrize("k", [2, MANY])
def test_gram_sums_in_float64_across_blocks(k):
    """Equal products are the worst case, as all rounding errs to one side.

    Over 4 million of them one float32 product of two whole rows is off by 5e-3 here.
    """
    x = torch.full((1, 1000 * BLOCK + 3), 0.1).expand(k, -1).clone()
    exact = x.shape[1] * x[0, 0].double() ** 2
    assert (gram(x) / exact - 1).abs().max() < 1e-5


def test_gram_keeps_float64():
    x = rows(4, 1000)
    assert torch.allclose(gram(x), x @ x.T, rtol=1e-12)


def test_everyone_meets_everyone_once_in_fresh_orders():
    order = list(meetings(6, generator(0)))
    assert sorted(i for i, _ in order) == list(range(6))
    assert all(sorted([i, *others]) == list(range(6)) for i, others in order)
    assert order == list(meetings(6, generator(0)))
    assert order != list(meetings(6, generator(1)))
    ranks = {tuple(sorted(others, key=others.index)) for _, others in order}
    assert len(ranks) == 6
    firsts = {next(meetings(6, generator(s)))[0] for s in range(40)}
    assert firsts == set(range(6))


def test_drawn_together_by_hand():
    """x_1 = (2, 0), x_2 = (-2, 1), lam = 0.1: products 4, 5 and -4, a conflict.

    Row 1 meets 2:  x_1 <- 0.8 (2, 0) + 0.2 (-2, 1) = (1.2, 0.2).
    Row 2 meets the new 1:  -2.4 + 0.2 = -2.2 < 0, still a conflict (the paper's case 3):
    x_2 <- 0.8 x_2 + 0.2 (0.8 x_1 + 0.2 x_2) = 0.16 x_1 + 0.84 x_2 = (-1.36, 0.84).
    Cosines: -4 / sqrt(4 * 5) = -0.894, then -2.2 / sqrt(5 * 1.48) = -0.809.
    """
    products = np.array([[4.0, -4.0], [-4.0, 5.0]])
    mixed = drawn_together(products, 0.1, [(0, [1]), (1, [0])])
    assert np.allclose(mixed.coefficients, [[0.8, 0.2], [0.16, 0.84]])
    assert [c[:2] for c in mixed.conflicts] == [(0, 1), (1, 0)]
    cosines = [-4 / 20**0.5, -2.2 / (5 * 1.48) ** 0.5]
    assert [c[2] for c in mixed.conflicts] == pytest.approx(cosines)


def test_drawn_together_where_the_first_meeting_settles_it():
    """lam = 0.25, same rows: x_1 <- (0, 0.5), then x_2 meets 0.5 > 0 and stays (case 2).

    Without the test it is drawn on: x_2 <- 0.5 x_2 + 0.5 (0.5 x_1 + 0.5 x_2) = (1/4, 3/4).
    """
    products = np.array([[4.0, -4.0], [-4.0, 5.0]])
    order: Order = [(0, [1]), (1, [0])]
    mixed = drawn_together(products, 0.25, order)
    assert np.allclose(mixed.coefficients, [[0.5, 0.5], [0.0, 1.0]])
    always = drawn_together(products, 0.25, order, test_conflicts=False)
    assert np.allclose(always.coefficients, [[0.5, 0.5], [0.25, 0.75]])
    assert [c[:2] for c in always.conflicts] == [(0, 1)]


def test_projected_by_hand():
    """x_1 = (2, 0), x_2 = (-2, 1): x_1 <- x_1 + 4/5 x_2 = (0.4, 0.8), at right angles to x_2.

    x_2 is projected against x_1 as it came, not as it is: x_2 <- x_2 + 4/4 x_1 = (0, 1).
    """
    products = np.array([[4.0, -4.0], [-4.0, 5.0]])
    mixed = projected(products, [(0, [1]), (1, [0])])
    assert np.allclose(mixed.coefficients, [[1.0, 0.8], [1.0, 1.0]])


@given(
    k=st.integers(1, 9), p=st.integers(1, 60), seed=st.integers(0, 2**20),
    lam=st.sampled_from([0.0, 0.001, 0.1, 0.3, 0.5, 0.7]), common=st.sampled_from([0.0, 0.3, 2.0]),
    test=st.booleans(),
)  # fmt: skip
def test_drawn_together_is_the_literal_algorithm(k, p, seed, lam, common, test):
    x = rows(k, p, common, seed)
    order = list(meetings(k, generator("order", seed)))
    exact, nearest = literal_ppdg(x, lam, order, test)
    assume(nearest > TIE or not test)
    mixed = drawn_together(gram(x).numpy(), lam, order, test)
    assert torch.allclose(torch.from_numpy(mixed.coefficients) @ x, exact, rtol=0, atol=1e-9)


@given(
    k=st.integers(1, 9), p=st.integers(2, 60), seed=st.integers(0, 2**20),
    common=st.sampled_from([0.0, 0.3, 2.0]),
)  # fmt: skip
def test_projected_is_the_literal_algorithm(k, p, seed, common):
    x = rows(k, p, common, seed)
    order = list(meetings(k, generator("order", seed)))
    exact, nearest = literal_pcgrad(x, order)
    assume(nearest > TIE)
    mixed = projected(gram(x).numpy(), order)
    assert torch.allclose(torch.from_numpy(mixed.coefficients) @ x, exact, rtol=0, atol=1e-8)


@pytest.mark.parametrize("k", [40, RECORDED + 20])
@pytest.mark.parametrize("common", [0.0, 0.1])
def test_many_rows_and_many_conflicts(common, k):
    x = rows(k, 3000, common)
    order = list(meetings(k, generator(3)))
    mixed = drawn_together(gram(x).numpy(), 0.1, order)
    exact, nearest = literal_ppdg(x, 0.1, order)
    assert nearest > TIE
    assert sum(mixed.times) > 100
    assert len(mixed.conflicts) == (sum(mixed.times) if k == 40 else 0)
    assert torch.allclose(torch.from_numpy(mixed.coefficients) @ x, exact, rtol=0, atol=1e-9)


@pytest.mark.parametrize("lam", [0.0, 0.3, 0.5, 0.8])
def test_turns_that_some_rows_never_have(lam):
    """Rows 0 and 2 never have a turn: they stay, and are met as they came."""
    x = rows(4, 30)
    order: Order = [(3, [0, 1, 2]), (1, [3, 0])]
    exact, _ = literal_ppdg(x, lam, order, test=False)
    mixed = drawn_together(gram(x).numpy(), lam, order, test_conflicts=False)
    assert torch.allclose(torch.from_numpy(mixed.coefficients) @ x, exact, rtol=0, atol=1e-9)
    assert np.array_equal(mixed.coefficients[[0, 2]], np.eye(4)[[0, 2]])


def test_a_thousand_rows_meet_in_reasonable_time():
    """A million meetings; numpy's rows for each conflict took twice this bound and more."""
    x = rows(1000, 400, 0.1)
    order = list(meetings(1000, generator(5)))
    began = time.process_time()
    mixed = drawn_together(gram(x).numpy(), 0.1, order)
    took = time.process_time() - began
    assert sum(mixed.times) > 100_000
    assert np.allclose(mixed.coefficients.sum(1), 1)
    assert took < 10


def test_rows_that_are_nothing_conflict_with_nobody():
    products = np.array([[0.0, 0.0], [0.0, 1.0]])
    order: Order = [(0, [1]), (1, [0])]
    assert np.array_equal(drawn_together(products, 0.1, order).coefficients, np.eye(2))
    assert np.array_equal(projected(products, order).coefficients, np.eye(2))
    assert cosine(0.0, 0.0, 1.0) == 0


def test_what_is_told():
    mixed = Mixing(np.array([[0.8, 0.2], [0.0, 1.0]]), [(0, 1, -0.5)])
    assert mixed.told(["a", "b"]) == {
        "conflicts": {"a": {"b": -0.5}},
        "mixing": {"a": {"a": 0.8, "b": 0.2}, "b": {"b": 1.0}},
    }
    assert mixed.combined(torch.tensor([0.25, 0.75])).tolist() == pytest.approx([0.2, 0.8])


def test_what_is_told_of_very_many():
    sites = [f"s{i}" for i in range(RECORDED + 1)]
    c = np.eye(len(sites))
    c[1, 1] = 0.5
    told = Mixing(c, times=[0, 2] + [0] * (len(sites) - 2)).told(sites)
    assert told["conflicts"] == {"s1": 2}
    assert (told["mixing"]["s0"], told["mixing"]["s1"]) == (1.0, 0.5)


def test_training_s_precision_is_not_the_merge_s():
    """A GPU may train on 10-bit mantissas; inside a merge it may not, and after it again."""
    matmul = torch.backends.cuda.matmul
    before, matmul.allow_tf32 = matmul.allow_tf32, True
    try:
        with whole_products():
            assert not matmul.allow_tf32
        assert matmul.allow_tf32
    finally:
        matmul.allow_tf32 = before
