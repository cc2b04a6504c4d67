"""Which round is reported, worked by hand."""

from dataclasses import replace

import pytest

from feddg.benchmark.selection import RULES, rule
from feddg.errors import ConfigError
from feddg.tasks import Classification, Regression

TASK = Classification(("x", "o"))


def record(k, val=(), validation=(), test=()):
    parts = {"val": val, "validation": validation, "test": test}
    scores = {f"{p}/{i}": {"accuracy": v} for p, vs in parts.items() for i, v in enumerate(vs)}
    return {"round": k, "scores": scores}


RECORDS = [
    record(0, (0.5, 0.7), (0.9,), (0.1,)),  # means 0.6, 0.9, 0.1
    record(1, (0.8, 0.6), (0.2,), (0.4,)),  # 0.7, 0.2, 0.4
    record(2, (0.7, 0.7), (0.3,), (0.9,)),  # 0.7, 0.3, 0.9
    record(3, (0.1, 0.1), (0.4,), (0.2,)),  # 0.1, 0.4, 0.2
]


@pytest.mark.parametrize(
    ("name", "round"), [("last", 3), ("source-val", 1), ("domain-val", 0), ("oracle", 2)]
)
def test_each_rule_picks_by_its_own_data_and_the_earliest_of_equals(name, round):
    assert rule(name).pick(RECORDS, TASK)["round"] == round


def test_only_oracle_looks_at_the_target():
    other = [{**r, "scores": {**r["scores"], "test/0": {"accuracy": 0.0}}} for r in RECORDS]
    for name in RULES:
        same = rule(name).pick(other, TASK)["round"] == rule(name).pick(RECORDS, TASK)["round"]
        assert same == (name != "oracle")


def test_a_metric_of_which_less_is_more():
    task = replace(TASK, higher_is_better=False)
    assert rule("source-val").pick(RECORDS, task)["round"] == 3


def test_a_site_where_the_metric_is_not_defined_is_left_out():
    """An AUC needs both classes: the mean is over the sites that have one."""
    task = replace(TASK, metric="auc")
    known = {"scores": {"val/0": {"auc": 0.6}, "val/1": {"accuracy": 1.0}, "val/2": {"auc": None}}}
    assert rule("source-val").score(known, task) == 0.6
    assert rule("source-val").score({"scores": {}}, task) is None


def test_without_any_score_the_last_round():
    records = [{"round": k, "scores": {}} for k in range(3)]
    assert rule("source-val").pick(records, Regression())["round"] == 2


def test_what_a_rule_needs_is_checked_before_training():
    rule("last").check([])
    rule("source-val").check(["val/a", "test/c"])
    for name, remedy in (
        ("source-val", "--share"),
        ("domain-val", "--val"),
        ("oracle", "--target"),
    ):
        with pytest.raises(ConfigError, match=remedy):
            rule(name).check(["other/a"])


def test_a_misspelt_rule():
    with pytest.raises(ConfigError, match="did you mean 'oracle'"):
        rule("orcale")


def test_no_rounds():
    with pytest.raises(ConfigError, match="no rounds"):
        rule("last").pick([], TASK)
