"""The average over data sets, worked by hand."""

from dataclasses import replace

import pytest

from feddg.benchmark import overall as module
from feddg.benchmark.overall import overall
from feddg.benchmark.papers import find
from feddg.benchmark.reproduce import plan

TABLE1 = find("ga", "table1")


LEVEL = {"pacs": 80.0, "office-home": 60.0, "terra-incognita": 40.0}


def given(wanted, _):
    """FedAvg: 80, 60 and 40 on the three data sets in seed 0, and 3 more each in seed 1."""
    base = LEVEL[wanted.item.data]
    return {row.key: {t: {0: base, 1: base + 3} for t in wanted.columns} for row in wanted.rows}


@pytest.fixture
def plans(monkeypatch):
    monkeypatch.setattr(module, "scores", given)
    return [plan(item, methods=("fedavg",)) for item in TABLE1]


def test_by_hand(plans, tmp_path):
    """Seeds average 60 and 63: 61.5 with an error of √(4.5/2) = 1.5; the paper has 63.10."""
    found = overall(plans, tmp_path)
    assert found is not None
    assert found.title.startswith("GA, Table 1: the average over ")
    assert found.body == (
        ("FedAvg", "paper", "63.10"),
        ("", "ours", "61.50 ± 1.50 (n=2)"),
        ("", "difference", "-1.60"),
    )


def test_only_over_all_of_its_data_sets_and_targets(plans, tmp_path):
    assert overall(plans[:2], tmp_path) is None
    assert overall(plans[:1], tmp_path) is None
    assert overall([*plans[:2], replace(plans[2], targets=plans[2].targets[:1])], tmp_path) is None
    assert overall([plan(i) for i in find("csac", "table2")], tmp_path) is None


def test_a_seed_that_one_data_set_lacks_does_not_count(plans, tmp_path, monkeypatch):
    def lacking(wanted, root):
        found = given(wanted, root)
        if wanted.item.data == "pacs":
            for by_seed in found["FedAvg", ""].values():
                del by_seed[1]
        return found

    monkeypatch.setattr(module, "scores", lacking)
    found = overall(plans, tmp_path)
    assert found is not None
    assert found.body[1] == ("", "ours", "60.00 (n=1)")
