"""`feddg table` and `feddg compare`: what they print of real runs, and what they refuse."""

import csv
import io
import json

import pytest

from tests.cli.command import feddg, sites


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    from feddg.benchmark.bench import Bench, run

    root = tmp_path_factory.mktemp("tables")
    data = str(sites(root / "clinics"))
    bench = Bench(data=data, methods=("fedavg", "fedprox(mu=5)"), seeds=2, targets=("a", "b"),
                  changes={"rounds": 1})  # fmt: skip
    for _ in run(bench, root / "runs", 1):
        pass
    return root / "runs"


def test_text_has_the_title_and_every_method(capsys, runs):
    said = feddg(capsys, "table", runs)
    assert said.code == 0, said.err
    lines = said.out.splitlines()
    assert lines[0].endswith("selection: last (the last round); 2 seeds; with rounds=1")
    assert [v.split()[1] for v in lines if v.startswith("│")] == ["fedavg", "fedprox(mu=5.0)"]


def test_the_formats_have_the_same_numbers(capsys, runs):
    rows = list(csv.DictReader(io.StringIO(feddg(capsys, "table", runs, "--format", "csv").out)))
    assert {r["target"] for r in rows} == {"a", "b", "average"}
    for kind in ("markdown", "latex", "text"):
        out = feddg(capsys, "table", runs, "--format", kind).out
        assert all(f"{float(r['mean']):.2f}" in out for r in rows), kind


def test_another_rule_is_asked_for_by_name(capsys, runs):
    assert "selection: oracle" in feddg(capsys, "table", runs, "--selection", "oracle").out
    assert "selection: oracle" not in feddg(capsys, "table", runs).out


def test_compare_prints_the_tests(capsys, runs):
    said = feddg(capsys, "compare", runs, "--against", "fedavg")
    assert said.code == 0, said.err
    assert "p (Wilcoxon)" in said.out
    assert "Against fedavg" in said.out
    assert "| fedprox(mu=5.0) |" in feddg(capsys, "compare", runs, "--markdown").out
    [found] = json.loads(feddg(capsys, "compare", runs, "--json").out)
    assert found["against"] == "fedavg"
    assert found["rows"][1]["pairs"] == 4


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (("table", "--format", "latx"), "did you mean 'latex'"),
        (("compare", "--against", "fedporx"), "unknown method among these runs 'fedporx'"),
        (("table", "--selection", "best"), "unknown selection"),
    ],
)
def test_what_is_misspelt_is_one_sentence(capsys, runs, argv, why):
    said = feddg(capsys, argv[0], runs, *argv[1:])
    assert said.code == 2
    assert why in said.err
    assert said.err.count("\n") == 1


def test_no_runs(capsys, tmp_path):
    said = feddg(capsys, "table", tmp_path)
    assert said.code == 2
    assert "there is no run in" in said.err
