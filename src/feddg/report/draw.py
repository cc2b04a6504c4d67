"""Charts as a PNG, PDF or SVG with matplotlib: one style, light, and told apart without colour."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO
from math import ceil
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

from feddg.checkpoint import write_whole
from feddg.errors import ConfigError, unknown
from feddg.report.bars import bar_names, bars, lying
from feddg.report.charts import Chart, Series
from feddg.report.marks import COLOURS, DASHES, FAINT, INK, known, looks, named

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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

    across = min(len(charts), 2 if even(charts) else ACROSS)
    down = ceil(len(charts) / across)
    with mpl.rc_context(STYLE):
        height = max(HEIGHT, *(0.22 * len(bar_names(c)) for c in charts)) * down + 0.6
        drawn = Figure(figsize=(max(WIDTH * across, 5.2), height))
        FigureCanvasAgg(drawn)
        drawn.set_layout_engine("constrained")
        level = len({(c.kind, c.y) for c in charts}) == 1 and charts[0].kind == "line"
        grid = drawn.subplots(down, across, squeeze=False, sharey=level)
        shared = len(charts) > 1 and len({named(c) for c in charts}) == 1
        for ax, chart in zip(grid.flat, charts, strict=False):
            panel(ax, chart, legend=not shared, levels=levels(charts))
            if level and ax not in grid[:, 0]:
                ax.set_ylabel("")
        for ax in list(grid.flat)[len(charts) :]:
            ax.set_axis_off()
        handles, names = grid.flat[0].get_legend_handles_labels()
        if shared and len(names) > 1:
            fit = int(drawn.get_figwidth() / (0.6 + 0.065 * max(map(len, names))))
            ncols = max(1, min(len(names), 6, fit))
            drawn.set_figheight(height + 0.16 * ceil(len(names) / ncols))
            drawn.legend(handles, names, loc="outside upper center", ncols=ncols)
        text = fill(noted(charts), int(22 * drawn.get_figwidth()))
        drawn.supxlabel(text, fontsize=6, color="#888888", x=0.01, ha="left")
        yield drawn


def even(charts: Sequence[Chart]) -> bool:
    """Two by two; clouds come in pairs, by class and by domain."""
    return len(charts) == 4 or all(c.kind == "scatter" for c in charts)


def noted(charts: Sequence[Chart]) -> str:
    """Every panel's note; how they all begin is said once."""
    notes = list(dict.fromkeys(c.note for c in charts if c.note))
    heads = {n.partition(". ")[0] for n in notes}
    if len(notes) < 2 or len(heads) > 1:
        return ". ".join(notes)
    return f"{heads.pop()}. " + ". ".join(n.partition(". ")[2] for n in notes)


