"""Paper and ours side by side: verdicts worked by hand, the table letter by letter."""

import pytest

from feddg.benchmark import beside, sheets
from feddg.benchmark.beside import Compared, side_by_side
from feddg.benchmark.papers import find
from feddg.benchmark.published import Printed
from feddg.benchmark.reproduce import plan
from feddg.benchmark.sheets import sheet
from feddg.benchmark.table import Number

[TABLE3] = find("csac", "table3")
[COPA] = find("copa", "table7")


def made(paper, ours, error=""):
    return Compared("x", "x", {"a": Printed(paper, error)}, {"a": Number(ours, 0.1, 3)})


@pytest.mark.parametrize(
    ("row", "difference", "verdict"),
    [
        (made("90.00", 90.25, "0.25"), 0.25, "within"),  # on the edge
        (made("90.00", 89.74, "0.25"), -0.26, "outside"),
        (made("90.00", 90.26, "0.25"), 0.26, "outside"),
        (made("90.0", 90.0), 0.0, None),  # the paper has no ±
        (Compared("x", "x", {}, {"a": Number(1, None, 1)}), None, None),
        (Compared("x", "", {"a": Printed("1", "1")}, {}), None, None),
    ],
)
def test_difference_and_verdict(row, difference, verdict):
    assert row.difference("a") == (None if difference is None else pytest.approx(difference))
    assert row.verdict("a") == verdict


OURS = {
    ("FedAvg", ""): {"m0": {0: 82.0, 1: 83.0}, "m75": {0: 86.2, 1: 86.4}},
    ("CSAC", ""): {"m0": {0: 80.0}},
}

GOLDEN = """\
CSAC, Table 3: Rotated MNIST; selection: last (the last round); 2 seeds

| method |  | m0 | m75 | average |
| --- | --- | ---: | ---: | ---: |
| FedAvg | paper | 82.60 ± 0.44 | 86.30 ± 0.10 | – |
|  | ours | 82.50 ± 0.50 | 86.30 ± 0.10 | 84.40 ± 0.30 |
|  | difference | -0.10 within | +0.00 within | – |
| CSAC | paper | 84.57 ± 0.31 | 90.73 ± 0.25 | – |
|  | ours | 80.00 (n=1) | – | – |
|  | difference | -4.57 outside | – | – |

FedAvg: 2 of 2 numbers within the published ±.

CSAC: 0 of 1 numbers within the published ±.

8 of 8 runs are not finished in this folder; their cells are empty.

Unstated in the paper, and taken here: the network's widths: convolutions of 32 and 48 channels"""


@pytest.fixture
def ours(monkeypatch):
    def given(found):
        for module in (beside, sheets):
            monkeypatch.setattr(module, "scores", lambda *_: found)

    return given


def test_golden(ours, tmp_path):
    """Seeds average (82.0 + 86.2) / 2 = 84.1 and 84.7: mean 84.4, error 0.3."""
    ours(OURS)
    wanted = plan(TABLE3, methods=("fedavg", "csac"), targets=("m0", "m75"), seeds=2)
    found = side_by_side(wanted, tmp_path).markdown()
    assert found[: len(GOLDEN)] == GOLDEN


def test_the_average_has_a_verdict_where_all_targets_are_there(ours, tmp_path):
    """The paper's average is 92.65 ± 0.08; ours 92.60 lies within, 92.50 does not."""
    for average, verdict in ((92.60, "within"), (92.50, "outside")):
        ours({("FedAvg", ""): {t: {0: average} for t in TABLE3.targets}})
        wanted = plan(TABLE3, methods=("fedavg",), seeds=1)
        found = side_by_side(wanted, tmp_path)
        assert found.body[2][-1] == f"{average - 92.65:+.2f} {verdict}"
        assert found.notes[0].endswith(f"the average {verdict}.")
        told = found.to_dict()["rows"][0]["average"]
        assert (told["verdict"], told["paper"], told["paper_error"]) == (verdict, 92.65, 0.08)


