"""`feddg reproduce`: the quick versions from end to end, the list, parts and shards."""

import json

import pytest

from tests.cli.command import feddg

QUICK = ("--quick", "--workers", 1, "--device", "cpu")


def test_csac_table_3_quick(capsys, tmp_path):
    said = feddg(capsys, "reproduce", "csac", "table3", *QUICK, "--out", tmp_path)
    assert said.code == 0, said.err
    title, *_ = said.out.splitlines()
    assert title.startswith("CSAC, Table 3: Rotated MNIST; QUICK")
    assert "93.66 ± 0.03" in said.out  # FedAvg's paper, on M45
    assert all(
        w in said.out
        for w in ("DeepAll (shares data)", "FedDG", "CSAC", "DGER", "difference", "ours")
    )
    assert "No verdict" in said.out
    assert not any(w in said.out for w in ("within", "outside"))
    assert len(list(tmp_path.iterdir())) == 4


def test_ppdg_table_4_quick(capsys, tmp_path):
    """The full MNIST of DomainBed's protocol is not here: digits take its place, says the title."""
    said = feddg(capsys, "reproduce", "ppdg", "table4", *QUICK, "--out", tmp_path, "--json")
    assert said.code == 0, said.err
    found = json.loads(said.out)
    assert "QUICK" in found["title"]
    assert "on the EMBEDDED DIGITS" in found["title"]
    assert [r["name"] for r in found["rows"]] == [
        "DeepAll", "FedAvg", "FedProx", "PCGrad", "AgrSum", "AgrRand", "COPA", "PPDG",
    ]  # fmt: skip
    assert [r["name"] for r in found["rows"] if r["shares_data"]] == ["DeepAll"]
    learned = {r["name"]: r["average"]["ours"] for r in found["rows"]}
    assert min(learned[name] for name in ("FedAvg", "COPA", "PPDG")) > 30  # of ten classes
    assert all(r["average"]["verdict"] is None for r in found["rows"])
    assert found["notes"][0].startswith("No verdict")


def test_shards_do_each_their_part_and_the_table_says_what_is_missing(capsys, tmp_path):
    part = ("reproduce", "csac", "table3", "--methods", "fedavg,csac", *QUICK, "--out", tmp_path)
    first = feddg(capsys, *part, "--shard", "1/2")
    assert first.code == 0, first.err
    assert "1 of 2 runs are not finished in this folder" in first.out
    assert len(list(tmp_path.iterdir())) == 1
    second = feddg(capsys, *part, "--shard", "2/2", "--markdown")
    assert "not finished" not in second.out
    assert second.out.count("| ours |") == 2


def test_the_list(capsys, monkeypatch):
    monkeypatch.setattr("feddg.benchmark.estimate.Estimator.step", lambda *_: 1e-4)
    found = json.loads(feddg(capsys, "reproduce", "--list", "--json").out)
    assert len(found["items"]) == 67
    by_name = {(r["paper"], r["item"]): r for r in found["items"]}
    assert by_name["csac", "table3"]["there"]
    assert not by_name["ga", "table2"]["there"]
    assert by_name["ga", "table2"]["absent"]
    assert "measured just now" in found["estimate"]
    shown = feddg(capsys, "reproduce", "csac", "--list").out
    assert "table2-resnet-18" in shown
    assert "vlcs" in shown


def test_no_name_is_the_list(capsys, monkeypatch):
    monkeypatch.setattr("feddg.benchmark.estimate.Estimator.step", lambda *_: 1e-4)
    assert "table7-camelyon17" in feddg(capsys, "reproduce").out
    assert "table7-camelyon17" in feddg(capsys, "reproduce", "ppdg").out


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (("csca",), "unknown paper 'csca'; did you mean 'csac'"),
        (("csac", "tabel3"), "did you mean 'table3'"),
        (("csac", "table3", "--methods", "x"), "unknown row of csac table3 'x'"),
        (("csac", "table3", "--shard", "3/2"), "--shard 3/2"),
        (("csac", "table3", "--seeds", "0"), "--seeds must be at least 1"),
        (("ppdg", "table4"), "ppdg table4: protocol domainbed needs"),
    ],
)
def test_what_cannot_be(capsys, tmp_path, argv, sentence):
    said = feddg(capsys, "reproduce", *argv, "--out", tmp_path)
    assert said.code == 2
    assert sentence in said.err
    assert not list(tmp_path.iterdir())
