"""Bars with matplotlib: side by side, or lying where many have long names."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from feddg.report.charts import Chart
from feddg.report.marks import INK, known, looks

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def bars(ax: "Axes", chart: Chart) -> None:
    """Groups of bars side by side. Percentages that are all high do not begin at zero."""
    names = list(bar_names(chart))
    if lying(chart):
        lie(ax, chart, names)
        return
    size = 0.8 / len(chart.series)
    for k, one in enumerate(chart.series):
        colour, _ = looks(chart)[one.name]
        points = known(one)
        places = [names.index(str(x)) - 0.4 + size * (k + 0.5) for x, _, _ in points]
        drawn = ax.bar(places, [y for _, y, _ in points], size * 0.92, color=colour,
                       label=one.name, yerr=reach(points),
                       error_kw={"elinewidth": 1, "capsize": 2, "ecolor": INK})  # fmt: skip
        if len(points) * len(chart.series) <= 8:
            ax.bar_label(drawn, fmt="%.3g", fontsize=7, padding=2)
    ax.set_xticks(range(len(names)), names)
    if len(names) > 3 or max(map(len, names)) > 12:
        ax.tick_params("x", rotation=25)
        for tick in ax.get_xticklabels():
            tick.set_horizontalalignment("right")
            tick.set_rotation_mode("anchor")
    ax.set_xlim(-0.55, len(names) - 0.45)  # also where the last have no bar
    ax.grid(axis="x", visible=False)
    ax.margins(y=0.22 if len(chart.series) > 1 else 0.08)  # room for the legend
    level = span([(y - e, y + e) for s in chart.series for _, y, e in known(s)])
    if "%" in chart.y and level:
        ax.set_ylim(*level)


def reach(points: Sequence[tuple[float | str, float, float]]) -> list[float] | None:
    """One run has no error, which is not one of 0."""
    errors = [e for _, _, e in points]
    return errors if any(errors) else None


def bar_names(chart: Chart) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(x) for s in chart.series for x in s.x if chart.kind == "bar"))


def lying(chart: Chart) -> bool:
    """Many long names are read from left to right only."""
    names = bar_names(chart)
    return len(names) > 8 and max(map(len, names)) > 8


def lie(ax: "Axes", chart: Chart, names: list[str]) -> None:
    size = 0.8 / len(chart.series)
    for k, one in enumerate(chart.series):
        points = known(one)
        places = [names.index(str(x)) - 0.4 + size * (k + 0.5) for x, _, _ in points]
        ax.barh(places, [y for _, y, _ in points], size * 0.92, color=looks(chart)[one.name][0],
                label=one.name, xerr=reach(points),
                error_kw={"elinewidth": 1, "capsize": 2, "ecolor": INK})  # fmt: skip
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()
    ax.grid(axis="y", visible=False)
    ax.margins(x=0.22 if len(chart.series) > 1 else 0.08, y=0.02)  # room for the legend
    ax.set(xlabel=chart.y, ylabel=chart.x)


def span(values: Sequence[tuple[float, float]]) -> tuple[float, float] | None:
    """Of (value - error, value + error): None, as usual, unless all are high and nearly level."""
    low = min((v for v, _ in values), default=0.0)
    high = max((v for _, v in values), default=0.0)
    if low <= 0 or high - low >= 0.25 * high:
        return None
    low -= max(0.6 * (high - low), 0.02 * high)
    return low, high + 0.2 * (high - low)
