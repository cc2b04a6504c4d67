"""Weights, conflicts, gaps and distances from records made by hand."""

import pytest

from feddg.report.figures.traces import (
    conflict_cosine,
    conflict_share,
    conflicts,
    distances,
    gaps,
    layer_weights,
    weights,
)
from tests.report.stored import record, stored

SITES = ["m15", "m30", "m45"]


def traced(method, *traces, seed=0, target="m0", **more):
    lines = tuple(
        record(target, 0.5, k, trace=t, sites=SITES, **more) for k, t in enumerate(traces)
    )
    return stored(method, target, seed, records=lines)


def ga(weights, gaps):
    return {"ga": {"weights": dict(zip(SITES, weights, strict=True)),
                   "gaps": dict(zip(SITES, gaps, strict=True)) if gaps else {}}}  # fmt: skip


def test_weights_over_rounds_are_means_over_seeds():
    """m15 has 0.5 and 0.3 in the last round: 0.4 ± 0.1."""
    first = ga((1 / 3, 1 / 3, 1 / 3), None)
    runs = [
        traced("ga", first, ga((0.5, 0.3, 0.2), (3, 2, 1))),
        traced("ga", first, ga((0.3, 0.4, 0.3), (1, 2, 3)), seed=1),
        traced("fedavg", {"weights": {}}, {}),
    ]
    [chart] = weights(runs)
    m15 = chart.series[0]
    assert [s.name for s in chart.series] == SITES
    assert m15.y == pytest.approx((1 / 3, 0.4))
    assert m15.error == pytest.approx((0, 0.1))


def test_gaps_by_hand():
    """Last gaps 3, 2, 1: mean 2, deviation √(2/3); the other seed's 2, 2, 2: mean 2, 0.

    So 2 ± 0, and √(2/3)/2 ± √(2/3)/2. Around fedprox is a bar beside that.
    """
    first, even = ga((1, 1, 1), None), ga((1, 1, 1), (2, 2, 2))
    runs = [
        traced("ga", first, ga((1, 1, 1), (3, 2, 1))),
        traced("ga", first, even, seed=1),
        traced("ga(step=0.0)", first, ga((1, 1, 1), (6, 6, 6))),
        traced("ga(step=0.0)+fedprox", first, ga((1, 1, 1), (9, 9, 9))),
    ]
    mean, deviation, course = gaps(runs)
    by_name = {s.name: s for s in mean.series}
    assert by_name["ga"].x == ("fedavg", "fedprox")
    assert list(by_name["ga"].y) == [2, None]
    assert list(by_name["ga"].error) == [0, None]
    assert list(by_name["ga(step=0.0)"].y) == [6, 9]
    spread = (2 / 3) ** 0.5 / 2
    found = next(s for s in deviation.series if s.name == "ga")
    assert (found.y[0], found.error[0]) == pytest.approx((spread, spread))
    assert next(s for s in course.series if s.name == "ga").y == (None, 2)


def test_layer_weights_have_a_panel_for_every_layer():
    layers = [{"layers": {"conv": {"m15": a, "m30": 1 - a}}} for a in (0.5, 0.7)]
    other = [{"layers": {"conv": {"m15": a, "m30": 1 - a}}} for a in (0.5, 0.9)]
    [chart] = layer_weights([traced("csac", *layers), traced("csac", *other, seed=1)])
    assert chart.title.endswith("m0 unseen: conv")
    assert chart.series[0].y == pytest.approx((0.5, 0.8))
    assert chart.series[1].y == pytest.approx((0.5, 0.2))
    assert chart.series[2].y == (None, None)  # m45 had no say


def test_conflicts_by_hand():
    """Two of 3·2 meetings conflict, at cosines -0.2 and -0.4; then none."""
    met = {"conflicts": {"m15": {"m30": -0.2}, "m30": {"m15": -0.4}}}
    share, cosine = conflicts([traced("ppdg", met, {"conflicts": {}})])
    assert share.series[0].y == pytest.approx((100 / 3, 0))
    assert cosine.series[0].y == pytest.approx((-0.3, None))


def test_conflicts_of_very_many_sites_are_counts():
    many = {"sites": [str(k) for k in range(100)], "trace": {"conflicts": {"0": 9, "1": 90}}}
    assert conflict_share(many) == pytest.approx(1)
    assert conflict_cosine(many) is None
    assert conflict_share({"sites": ["a"], "trace": {"conflicts": {}}}) is None


def test_distances_are_means_over_sites():
    far = {"conv": {"m15": 1.0, "m30": 2.0, "m45": 3.0}}
    [chart] = distances([traced("ind-average", {}, {}, distances=far)])
    assert chart.series[0].name == "conv"
    assert chart.series[0].y == (2, 2)