def test_rows_that_only_the_paper_has_stand_in_its_order(ours, tmp_path):
    ours({row.key: {} for row in COPA.rows})
    wanted = plan(COPA)
    part = [r.name for r in beside.compared(wanted, tmp_path)]
    assert part == ["COPA full", "Ind-Ensemble", "Ind-ParamAvg", "DAEL"]
    assert [r.name for r in beside.compared(wanted, tmp_path) if r.shares] == ["DAEL"]
    some = plan(COPA, methods=("ind-ensemble",))
    assert [r.name for r in beside.compared(some, tmp_path)] == ["Ind-Ensemble"]


def test_the_figures_command_is_whole(ours, tmp_path):
    [item] = find("csac", "fig6-pacs")
    ours({row.key: {} for row in item.rows})
    notes = side_by_side(plan(item, quick=True), tmp_path).notes
    assert any(n.startswith(f"`feddg figure csac-fig6 {tmp_path}` draws") for n in notes)


def test_a_quick_version_has_no_verdict(ours, tmp_path):
    ours({("FedAvg", ""): {"m45": {0: 93.66}}})
    wanted = plan(TABLE3, methods=("fedavg",), quick=True)
    found = side_by_side(wanted, tmp_path)
    assert "QUICK" in found.title
    assert found.body[2] == ("", "difference", "+0.00", "–")
    assert found.notes[0].startswith("No verdict")
    assert found.to_dict()["rows"][0]["m45"]["verdict"] is None


def test_hours_of_the_paper_seconds_of_ours_and_both_ratios(ours, tmp_path, monkeypatch):
    """CSAC took 4.61 h where FedAvg took 4.04 h: 1.14; here 30 s and 20 s: 1.50."""
    [cost] = find("csac", "table6-pacs")
    found = {"FedAvg": 20.0, "CSAC": 30.0}
    ours({row.key: {t: {0: found[row.label]} for t in cost.targets if row.label in found}
          for row in cost.rows})  # fmt: skip
    monkeypatch.setattr(sheets, "notes", lambda *_: ())
    table = sheet(plan(cost), tmp_path)
    assert table.head[-1] == "ratio to FedAvg"
    lines = [row[1:] for row in table.body]
    assert lines[4] == ("paper (h)", "4.81", "4.81", "4.48", "4.34", "4.61", "1.14")
    assert lines[5] == ("ours (s)", *["30.00"] * 5, "1.50")
    assert lines[3] == ("ours (s)", *["–"] * 6)
    csac = table.to_dict()["rows"][2]
    assert (csac["our_ratio"], csac["paper_ratio"]) == (1.5, pytest.approx(4.61 / 4.04))


def test_significance_pairs_target_and_seed(ours, tmp_path, monkeypatch):
    """PPDG is better by 1, 2, 3, 2: mean 2, s = 0.8165, t = 2 / (s / 2) = 4.899; p = 0.0163.

    Student's t with 3 degrees: P(|t| > 4.899) = 0.0163.
    """
    [item] = find("ppdg", "table7-rotated-mnist")
    fedavg = {"m0": {0: 80.0, 1: 81.0}, "m15": {0: 90.0, 1: 91.0}}
    better = {"m0": {0: 81.0, 1: 83.0}, "m15": {0: 93.0, 1: 93.0, 2: 50.0}}
    ours({row.key: {} for row in item.rows} | {item.rows[0].key: fedavg, ("PPDG", ""): better})
    monkeypatch.setattr(sheets, "notes", lambda *_: ())
    found = sheet(plan(item), tmp_path)
    assert found.head[0] == "PPDG against"
    assert found.body[0] == ("FedAvg", "0.0033", "0.0163", "+2.00", "4")
    assert found.body[1] == ("AgrRand", "1.03e-4", "–", "–", "0")
    assert [row[0] for row in found.body] == ["FedAvg", "AgrRand", "AgrSum", "PCGrad", "COPA"]
