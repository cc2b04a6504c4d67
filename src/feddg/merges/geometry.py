"""Merges from inner products alone: the Gram matrix X X', and what is decided from it.

The rows of X are updates. Rules that only mix rows (PPDG, PCGrad) never touch X again: they track
coefficients over K x K numbers, and one pass `c @ X` carries the decision out.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor

from feddg.merges import blas, gpu_kernels, whole_products

Matrix = NDArray[np.float64]
Order = Iterable[tuple[int, Sequence[int]]]  # each row in turn, with those it meets

# Shorter blocks add up more exactly but cost calls; a batch of products keeps all threads busy.
BLOCK = 4096  # columns of one product
CACHED = 8 << 20  # bytes that one call's products read
LAUNCH = 8192  # products of one call on a GPU
MANY = 12  # float32 rows from which half a product beats a batch of whole ones (Zen 5)

TINY = 1e-100  # a factor of a row that is put off no longer; also 0 and negative ones
RECORDED = 64  # sites up to which the record names every pair


def gram(x: Tensor, cut: slice = slice(None)) -> Tensor:
    """X X' of the whole rows or of one slice of them, in float64 and in one pass.

    Products of float32 rows are float32 inside a block of columns; their sum is float64.
    """
    x = x[:, cut]
    kernels = gpu_kernels(x)
    if kernels and len(x) <= kernels.MOST:
        products: Tensor = kernels.gram(x)
        return products
    many = x.device.type == "cpu" and x.dtype == torch.float32 and len(x) >= MANY
    if many and blas.fits(x):
        total = blas.gram(x)
        return total + total.triu(1).T
    batch = LAUNCH
    if x.device.type == "cpu":
        batch = max(CACHED // (max(len(x), 1) * BLOCK * x.element_size()), 1)
    total = torch.zeros(len(x), len(x), dtype=torch.float64, device=x.device)
    whole = x.shape[1] - x.shape[1] % BLOCK
    with whole_products():
        for start in range(0, whole, batch * BLOCK):
            part = x[:, start : min(start + batch * BLOCK, whole)]
            add_products(total, part.unflatten(1, (-1, BLOCK)).transpose(0, 1))
        add_products(total, x[None, :, whole:])
    return total.triu() + total.triu(1).T


def add_products(total: Tensor, blocks: Tensor) -> None:
    """Adds every block's X X' to `total`."""
    total += (blocks @ blocks.mT).sum(0, dtype=torch.float64)


@dataclass(frozen=True, eq=False)
class Mixing:
    """Row i became sum_j coefficients[i, j] x_j.

    Every conflict that was met is (i, j, cosine) where there are at most `RECORDED` rows;
    `times` is how many each row met.
    """

    coefficients: Matrix
    conflicts: list[tuple[int, int, float]] = field(default_factory=list)
    times: Sequence[int] = ()

    def combined(self, shares: Tensor) -> Tensor:
        """What the weighted sum of the mixed rows takes of each row of X."""
        return shares @ torch.from_numpy(self.coefficients).to(shares)

    def told(self, sites: Sequence[str]) -> dict[str, Any]:
        """For the record, by the names of the sites; what is zero is left out.

        With very many sites: how often each gave way, and what it kept of its own.
        """
        if len(sites) > RECORDED:
            times = {site: n for site, n in zip(sites, self.times, strict=True) if n}
            kept = dict(zip(sites, self.coefficients.diagonal().tolist(), strict=True))
            return {"conflicts": times, "mixing": kept}
        conflicts: dict[str, dict[str, float]] = {}
        for i, j, cosine in self.conflicts:
            conflicts.setdefault(sites[i], {})[sites[j]] = cosine
        mixing = {
            site: {other: c for other, c in zip(sites, row, strict=True) if c}
            for site, row in zip(sites, self.coefficients.tolist(), strict=True)
        }
        return {"conflicts": conflicts, "mixing": mixing}


def meetings(k: int, rng: Generator) -> Iterator[tuple[int, list[int]]]:
    """Every row meets every other: rows in a random order, the others in a fresh one for each."""
    for i in torch.randperm(k, generator=rng).tolist():
        yield i, [j for j in torch.randperm(k, generator=rng).tolist() if j != i]


def cosine(product: float, a: float, b: float) -> float:
    """From an inner product and two squared lengths; 0 where a row is nothing."""
    return float(product / (a * b) ** 0.5) if a > 0 and b > 0 else 0.0


def drawn_together(
    products: Matrix, lam: float, order: Order, test_conflicts: bool = True
) -> Mixing:
    """x_i <- x_i - 2 lam (x_i - x_j) at each meeting where <x_i, x_j> < 0; x_j as it now is.

    Every row has one turn. `now` holds the inner products of the rows as they are; in a turn only
    row i changes, in place. What the turns made of the rows comes from `unrolled` at the end.
    """
    from scipy.linalg.blas import daxpy  # y += a x in place, in one call

    k, keep, take = len(products), 1 - 2 * lam, 2 * lam
    now = np.ascontiguousarray(products, dtype=np.float64).copy()
    rows, squares = list(now), now.diagonal().tolist()
    conflicts: list[tuple[int, int, float]] = []
    times, turns = [0] * k, dict[int, list[int]]()
    for i, others in order:
        row, square, scale = rows[i].copy(), squares[i], 1.0  # the products are scale * row
        seen = memoryview(row)  # numbers of it, quicker than numpy's
        turns[i] = met = []
        for j in others:
            product = seen[j]
            if product < 0:
                times[i] += 1
                if k <= RECORDED:
                    conflicts.append((i, j, cosine(scale * product, square, squares[j])))
            elif test_conflicts:
                continue
            met.append(j)
            across = 2 * keep * take * scale * product
            square = keep**2 * square + across + take**2 * squares[j]
            scale *= keep
            if scale < TINY:
                np.multiply(row, scale, row)
                scale = 1.0
            daxpy(rows[j], row, a=take / scale)
        np.multiply(row, scale, row)
        row[i] = squares[i] = square
        now[i] = now[:, i] = row
    return Mixing(unrolled(turns, k, keep, take), conflicts, times)


def unrolled(turns: Mapping[int, Sequence[int]], k: int, keep: float, take: float) -> Matrix:
    """The coefficients after turns in which row i met `turns[i]`: one triangular system.

    With m meetings row i ends as keep^m x_i + sum_t take keep^(m-1-t) x_j(t): of those who had
    their turn before as they ended, of the others as they began. In the order of turns that is
    (1 - lower) C = diagonal + upper.
    """
    from scipy.linalg import solve_triangular

    place = {i: at for at, i in enumerate([*turns, *(set(range(k)) - turns.keys())])}
    powers = keep ** np.arange(k)
    weights, own = np.zeros((k, k)), np.ones(k)
    for i, met in turns.items():
        if met:
            weights[place[i], [place[j] for j in met]] = take * powers[len(met) - 1 :: -1]
            own[place[i]] = keep ** len(met)
    began = np.triu(weights, 1) + np.diag(own)
    ended = solve_triangular(np.eye(k) - np.tril(weights, -1), began, lower=True)
    to = [place[i] for i in range(k)]
    found: Matrix = ended[np.ix_(to, to)]
    return found


def projected(products: Matrix, order: Order) -> Mixing:
    """x_i <- x_i - <x_i, x_j>/|x_j|^2 x_j at each meeting where <x_i, x_j> < 0; x_j unchanged."""
    from scipy.linalg.blas import daxpy

    k = len(products)
    rows = list(np.ascontiguousarray(products, dtype=np.float64))
    squares = products.diagonal().tolist()
    coefficients, times = np.eye(k), [0] * k
    conflicts: list[tuple[int, int, float]] = []
    for i, others in order:
        row, square, own = rows[i].copy(), squares[i], coefficients[i]
        seen = memoryview(row)
        for j in others:
            product = seen[j]
            if product < 0:
                times[i] += 1
                if k <= RECORDED:
                    conflicts.append((i, j, cosine(product, square, squares[j])))
                share = product / squares[j]
                own[j] -= share
                square -= share * product
                daxpy(rows[j], row, a=-share)
    return Mixing(coefficients, conflicts, times)
