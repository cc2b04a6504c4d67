"""`feddg figure`: the list, a file, its numbers."""

import json

import pytest

from tests.cli.command import feddg, sites


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    from feddg.benchmark.bench import Bench, run

    root = tmp_path_factory.mktemp("figure")
    bench = Bench(data=str(sites(root / "clinics")), methods=("fedavg", "ppdg"), targets=("a",),
                  changes={"rounds": 2})  # fmt: skip
    for _ in run(bench, root / "runs", 1):
        pass
    return root / "runs"


def test_without_a_key_all_figures_are_listed(capsys):
    said = feddg(capsys, "figure")
    assert said.code == 0, said.err
    keys = {f["key"] for f in json.loads(feddg(capsys, "figure", "--json").out)}
    assert {"csac-fig4", "ppdg-fig1", "copa-fig2", "ga-fig4", "rounds"} <= keys
    assert all(key in said.out for key in keys)


def test_a_figure_is_a_file_here_or_there(capsys, runs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = feddg(capsys, "figure", "rounds", runs)
    assert said.code == 0, said.err
    assert said.out.strip() == str(tmp_path / "rounds.png")
    assert (tmp_path / "rounds.png").read_bytes().startswith(b"\x89PNG")
    assert feddg(capsys, "figure", "rounds", runs, "--out", "there.pdf").code == 0
    assert (tmp_path / "there.pdf").read_bytes().startswith(b"%PDF")


def test_its_numbers_as_json(capsys, runs):
    [chart] = json.loads(feddg(capsys, "figure", "rounds", runs, "--json").out)
    assert [s["name"] for s in chart["series"]] == ["fedavg", "ppdg"]
    [chart] = json.loads(feddg(capsys, "figure", "rounds", runs, "--method", "ppdg", "--json").out)
    assert [s["name"] for s in chart["series"]] == ["ppdg"]


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (("figure", "round"), "unknown figure 'round'; did you mean 'rounds'"),
        (("figure", "rounds"), "name folders with runs in them"),
        (("figure", "csac-fig7", "RUNS"), "make some with `feddg run"),
        (("figure", "rounds", "RUNS", "--target", "z"), "has the target 'z'"),
        (("figure", "rounds", "RUNS", "--out", "x.gif"), "unknown format of a figure"),
    ],
)
def test_what_cannot_be_drawn_is_one_sentence(capsys, runs, argv, why):
    said = feddg(capsys, *(runs if a == "RUNS" else a for a in argv))
    assert said.code == 2
    assert why in said.err
    assert said.err.count("\n") == 1
