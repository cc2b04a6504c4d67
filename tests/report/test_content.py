import json

import pytest

from feddg.report.charts import Chart, Series
from feddg.report.compare import compared
from feddg.report.content import content
from feddg.report.groups import grouped
from tests.report.folders import ENVIRONMENT, bench, written
from tests.report.stored import stored


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return bench(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def found(runs):
    return json.loads(json.dumps(content(runs), allow_nan=False))


def row(found, name):
    return next(r for r in found["groups"][0]["rows"] if r["name"] == name)


def test_a_number_with_the_runs_behind_it(found):
    """fedavg on m15, 60 and 64: 62 ± 2, the last of three rounds."""
    cell = row(found, "fedavg")["cells"][1]
    assert cell["number"] == {"mean": pytest.approx(62), "error": pytest.approx(2), "n": 2}
    assert [s["value"] for s in cell["seeds"]] == [pytest.approx(60), pytest.approx(64)]
    assert [s["round"] for s in cell["seeds"]] == [3, 3]
    assert row(found, "m15 alone")["cells"][1] is None


def test_configuration_and_environment_are_whole_though_stored_once(found, runs):
    for s in row(found, "ga")["cells"][0]["seeds"]:
        run = found["runs"][s["run"]]
        folder = next(r.folder for r in runs if r.key == run["key"])
        text = "\n".join(found["lines"][i] for i in run["config"])
        assert text == (folder / "config.toml").read_text().rstrip("\n")
        assert dict(found["environments"][run["environment"]]) == ENVIRONMENT
        assert run["again"] == f"feddg run --config {folder}/config.toml --out again"
    assert len(found["environments"]) == 1
    assert len(found["lines"]) == len(set(found["lines"]))


def test_time_and_bytes_of_a_run(found):
    """Three rounds of half a second, a megabyte up and two down."""
    assert {k: row(found, "ga")[k] for k in ("seconds", "up", "down")} == {
        "seconds": 1.5, "up": 3_000_000, "down": 6_000_000,
    }  # fmt: skip


def test_what_each_row_reveals(found):
    assert row(found, "ga")["reveals"]["sees"] == "numbers"
    assert [n for n, _ in row(found, "ga")["reveals"]["sends"]] == ["model", "ga"]
    assert row(found, "fedavg")["reveals"]["sees"] == "sums"
    assert row(found, "m15 alone")["reveals"] == {"sends": [], "sees": "nothing"}


def test_p_values_are_those_of_feddg_compare(found, runs):
    [group] = grouped(runs)
    tests = {t["baseline"]: t["p"] for t in found["groups"][0]["tests"]}
    assert set(tests) == {"fedavg", "ga", "fedprox(mu=0.01)"}
    ours = dict(zip([r["name"] for r in found["groups"][0]["rows"]],
                    tests["fedavg"]["t-test, Holm"], strict=True))  # fmt: skip
    theirs = {r.method: r.t_holm for r in compared(group, "fedavg").rows}
    assert ours["ga"] == theirs["ga"]
    assert ours["fedavg"] is None
    assert ours["m15 alone"] is None


def test_other_protocols_are_other_groups_and_unfinished_runs_are_named(tmp_path, runs):
    more = [stored("fedavg", "m0", folder=tmp_path, share=0.5)]
    cut = stored("fedavg", "m0", accuracies=(0.5,), rounds=9, folder=tmp_path / "cut")
    for run in (*more, cut):
        written(run)
    both = content([*runs, *more, cut])
    assert [len(g["rows"]) for g in both["groups"]] == [4, 1]
    facts = dict(both["groups"][1]["facts"])
    assert facts["held out at home"] == "50% of each site"
    assert facts["unlike its protocol"] == "rounds=1, share=0.5"
    assert both["left"] == [cut.key]


def test_figures_are_passed_on_without_what_is_empty_or_infinite(runs):
    line = Series("a", ("n", "m"), (1 / 3, float("inf")))
    chart = Chart("key", "title", "bar", "x", "", (line,), reference=0.0)
    [passed] = content(runs, [chart])["figures"]
    assert passed["series"] == [{"name": "a", "x": ["n", "m"], "y": [0.33333, None]}]
    assert passed["reference"] == 0.0
    assert "note" not in passed
