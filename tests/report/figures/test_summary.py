"""Ranks, time and bytes, from records made by hand."""

import pytest

from feddg.report.figures.summary import cost, ranks
from tests.report.stored import record, stored


def test_the_critical_difference_diagram():
    """On both targets a, b, c are 1st, 2nd, 3rd: ranks 1, 2, 3, of which q is 2.343:

    the difference is 2.343 √(3·4/12) = 2.34: all are alike, one bar from 1 to 3.
    """
    runs = [
        stored(m, t, accuracies=(a,))
        for t in ("m0", "m15")
        for m, a in (("fedavg", 0.9), ("fedprox", 0.8), ("csac", 0.7))
    ]
    chart = ranks(runs)
    places = {s.name: (s.x, s.y) for s in chart.series}
    assert places["fedavg"] == ((1.0,), (3.0,))
    assert places["csac"] == ((3.0,), (1.0,))
    assert places["not told apart"][0] == (1.0, 3.0)
    assert "2.34" in chart.x


def test_cost_is_the_mean_over_rounds():
    """Rounds of 1 and 3 s, of another seed 2 and 4 s: 2 and 3 s, 2.5 ± 0.5; 1 MB up, 2 MB down."""
    runs = [
        stored("fedavg", seed=s, records=tuple(
            record("m0", 0.5, k, seconds=float(v)) for k, v in enumerate(took)
        ))
        for s, took in enumerate(((1, 3), (2, 4)))
    ]  # fmt: skip
    time, sent = cost(runs)
    assert (time.series[0].x, time.series[0].y) == (("fedavg",), (2.5,))
    assert time.series[0].error == pytest.approx((0.5,))
    assert {s.name: s.y for s in sent.series} == {"to the sites": (2.0,), "from them": (1.0,)}
