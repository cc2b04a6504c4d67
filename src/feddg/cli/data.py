"""`feddg data`: what there is, and whether a folder is fit to use."""

from typing import Annotated, Any

import typer

from feddg.cli import options as o
from feddg.cli.draw import draw, print_json, say

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
    for kind, style in (("problems", "bold red"), ("warnings", "yellow")):
        for line in report[kind]:
            say(f"{kind[:-1]}: {line}", style)
    if not report["problems"]:
        say("fit to use", "green")
