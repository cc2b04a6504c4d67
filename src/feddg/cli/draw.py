"""Printing with rich: a line that is too wide is better than a number cut short."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import RenderableType


def draw(*renderables: "RenderableType") -> None:
    """Each as wide as it needs to be, wherever it goes."""
    from rich.console import Console, Group
    from rich.measure import Measurement

    for given in renderables:
        for one in given.renderables if isinstance(given, Group) else [given]:
            console = Console()
            unbounded = console.options.update(max_width=10_000)
            width = Measurement.get(console, unbounded, one).maximum
            Console(width=max(width, console.width)).print(one)


def drawn(
    title: str, lines: Sequence[Sequence[str]], notes: Sequence[str] = (), left: int = 1
) -> None:
    """A titled table whose first line is its head; the columns `left` stand left, numbers right."""
    from rich.table import Table
    from rich.text import Text

    head, *body = lines
    table = Table()
    for i, name in enumerate(head):
        table.add_column(Text(name), justify="left" if i < left else "right", no_wrap=True)
    for row in body:
        table.add_row(*map(Text, row))
    say(title, "bold")
    draw(table)
    for note in notes:
        say(note, "dim")


def say(text: str, style: str = "") -> None:
    """A line of plain text, however long; nothing in it is markup."""
    from rich.console import Console

    Console().print(text, style=style, markup=False, highlight=False, soft_wrap=True)


def print_json(value: Any) -> None:
    print(json.dumps(value, allow_nan=False))
