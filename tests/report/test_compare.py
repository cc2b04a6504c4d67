"""Comparisons worked by hand, and their table letter by letter."""

import json
from statistics import fmean

import pytest

from feddg.errors import ConfigError
from feddg.report.compare import comparisons
from feddg.report.statistics import holm, paired_t
from tests.report.stored import stored

SCORES = {
    "fedavg": {"m0": (0.70, 0.72), "m15": (0.80, 0.79)},
    "fedprox": {"m0": (0.71, 0.74), "m15": (0.83, 0.83)},
    "csac": {"m0": (0.70, 0.71), "m15": (0.82, 0.79)},
}


def runs(scores=SCORES):
    return [
        stored(method, target, seed, (value,))
        for method, by in scores.items()
        for target, values in by.items()
        for seed, value in enumerate(values)
    ]


def mean(number):
    assert number is not None
    return number.mean


def test_every_number_by_hand():
    """fedprox - fedavg = 1, 2, 3, 4 points: mean 2.5, s² = 5/3, error √(5/12) = 0.645;

    all four positive: Wilcoxon 2/16. csac - fedavg = 0, -1, 2, 0: mean 0.25; of the two that
    differ the minus has rank 1: sums <= 1 in 2 of 4 patterns, p = 1. Holm over two tests
    doubles the smaller p. Ranks by the targets' means, m0: 71, 72.5, 70.5 and m15: 79.5, 83,
    80.5: fedavg 2 and 3, fedprox 1 and 1, csac 3 and 2.
    """
    [found] = comparisons(runs(), "fedavg")
    base, prox, csac = found.rows
    assert (base.method, base.difference, base.t, base.rank) == ("fedavg", None, None, 2.5)
    assert mean(prox.difference) == pytest.approx(2.5)
    assert prox.difference is not None
    assert prox.difference.error == pytest.approx((5 / 12) ** 0.5)
    assert prox.pairs == 4
    assert mean(prox.average) == pytest.approx(fmean((71, 74, 83, 83)))
    assert prox.t == pytest.approx(paired_t([71, 74, 83, 83], [70, 72, 80, 79]))
    assert prox.wilcoxon == pytest.approx(2 / 16)
    assert mean(csac.difference) == pytest.approx(0.25)
    assert csac.wilcoxon == 1
    assert prox.t is not None
    assert csac.t is not None
    assert [prox.t_holm, csac.t_holm] == pytest.approx(holm([prox.t, csac.t]))
    assert [prox.wilcoxon_holm, csac.wilcoxon_holm] == pytest.approx([2 / 8, 1])
    assert [prox.rank, csac.rank] == [1, 2.5]


MARKDOWN = """\
rotated-mnist: accuracy (%) on the domain left out; selection: last (the last round); 2 seeds; \
with rounds=1

| method | average | difference | pairs | p (t) | Holm | p (Wilcoxon) | Holm | rank |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
| fedavg | 75.25 ± 0.25 | – | – | – | – | – | – | 2.50 |
| fedprox | 77.75 ± 0.75 | +2.50 ± 0.65 | 4 | 0.0305 | 0.0609 | 0.1250 | 0.2500 | 1.00 |
| csac | 75.50 ± 0.50 | +0.25 ± 0.63 | 4 | 0.7177 | 0.7177 | 1.0000 | 1.0000 | 2.50 |

Against fedavg, over the (target, seed) cells that both have; two-sided.

Ranks over 2 targets, 1 is the best. Friedman's p: 0.2231. Nemenyi's critical difference at \
0.05: 2.34."""


def test_as_markdown():
    """Friedman: R = 2.5, 1, 2.5; ΣR² = 13.5 - 12 = 1.5; χ² = 12·2/12·1.5 = 3; p = exp(-1.5)."""
    [found] = comparisons(runs(), "fedavg")
    assert found.markdown() == MARKDOWN


def test_pairs_are_the_cells_that_both_have():
    """fedprox lacks seed 1 of m15, and has a target that fedavg lacks."""
    scores = {**SCORES, "fedprox": {"m0": (0.71, 0.74), "m15": (0.83,), "m30": (0.9,)}}
    [found] = comparisons(runs(scores), "fedavg")
    prox = found.rows[1]
    assert prox.pairs == 3
    assert mean(prox.difference) == pytest.approx(2)  # 1, 2 and 3
    assert "Ranks over 2 targets" in found.notes[1]  # nobody else was judged on m30


def test_one_seed_of_one_target_is_refused_in_words():
    scores = {"fedavg": {"m0": (0.7,)}, "csac": {"m0": (0.8,)}}
    [found] = comparisons(runs(scores), "fedavg")
    assert found.rows[1].t is None
    assert mean(found.rows[1].difference) == pytest.approx(10)
    assert "csac, t: a paired test needs two pairs at least" in found.notes[2]
    assert "run more seeds" in found.notes[3]


def test_a_method_alone_has_no_rank():
    [found] = comparisons(runs({"fedavg": SCORES["fedavg"]}), "fedavg")
    assert found.rows[0].rank is None
    assert found.notes[1].startswith("No ranks")


def test_bounds_are_no_methods():
    more = [*runs(), stored("fedavg", "m0", 0, (0.99,), pooled=True)]
    [found] = comparisons(more, "fedavg")
    assert [r.method for r in found.rows] == ["fedavg", "fedprox", "csac"]


def test_however_the_method_is_spelled():
    [found] = comparisons(runs(), "csac(lam=0.6)")
    assert found.against == "csac"
    with pytest.raises(ConfigError, match="did you mean 'fedprox'"):
        comparisons(runs(), "fedporx")
    with pytest.raises(ConfigError, match="known: csac, fedavg, fedprox"):
        comparisons(runs(), "scaffold")


def test_every_protocol_is_a_comparison_of_its_own():
    other = [stored(m, "m0", 0, (0.5,), schedule="short") for m in ("fedavg", "csac")]
    alone = [stored("csac", "m0", 0, (0.5,), selection="oracle")]  # nothing to compare with
    found = comparisons([*runs(), *other, *alone], "fedavg")
    assert [len(c.rows) for c in found] == [3, 2]


def test_as_json():
    [found] = comparisons(runs(), "fedavg")
    values = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert values["rows"][1]["pairs"] == 4
    assert values["rows"][0]["difference"] is None
