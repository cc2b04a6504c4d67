"""`feddg data`: what there is, where to get it, and whether a folder is fit to use."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from feddg.cli import options as o
from feddg.cli.draw import draw, print_json, say

if TYPE_CHECKING:
    from rich.progress import TaskID

    from feddg.data.fetch import Told

SHOWN = ("name", "title", "summary", "size", "licence", "source", "layout", "embedded", "notes")
WIDE = 12  # more classes than this do not fit a screen


def list_data(json: o.Json = False) -> None:
    """Every data set that has a name, and the layouts that a folder may have."""
    from feddg.data.catalogue import catalogue

    rows = [{k: getattr(spec, k) for k in SHOWN} for spec in catalogue().values()]
    if json:
        print_json(rows)
        return
    for row in rows:
        say(f"{row['name']}{' (inside the package)' if row['embedded'] else ''}", "bold")
        for key in ("summary", "size", "licence", "source", "layout", "notes"):
            if row[key]:
                say(f"  {key}: {row[key]}")


def check(
    path: Annotated[str, typer.Argument(help="A data set's name or a folder.")],
    data_option: o.DataOption = None,
    json: o.Json = False,
) -> None:
    """Counts by domain and class, and all that is wrong, in one table. Exit code 2 if unfit."""
    from feddg.data.check import check as checked

    report = checked(path, **o.pairs(data_option, "--data-option"))
    if json:
        print_json(report.to_dict())
    else:
        show(report.to_dict())
    if report.problems:
        raise typer.Exit(2)


def get(
    name: Annotated[str, typer.Argument(help="A data set's name (feddg data list).")],
    root: Annotated[
        Path | None,
        typer.Option(help="Its folder; the default is $FEDDG_DATA/NAME, else ./data/NAME."),
    ] = None,
) -> None:
    """Download a data set from its official source; goes on where it was interrupted."""
    from feddg.data.get import find
    from feddg.data.get import get as fetched
    from feddg.data.places import home

    source = find(name)
    place = root or home() / name
    if source.downloads:
        say(f"{name}: from {source.page} into {place}", "bold")
    if source.note:
        say(source.note)
    with transfers() as told:
        lines = fetched(name, source, place, told)
    for line in lines:
        say(line)


@contextmanager
def transfers() -> Iterator["Told"]:
    """A line with a bar per file; nothing where the output is no terminal."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    columns = (
        TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(),
        TransferSpeedColumn(), TimeRemainingColumn(),
    )  # fmt: skip
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=not console.is_terminal) as shown:
        rows: dict[str, TaskID] = {}

        def told(file: str, done: int, total: int) -> None:
            if file not in rows:
                rows[file] = shown.add_task(file)
            shown.update(rows[file], completed=done, total=total or None)

        yield told


def show(report: dict[str, Any]) -> None:
    from rich.table import Table
    from rich.text import Text

    rows = report["rows"]
    classes = list(dict.fromkeys(c for row in rows for c in row["classes"]))
    shown = classes if len(classes) <= WIDE else []
    table = Table(title=Text(str(report["name"])), title_justify="left")
    table.add_column("domain")
    for name in ("examples", *shown):
        table.add_column(Text(name), justify="right")
    for row in rows:
        counts = [str(row["classes"].get(c, 0)) for c in shown]
        table.add_row(Text(row["domain"]), str(row["examples"]), *counts)
    if rows:
        draw(table)
    if report["splits"]:
        say(f"splits: {report['splits']}")
    for kind, style in (("problems", "bold red"), ("warnings", "yellow")):
        for line in report[kind]:
            say(f"{kind[:-1]}: {line}", style)
    if not report["problems"]:
        say("fit to use", "green")
