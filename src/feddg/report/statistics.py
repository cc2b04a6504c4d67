"""Is one method better than another, or is it chance? Paired tests, ranks, corrections.

What no test can answer (one pair, no spread, NaN) is refused in a sentence, never a number.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import erfc, inf, isfinite, sqrt
from statistics import fmean, stdev

import numpy as np

from feddg.errors import ConfigError, within

EXACT = 50  # pairs up to which Wilcoxon's distribution is counted out


class Untestable(ConfigError):
    """There is no honest p-value for these numbers."""


def differences(a: Sequence[float], b: Sequence[float]) -> list[float]:
    """a_i - b_i. Twins of floating-point rounding count as equal."""
    if len(a) != len(b):
        raise Untestable(
            f"a paired test needs as many numbers on both sides, not {len(a)} and {len(b)}"
        )
    if not all(map(isfinite, (*a, *b))):
        raise Untestable("a paired test needs numbers, and one of these is NaN or infinite")
    if len(a) < 2:
        raise Untestable(
            f"a paired test needs two pairs at least, and there is {len(a)}; run more seeds"
            " (--seeds) or more targets"
        )
    return [0.0 if abs(x - y) <= 1e-12 * max(abs(x), abs(y)) else x - y
            for x, y in zip(a, b, strict=True)]  # fmt: skip


def paired_t(a: Sequence[float], b: Sequence[float]) -> float:
    """Two-sided p of Student's paired t-test: t = mean(d) / (s_d / sqrt(n)), n - 1 degrees."""
    from scipy.special import stdtr

    d = differences(a, b)
    spread = stdev(d)
    if spread <= 1e-12 * max(map(abs, d)):
        raise Untestable(
            f"all {len(d)} differences are {d[0]:g}: without spread there is no t-test"
        )
    t = fmean(d) / (spread / sqrt(len(d)))
    return float(2 * stdtr(len(d) - 1, -abs(t)))


def wilcoxon(a: Sequence[float], b: Sequence[float]) -> float:
    """Two-sided p of Wilcoxon's signed-rank test; pairs without a difference are left out.

    Up to `EXACT` pairs all 2^n signs are counted, also where ranks are tied (mid-ranks); beyond
    it is the normal approximation, whose variance sum r^2 / 4 allows for ties.
    """
    d = [v for v in differences(a, b) if v]
    if not d:
        raise Untestable("no pair differs: there is nothing to rank")
    ranks = midranks([float(f"{abs(v):.9g}") for v in d])  # 82.4 - 81.4 ties with 1
    plus = sum(r for r, v in zip(ranks, d, strict=True) if v > 0)
    tail = min(plus, sum(ranks) - plus)
    if len(d) > EXACT:
        z = (tail - sum(ranks) / 2) / sqrt(sum(r * r for r in ranks) / 4)
        return erfc(-z / sqrt(2))
    return min(1.0, 2 * below(ranks, tail))


def below(ranks: Sequence[float], most: float) -> float:
    """P(sum of ranks with a plus <= most), each sign a fair coin: how many subsets sum to what."""
    halves = [round(2 * r) for r in ranks]  # mid-ranks are whole or half
    ways = np.zeros(sum(halves) + 1)
    ways[0] = 1
    for r in halves:
        ways[r:] = ways[r:] + ways[:-r]
    return float(ways[: round(2 * most) + 1].sum() / ways.sum())


def midranks(values: Sequence[float]) -> list[float]:
    """1 for the smallest; equals share the mean of their ranks."""
    order = sorted(values)
    return [order.index(v) + (order.count(v) + 1) / 2 for v in values]


def holm(p: Sequence[float]) -> list[float]:
    """Holm's step-down correction: the i-th smallest of m, times m - i + 1, never decreasing."""
    order = sorted(range(len(p)), key=lambda i: p[i])
    found, least = [0.0] * len(p), 0.0
    for place, i in enumerate(order):
        least = max(least, min(1.0, (len(p) - place) * p[i]))
        found[i] = least
    return found


