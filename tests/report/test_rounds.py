"""Curves worked by hand."""

import re

import pytest

from feddg.report.groups import grouped
from feddg.report.rounds import averaged, decided, families, insides, leaves, place, series
from feddg.report.rows import rows
from tests.report.folders import bench
from tests.report.stored import record, stored


@pytest.fixture(scope="module")
def group(tmp_path_factory):
    [found] = grouped(bench(tmp_path_factory.mktemp("runs")))
    return found


def test_a_line_is_the_mean_over_seeds_with_its_standard_error(group):
    """fedavg on m15: 60 and 64, so 62 ± (2√2)/√2 = 2 at last, and 10 less a round before."""
    score, loss = families(group, rows(group))
    assert score.name == "accuracy (%), target"
    assert [c.title for c in score.charts] == ["m0", "m15"]
    assert re.fullmatch(r"[\w+.-]+-m0", score.charts[0].key)
    line = next(s for s in score.charts[1].series if s.name == "fedavg")
    assert list(line.x) == [1, 2, 3]
    assert line.y == pytest.approx((42, 52, 62))
    assert line.error == pytest.approx((2, 2, 2))
    assert loss.name == "training loss"
    assert loss.charts[0].series[0].y == (1.0, 0.75, 0.5)


def test_validation_at_the_sources_is_their_mean():
    scores = {"test/m0": {"accuracy": 0.5}, "val/a": {"accuracy": 0.6}, "val/b": {"accuracy": 0.8}}
    [group] = grouped([stored("fedavg", records=(record("m0", 0.5, scores=scores),))])
    found = families(group, rows(group))
    assert [f.name for f in found] == ["accuracy (%), target", "accuracy (%), sources' validation"]
    assert found[1].charts[0].series[0].y == pytest.approx((70,))


def test_a_round_that_nothing_is_known_of_is_a_gap():
    assert series("x", {0: [1.0], 2: [3.0]}).y == (1.0, None, 3.0)
    assert averaged("x", [], lambda r: r["round"]) == []


def test_a_long_curve_is_thinned_and_keeps_its_end():
    line = series("x", {k: [float(k)] for k in range(1000)})
    assert len(line.x) == 201
    assert line.x[-1] == 1000
    assert line.y[-1] == 999.0


def test_what_merges_decided_is_drawn_where_it_changed(group):
    """Only ga's records have a trace. Say of m30: 0.5, 0.6, 0.7 with both seeds."""
    found = insides(rows(group))
    assert [(i.row, i.target) for i in found] == [("ga", "m0"), ("ga", "m15")]
    [kind] = found[0].kinds
    assert kind.name == "Say of each site"
    [chart] = kind.charts
    assert {s.name: s.y for s in chart.series} == {
        "m30": (0.5, 0.6, 0.7), "m45": (0.5, 0.4, pytest.approx(0.3)),
    }  # fmt: skip


def run_of(*traces, **more):
    records = [record("m0", 0.5, k, trace=t, **more) for k, t in enumerate(traces)]
    return [stored("fedavg", records=tuple(records))]


def test_layers_have_a_chart_each_and_what_stays_has_none():
    fixed = {"a": 0.5, "b": 0.5}
    found = decided("x", run_of(
        {"weights": fixed, "layers": {"conv": {"a": 1.0, "b": 0.0}, "head": fixed}},
        {"weights": fixed, "layers": {"conv": {"a": 0.0, "b": 1.0}, "head": fixed}},
    ))  # fmt: skip
    assert [(f.name, [c.title for c in f.charts]) for f in found] == [
        ("Say of each site, by layer", ["conv"])
    ]


def test_two_tables_of_the_same_numbers_are_drawn_once():
    traces = [{"ga": {"weights": {"a": v}}, "weights": {"a": v}} for v in (0.1, 0.9)]
    assert [f.name for f in decided("x", run_of(*traces))] == ["Say of each site"]


def test_conflicts_are_counted():
    """Two pairs in the first round, none in the second."""
    first, *_ = decided("x", run_of(
        {"conflicts": {"a": {"b": -0.1}, "b": {"a": -0.2}}}, {"conflicts": {}}
    ))  # fmt: skip
    assert first.name == "Conflicts met in a round"
    assert first.charts[0].series[0].y == (2.0, 0.0)


def test_diagnostic_curves_are_turned_around_by_domain():
    runs = run_of({}, curves={"a": {"m0": 0.25}, "merged": {"m0": 0.75}})
    other = run_of({}, curves={"a": {"m0": 0.5}, "merged": {"m0": 0.75}})
    records = (*runs[0].records, {**other[0].records[0], "round": 1})
    [found] = decided("x", [stored("fedavg", records=records)])
    assert found.charts[0].title == "m0"
    assert {s.name: s.y for s in found.charts[0].series} == {
        "a": (0.25, 0.5), "merged": (0.75, 0.75),
    }  # fmt: skip


def test_numbers_are_found_wherever_they_stand():
    assert dict(leaves({"a": {"b": 1, "c": [1, 2]}, "d": 2.5, "e": True, "f": None})) == {
        ("a", "b"): 1.0, ("d",): 2.5,
    }  # fmt: skip
    assert place(("tuning_loss",)) == ("tuning_loss", "")
    assert place(("ga", "gaps", "m0")) == ("ga/gaps", "")
    assert place(("layers", "conv", "m0")) == ("layers", "conv")
