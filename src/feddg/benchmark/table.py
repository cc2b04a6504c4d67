"""Tables of mean ± standard error over seeds, with the paper's number where it compares."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from math import sqrt
from statistics import fmean, stdev
from typing import Any

from feddg.benchmark.experiment import Experiment, open_experiment_data
from feddg.benchmark.records import Record
from feddg.benchmark.selection import rule

NONE = "–"


@dataclass(frozen=True)
class Number:
    """The mean over n seeds; the error is the sample standard deviation over √n."""

    mean: float
    error: float | None
    n: int

    @staticmethod
    def of(values: Sequence[float]) -> "Number | None":
        if not values:
            return None
        error = stdev(values) / sqrt(len(values)) if len(values) > 1 else None
        return Number(fmean(values), error, len(values))

    def __str__(self) -> str:
        return f"{self.mean:.2f}" + (f" ± {self.error:.2f}" if self.error is not None else "")


@dataclass(frozen=True)
class Cell:
    """One run's score at the round that its selection rule picks."""

    value: float
    metric: str
    round: int

    @staticmethod
    def of(experiment: Experiment, records: Sequence[Record], target: str) -> "Cell":
        metric = task_metric(experiment)
        record = rule(experiment.selection).pick(records, metric)
        value = record["scores"][f"test/{target}"][metric]
        return Cell(100 * value, metric, record["round"])


@cache
def _metric(data: str, options: tuple[tuple[str, str], ...]) -> str:
    return open_experiment_data(Experiment(data=data, data_options=dict(options))).task.metric


def task_metric(experiment: Experiment) -> str:
    return _metric(experiment.data, tuple(sorted(experiment.data_options.items())))


@dataclass(frozen=True)
class Row:
    name: str
    numbers: tuple[Number | None, ...]
    average: Number | None
    paper: float | None  # the published average


@dataclass(frozen=True)
class Table:
    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    published: bool = False

    def lines(self) -> list[list[str]]:
        """Header and rows as text."""
        head = ["method", *self.columns, "average", "paper"]
        body = [
            [
                row.name,
                *(str(n) if n else NONE for n in row.numbers),
                str(row.average) if row.average else NONE,
                f"{row.paper:.2f}" if row.paper is not None else NONE,
            ]
            for row in self.rows
        ]
        return [head, *body]

    def markdown(self) -> str:
        head, *body = self.lines()
        rule_line = ["---", *["---:"] * (len(head) - 1)]
        rows = ["| " + " | ".join(r) + " |" for r in (head, rule_line, *body)]
        return "\n".join([self.title, "", *rows, *[f"\n{n}" for n in self.notes]])

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def cells(
    name: str,
    found: Mapping[str, Sequence[float]],
    columns: Sequence[str],
    published: tuple[str, str] | None,
) -> Row:
    """The average is over all targets seed by seed, so its error is that of a table's mean."""
    columns = tuple(columns)
    lists = [found.get(c, []) for c in columns]
    numbers = tuple(Number.of(v) for v in lists)
    n = min(len(v) for v in lists)
    per_seed = [fmean(v[i] for v in lists) for i in range(n)]
    paper = paper_number(published, name, columns) if published else None
    return Row(name, numbers, Number.of(per_seed), paper)


def paper_number(item: tuple[str, str], method: str, columns: Sequence[str]) -> float | None:
    """The published average, where it is over the same targets."""
    averages = [r for r in _published(*item) if r["method"].lower() == method]
    over = {r["target"] for r in averages} - {"average"}
    if over != set(columns):
        return None
    return next((float(r["value"]) for r in averages if r["target"] == "average"), None)


@cache
def _published(paper: str, item: str) -> tuple[dict[str, str], ...]:
    path = files("feddg.benchmark") / "files" / "published.csv"
    with path.open(encoding="utf-8") as file:
        rows = csv.DictReader(file)
        return tuple(r for r in rows if (r["paper"], r["item"]) == (paper, item))
