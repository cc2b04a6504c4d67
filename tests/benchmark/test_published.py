"""The papers' numbers as data."""

from feddg.benchmark.published import Printed, paper_rows


def test_a_row_as_printed():
    rows = {r.key: r for r in paper_rows("csac", "table3")}
    row = rows["CSAC", ""]
    assert str(row.cells["m0"]) == "84.57 ± 0.31"
    assert (row.cells["m0"].value, row.cells["m0"].reach) == (84.57, 0.31)
    assert not row.quoted
    assert rows["DGER", ""].quoted
    assert rows["DeepAll", ""].shares_data


def test_digits_are_kept_and_a_number_without_error_has_none():
    assert str(Printed("82.10")) == "82.10"
    assert Printed("82.10").reach is None
    p = paper_rows("ppdg", "table7", "camelyon17")
    assert {r.method: r.cells[""].text for r in p}["PCGrad"] == "1.63e-4"


def test_one_backbone_of_a_table_that_has_two():
    both = [paper_rows("csac", "table2", "vlcs", b) for b in ("alexnet", "resnet-18")]
    found = [{r.key: r for r in rows}["CSAC", ""].cells["average"].text for rows in both]
    assert found == ["73.40", "76.18"]


def test_rows_keep_the_papers_order():
    assert [r.method for r in paper_rows("copa", "table7")] == [
        "COPA", "Ind-Ensemble", "Ind-ParamAvg", "DAEL",
    ]  # fmt: skip
