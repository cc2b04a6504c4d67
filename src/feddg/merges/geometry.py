"""Merges from inner products alone: the Gram matrix X X', and what is decided from it.

The rows of X are updates. Rules that only mix rows (PPDG, PCGrad) never touch X again: they track
coefficients over K x K numbers, and one pass `c @ X` carries the decision out.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor

Matrix = NDArray[np.float64]
Order = Iterable[tuple[int, Sequence[int]]]  # each row in turn, with those it meets

# Measured with 1 and 2 threads on 10 and 100 rows (Zen 4). Shorter blocks add up more exactly but
# cost calls; a batch of products keeps all threads busy; panels of rows, of a size that matrix
# kernels like, skip what symmetry gives for nothing.
BLOCK = 4096  # columns of one product
BATCH = 64  # products of one call
PANEL = 52  # rows

RECORDED = 64  # sites up to which the record names every pair


def gram(x: Tensor, cut: slice = slice(None)) -> Tensor:
    """X X' of the whole rows or of one slice of them, in float64 and in one pass.

    Products of float32 rows are float32 inside a block of columns; their sum is float64.
    """
    x = x[:, cut]
    total = torch.zeros(len(x), len(x), dtype=torch.float64, device=x.device)
    whole = x.shape[1] - x.shape[1] % BLOCK
    for start in range(0, whole, BATCH * BLOCK):
        part = x[:, start : min(start + BATCH * BLOCK, whole)]
        add_products(total, part.unflatten(1, (-1, BLOCK)).transpose(0, 1))
    add_products(total, x[None, :, whole:])
    return total.triu() + total.triu(1).T


def add_products(total: Tensor, blocks: Tensor) -> None:
    """Adds every block's X X' to `total`: the upper triangle, and some more on the way."""
    for top in range(0, len(total), PANEL):
        rows = slice(top, top + PANEL)
        products = blocks[:, rows] @ blocks[:, top:].mT
        total[rows, top:] += products.sum(0, dtype=torch.float64)


@dataclass(frozen=True, eq=False)
class Mixing:
    """Row i became sum_j coefficients[i, j] x_j; (i, j, cosine) for every conflict met."""

    coefficients: Matrix
    conflicts: list[tuple[int, int, float]] = field(default_factory=list)

    def combined(self, shares: Tensor) -> Tensor:
        """What the weighted sum of the mixed rows takes of each row of X."""
        return shares @ torch.from_numpy(self.coefficients).to(shares)

    def told(self, sites: Sequence[str]) -> dict[str, Any]:
        """For the record, by the names of the sites; what is zero is left out.

        With very many sites: how often each gave way, and what it kept of its own.
        """
        if len(sites) > RECORDED:
            times = Counter(sites[i] for i, _, _ in self.conflicts)
            kept = dict(zip(sites, self.coefficients.diagonal().tolist(), strict=True))
            return {"conflicts": dict(times), "mixing": kept}
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

    `state` holds [inner products | coefficients] of the rows as they now are; both are linear in
    row i, but for its own square.
    """
    k, keep, take = len(products), 1 - 2 * lam, 2 * lam
    state = np.hstack([products, np.eye(k)])
    conflicts: list[tuple[int, int, float]] = []
    for i, others in order:
        row = state[i].copy()
        for j in others:
            if row[j] < 0:
                conflicts.append((i, j, cosine(row[j], row[i], state[j, j])))
            elif test_conflicts:
                continue
            square = keep**2 * row[i] + 2 * keep * take * row[j] + take**2 * state[j, j]
            row = keep * row + take * state[j]
            row[i] = square
        state[i] = row
        state[:, i] = row[:k]
    return Mixing(state[:, k:], conflicts)


def projected(products: Matrix, order: Order) -> Mixing:
    """x_i <- x_i - <x_i, x_j>/|x_j|^2 x_j at each meeting where <x_i, x_j> < 0; x_j unchanged."""
    coefficients = np.eye(len(products))
    conflicts: list[tuple[int, int, float]] = []
    for i, others in order:
        row, square = products[i].copy(), products[i, i]
        for j in others:
            if row[j] < 0:
                conflicts.append((i, j, cosine(row[j], square, products[j, j])))
                share = row[j] / products[j, j]
                coefficients[i, j] -= share
                square -= share * row[j]
                row -= share * products[j]
    return Mixing(coefficients, conflicts)
