"""Start-up, pipes and the small commands."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import feddg as package
from feddg.cli.methods import reflowed
from feddg.data.sets.pacs import CLASSES as PACS
from tests.cli.command import feddg, sites
from tests.data.wild import tree, write

SOURCE = str(Path(package.__file__).parents[1])
HEAVY = (
    "torch", "numpy", "torchvision", "scipy", "PIL", "safetensors", "rich.progress", "matplotlib",
    "torchmetrics", "tomli_w",
)  # fmt: skip


def python(code, **options):
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True,
        check=False, **options,
    )  # fmt: skip


@pytest.mark.parametrize("module", ["feddg", "feddg.cli"])
def test_import_budget(module):
    """Nothing heavy is loaded before a command runs: `feddg --help` is a matter of typer's."""
    code = f"import {module}, sys; print([m for m in {HEAVY} if m in sys.modules])"
    assert python(code).stdout.strip() == "[]"


def test_all_of_the_package_but_what_is_asked_for_stays_unloaded():
    code = "import feddg, sys; print([m for m in sys.modules if m.startswith('feddg.')])"
    assert python(code).stdout.strip() == "[]"


def test_torchvision_and_extras_are_not_loaded_by_a_run(tmp_path):
    """Nor by training: they are for who asks for them."""
    code = (
        "import sys; sys.argv = ['feddg', 'run', 'heart-disease', '--rounds', '1', '--workers',"
        f" '1', '--out', {str(tmp_path)!r}]\n"
        "from feddg.cli import main\n"
        "try:\n    main()\n"
        "except SystemExit as end:\n    assert not end.code\n"
        "extras = ('torchvision', 'torchmetrics', 'matplotlib', 'mlflow', 'flwr', 'opacus')\n"
        "print('loaded:', [m for m in extras if m in sys.modules])"
    )
    assert "loaded: []" in python(code).stdout


def test_a_closed_pipe_is_no_trouble():
    """As with `feddg data list | head -0`."""
    reading, writing = os.pipe()
    os.close(reading)
    code = (
        "import sys; sys.argv[1:] = ['data', 'list', '--json']; from feddg.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": SOURCE}, stdout=writing,
        stderr=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    os.close(writing)
    assert done.stderr == ""
    assert done.returncode in (0, 1)


def test_names_that_are_no_text_can_be_printed(tmp_path):
    """A file's name need not be UTF-8: where the output is, it stands there escaped."""
    tree(tmp_path, ("day", "night"), ("cat", "dog"))
    (tmp_path / "day" / "cat" / "\udcff.jpg").write_text("no image")
    code = (
        f"import sys; sys.argv[1:] = ['data', 'check', {str(tmp_path)!r}]\n"
        "sys.stdout.reconfigure(errors='strict')\n"
        "from feddg.cli import main; main()"
    )
    done = python(code)
    assert (done.returncode, done.stderr) == (2, "")
    assert "\\udcff.jpg is not a readable image" in done.stdout


def test_help_names_every_command(capsys):
    said = feddg(capsys, "--help")
    for name in ("run", "bench", "demo", "methods", "predict", "evaluate", "data"):
        assert name in said.out


def test_a_docstring_is_set_for_the_terminal():
    """Prose and terms are set anew, an equation and its spaces stay as they are."""
    text = (
        "One two three\nfour five.\n\n    a  =  b + c d e f g h i j k l\n    c  =  d\n\n"
        "mu        how far\n          and why\nstep, on  both"
    )
    assert reflowed(text, 18).splitlines() == [
        "One two three four", "five.", "", "    a  =  b + c d e f g h i j k l", "    c  =  d", "",
        "mu        how far", "          and why", "step, on  both",
    ]  # fmt: skip
    assert "mu        how far and why" in reflowed(text, 60).splitlines()
    many = ", ".join(["a"] * 60)  # a list is no term, and is seen to be none at once
    assert reflowed(many, 1000) == many


def test_methods(capsys):
    assert "fedprox" in feddg(capsys, "methods").out
    assert json.loads(feddg(capsys, "methods", "fedprox", "--json").out)["name"] == "fedprox"
    said = feddg(capsys, "methods", "fedporx")
    assert said.code == 2
    assert "did you mean 'fedprox'" in said.err


def test_data_list(capsys):
    said = feddg(capsys, "data", "list")
    assert "heart-disease (inside the package)" in said.out
    names = [d["name"] for d in json.loads(feddg(capsys, "data", "list", "--json").out)]
    assert {"heart-disease", "rotated-mnist", "folder", "csv"} <= set(names)


def test_data_list_says_what_is_there(capsys, tmp_path, monkeypatch):
    (tmp_path / "pacs").mkdir()
    monkeypatch.setenv("FEDDG_DATA", str(tmp_path))
    said = feddg(capsys, "data", "list").out
    assert "pacs (here)" in said
    assert f"folder: {tmp_path / 'vlcs'}, which is not there" in said
    pacs = next(
        d for d in json.loads(feddg(capsys, "data", "list", "--json").out) if d["name"] == "pacs"
    )
    assert pacs["at"] == str(tmp_path / "pacs")
    assert pacs["counts"]["sketch"] == 3929
    assert "Dassl" in " ".join(pacs["layouts"])


def test_data_check_marks_what_is_not_as_published(capsys, tmp_path):
    domains = ("art_painting", "cartoon", "photo", "sketch")
    tree(tmp_path, domains, PACS)
    said = feddg(capsys, "data", "check", tmp_path)
    assert said.code == 0
    assert "pacs, <domain>/<class>/<image>" in said.out
    assert "≠ 2048" in said.out
    assert "2 ≠ 379" in said.out
    write(tmp_path / "photo_train.txt", ["photo/dog/pic_000.jpg 1", "photo/dog/gone.jpg 1"])
    said = feddg(capsys, "data", "check", "pacs", "--data-option", f"root={tmp_path}")
    assert said.code == 2
    assert "photo_train.txt, line 2 names photo/dog/gone.jpg" in said.out
    said = feddg(
        capsys, "data", "check", "pacs", "--data-option", f"root={tmp_path}",
        "--data-option", "split=none",
    )  # fmt: skip
    assert said.code == 0


def test_data_check(capsys, tmp_path):
    good = sites(tmp_path / "good")
    said = feddg(capsys, "data", "check", good)
    assert said.code == 0
    assert "fit to use" in said.out
    assert json.loads(feddg(capsys, "data", "check", good, "--json").out)["ok"] is True
    (good / "b.csv").write_text("u,v,label\n1,x,ill\n")
    said = feddg(capsys, "data", "check", good)
    assert said.code == 2
    assert "problem: b.csv, row 2, column 'v'" in said.out
    said = feddg(capsys, "data", "check", good, "--data-option", "ignore=v")
    assert said.code == 0, said.out
