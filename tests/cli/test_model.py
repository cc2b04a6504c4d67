"""`feddg predict` and `feddg evaluate` from a run's folder alone."""

import csv
import json

import pytest

from tests.cli.command import feddg, sites
from tests.forked import called


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """(data, run folder)"""
    home = tmp_path_factory.mktemp("home")
    data = sites(home / "clinics")
    argv = ["run", data, "--target", "c", "--rounds", 4, "--set", "lr=0.1", "--workers", 1]
    assert called([*map(str, argv), "--out", str(home / "runs")]) == 0
    [folder] = (home / "runs").iterdir()
    return data, folder


def test_predict_prints_csv(capsys, ran):
    data, folder = ran
    said = feddg(capsys, "predict", folder / "model", data / "c.csv")
    assert said.code == 0, said.err
    rows = list(csv.DictReader(said.out.splitlines()))
    assert len(rows) == 40
    assert rows[0]["domain"] == "c"
    assert rows[0]["predicted"] in ("ill", "well")
    assert float(rows[0]["p(ill)"]) + float(rows[0]["p(well)"]) == pytest.approx(1, abs=1e-5)


def test_predict_needs_no_labels(capsys, ran, tmp_path):
    data, folder = ran
    bare = [line.rpartition(",")[0] for line in (data / "c.csv").read_text().splitlines()]
    (tmp_path / "new.csv").write_text("\n".join(bare) + "\n")
    out = tmp_path / "out.csv"
    said = feddg(capsys, "predict", folder, tmp_path / "new.csv", "--out", out)
    assert said.code == 0, said.err
    assert said.out == ""
    new = [r["predicted"] for r in csv.DictReader(out.read_text().splitlines())]
    labelled = feddg(capsys, "predict", folder, data / "c.csv").out.splitlines()
    assert new == [r["predicted"] for r in csv.DictReader(labelled)]


def test_predict_json(capsys, ran, tmp_path):
    data, folder = ran
    said = feddg(capsys, "predict", folder, data, "--domain", "a", "--json")
    found = json.loads(said.out)
    assert {r["domain"] for r in found["predictions"]} == {"a"}
    out = tmp_path / "out.json"
    assert feddg(capsys, "predict", folder, data, "--domain", "a", "--json", "--out", out).out == ""
    assert json.loads(out.read_text()) == found


def test_predict_into_a_place_that_cannot_be(capsys, ran):
    data, folder = ran
    for more in ((), ("--json",)):
        said = feddg(capsys, "predict", folder, data, "--out", "/dev/null/x.csv", *more)
        assert said.code == 2
        assert "/dev/null/x.csv" in said.err


def test_evaluate_shows_classes_confusion_and_calibration(capsys, ran):
    data, folder = ran
    said = feddg(capsys, "evaluate", folder / "model", data)
    assert said.code == 0, said.err
    for word in ("precision", "recall", "Confusion", "auc", "ece", "brier", "worst domain"):
        assert word in said.out
    assert "trained on this domain" in said.out


def test_evaluate_one_domain(capsys, ran):
    data, folder = ran
    found = json.loads(feddg(capsys, "evaluate", folder, data, "--domain", "c", "--json").out)
    assert list(found["domains"]) == ["c"]
    assert found["overall"]["examples"] == 40
    last = json.loads((folder / "results.jsonl").read_text().splitlines()[-1])
    assert found["overall"]["scores"]["accuracy"] == pytest.approx(
        last["scores"]["test/c"]["accuracy"]
    )


def test_evaluate_an_unknown_domain(capsys, ran):
    data, folder = ran
    said = feddg(capsys, "evaluate", folder, data, "--domain", "d")
    assert said.code == 2
    assert "domain" in said.err
    assert "'d'" in said.err


def test_evaluate_a_set_of_the_catalogue_by_domain(capsys, tmp_path):
    argv = ("run", "heart-disease", "--target", "va", "--rounds", 1, "--workers", 1)
    assert feddg(capsys, *argv, "--out", tmp_path).code == 0
    [folder] = tmp_path.iterdir()
    said = feddg(capsys, "evaluate", folder, "heart-disease", "--domain", "va")
    assert said.code == 0, said.err
    assert "200 examples" in said.out
    said = feddg(capsys, "evaluate", folder, "rotated-mnist", "--domain", "m0")
    assert said.code == 2
