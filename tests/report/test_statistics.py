"""Statistics worked by hand and against scipy's."""

from math import inf, nan, sqrt

import numpy as np
import pytest

from feddg.report.statistics import (
    Ranking,
    Untestable,
    average_ranks,
    critical_difference,
    friedman,
    holm,
    midranks,
    paired_t,
    wilcoxon,
)

RNG = np.random.default_rng(7)
SAMPLES = [(RNG.normal(80, 3, n), RNG.normal(79, 3, n)) for n in (2, 3, 5, 12, 30)]


def test_paired_t_by_hand():
    """d = 1, 3: mean 2, s = √2, so t = 2 / (√2/√2) = 2 with one degree of freedom.

    There t is Cauchy's: p = 1 - 2 atan(2)/π = 0.2952.
    """
    assert paired_t([5, 9], [4, 6]) == pytest.approx(1 - 2 * np.arctan(2) / np.pi)
    assert paired_t([4, 6], [5, 9]) == paired_t([5, 9], [4, 6])


def test_paired_t_of_no_mean_difference_is_sure_of_nothing():
    """d = -1, 1: t = 0, p = 1."""
    assert paired_t([0, 2], [1, 1]) == pytest.approx(1)


@pytest.mark.parametrize("pair", SAMPLES, ids=lambda pair: str(len(pair[0])))
def test_against_scipy(pair):
    from scipy import stats

    a, b = pair
    assert paired_t(list(a), list(b)) == pytest.approx(stats.ttest_rel(a, b).pvalue, rel=1e-9)
    exact = stats.wilcoxon(a, b, method="exact").pvalue
    assert wilcoxon(list(a), list(b)) == pytest.approx(exact, rel=1e-9)


def test_wilcoxon_by_hand():
    """Three differences, all positive: a rank sum of 0 is one of 2³ = 8 sign patterns; 2/8.

    With the smallest one turned round it is the sums 0 and 1, on both sides: 2·2/8.
    """
    assert wilcoxon([2, 3, 4], [1, 1, 1]) == pytest.approx(0.25)
    assert wilcoxon([0, 3, 4.5], [1, 1, 1]) == pytest.approx(0.5)


def test_wilcoxon_with_ties_and_zeros_by_hand():
    """d = 0, 1, 1, -2: the zero is dropped; ranks 1.5, 1.5, 3; W- = 3 = W+.

    Sums <= 3 of subsets of {1.5, 1.5, 3}: 0, 1.5, 1.5, 3 and 3: 5 of 8; doubled, at most 1.
    """
    assert wilcoxon([5, 2, 2, 1], [5, 1, 1, 3]) == 1


def test_wilcoxon_sees_ties_through_rounding():
    """d = 1, 1, -1, all of rank 2: W- = 2; sums <= 2: 0 and three of 2, of 8; doubled: 1.

    82.4 - 81.4 is 1 + 1.4e-14: ranked apart, the minus would be the smallest, and p = 0.5.
    """
    assert wilcoxon([82.4, 81.4 + 1, 80.3], [81.4, 81.4, 81.3]) == 1


def test_wilcoxon_of_many_pairs_is_near_scipys_approximation():
    from scipy import stats

    a, b = np.round(RNG.normal(3, 10, 80)), np.round(RNG.normal(0, 10, 80))
    theirs = stats.wilcoxon(a, b, method="asymptotic", correction=False).pvalue
    assert wilcoxon(list(a), list(b)) == pytest.approx(theirs, rel=1e-6)


@pytest.mark.parametrize("test", [paired_t, wilcoxon])
@pytest.mark.parametrize(
    ("a", "b", "why"),
    [
        ([1.0], [2.0], "two pairs at least, and there is 1; run more seeds"),
        ([], [], "there is 0"),
        ([1.0, nan], [1.0, 2.0], "NaN"),
        ([1.0, 2.0], [inf, 2.0], "infinite"),
        ([1.0, 2.0], [1.0], "not 2 and 1"),
    ],
)
def test_what_cannot_be_tested_is_refused(test, a, b, why):
    with pytest.raises(Untestable, match=why):
        test(a, b)


