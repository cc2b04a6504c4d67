"""The two passes over a matrix of updates on a GPU, beside float64; and who makes them."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

import feddg.merges
from feddg.merges import combined, geometry, gpu_kernels
from feddg.merges.geometry import gram

ROWS = [1, 10, 11, 20, 21, 32, 33, 128, 129]  # each program's most, and one more
COLUMNS = [1, 511, 512, 9001]


def within(k: int, columns: int) -> tuple[Tensor, slice]:
    """Rows of a wider matrix, beside which nothing may be read."""
    cut = slice(3, columns + 3)
    x = torch.full((k, columns + 7), torch.nan)
    x[:, cut] = torch.randn(k, columns)
    return x.cuda(), cut


@pytest.mark.gpu
@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("k", ROWS)
def test_inner_products_are_those_in_float64(k, columns):
    x, cut = within(k, columns)
    assert gpu_kernels(x)
    whole = x[:, cut].contiguous()
    exact = whole.double() @ whole.double().T
    sizes = exact.diagonal().sqrt()
    for found in (gram(x, cut), gram(whole)):
        assert found.dtype == torch.float64
        assert torch.equal(found, found.T)
        assert ((found - exact).abs() <= 1e-5 * torch.outer(sizes, sizes)).all()


@pytest.mark.gpu
@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("k", ROWS)
def test_combinations_are_those_in_float64(k, columns):
    """Of coefficients in float64, as merges find them."""
    x, cut = within(k, columns)
    whole, c = x[:, cut].contiguous(), torch.randn(k, dtype=torch.float64).cuda()
    exact, size = c @ whole.double(), c.abs() @ whole.double().abs()
    for found in (combined(c, x[:, cut]), combined(c, whole)):
        assert found.dtype == torch.float32
        assert found.shape == (columns,)
        assert ((found.double() - exact).abs() <= 1e-5 * size).all()


@pytest.mark.gpu
@pytest.mark.parametrize("how", ["float64", "transposed"])
def test_other_matrices_are_products_of_torchs(how):
    x = torch.randn(7, 900).cuda()
    x = x.double() if how == "float64" else x.T.contiguous().T
    assert gpu_kernels(x) is None
    exact, c = x.double() @ x.double().T, torch.randn(7, dtype=torch.float64).cuda()
    torch.testing.assert_close(gram(x), exact, rtol=1e-5, atol=1e-3)
    torch.testing.assert_close(combined(c, x).double(), c @ x.double(), rtol=1e-4, atol=1e-4)


def test_only_so_many_rows_are_theirs(monkeypatch):
    """Beyond, what torch finds; a matrix on a CPU is never theirs."""
    x, said = torch.randn(4, 30), torch.full((), 7.0)
    assert gpu_kernels(x) is None
    programs: Any = SimpleNamespace(
        MOST=3, UNROLLED=4, gram=lambda x: said, combined=lambda c, x: said
    )
    for module in (geometry, feddg.merges):
        monkeypatch.setattr(module, "gpu_kernels", lambda x: programs)
    assert gram(x[:3]) is said
    torch.testing.assert_close(gram(x), x.double() @ x.double().T, rtol=1e-5, atol=1e-4)
    assert combined(torch.ones(4), x) is said
    more = torch.cat([x, x[:1]])
    torch.testing.assert_close(combined(torch.ones(5), more), more.sum(0))
