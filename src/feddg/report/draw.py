"""Charts as a PNG, PDF or SVG with matplotlib: one style, light, and told apart without colour."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO
from itertools import cycle
from math import ceil
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

from feddg.checkpoint import write_whole
from feddg.errors import ConfigError, unknown
from feddg.report.charts import Chart, Series

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which colour-blind people tell apart; black and wine come last.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F", "#000000",
           "#882255", "#999933")  # fmt: skip
MARKERS = "osD^vPX*<>"
INK, FAINT = "#333333", "#DDDDDD"
STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans", "font.size": 9, "axes.titlesize": 10, "axes.titleweight": "bold",
    "axes.titlelocation": "left", "axes.spines.top": False, "axes.spines.right": False,
    "axes.edgecolor": "#888888", "axes.labelcolor": INK, "axes.grid": True, "axes.axisbelow": True,
    "grid.color": FAINT, "grid.linewidth": 0.6, "text.color": INK, "xtick.color": INK,
    "ytick.color": INK, "legend.frameon": False, "legend.fontsize": 8, "lines.linewidth": 1.6,
    "lines.markersize": 4, "svg.hashsalt": "feddg", "svg.fonttype": "none", "pdf.fonttype": 42,
    "figure.dpi": 100, "savefig.dpi": 160,
}  # fmt: skip
FORMATS: Mapping[str, dict[str, Any]] = {  # without the date: equal charts, equal bytes
    "png": {}, "pdf": {"CreationDate": None}, "svg": {"Date": None},
}  # fmt: skip
WIDTH, HEIGHT, ACROSS = 4.2, 3.2, 3  # inches a panel, panels a row


def write_charts(charts: Sequence[Chart], path: Path) -> None:
    """All panels in one file, whose name says the format."""
    kind = path.suffix.lstrip(".").lower()
    if kind not in FORMATS:
        raise unknown("format of a figure", path.name, [f"{path.stem}.{k}" for k in FORMATS])
    write_whole(path, rendered(charts, kind))


def rendered(charts: Sequence[Chart], kind: str = "png") -> bytes:
    with figure(charts) as drawn:
        written = BytesIO()
        drawn.savefig(written, format=kind, metadata=FORMATS[kind])
        return written.getvalue()


@contextmanager
def figure(charts: Sequence[Chart]) -> "Iterator[Figure]":
    """The panels with a legend each, or one for all where they have the same names."""
    try:
        import matplotlib as mpl
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise ConfigError("figures need matplotlib: pip install 'feddg[report]'") from None

    across = min(len(charts), ACROSS)
    down = ceil(len(charts) / across)
    with mpl.rc_context(STYLE):
        drawn = Figure(figsize=(max(WIDTH * across, 5.2), HEIGHT * down + 0.6))
        FigureCanvasAgg(drawn)
        drawn.set_layout_engine("constrained")
        grid = drawn.subplots(down, across, squeeze=False)
        shared = len(charts) > 1 and len({named(c) for c in charts}) == 1
        for ax, chart in zip(grid.flat, charts, strict=False):
            panel(ax, chart, legend=not shared)
        for ax in list(grid.flat)[len(charts) :]:
            ax.set_axis_off()
        if shared and len(named(charts[0])) > 1:
            handles, names = grid.flat[0].get_legend_handles_labels()
            drawn.legend(handles, names, loc="outside upper center", ncols=min(len(names), 6))
        notes = "\n".join(dict.fromkeys(c.note for c in charts if c.note))
        if notes:
            width = int(24 * drawn.get_figwidth())
            text = "\n".join(fill(line, width) for line in notes.splitlines()[:4])
            drawn.supxlabel(text, fontsize=6, color="#888888", x=0.01, ha="left")
        yield drawn


def named(chart: Chart) -> tuple[str, ...]:
    return tuple(dict.fromkeys(s.name for s in chart.series))


def panel(ax: "Axes", chart: Chart, legend: bool = True) -> None:
    ax.set_title(fill(chart.title, 44))
    ax.set_xlabel(chart.x)
    ax.set_ylabel(chart.y)
    DRAWN[chart.kind](ax, chart)
    if chart.reference is not None:
        ax.axhline(chart.reference, color=INK, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
    if legend and len(named(chart)) > 1 and chart.kind != "surface":
        many = len(named(chart)) > 6
        ax.legend(loc="upper left" if many else "best", ncols=1 + many,
                  **({"bbox_to_anchor": (1.0, 1.0)} if many else {}))  # fmt: skip


def looks(chart: Chart) -> dict[str, tuple[str, str]]:
    """{series: colour and marker}; series of one name share theirs."""
    return dict(zip(named(chart), zip(cycle(COLOURS), cycle(MARKERS), strict=False), strict=False))


def known(series: Series) -> list[tuple[float | str, float, float]]:
    """The points that are there, with their errors."""
    errors = series.error or (None,) * len(series.x)
    return [(x, y, e or 0.0) for x, y, e in zip(series.x, series.y, errors, strict=True)
            if y is not None]  # fmt: skip


def lines(ax: "Axes", chart: Chart) -> None:
    """Lines with a band of ± the error; a single point is a marker."""
    from matplotlib.ticker import MaxNLocator

    for one, label in labelled(chart):
        colour, marker = looks(chart)[one.name]
        points = known(one)
        x, y, e = (list(v) for v in zip(*points, strict=True)) if points else ([], [], [])
        few = len(points) <= 12
        ax.plot(x, y, color=colour, marker=marker if few else "", label=label,
                linestyle=(0, (4, 2)) if one.dashed else "-")  # fmt: skip
        if any(e) and few:
            ax.errorbar(x, y, yerr=e, fmt="none", ecolor=colour, elinewidth=1, capsize=2)
        elif any(e):
            ax.fill_between(x, [a - b for a, b in zip(y, e, strict=True)],
                            [a + b for a, b in zip(y, e, strict=True)],
                            color=colour, alpha=0.15, linewidth=0)  # fmt: skip
    if all(float(x).is_integer() for s in chart.series for x in s.x):
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    if not chart.y:
        ax.set_yticks([])


def labelled(chart: Chart) -> Iterator[tuple[Series, str]]:
    """Every name stands in the legend once."""
    seen = set()
    for one in chart.series:
        yield one, "" if one.name in seen else one.name
        seen.add(one.name)


def bars(ax: "Axes", chart: Chart) -> None:
    """Groups of bars side by side; the axis begins where differences can be seen, and says so."""
    names = list(dict.fromkeys(str(x) for s in chart.series for x in s.x))
    size = 0.8 / len(chart.series)
    for k, one in enumerate(chart.series):
        colour, _ = looks(chart)[one.name]
        points = known(one)
        places = [names.index(str(x)) - 0.4 + size * (k + 0.5) for x, _, _ in points]
        drawn = ax.bar(places, [y for _, y, _ in points], size * 0.92, color=colour,
                       label=one.name, yerr=[e for _, _, e in points],
                       error_kw={"elinewidth": 1, "capsize": 2, "ecolor": INK})  # fmt: skip
        if len(points) * len(chart.series) <= 12:
            ax.bar_label(drawn, fmt="%.3g", fontsize=7, padding=2)
    ax.set_xticks(range(len(names)), names)
    if len(names) > 3 or max(map(len, names)) > 12:
        ax.tick_params("x", rotation=25)
        for tick in ax.get_xticklabels():
            tick.set_horizontalalignment("right")
            tick.set_rotation_mode("anchor")
    ax.grid(axis="x", visible=False)
    ax.set_ylim(*span([y for s in chart.series for _, y, _ in known(s)]))


def span(values: Sequence[float]) -> tuple[float | None, float | None]:
    """From zero, unless all bars are high and nearly level."""
    low, high = min(values, default=0.0), max(values, default=0.0)
    if low > 0 and high - low < 0.25 * high:
        return low - max(0.6 * (high - low), 0.02 * high), None
    return None, None


def scatter(ax: "Axes", chart: Chart) -> None:
    """Clouds; places in the plane of a t-SNE have no scale worth reading."""
    size = 36 if sum(len(s.x) for s in chart.series) < 60 else 9
    for one in chart.series:
        colour, marker = looks(chart)[one.name]
        x, y, _ = zip(*known(one), strict=True)
        ax.scatter(x, y, s=size, color=colour, marker=marker, alpha=0.8, linewidths=0,
                   label=one.name)  # fmt: skip
    if not (chart.x or chart.y):
        ax.set_xticks([])
        ax.set_yticks([])


def surface(ax: "Axes", chart: Chart) -> None:
    """Heights as filled contours, on steps that show the valley; the others as spots."""
    import numpy as np

    ground, *spots = chart.series
    z = np.asarray(ground.z)
    levels = np.unique(np.quantile(z, np.linspace(0, 1, 16)))
    levels = levels if len(levels) > 1 else np.array([z.min(), z.min() + 1e-6])
    x, y = np.asarray(ground.x, dtype=float), np.asarray(ground.y, dtype=float)
    drawn = ax.contourf(x, y, z, levels=levels, cmap="Blues")
    ax.contour(x, y, z, levels=levels, colors="white", linewidths=0.4)
    ax.figure.colorbar(drawn, ax=ax, label=ground.name, format="%.3g", ticks=levels[::3])
    for k, one in enumerate(spots):
        path = [float(v) for v in one.x], [float(v or 0) for v in one.y]
        ax.plot(*path, color=INK, linewidth=0.9, linestyle=(0, (3, 2)), zorder=3)
        spot = path[0][-1], path[1][-1]
        marker, size, colour = ("o", 7, "#E69F00") if k else ("*", 12, "#D55E00")
        ax.plot(*spot, marker=marker, markersize=size, color=colour, markeredgecolor="white",
                zorder=4)  # fmt: skip
        box = {"boxstyle": "round,pad=0.15", "fc": "white", "ec": "none", "alpha": 0.75}
        ax.annotate(one.name, spot, textcoords="offset points", xytext=(6, 6), fontsize=8,
                    bbox=box, zorder=5)  # fmt: skip
    ax.grid(visible=False)


DRAWN = {"line": lines, "bar": bars, "scatter": scatter, "surface": surface}
