"""`feddg methods`: what there is, and what each one does and reveals."""

import re
from textwrap import fill
from typing import Annotated, Any

import typer

from feddg.cli import options as o

TERM = re.compile(r"\S+( \S+)*?  +(?=\S)")  # a parameter, before what is said of it


def methods(
    name: Annotated[str | None, typer.Argument(help="One method, in full.")] = None,
    json: o.Json = False,
) -> None:
    """List all methods by family, or describe one."""
    from feddg.benchmark.bounds import BOUNDS
    from feddg.catalogue import methods as known
    from feddg.errors import unknown

    everything = {**known(), **BOUNDS}
    if name is not None and name not in everything:
        raise unknown("method", name, everything)
    described = [
        describe(known()[n]) if n in known() else bound(n, BOUNDS[n])
        for n in ([name] if name else everything)
    ]
    if json:
        import json as encoder

        print(encoder.dumps(described[0] if name else described))
    elif name:
        show(described[0])
    else:
        listing(described)


def describe(entry: Any) -> dict[str, Any]:
    from inspect import cleandoc, getmodule

    from feddg.catalogue import parameters

    cls = entry.load()
    reveals = cls().reveals
    module = getmodule(cls)
    return {
        "name": entry.name, "family": entry.family, "line": entry.line,
        "parameters": parameters(cls), "presets": ["paper", *getattr(cls, "presets", {})],
        "sends": {"model": "the site's weights", **reveals.notes},
        "server_sees": reveals.server_sees,
        "shares_data": False,
        "citation": cleandoc((module and module.__doc__) or ""),
        "about": cleandoc(cls.__doc__ or ""),
    }  # fmt: skip


def bound(name: str, found: Any) -> dict[str, Any]:
    """A row of `feddg bench` that is no method: only its data and who trains on them differ."""
    from feddg.catalogue import BOUND

    sends = {"data": "every example"} if found.shares_data else {}
    return {
        "name": name, "family": BOUND, "line": found.line, "parameters": {}, "presets": [],
        "sends": sends, "server_sees": "everything" if found.shares_data else "nothing",
        "shares_data": found.shares_data, "citation": "", "about": "A row of `feddg bench` only.",
    }  # fmt: skip


def listing(described: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    for family in dict.fromkeys(d["family"] for d in described):
        table = Table(title=family, title_justify="left", title_style="bold", show_edge=False)
        for column in ("name", "what it does", "shares data", "leaves the site", "server sees"):
            table.add_column(column, overflow="fold")
        for d in (d for d in described if d["family"] == family):
            shared = "yes" if d["shares_data"] else "no"
            leaves = ", ".join(d["sends"]) or "nothing"
            table.add_row(d["name"], d["line"], shared, leaves, d["server_sees"])
        console.print(table)
        console.print()


def reflowed(text: str, width: int) -> str:
    """Docstrings are set for 100 columns: prose and terms are set anew, formulas stay."""
    blocks: list[tuple[str, int]] = []  # a line, and how far the next must be in to go on with it
    for line in text.splitlines():
        inside, term = len(line) - len(line.lstrip()), TERM.match(line)
        said, column = blocks[-1] if blocks else ("", -1)
        if said and line and not term and inside == column:
            blocks[-1] = f"{said} {line.lstrip()}", column
        else:
            blocks.append((line, len(term[0]) if term else -1 if inside else 0))
    wrapped = (
        line if column < 0 else fill(line, width, subsequent_indent=" " * column)
        for line, column in blocks
    )
    return "\n".join(wrapped)


def show(d: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.markup import escape

    console = Console()
    console.print(f"[bold]{d['name']}[/] – {escape(d['line'])}")
    for text in filter(None, (d["citation"], d["about"])):
        console.print(
            escape(reflowed(text, console.width)), end="\n\n", highlight=False, soft_wrap=True
        )
    console.print("[bold]parameters[/] (presets: " + ", ".join(d["presets"]) + ")")
    for key, value in d["parameters"].items():
        console.print(f"  {key} = {value!r}")
    console.print("\n[bold]what leaves a site[/], besides its number of examples, steps and losses")
    for key, value in d["sends"].items():
        console.print(f"  {key}: {escape(value)}")
    console.print(f"the server must see: {d['server_sees']}")
