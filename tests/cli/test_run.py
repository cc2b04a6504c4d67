"""`feddg run`: the folder it leaves, and how it goes on from one."""

import json
import tomllib
from pathlib import Path

import pytest

from feddg.deploy import load_model
from tests.cli.command import feddg, images, sites


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return sites(tmp_path_factory.mktemp("data") / "clinics")


def quick(data, root, *more):
    return ("run", data, "--target", "c", "--rounds", 3, "--workers", 1, "--out", root, *more)


def test_the_folder_has_all_that_is_needed(capsys, data, tmp_path):
    said = feddg(capsys, *quick(data, tmp_path))
    assert said.code == 0, said.err
    [folder] = tmp_path.iterdir()
    assert {p.name for p in folder.iterdir()} == {
        ".lock", "config.toml", "environment.json", "model", "results.jsonl", "split.json",
    }  # fmt: skip
    config = tomllib.loads((folder / "config.toml").read_text())
    assert config["method"] == "fedavg(weights='size')"
    assert config["data"] == str(data.resolve())
    assert config["recipe"]["batch_size"] == 32
    assert {"torch", "python", "feddg"} <= json.loads(
        (folder / "environment.json").read_text()
    ).keys()
    split = json.loads((folder / "split.json").read_text())
    assert {k: (v["examples"], len(v["val"])) for k, v in split.items()} == {
        "a": (40, 8),
        "b": (40, 8),
    }
    lines = [json.loads(v) for v in (folder / "results.jsonl").read_text().splitlines()]
    assert [r["round"] for r in lines] == [0, 1, 2]
    assert lines[0]["scores"].keys() == {"val/a", "val/b", "test/c"}
    assert lines[0]["bytes_up"] == lines[0]["bytes_down"] > 0
    assert load_model(folder / "model").classes == ("ill", "well")


def test_the_rows_of_split_json_are_those_that_were_held_out(capsys, data, tmp_path):
    import torch

    from feddg.benchmark.experiment import from_toml

    feddg(capsys, *quick(data, tmp_path))
    [folder] = tmp_path.iterdir()
    [rows, _] = json.loads((folder / "split.json").read_text()).values()
    run, _ = from_toml(folder / "config.toml").prepared_run()
    domain = run.federation.collection["a"].examples
    site = run.sites[0]
    assert site.val is not None
    assert torch.equal(domain.x[rows["val"]], site.val.x)


def test_the_result_is_shown_with_the_command_that_comes_next(capsys, data, tmp_path):
    said = feddg(capsys, *quick(data, tmp_path))
    assert "round 3 of 3, selected by 'last'" in said.out
    assert "test/c" in said.out
    [line] = [v for v in said.out.splitlines() if v.startswith("next:")]
    assert line.endswith(f"/model {data} --domain c")
    after = feddg(capsys, *line.split()[2:])
    assert after.code == 0, after.err
    assert "accuracy" in after.out


def test_json(capsys, data, tmp_path):
    said = feddg(capsys, *quick(data, tmp_path, "--json"))
    found = json.loads(said.out)
    assert found["selected"]["round"] == 2
    assert Path(found["model"], "model.safetensors").exists()
    assert said.err == ""


def test_its_config_runs_again_in_its_folder_or_in_another(capsys, data, tmp_path):
    """The same key: a configuration names its folder, wherever it is read from."""
    feddg(capsys, *quick(data, tmp_path / "runs", "--method", "fedprox(mu=0.1)"))
    [folder] = (tmp_path / "runs").iterdir()
    assert folder.name.startswith("fedprox_c_seed0_")
    before = (folder / "model" / "model.safetensors").stat().st_mtime_ns
    said = feddg(capsys, "run", "--config", folder / "config.toml")
    assert said.code == 0, said.err
    assert (folder / "model" / "model.safetensors").stat().st_mtime_ns == before
    said = feddg(capsys, "run", "--config", folder / "config.toml", "--out", tmp_path / "other")
    assert said.code == 0, said.err
    [again] = (tmp_path / "other").iterdir()
    assert again.name == folder.name
    for name in ("config.toml", "split.json", "model/model.safetensors"):
        assert (again / name).read_bytes() == (folder / name).read_bytes()


