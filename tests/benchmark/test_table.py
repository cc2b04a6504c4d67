"""Statistics worked by hand, and the printed table letter by letter."""

from dataclasses import replace

import pytest

from feddg.benchmark.experiment import Experiment
from feddg.benchmark.table import (
    Cell,
    Number,
    Table,
    bootstrap_interval,
    cells,
    paper_number,
    scale,
    shown_metric,
)
from feddg.tasks import Classification, Regression

ROTATED = tuple(f"m{k}" for k in range(0, 90, 15))


def test_mean_and_standard_error():
    """80, 82, 87: mean 83; deviations -3, -1, 4, squares 26, variance 13; √(13/3) = 2.0817."""
    number = Number.of([80, 82, 87])
    assert number is not None
    assert (number.mean, number.n) == (83, 3)
    assert number.error == pytest.approx(2.0816660)
    assert str(number) == "83.00 ± 2.08"


def test_one_seed_has_no_error_and_none_no_number():
    assert str(Number.of([80.125])) == "80.12"
    assert Number.of([]) is None


def test_the_average_is_taken_seed_by_seed():
    """Seeds average (80+60)/2 = 70 and (90+50)/2 = 70: no spread, though each target has some."""
    row = cells("x", {"a": {0: 80.0, 1: 90.0}, "b": {0: 60.0, 1: 50.0}}, ("a", "b"))
    assert row.average is not None
    assert (row.average.mean, row.average.error) == (70, 0)
    assert row.numbers[0] is not None
    assert row.numbers[0].error == pytest.approx(5)  # 85 ± √(50/2)


def test_seeds_are_matched_by_number_not_by_order():
    """Target a lacks seed 0: the average is that of seed 1 alone, (90+50)/2."""
    row = cells("x", {"a": {1: 90.0}, "b": {0: 60.0, 1: 50.0}}, ("a", "b"))
    assert row.average is not None
    assert (row.average.mean, row.average.n) == (70, 1)


def test_no_average_where_a_target_has_no_number():
    row = cells("x", {"a": {0: 80.0}}, ("a", "b"))
    assert row.average is None
    assert row.numbers[1] is None


def test_a_papers_number_is_for_the_same_method_and_targets_only():
    item = ("csac", "table3")
    assert paper_number(item, "fedavg", ROTATED) == 92.65
    assert paper_number(item, "csac", ROTATED) == 94.07
    assert paper_number(item, "fedavg", ROTATED[:5]) is None
    assert paper_number(item, "fedprox", ROTATED) is None
    assert paper_number(("csac", "no such table"), "fedavg", ROTATED) is None


def scores(value):
    return [{"round": 0, "scores": {"test/c": {"accuracy": value, "pearson_r": value}}}]


def test_cells_are_percent_for_classes_and_plain_for_correlations():
    one = Experiment(data="heart-disease", rounds=1)
    for task, wanted in ((Classification(("x", "o")), 50), (Regression(), 0.5)):
        cell = Cell.of(one, scores(0.5), "c", task)
        assert cell is not None
        assert cell.value == wanted
    assert Cell.of(one, scores(None), "c", Regression()) is None
    assert scale(Regression()) == 1
    assert shown_metric(Classification((), "balanced_accuracy")) == "balanced accuracy (%)"
    assert shown_metric(Regression()) == "pearson r"


TABLE = Table(
    title="toy: accuracy (%) on the domain left out; selection: last (the last round); 2 seeds",
    columns=("a", "b"),
    rows=(
        cells("a alone", {"b": {0: 61.0, 1: 63.0}}, ("a", "b")),
        cells("fedavg", {"a": {0: 80.0, 1: 82.0}, "b": {0: 70.0, 1: 71.0}}, ("a", "b")),
        cells("fedprox", {"a": {0: 80.0}, "b": {0: 70.0, 1: 71.0}}, ("a", "b")),
    ),
    notes=("A note.",),
    seeds=2,
)  # fmt: skip

MARKDOWN = """\
toy: accuracy (%) on the domain left out; selection: last (the last round); 2 seeds

| method | a | b | average | paper |
| --- | ---: | ---: | ---: | ---: |
| a alone | – | 62.00 ± 1.00 | – | – |
| fedavg | 81.00 ± 1.00 | 70.50 ± 0.50 | 75.75 ± 0.75 | – |
| fedprox | 80.00 (n=1) | 70.50 ± 0.50 | 75.00 (n=1) | – |

A note."""

