"""`feddg figure`: the papers' figures, and some more, from finished runs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from feddg.cli import options as o
from feddg.cli.draw import drawn, print_json, say

if TYPE_CHECKING:
    from feddg.report.figures import Figure

Key = Annotated[str | None, typer.Argument(help="Which figure; without one, all are listed.")]
Runs = Annotated[list[Path] | None, typer.Argument(help="Folders with runs in them.")]
To = Annotated[
    Path | None, typer.Option(help="A .png, .pdf or .svg; the default is KEY.png, here.")
]
Target = Annotated[str | None, typer.Option(help="Of this target only; default: see the figure.")]
OfMethod = Annotated[str | None, typer.Option(help="Of this method only.")]


def figure(
    key: Key = None,
    runs: Runs = None,
    out: To = None,
    target: Target = None,
    method: OfMethod = None,
    json: o.Json = False,
) -> None:
    """Draw a figure from runs; --json prints its numbers instead."""
    from feddg.benchmark.stored import stored_runs
    from feddg.errors import ConfigError
    from feddg.report.draw import write_charts
    from feddg.report.figures import FIGURES
    from feddg.report.figures import figure as known
    from feddg.report.figures.common import narrowed

    if key is None:
        listed(list(FIGURES.values()), json)
        return
    wanted = known(key)
    if not runs:
        raise ConfigError(f"name folders with runs in them: feddg figure {key} runs")
    charts = wanted.charts(narrowed(stored_runs(runs), target, method))
    if json:
        print_json([chart.to_dict() for chart in charts])
        return
    path = out or Path(f"{key}.png")
    write_charts(charts, path)
    say(f"{path.resolve()}")


def listed(figures: "list[Figure]", json: bool) -> None:
    if json:
        print_json([{"key": f.key, "line": f.line, "paper": f.paper, "needs": f.needs}
                    for f in figures])  # fmt: skip
        return
    lines = [["key", "shows", "paper", "needs"], *([f.key, f.line, f.paper or "–", f.needs or "–"]
                                                   for f in figures)]  # fmt: skip
    drawn("Figures", lines, left=len(lines[0]))
