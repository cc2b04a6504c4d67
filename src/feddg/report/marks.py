"""How matplotlib tells one series from another: colour, marker, dashes."""

from itertools import cycle
from typing import Any

from feddg.report.charts import Chart, Series

# Okabe and Ito's colours, which colour-blind people tell apart; black and wine come last.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F", "#000000",
           "#882255", "#999933")  # fmt: skip
MARKERS = "osD^vPX*<>"
DASHES: tuple[Any, ...] = ("-", (0, (1, 1)), (0, (5, 1, 1, 1)))
INK, FAINT = "#333333", "#DDDDDD"


def named(chart: Chart) -> tuple[str, ...]:
    return tuple(dict.fromkeys(s.name for s in chart.series))


def looks(chart: Chart) -> dict[str, tuple[str, str]]:
    """{series: colour and marker}; series of one name share theirs."""
    return dict(zip(named(chart), zip(cycle(COLOURS), cycle(MARKERS), strict=False), strict=False))


def known(series: Series) -> list[tuple[float | str, float, float]]:
    """The points that are there, with their errors."""
    errors = series.error or (None,) * len(series.x)
    return [(x, y, e or 0.0) for x, y, e in zip(series.x, series.y, errors, strict=True)
            if y is not None]  # fmt: skip
