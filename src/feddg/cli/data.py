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
    """Every data set that has a name: what it is, where to get it, and whether it is there."""
    from feddg.data.catalogue import catalogue, place
    from feddg.data.places import home

    rows = []
    for spec in catalogue().values():
        at = None if spec.embedded or spec.yours else place(spec)
        where = {"expected": "", "at": ""}
        if not spec.embedded and not spec.yours:
            where = {"expected": str(home() / spec.name), "at": str(at or "")}
        rows.append(
            {k: getattr(spec, k) for k in SHOWN}
            | {"layouts": list(spec.layouts), "counts": dict(spec.counts)}
            | where
        )
    if json:
        print_json(rows)
        return
    for row in rows:
        here = " (inside the package)" if row["embedded"] else " (here)" if row["at"] else ""
        say(f"{row['name']}{here}", "bold")
        for key in ("summary", "size", "licence", "source", "layout"):
            say(f"  {key}: {row[key]}")
        for layout in row["layouts"]:
            say(f"    or: {layout}")
        if row["expected"]:
            say(f"  folder: {row['at'] or row['expected'] + ', which is not there'}")
        if row["notes"]:
            say(f"  notes: {row['notes']}")


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
    name = (
        report["name"]
        if report["data"] == report["name"]
        else f"{report['name']}: {report['data']}"
    )
    say(f"{name}{', ' + report['layout'] if report['layout'] else ''}", "bold")
    if report["rows"]:
        draw(table(report["rows"]))
    if report["splits"]:
        say(f"splits: {report['splits']}")
    for kind, style in (("problems", "bold red"), ("warnings", "yellow")):
        for line in report[kind]:
            say(f"{kind[:-1]}: {line}", style)
    if not report["problems"]:
        say("fit to use", "green")


def table(rows: list[dict[str, Any]]) -> Any:
    """A domain a line; what differs from the published numbers stands beside them, marked."""
    from rich.table import Table
    from rich.text import Text

    classes = list(dict.fromkeys(c for row in rows for c in row["classes"]))
    shown = classes if len(classes) <= WIDE else []
    splits = list(dict.fromkeys(s for row in rows for s in row["splits"]))
    published = any(row["published"] is not None for row in rows)
    made = Table()
    made.add_column("domain")
    for column in ("examples", *["published"] * published, *splits, *shown):
        made.add_column(Text(column), justify="right")
    for row in rows:
        cells = [str(row["examples"])]
        if published:
            cells.append(beside(row["examples"], row["published"]))
        cells += [str(row["splits"].get(s, "")) for s in splits]
        for c in shown:
            there, known = row["classes"].get(c, 0), row["published_classes"].get(c)
            cells.append(str(there) if known in (None, there) else f"{there} ≠ {known}")
        made.add_row(Text(row["domain"]), *cells)
    return made


def beside(there: int, published: int | None) -> str:
    if published is None:
        return "?"
    return str(published) if there == published else f"≠ {published}"
