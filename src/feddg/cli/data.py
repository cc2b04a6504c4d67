"""`feddg data`: what there is, and whether a folder is fit to use."""

from typing import Annotated

import typer

from feddg.cli import options as o

app = typer.Typer(help="Data sets: list them, check a folder.", no_args_is_help=True)


@app.command("list")
def list_data(json: o.Json = False) -> None:
    """Every data set that has a name, and the layouts that a folder may have."""
    from feddg.data.catalogue import catalogue

    shown = ("name", "title", "summary", "size", "licence", "source", "layout", "embedded", "notes")
    rows = [{k: getattr(spec, k) for k in shown} for spec in catalogue().values()]
    if json:
        import json as encoder

        print(encoder.dumps(rows))
        return
    from rich.console import Console

    console = Console()
    for row in rows:
        embedded = " (inside the package)" if row["embedded"] else ""
        console.print(f"[bold]{row['name']}[/]{embedded} – {row['summary']}")
        for key in ("size", "licence", "source", "layout", "notes"):
            if row[key]:
                console.print(f"  {key}: {row[key]}", markup=False, highlight=False)


@app.command("check")
def check(
    path: Annotated[str, typer.Argument(help="A data set's name or a folder.")], json: o.Json = False
) -> None:
    """Counts by domain and class, and all that is wrong, in one table. Exit code 2 if unfit."""
    from feddg.data.check import check as checked

    report = checked(path)
    if json:
        import json as encoder

        print(encoder.dumps(report.to_dict()))
    else:
        draw(report.to_dict())
    if report.problems:
        raise typer.Exit(2)


def draw(report: dict) -> None:  # type: ignore[type-arg]
    from rich.console import Console
    from rich.table import Table

    console = Console()
    rows = report["rows"]
    classes = list(dict.fromkeys(c for row in rows for c in row["classes"]))
    shown = classes if len(classes) <= 12 else []
    table = Table(title=str(report.get("name", "")), title_justify="left")
    table.add_column("domain")
    table.add_column("examples", justify="right")
    for c in shown:
        table.add_column(str(c), justify="right")
    for row in rows:
        counts = [str(row["classes"].get(c, 0)) for c in shown]
        table.add_row(row["domain"], str(row["examples"]), *counts)
    console.print(table)
    for kind, style in (("problems", "bold red"), ("warnings", "yellow")):
        for line in report[kind]:
            console.print(f"{kind[:-1]}: {line}", style=style, markup=False)
    if not report["problems"]:
        console.print("fit to use", style="green")
