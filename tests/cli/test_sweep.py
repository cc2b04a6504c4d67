"""`feddg sweep` on data of one's own."""

import json

import pytest

from tests.cli.command import feddg, sites


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return sites(tmp_path_factory.mktemp("data") / "clinics")


def argv(data, root, *more):
    return (
        "sweep", "fedprox", "--data", data, "--grid", "mu=[0,1]", "--rounds", 1, "--targets", "a,b",
        "--workers", 1, "--out", root, *more,
    )  # fmt: skip


def test_a_sweep(capsys, data, tmp_path):
    said = feddg(capsys, *argv(data, tmp_path))
    assert said.code == 0, said.err
    assert "on the sources' validation data" in said.out.splitlines()[0]
    assert "not used for choosing" in said.out
    assert said.out.count("*") >= 2
    assert len(list(tmp_path.iterdir())) == 2 * 2


def test_shards_and_json(capsys, data, tmp_path):
    first = feddg(capsys, *argv(data, tmp_path, "--shard", "1/2"))
    assert "trials are not finished" in first.out
    found = json.loads(feddg(capsys, *argv(data, tmp_path, "--shard", "2/2", "--json")).out)
    assert len(found["trials"]) == 4
    assert sum(t["chosen"] for t in found["trials"]) == 2
    assert all(
        run in {p.name for p in tmp_path.iterdir()} for t in found["trials"] for run in t["runs"]
    )


def test_several_methods_have_equal_trials(capsys, data, tmp_path):
    command = list(argv(data, tmp_path))
    command[1] = "fedprox,fedavg"
    said = feddg(capsys, *command)
    assert said.code == 2
    assert "fedprox has 2, fedavg has 1" in said.err
    assert feddg(capsys, *command, "--trials", 1).code == 0
