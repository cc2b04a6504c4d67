"""`feddg table`: finished runs as tables for people, papers and programs."""

from pathlib import Path
from typing import Annotated

import typer

from feddg.cli.draw import drawn

FORMATS = ("text", "markdown", "latex", "csv")

Runs = Annotated[list[Path], typer.Argument(help="Folders with runs in them, at any depth.")]
Format = Annotated[str, typer.Option("--format", help="text, markdown, latex or csv.")]
ByRule = Annotated[
    str | None, typer.Option(help="last, source-val, domain-val, oracle; default: each run's own.")
]


def table(runs: Runs, format: Format = "text", selection: ByRule = None) -> None:
    """Mean ± standard error by method and target: one table for every protocol among the runs."""
    from feddg.benchmark.stored import stored_runs
    from feddg.errors import unknown
    from feddg.report.groups import grouped

    if format not in FORMATS:
        raise unknown("format", format, FORMATS)
    found = [group.table() for group in grouped(stored_runs(runs), selection)]
    if format == "text":
        for one in found:
            drawn(one.title, one.lines(), one.notes)
    else:
        print(*(getattr(one, format)().rstrip("\n") for one in found), sep="\n\n")
