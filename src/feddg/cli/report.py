"""`feddg report`: stored runs as one page to look at."""

from pathlib import Path
from typing import Annotated

import typer

from feddg.cli import options as o
from feddg.cli.draw import say

Runs = Annotated[list[Path], typer.Argument(help="Folders of runs, or folders that hold some.")]
Out = Annotated[Path, typer.Option(help="The page's file.")]
Title = Annotated[str, typer.Option(help="What stands at its top.")]
Figures = Annotated[
    str | None,
    typer.Option(help="Of `feddg figure`, those that take long: csac-fig8,ga-fig4."),
]


def report(
    runs: Runs,
    out: Out = Path("report.html"),
    title: Title = "feddg report",
    figures: Figures = None,
) -> None:
    """Write one self-contained HTML page of runs: tables, curves, costs, what stands behind."""
    from feddg.benchmark.stored import stored_runs
    from feddg.checkpoint import unwritable, write_whole
    from feddg.errors import ConfigError
    from feddg.report.page import LIMIT, page

    found = stored_runs(runs)
    data = page(found, title=title, asked=o.names(figures)).encode()
    if len(data) > LIMIT:
        raise ConfigError(
            f"the page would have {len(data) / 1e6:.1f} MB, and no page has more than"
            f" {LIMIT / 1e6:.0f}; name fewer of the runs in {', '.join(map(str, runs))}"
        )
    with unwritable(out, "choose another --out"):
        out.parent.mkdir(parents=True, exist_ok=True)
    write_whole(out, data)
    say(f"{len(found)} runs in {out} ({len(data) / 1e3:.0f} kB): open it in a browser")