def test_no_spread_is_refused():
    with pytest.raises(Untestable, match="all 3 differences are 0"):
        paired_t([1, 2, 3], [1, 2, 3])
    with pytest.raises(Untestable, match="all 2 differences are 1"):
        paired_t([81.3, 82.4], [80.3, 81.4])  # 1 up to rounding
    with pytest.raises(Untestable, match="no pair differs"):
        wilcoxon([1, 0.1 + 0.2], [1, 0.3])


def test_holm_by_hand():
    """.01·3 = .03; .03·2 = .06; .04·1 = .04, but not below the one before: .06."""
    assert holm([0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.03, 0.06])
    assert holm([0.9, 0.8]) == [1, 1]
    assert holm([]) == []


def test_ranks_share_their_places():
    """Of 3, 1, 3, 7: 1 is first, the 3s second and third, 7 fourth."""
    assert midranks([3, 1, 3, 7]) == [2.5, 1, 2.5, 4]


def test_average_ranks_by_hand():
    """On the first target x, y, z are 1st, 2nd, 3rd; on the second x and y share 1 and 2."""
    found = average_ranks({"x": [90, 80], "y": [85, 80], "z": [70, 60]})
    assert found == {"x": 1.25, "y": 1.75, "z": 3}


def test_friedman_by_hand():
    """Three targets, each ranks x, y, z alike: R = 1, 2, 3; Σ R² = 14, k(k+1)²/4 = 12.

    χ² = 12·3/12 · 2 = 6 with two degrees: p = exp(-3).
    """
    scores = {"x": [3, 6, 9], "y": [2, 5, 8], "z": [1, 4, 7]}
    assert friedman(scores) == pytest.approx(np.exp(-3))


def test_friedman_against_scipys_with_ties():
    from scipy import stats

    rows = np.round(RNG.normal(0, 1, (4, 9)) * 2) / 2
    scores = {str(i): list(row) for i, row in enumerate(rows)}
    assert friedman(scores) == pytest.approx(stats.friedmanchisquare(*rows).pvalue, rel=1e-9)


@pytest.mark.parametrize(("k", "q"), [(2, 1.960), (3, 2.343), (5, 2.728), (10, 3.164)])
def test_critical_difference_has_the_quantiles_that_are_tabled(k, q):
    """q_0.05 as statistics books table it, times √(k(k+1)/6N)."""
    assert critical_difference(k, 6) == pytest.approx(q * sqrt(k * (k + 1) / 36), rel=4e-4)


def test_what_is_alike_is_within_the_difference():
    """Ranks 1, 2, 2.5, 4 and a difference of 1.5: {1,2,2.5} and {2.5,4}; {2,2.5} lies within."""
    ranking = Ranking({"w": 1, "x": 2, "y": 2.5, "z": 4}, 6, 1.5, None)
    assert ranking.alike == [("w", "x", "y"), ("y", "z")]
    assert Ranking({"w": 1, "x": 3}, 6, 1.5, None).alike == []


def test_a_ranking_is_sorted_and_says_friedmans_p():
    found = Ranking.of({"z": [1, 4, 7], "x": [3, 6, 9], "y": [2, 5, 8]})
    assert list(found.ranks.items()) == [("x", 1), ("y", 2), ("z", 3)]
    assert found.p == pytest.approx(np.exp(-3))
    assert found.difference == pytest.approx(2.343 * sqrt(12 / 18), rel=1e-3)
    assert Ranking.of({"x": [1.0, 2.0], "y": [1.0, 2.0]}).p is None


def test_ranks_of_unequal_rows_are_refused():
    with pytest.raises(Untestable, match="on the same targets"):
        average_ranks({"x": [1, 2], "y": [1]})
    with pytest.raises(Untestable, match="two methods"):
        average_ranks({"x": [1, 2]})
    with pytest.raises(Untestable, match="NaN"):
        average_ranks({"x": [1, nan], "y": [1, 2]})
    with pytest.raises(Untestable, match="nothing to rank"):
        friedman({"x": [1.0], "y": [1.0]})
    with pytest.raises(Untestable, match="two methods and a target"):
        critical_difference(1, 5)