def test_another_setting_another_folder(capsys, data, tmp_path):
    for more in ((), ("--seed", 1), ("--set", "lr=0.02"), ("--method", "fedprox")):
        feddg(capsys, *quick(data, tmp_path, *more))
    feddg(capsys, *quick(data, tmp_path, "--method", "fedavg:paper"))  # fedavg by another name
    assert len(list(tmp_path.iterdir())) == 4


def test_a_relative_path_to_the_data_is_the_same_run(capsys, data, tmp_path, monkeypatch):
    feddg(capsys, *quick(data, tmp_path))
    monkeypatch.chdir(data.parent)
    feddg(capsys, *quick("clinics/", tmp_path))
    assert len(list(tmp_path.iterdir())) == 1


def test_without_a_target_all_sites_train(capsys, data, tmp_path):
    said = feddg(capsys, "run", data, "--rounds", 1, "--workers", 1, "--out", tmp_path)
    assert said.code == 0, said.err
    assert all(f"val/{n}" in said.out for n in "abc")


def test_judged_on_nothing(capsys, data, tmp_path):
    argv = ("run", data, "--rounds", 1, "--share", 0, "--workers", 1, "--out", tmp_path)
    assert "judged on nothing" in feddg(capsys, *argv).out


def test_selection_reports_and_saves_the_round_it_chose(capsys, data, tmp_path):
    """At a rate that wrecks the model after the first round, source validation chooses it."""
    more = ("--selection", "source-val", "--set", "lr=30", "--set", "schedule=constant")
    said = feddg(capsys, *quick(data, tmp_path, *more, "--json"))
    assert said.code == 0, said.err
    [folder] = tmp_path.iterdir()
    lines = [json.loads(v) for v in (folder / "results.jsonl").read_text().splitlines()]
    values = [
        sum(v["accuracy"] for k, v in r["scores"].items() if k.startswith("val/")) for r in lines
    ]
    chosen = json.loads(said.out)["selected"]
    assert chosen["round"] == values.index(max(values))
    card = json.loads((folder / "model" / "model.json").read_text())
    assert card["about"]["round"] == chosen["round"]
    from feddg import deploy

    loaded = load_model(folder / "model")
    again = deploy.evaluate(loaded, deploy.read_inputs(data, loaded), ["c"])
    assert again.overall.scores["accuracy"] == pytest.approx(chosen["scores"]["test/c"]["accuracy"])


def test_a_folder_of_images(capsys, tmp_path):
    root = images(tmp_path / "pictures", ("day", "night", "dusk"))
    said = feddg(
        capsys, "run", root, "--target", "dusk", "--data-option", "size=16",
        "--data-option", "channels=1", "--rounds", 1, "--workers", 1, "--out", tmp_path / "runs",
    )  # fmt: skip
    assert said.code == 0, said.err
    assert "test/dusk" in said.out


def test_late_news_on_stderr_results_on_stdout(capsys, data, tmp_path):
    said = feddg(capsys, *quick(data, tmp_path))
    assert "3/3 rounds" in said.err
    assert "rounds," not in said.out


def test_a_network_of_ones_own_beside_the_command(capsys, data, tmp_path, monkeypatch):
    (tmp_path / "beside.py").write_text(
        "from torch import nn\n\n"
        "class Net(nn.Linear):\n"
        "    def __init__(self, inputs: int, outputs: int):\n"
        "        super().__init__(inputs, outputs)\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")
    said = feddg(capsys, *quick(data, tmp_path / "runs", "--model", "beside:Net"))
    assert said.code == 0, said.err
    [folder] = (tmp_path / "runs").iterdir()
    assert feddg(capsys, "evaluate", folder, data).code == 0
