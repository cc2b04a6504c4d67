"""A figure as plain values, so that one description serves matplotlib and the page.

Whoever computes a figure makes a `Chart`; who draws it knows no method and reads no run.
"""

from dataclasses import asdict, dataclass
from typing import Any, Literal

Kind = Literal["line", "bar", "scatter", "surface"]


@dataclass(frozen=True)
class Series:
    """One named line, row of bars, cloud of points or surface.

    x       numbers, or the names of the bars; of a surface the columns' places
    y       a number for each x; None is a gap; of a surface the rows' places
    error   ± for each y
    z       of a surface: a row of heights for each y
    text    what stands beside each point when it is hovered over
    """

    name: str
    x: tuple[float | str, ...]
    y: tuple[float | None, ...]
    error: tuple[float | None, ...] = ()
    z: tuple[tuple[float, ...], ...] = ()
    text: tuple[str, ...] = ()
    dashed: bool = False


@dataclass(frozen=True)
class Chart:
    """`key` is fit for a file's name; `note` says from which runs the numbers come."""

    key: str
    title: str
    kind: Kind
    x: str  # the axis' title
    y: str
    series: tuple[Series, ...]
    note: str = ""
    reference: float | None = None  # a horizontal line, such as the paper's number

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)
