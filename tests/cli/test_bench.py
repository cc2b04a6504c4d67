"""`feddg bench` on data of one's own."""

import json
import os
import signal

import pytest

from tests import forked
from tests.cli.command import feddg, images, sites


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return sites(tmp_path_factory.mktemp("data") / "clinics")


def argv(data, root, *more):
    return (
        "bench", data, "--methods", "fedavg,fedprox(mu=0.1)", "--seeds", 2, "--rounds", 2,
        "--workers", 1, "--out", root, *more,
    )  # fmt: skip


def test_a_table_of_methods_by_domain(capsys, data, tmp_path):
    said = feddg(capsys, *argv(data, tmp_path))
    assert said.code == 0, said.err
    title, *_ = said.out.splitlines()
    assert "accuracy (%) on the domain left out" in title
    assert "selection: last" in title
    assert "2 seeds" in title
    assert "rounds=2" in title
    assert all(w in said.out for w in ("fedavg", "fedprox(mu=0.1)", "average", " ± "))
    assert len(list(tmp_path.iterdir())) == 2 * 3 * 2


def test_adaptation(capsys, data, tmp_path):
    """Bounds and methods of both kinds in one table, judged on the same fifth."""
    shown = feddg(
        capsys, "bench", data, "--task", "uda", "--methods", "deepall,oracle,fedavg,kd3a",
        "--targets", "a", "--seeds", 1, "--rounds", 2, "--workers", 1, "--out", tmp_path,
    )  # fmt: skip
    assert shown.code == 0, shown.err
    assert "judged on 20% of it" in shown.out.splitlines()[0]
    assert all(w in shown.out for w in ("deepall (shares data)", "oracle (shares data)", "kd3a"))
    folder = next(tmp_path.glob("kd3a_a_*"))
    card = (folder / "model" / "README.md").read_text()
    assert "adapted at the server to 32 examples of a without their labels" in card
    assert len(json.loads((folder / "split.json").read_text())["a"]["val"]) == 8
    assert 'task = "uda"' in (folder / "config.toml").read_text()
    refused = feddg(capsys, "run", data, "--method", "kd3a", "--target", "a", "--out", tmp_path)
    assert refused.code == 2
    assert "ask for it by --task uda" in refused.err


def test_again_without_training(capsys, data, tmp_path, monkeypatch):
    first = feddg(capsys, *argv(data, tmp_path))
    monkeypatch.setattr("feddg.benchmark.driver.open_engine", None)
    second = feddg(capsys, *argv(data, tmp_path))
    assert second.out == first.out
    assert second.err == ""


def test_json_and_markdown(capsys, data, tmp_path):
    found = json.loads(feddg(capsys, *argv(data, tmp_path, "--json")).out)
    assert found["columns"] == ["a", "b", "c"]
    assert [r["name"] for r in found["rows"]] == ["fedavg", "fedprox(mu=0.1)"]
    assert found["rows"][0]["numbers"][0]["n"] == 2
    assert "| fedavg |" in feddg(capsys, *argv(data, tmp_path, "--markdown")).out


def test_a_narrow_terminal_cuts_no_number(capsys, data, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    said = feddg(capsys, *argv(data, tmp_path))
    assert "…" not in said.out
    assert "fedprox(mu=0.1)" in said.out


def test_images(capsys, tmp_path):
    root = images(tmp_path / "pictures")
    options = ("--data-option", "size=16", "--data-option", "channels=1")
    said = feddg(capsys, *argv(root, tmp_path / "runs", *options, "--targets", "night"))
    assert said.code == 0, said.err
    assert "size=16" in said.out.splitlines()[0]


def test_brackets_in_a_name_are_text(capsys, tmp_path):
    root = sites(tmp_path / "data", ("a[bold]", "b", "c"))
    said = feddg(capsys, *argv(root, tmp_path / "runs"))
    assert said.code == 0, said.err
    assert "a[bold]" in said.out


def test_a_run_that_fails_costs_its_cell_only(capsys, data, tmp_path, monkeypatch):
    """Exit code 2 at the end, the reason once below the table; the same command tries again."""
    from feddg.methods.median import FedMedian

    command = list(argv(data, tmp_path, "--markdown"))
    command[3] = "fedmedian,fedavg"
    real = FedMedian.aggregate

    def failing(self, state, replies, job):
        if {r.site for r in replies} == {"a", "b"}:
            raise KeyError("note")
        return (yield from real(self, state, replies, job))

    monkeypatch.setattr(FedMedian, "aggregate", failing)
    monkeypatch.setattr(
        "feddg.engines.compute.Compute.visits_at_once", 6
    )  # some batches come after it
    said = feddg(capsys, *command)
    assert said.code == 2
    [median] = [line for line in said.out.splitlines() if line.startswith("| fedmedian")]
    [average] = [line for line in said.out.splitlines() if line.startswith("| fedavg")]
    assert median.count("failed") == 1
    assert "failed" not in average
    assert "±" in average.split("|")[4]
    why = "round 0: fedmedian failed at the server: KeyError: 'note'"
    assert f"fedmedian failed on c (seed 0), c (seed 1): {why}" in said.out
    assert said.err.splitlines()[-1].startswith("feddg: fedmedian_c_seed0")
    assert "Traceback" not in said.err
    monkeypatch.setattr(FedMedian, "aggregate", real)
    again = feddg(capsys, *command)
    assert again.code == 0
    assert "failed" not in again.out


def test_shards_share_a_folder_and_their_table_is_that_of_the_whole(capsys, data, tmp_path):
    whole = feddg(capsys, *argv(data, tmp_path / "whole", "--markdown"))
    parts = [
        feddg(capsys, *argv(data, tmp_path / "parts", "--markdown", "--shard", f"{i}/3"))
        for i in (3, 1, 2)
    ]
    assert [p.code for p in parts] == [0, 0, 0]
    assert "8 of 12 runs are not finished in this folder; their cells are empty." in parts[0].out
    assert "4 of 12 runs" in parts[1].out
    assert parts[2].out == whole.out
    alone = feddg(capsys, *argv(data, tmp_path / "parts", "--markdown", "--shard", "2/3"))
    assert (alone.out, alone.err) == (whole.out, "")


def test_a_killed_shard_goes_on(capsys, data, tmp_path):
    """Killed in its first rounds and started again, while another shard does its own part."""
    command = [*argv(data, tmp_path, "--shard", "1/2", "--markdown")]
    command[command.index("--rounds") + 1] = 25
    pid = forked.start(list(map(str, command)), tmp_path / "said", forked.every_round)
    forked.until(lambda: any(tmp_path.glob("*/results.jsonl")))
    os.kill(pid, signal.SIGKILL)
    forked.ended(pid)
    forked.until(lambda: forked.gone(pid))
    begun = {p.name for p in tmp_path.glob("*/") if p.is_dir()}
    assert not any(tmp_path.glob("*/model"))
    for i in (2, 1):
        command[command.index("--shard") + 1] = f"{i}/2"
        said = feddg(capsys, *command)
        assert said.code == 0, said.err
    assert "not finished" not in said.out
    assert begun <= {p.name for p in tmp_path.iterdir()}
    assert len(list(tmp_path.glob("*/model"))) == 12
