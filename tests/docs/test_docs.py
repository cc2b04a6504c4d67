"""The documentation runs: every Python block is executed, every command line exists."""

import re
import shlex
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
import torch

import feddg
from feddg import catalogue
from tests import toy

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path, language: str) -> list[str]:
    return [code for kind, code in BLOCK.findall(page.read_text()) if kind == language]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_python_blocks_run(page, tmp_path, monkeypatch):
    """The blocks of a page share their names, as a reader's session would."""
    monkeypatch.chdir(tmp_path)
    names: dict = {"__name__": "page"}
    for code in blocks(page, "python"):
        exec(compile(code, str(page), "exec"), names)  # noqa: S102 - our own documentation


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_commands_exist_with_their_options(page):
    from typer.main import get_command

    from feddg.cli import app

    for code in blocks(page, "console"):
        for line in re.findall(r"^\$ (feddg .*)$", code, re.MULTILINE):
            _, *words = shlex.split(line)
            command = get_command(app)
            while hasattr(command, "commands"):
                assert words[0] in command.commands, line
                command = command.commands[words.pop(0)]
            known = {o for p in command.params for o in p.opts}
            assert {w for w in words if w.startswith("--")} <= known, line


def added_method():
    [code, *_] = blocks(ROOT / "docs" / "adding-a-method.md", "python")
    names: dict = {"__name__": "tests.docs.fedmoved"}
    exec(compile(code, "fedmoved.py", "exec"), names)  # noqa: S102
    return code, names["FedMoved"]


def test_a_method_is_added_in_under_forty_lines():
    code, made = added_method()
    assert len(code.splitlines()) < 40
    plain = toy.vector(catalogue.compose("fedavg"))
    assert torch.equal(toy.vector(made(sharp=0.0)), plain)
    assert not torch.equal(toy.vector(made(sharp=2.0)), plain)


def test_another_package_registers_a_method_without_touching_ours(monkeypatch):
    _, made = added_method()
    monkeypatch.setattr(feddg, "FedMoved", made, raising=False)
    point = EntryPoint("fedmoved", "feddg:FedMoved", "feddg.methods")
    monkeypatch.setattr(catalogue, "entry_points", lambda group: [point])
    catalogue.methods.cache_clear()
    try:
        method = catalogue.compose("fedmoved(sharp=2)+fedprox")
        assert catalogue.spelled(method) == "fedmoved(sharp=2.0)+fedprox(mu=0.1)"
        assert catalogue.methods()["fedmoved"].family == "other packages"
    finally:
        catalogue.methods.cache_clear()
