"""The numbers that the papers print, as they print them (files/published.csv)."""

import csv
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files

AVERAGE = "average"


@dataclass(frozen=True)
class Printed:
    """One cell. `text` and `error` keep the paper's digits; `error` is "" where it has no ±."""

    text: str
    error: str = ""
    metric: str = "accuracy"

    @property
    def value(self) -> float:
        return float(self.text)

    @property
    def reach(self) -> float | None:
        return float(self.error) if self.error else None

    def __str__(self) -> str:
        return self.text + (f" ± {self.error}" if self.error else "")


@dataclass(frozen=True)
class PaperRow:
    """A method's row; `variant` tells apart the rows of one method. `quoted`: from elsewhere."""

    method: str
    variant: str
    shares_data: bool
    quoted: bool
    cells: Mapping[str, Printed] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, str]:
        return self.method, self.variant


@cache
def paper_rows(
    paper: str, item: str, dataset: str = "", backbone: str = ""
) -> tuple[PaperRow, ...]:
    """The rows of a table in the paper's order, of one data set and backbone where it has more."""
    wanted = {"paper": paper, "item": item, "dataset": dataset, "backbone": backbone}
    wanted = {k: v for k, v in wanted.items() if v}
    found: dict[tuple[str, str], PaperRow] = {}
    for r in everything():
        if any(r[k] != v for k, v in wanted.items()):
            continue
        shares, quoted = r["shares_data"] == "yes", r["run_by_authors"] == "no"
        row = PaperRow(r["method"], r["variant"], shares, quoted, {})
        cell = {r["target"]: Printed(r["value"], r["error"], r["metric"])}
        known = found.setdefault(row.key, row)
        found[row.key] = PaperRow(*row.key, shares, quoted, {**known.cells, **cell})
    return tuple(found.values())


@cache
def everything() -> tuple[dict[str, str], ...]:
    path = files("feddg.benchmark") / "files" / "published.csv"
    with path.open(encoding="utf-8") as file:
        return tuple(csv.DictReader(file))
