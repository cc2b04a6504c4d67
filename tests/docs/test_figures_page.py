"""docs/figures.md: its first commands run as they stand, and its tables have what there is."""

import re
import shlex
from pathlib import Path

from feddg.benchmark.diagnostics import DIAGNOSTICS
from feddg.report.figures import FIGURES
from tests.cli.command import feddg
from tests.docs.test_docs import blocks

PAGE = Path(__file__).parents[2] / "docs" / "figures.md"


def test_the_commands_run(capsys, tmp_path, monkeypatch):
    """All but the last block, which trains for minutes."""
    monkeypatch.chdir(tmp_path)
    lines = [v for code in blocks(PAGE, "console")[:-1] for v in code.splitlines()]
    for line in lines:
        _, *words = shlex.split(line.removeprefix("$ "))
        said = feddg(capsys, *words)
        assert said.code == 0, (line, said.err)
    assert {p.name for p in tmp_path.iterdir()} == {
        "runs", "rounds.png", "csac-fig9.png", "surface.pdf",
    }  # fmt: skip


def test_every_figure_and_diagnostic_is_explained():
    rows = re.findall(r"^\| (`.*?) \|", PAGE.read_text(), re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`([\w-]+)`", row)}
    assert named == set(FIGURES) | set(DIAGNOSTICS)
