"""Accuracy figures from records made by hand."""

import pytest

from feddg.report.figures.accuracy import csac_lambda, curves, ppdg_lambda, rounds, sources
from tests.report.stored import record, stored


def points(series):
    return dict(zip(series.x, series.y, strict=True))


def test_rounds_are_means_over_seeds():
    """Seeds 0.6, 0.8 and 0.7, 0.9: means 65 and 85, each ± 10/√2/√2 = 5; a round later."""
    runs = [
        stored("fedavg", seed=0, accuracies=(0.6, 0.8)),
        stored("fedavg", seed=1, accuracies=(0.7, 0.9)),
        stored("csac", seed=0, accuracies=(0.5, None)),
        stored("fedavg", target="m15", accuracies=(0.1, 0.2)),
        stored("fedavg", accuracies=(0.99, 0.99), pooled=True),
        stored("fedavg", accuracies=(0.6, 0.8), diagnostics="curves"),  # the same run once more
    ]
    m0, m15 = rounds(runs)
    fedavg, csac = m0.series
    assert (fedavg.name, csac.name) == ("fedavg", "csac")  # a bound is no method
    assert points(fedavg) == pytest.approx({1: 65, 2: 85})
    assert fedavg.error == pytest.approx((5, 5))
    assert points(csac) == {1: 50, 2: None}
    assert csac.error == (None, None)
    assert points(m15.series[0]) == {1: 10, 2: 20}
    assert (m0.x, m0.y) == ("round", "accuracy (%)")


def test_accuracy_by_the_number_of_sources():
    """Two runs with two sources are one point: 60 and 70 are 65 ± 5."""
    runs = [
        stored("csac", sources=("m15",), accuracies=(0.5,)),
        stored("csac", sources=("m15", "m30"), accuracies=(0.6,)),
        stored("csac", sources=("m15", "m30"), seed=1, accuracies=(0.7,)),
        stored("fedavg", sources=("m15",), accuracies=(0.4,)),
        stored("fedavg", sources=("m15",), accuracies=(0.9,), pooled=True),
    ]
    chart = sources(runs)
    by_name = {s.name: s for s in chart.series}
    assert points(by_name["csac"]) == pytest.approx({1: 50, 2: 65})
    assert by_name["csac"].error == pytest.approx((None, 5))
    assert points(by_name["fedavg"]) == {1: 40}


def lambdas(method, values):
    return [
        stored(f"{method}(lam={lam})", target, 0, (accuracy,))
        for lam, by in values.items()
        for target, accuracy in by.items()
    ]


def test_lambda_with_average_targets_and_the_baseline():
    runs = [
        *lambdas("ppdg", {0.2: {"m0": 0.6, "m15": 0.8}, 0.05: {"m0": 0.5, "m15": 0.7}}),
        *(stored("fedavg", t, 0, (0.55,)) for t in ("m0", "m15")),
    ]
    chart = ppdg_lambda(runs)
    by_name = {s.name: s for s in chart.series}
    assert list(by_name) == ["average", "m0", "m15"]
    assert points(by_name["average"]) == pytest.approx({0.05: 60, 0.2: 70})
    assert points(by_name["m15"]) == {0.05: 70, 0.2: 80}
    assert [s.dashed for s in chart.series] == [False, True, True]
    assert chart.reference == pytest.approx(55)


def test_what_else_differs_is_a_line_of_its_own():
    """ga+csac and csac are two lines; without FedAvg there is no reference; 0.6 is the default."""
    runs = [
        *lambdas("csac", {0.2: {"m0": 0.6}}),
        stored("csac", accuracies=(0.7,)),
        stored("ga+csac(lam=0.2)", accuracies=(0.8,)),
        stored("csac", accuracies=(0.1,), sources=("m15",)),  # of fewer sources: another matter
    ]
    chart = csac_lambda(runs)
    by_name = {s.name: points(s) for s in chart.series}
    assert by_name["csac: average"] == pytest.approx({0.2: 60, 0.6: 70})
    assert by_name["ga+csac: average"] == {0.2: 80}
    assert chart.reference is None


def test_curves_have_a_panel_for_every_model_and_a_line_for_every_domain():
    """Of two seeds 0.2 and 0.4: 30 ± 10; the unseen domain is dashed and last."""

    def run(seed, value):
        own = dict.fromkeys(("m0", "m15", "m30"), value)
        found = {"m15": own, "m30": own, "merged": {**own, "m0": 2 * value}}
        only = record("m0", 0.5, sites=["m15", "m30"], curves=found)
        return stored("csac", seed=seed, records=(only,), sources=("m15", "m30"))

    charts = curves([run(0, 0.2), run(1, 0.4), stored("fedavg")])
    assert [c.title for c in charts] == [
        "csac (m15+m30): the model of m15", "csac (m15+m30): the model of m30",
        "csac (m15+m30): the merged model",
    ]  # fmt: skip
    assert [s.name for s in charts[0].series] == ["m15", "m30", "m0"]
    assert [s.dashed for s in charts[0].series] == [False, False, True]
    assert charts[0].series[0].y == pytest.approx((30,))
    assert charts[0].series[0].error == pytest.approx((10,))
    assert charts[2].series[2].y == pytest.approx((60,))