TEXT = """\
toy: accuracy (%) on the domain left out; selection: last (the last round); 2 seeds
┏━━━━━━━━━┳━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━┳━━━━━━━┓
┃ method  ┃            a ┃            b ┃      average ┃ paper ┃
┡━━━━━━━━━╇━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━╇━━━━━━━┩
│ a alone │            – │ 62.00 ± 1.00 │            – │     – │
│ fedavg  │ 81.00 ± 1.00 │ 70.50 ± 0.50 │ 75.75 ± 0.75 │     – │
│ fedprox │  80.00 (n=1) │ 70.50 ± 0.50 │  75.00 (n=1) │     – │
└─────────┴──────────────┴──────────────┴──────────────┴───────┘
A note.
runs: /runs
"""


def test_as_markdown():
    assert TABLE.markdown() == MARKDOWN


@pytest.mark.parametrize("width", [20, 100])
def test_as_text_on_any_width(capsys, monkeypatch, width):
    from pathlib import Path

    from feddg.cli.bench import show

    monkeypatch.setenv("COLUMNS", str(width))
    show(TABLE, Path("/runs"))
    assert capsys.readouterr().out == TEXT


LATEX = r"""\begin{table}
  \centering
  \caption{toy: accuracy (\%) on the domain left out; selection: last (the last round); 2 seeds. A note.}
  \begin{tabular}{lrrr}
    \toprule
    method & a & b & average \\
    \midrule
    a alone & -- & 62.00 $\pm$ 1.00 & -- \\
    \midrule
    fedavg & \textbf{81.00 $\pm$ 1.00} & \textbf{70.50 $\pm$ 0.50} & \textbf{75.75 $\pm$ 0.75} \\
    fedprox & \underline{80.00} & \textbf{70.50 $\pm$ 0.50} & \underline{75.00} \\
    \bottomrule
  \end{tabular}
\end{table}"""  # noqa: E501


def test_as_latex():
    """b's best is shared, so the next, a alone's 62.00, is the second; a bound has no mark."""
    rows = (replace(TABLE.rows[0], reference=True), *TABLE.rows[1:])
    assert replace(TABLE, rows=rows).latex() == LATEX
    assert r"a alone & -- & \underline{62.00 $\pm$ 1.00} & -- \\" in TABLE.latex()


def test_latex_escapes_names_and_has_the_papers_column_where_there_is_one():
    row = replace(cells("f_x&<λ>", {"art_painting": {0: 50.0}}, ("art_painting",)), paper=92.65)
    found = Table("50% {a} \\", ("art_painting",), (row,)).latex().splitlines()
    assert found[2] == r"  \caption{50\% \{a\} \textbackslash{}.}"
    assert found[5] == r"    method & art\_painting & average & paper \\"
    assert found[7] == r"    f\_x\&$<$$\lambda$$>$ & 50.00 & 50.00 & 92.65 \\"


def test_as_csv():
    lines = TABLE.csv().splitlines()
    assert lines[0] == "method,target,mean,error,n,paper"
    assert lines[1:4] == ["a alone,a,,,0,", "a alone,b,62.0,1.0,2,", "a alone,average,,,0,"]
    assert lines[4] == "fedavg,a,81.0,1.0,2,"
    assert replace(TABLE, rows=(replace(TABLE.rows[1], paper=9.5),)).csv().endswith(",2,9.5\n")


def test_as_json():
    import json

    found = json.loads(json.dumps(TABLE.to_dict(), allow_nan=False))
    assert found["rows"][1]["average"] == {
        "mean": 75.75, "error": pytest.approx(0.75), "n": 2,
    }  # fmt: skip
    assert found["rows"][0]["average"] is None


def test_bootstrap_interval_of_a_class_of_one_and_a_sure_one():
    """The sure class adds 1/2 always; the other's four examples, of recall 1/2, add k/8.

    k is Binomial(4, 1/2), whose 2.5% quantile is 0 and 97.5% quantile 4, as P(k=0) = 1/16.
    """
    assert bootstrap_interval((0.5, 1.0), (4, 50)) == (0.5, 1.0)
    low, high = bootstrap_interval((0.5, 0.5), (10_000, 10_000))
    assert 0.49 < low < 0.5 < high < 0.51


def test_a_failed_run_is_said_in_its_cell_unless_other_seeds_have_a_number():
    row = replace(TABLE.rows[0], failed=("a", "b"))
    assert replace(TABLE, rows=(row,)).lines()[1][1:3] == ["failed", "62.00 ± 1.00"]
