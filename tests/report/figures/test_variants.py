"""COPA's bars, from records made by hand."""

import pytest

from feddg.report.figures.common import Lacking
from feddg.report.figures.variants import copa_agreement, copa_collaboration, copa_normalisation
from tests.report.stored import stored


def test_bars_are_averages_over_targets_under_the_papers_names():
    """COPA: 80 and 90 are 85; its variant was not run on m15, so it has no average."""
    runs = [
        stored("copa", "m0", accuracies=(0.8,)),
        stored("copa", "m15", accuracies=(0.9,)),
        stored("copa(branch='none')", "m0", accuracies=(0.7,)),
    ]
    chart = copa_collaboration(runs)
    [bars] = chart.series
    assert bars.x[:2] == ("COPA (CoFC)", "w/o CoFC")
    assert bars.y == pytest.approx((85, None, None, None, None))
    assert "copa(branch='none')" in chart.note
    other = copa_normalisation([*runs, stored("copa(norm='bn')", "m0", accuracies=(0.7,))])
    assert other.series[0].y[0] == pytest.approx(85)
    assert len(other.series[0].x) == 6


def test_a_bar_alone_compares_nothing():
    runs = [stored("copa", "m0", accuracies=(0.8,))]
    with pytest.raises(Lacking, match="copa-fig3 needs runs of two variants"):
        copa_normalisation(runs)


def test_agreement_has_bars_by_target():
    runs = [
        stored("copa-uda", t, accuracies=(a,), task="uda", seed=s)
        for t, s, a in (("m0", 0, 0.8), ("m0", 1, 0.9), ("m15", 0, 0.7))
    ] + [stored("copa-uda(labels='max')", "m0", accuracies=(0.6,), task="uda")]
    chart = copa_agreement(runs)
    biggest, mean = chart.series
    assert (biggest.name, biggest.x, biggest.y) == ("COPA (max)", ("m0", "m15"), (60, None))
    assert mean.y == pytest.approx((85, 70))
    assert mean.error == pytest.approx((5, None))