def average_ranks(scores: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """{method: a score per target} -> the mean of its ranks; 1 is the best, the highest score."""
    columns = blocks(scores)
    ranks = [midranks([-v for v in column]) for column in columns]
    return {name: fmean(r[i] for r in ranks) for i, name in enumerate(scores)}


def blocks(scores: Mapping[str, Sequence[float]]) -> list[tuple[float, ...]]:
    if len(scores) < 2:
        raise Untestable("ranks compare two methods at least")
    if len({len(v) for v in scores.values()}) > 1 or not all(scores.values()):
        raise Untestable("ranks need every method's score on the same targets")
    if not all(isfinite(v) for values in scores.values() for v in values):
        raise Untestable("ranks need numbers, and one of these is NaN or infinite")
    return list(zip(*scores.values(), strict=True))


def friedman(scores: Mapping[str, Sequence[float]]) -> float:
    """p of Friedman's test that all methods rank alike: chi^2 of k - 1 degrees, tie-corrected.

    chi^2 = 12 N / (k (k + 1)) (sum R_j^2 - k (k + 1)^2 / 4) / (1 - sum (t^3 - t) / (N (k^3 - k)))
    """
    from scipy.special import chdtrc

    columns, k = blocks(scores), len(scores)
    ranks = average_ranks(scores).values()
    spread = sum(r * r for r in ranks) - k * (k + 1) ** 2 / 4
    tied = sum(t**3 - t for column in columns for t in map(column.count, set(column)))
    free = 1 - tied / (len(columns) * (k**3 - k))
    if free <= 0:
        raise Untestable("every method scores the same on every target: there is nothing to rank")
    chi = 12 * len(columns) / (k * (k + 1)) * spread / free
    return float(chdtrc(k - 1, max(chi, 0.0)))


def critical_difference(methods: int, targets: int, alpha: float = 0.05) -> float:
    """Nemenyi's: average ranks further apart differ. q sqrt(k (k + 1) / 6N).

    q is the studentised range of k groups and infinite degrees of freedom, over sqrt(2).
    """
    from scipy.stats import studentized_range

    within("alpha", alpha, 0, 1, above=True)
    if methods < 2 or targets < 1:
        raise Untestable("a critical difference is of two methods and a target at least")
    q = float(studentized_range.ppf(1 - alpha, methods, inf)) / sqrt(2)
    return q * sqrt(methods * (methods + 1) / (6 * targets))


@dataclass(frozen=True)
class Ranking:
    """Average ranks, the best first, and which methods the data do not tell apart."""

    ranks: Mapping[str, float]
    targets: int
    difference: float  # Nemenyi's critical one
    p: float | None  # Friedman's
    alpha: float = 0.05

    @staticmethod
    def of(scores: Mapping[str, Sequence[float]], alpha: float = 0.05) -> "Ranking":
        ranks = sorted(average_ranks(scores).items(), key=lambda item: item[1])
        targets = len(blocks(scores))
        try:
            p = friedman(scores)
        except Untestable:
            p = None
        difference = critical_difference(len(scores), targets, alpha)
        return Ranking(dict(ranks), targets, difference, p, alpha)

    @property
    def alike(self) -> list[tuple[str, ...]]:
        """The longest runs of methods within one critical difference: the bars of the diagram."""
        names = list(self.ranks)
        ends = [max(j for j, b in enumerate(names) if self.near(a, b)) for a in names]
        grown = [True, *(later > before for before, later in pairwise(ends))]
        return [tuple(names[i : end + 1])
                for i, (end, new) in enumerate(zip(ends, grown, strict=True))
                if new and end > i]  # fmt: skip

    def near(self, a: str, b: str) -> bool:
        return abs(self.ranks[a] - self.ranks[b]) <= self.difference