def panel(ax: "Axes", chart: Chart, legend: bool = True, levels: Sequence[float] = ()) -> None:
    ax.set_title(fill(chart.title, 44))
    ax.set_xlabel(chart.x)
    ax.set_ylabel(chart.y)
    if chart.kind == "surface":
        surface(ax, chart, levels)
    else:
        DRAWN[chart.kind](ax, chart)
    if chart.reference is not None:
        ax.axhline(chart.reference, color=INK, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
    if legend and len(named(chart)) > 1 and ax.get_legend_handles_labels()[0]:
        most = {"line": 6, "bar": 2}.get(chart.kind, 0)  # names for which there is room inside
        many = len(named(chart)) > most or lying(chart)
        ax.legend(loc="upper left" if many else "best", ncols=1 + (len(named(chart)) > 12),
                  **({"bbox_to_anchor": (1.0, 1.0)} if many else {}))  # fmt: skip


def lines(ax: "Axes", chart: Chart) -> None:
    """Lines with a band of ± the error."""
    from matplotlib.ticker import MaxNLocator

    if not chart.y:
        ranks(ax, chart)
        return
    order = named(chart)
    for one, label in labelled(chart):
        colour, marker = looks(chart)[one.name]
        again = order.index(one.name) // len(COLOURS)  # colours come again with other dashes
        points = known(one)
        x, y, e = (list(v) for v in zip(*points, strict=True)) if points else ([], [], [])
        few = len(points) <= 12
        ax.plot(x, y, color=colour, marker=marker if few else "", label=label,
                linestyle=(0, (4, 2)) if one.dashed else DASHES[again % len(DASHES)])  # fmt: skip
        if any(e) and few:
            ax.errorbar(x, y, yerr=e, fmt="none", ecolor=colour, elinewidth=1, capsize=2)
        elif any(e):
            ax.fill_between(x, [a - b for a, b in zip(y, e, strict=True)],
                            [a + b for a, b in zip(y, e, strict=True)],
                            color=colour, alpha=0.15, linewidth=0)  # fmt: skip
    if all(float(x).is_integer() for s in chart.series for x in s.x):
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    places = [float(x) for s in chart.series for x in s.x]
    edge = 0.03 * (max(places) - min(places)) or 0.5
    ax.set_xlim(min(places) - edge, max(places) + edge)  # also where all lines have gaps


def ranks(ax: "Axes", chart: Chart) -> None:
    """Points without a height that means anything: each named beside it, and bars below."""
    most = max(float(v) for s in chart.series for v in s.x)
    alike = [s for s in chart.series if len(s.x) > 1]
    for one in chart.series:
        x, y = [float(v) for v in one.x], [v for v in one.y if v is not None]
        if len(x) == 1:
            colour, marker = looks(chart)[one.name]
            ax.plot(x, y, color=colour, marker=marker, markersize=6)
            left = x[0] > (1 + most) / 2  # where there is room
            ax.annotate(one.text[0], (x[0], y[0]), textcoords="offset points",
                        xytext=(-8 if left else 8, 0), ha="right" if left else "left",
                        va="center")  # fmt: skip
        else:
            ax.plot(x, y, color=INK, linewidth=3.5, solid_capstyle="round")
    if alike:  # one word for all, below the last
        middle, low = sum(map(float, alike[-1].x)) / 2, alike[-1].y[0] or 0
        ax.annotate(alike[-1].name, (middle, low), textcoords="offset points",
                    xytext=(0, -5), ha="center", va="top", color="#888888", fontsize=8)  # fmt: skip
    edge = 0.05 * (most - 1) or 0.5
    ax.set_xlim(1 - edge, most + edge)
    ax.margins(y=0.08)
    ax.set_yticks([])
    ax.spines["left"].set_visible(False)


def labelled(chart: Chart) -> Iterator[tuple[Series, str]]:
    """Every name stands in the legend once."""
    seen = set()
    for one in chart.series:
        yield one, "" if one.name in seen else one.name
        seen.add(one.name)


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
        ax.spines[["left", "bottom"]].set_visible(False)


def levels(charts: Sequence[Chart]) -> list[float]:
    """Steps that show the valleys; the same for surfaces side by side, so that flat looks flat."""
    import numpy as np

    z = [v for c in charts if c.kind == "surface" for row in c.series[0].z for v in row]
    steps = np.unique(np.quantile(z, np.linspace(0, 1, 16))).tolist() if z else []
    return steps if len(steps) != 1 else [steps[0], steps[0] + 1e-6]


def surface(ax: "Axes", chart: Chart, levels: Sequence[float]) -> None:
    """Heights as filled contours; the others as spots, with a line from the first."""
    import numpy as np

    ground, *spots = chart.series
    z = np.asarray(ground.z)
    x, y = np.asarray(ground.x, dtype=float), np.asarray(ground.y, dtype=float)
    drawn = ax.contourf(x, y, z, levels=levels, cmap="Blues")
    ax.contour(x, y, z, levels=levels, colors="white", linewidths=0.4)
    ax.figure.colorbar(
        drawn, ax=ax, label=ground.name, format="%.3g", ticks=levels[::3], fraction=0.046, pad=0.03
    )
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
    ax.set_aspect("equal")  # distances between models are what it shows


DRAWN = {"line": lines, "bar": bars, "scatter": scatter}
