"""Tables of mean ± standard error over seeds, with the paper's number where it compares."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from io import StringIO
from math import sqrt
from statistics import fmean, stdev
from typing import Any

import numpy as np

from feddg.benchmark.experiment import Experiment
from feddg.benchmark.published import AVERAGE, paper_rows
from feddg.benchmark.selection import Record, rule
from feddg.tasks import Classification, Task

NONE, FAILED = "–", "failed"


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
    def of(
        experiment: Experiment, records: Sequence[Record], target: str, task: Task
    ) -> "Cell | None":
        record = rule(experiment.selection).pick(records[: experiment.rounds], task)
        value = record["scores"][f"test/{target}"].get(task.metric)
        if value is None:
            return None
        return Cell(scale(task) * value, task.metric, record["round"])


def bootstrap_interval(
    recalls: tuple[float, float], counts: tuple[int, int], draws: int = 10_000
) -> tuple[float, float]:
    """95% of the balanced accuracies of data drawn anew, class by class, from those at hand.

    How many of n examples with recall r are right in a draw with replacement is Binomial(n, r).
    """
    rng = np.random.default_rng(0)
    shares = [rng.binomial(n, r, draws) / n for r, n in zip(recalls, counts, strict=True)]
    low, high = np.quantile((shares[0] + shares[1]) / 2, (0.025, 0.975))
    return float(low), float(high)


def scale(task: Task) -> int:
    """Shares are shown as percent, correlations as they are."""
    return 100 if isinstance(task, Classification) else 1


def shown_metric(task: Task) -> str:
    return task.metric.replace("_", " ") + (" (%)" if scale(task) == 100 else "")


@dataclass(frozen=True)
class Row:
    name: str
    numbers: tuple[Number | None, ...]
    average: Number | None
    paper: float | None  # the published average
    failed: tuple[str, ...] = ()  # the targets on which a run failed
    reference: bool = False  # no federation: a bound, which is never marked as the best


@dataclass(frozen=True)
class Table:
    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    published: bool = False
    seeds: int = 1

    def lines(self) -> list[list[str]]:
        """Header and rows as text."""
        head = ["method", *self.columns, "average", "paper"]
        body = [
            [
                row.name,
                *(
                    FAILED if n is None and c in row.failed else self.cell(n)
                    for c, n in zip(self.columns, row.numbers, strict=True)
                ),
                self.cell(row.average),
                f"{row.paper:.2f}" if row.paper is not None else NONE,
            ]
            for row in self.rows
        ]
        return [head, *body]

    def cell(self, number: Number | None) -> str:
        """A number of fewer seeds than the title says tells of how many."""
        if number is None:
            return NONE
        return str(number) + (f" (n={number.n})" if number.n < self.seeds else "")

    def markdown(self) -> str:
        head, *body = self.lines()
        rule_line = ["---", *["---:"] * (len(head) - 1)]
        rows = ["| " + " | ".join(r) + " |" for r in (head, rule_line, *body)]
        return "\n".join([self.title, "", *rows, *[f"\n{n}" for n in self.notes]])

    def latex(self) -> str:
        """For papers, with the package booktabs: the best of a column bold, the next underlined."""
        columns = ["method", *self.columns, "average"] + ["paper"] * self.has_paper
        best = [self.marks(i) for i in range(len(self.columns) + 1)]
        body = []
        for k, row in enumerate(self.rows):
            if k and self.rows[k - 1].reference and not row.reference:
                body.append(r"\midrule")
            numbers = (*row.numbers, row.average)
            line = [escaped(row.name)]
            line += [best[i].get(k, "{}").replace("{}", in_latex(n)) for i, n in enumerate(numbers)]
            if self.has_paper:
                line.append("--" if row.paper is None else f"{row.paper:.2f}")
            body.append(" & ".join(line) + r" \\")
        caption = " ".join(escaped(sentence(text)) for text in (self.title, *self.notes))
        return "\n".join([
            r"\begin{table}", r"  \centering",
            r"  \caption{" + caption + "}",
            r"  \begin{tabular}{l" + "r" * (len(columns) - 1) + "}", r"    \toprule",
            "    " + " & ".join(map(escaped, columns)) + r" \\", r"    \midrule",
            *("    " + line for line in body),
            r"    \bottomrule", r"  \end{tabular}", r"\end{table}",
        ])  # fmt: skip

    @property
    def has_paper(self) -> bool:
        return any(row.paper is not None for row in self.rows)

    def marks(self, column: int) -> dict[int, str]:
        """{row: how its number is set}: by the means as they are printed; equals share a mark."""
        found = [
            (round(n.mean, 2), k)
            for k, row in enumerate(self.rows)
            if not row.reference and (n := (*row.numbers, row.average)[column]) is not None
        ]
        best = sorted({mean for mean, _ in found}, reverse=True)[: 2 if len(found) > 1 else 0]
        ways = dict(zip(best, (r"\textbf{{}}", r"\underline{{}}"), strict=False))
        return {k: ways[mean] for mean, k in found if mean in ways}

    def csv(self) -> str:
        """A line for every number, for programs."""
        written = StringIO()
        lines = csv.writer(written, lineterminator="\n")
        lines.writerow(("method", "target", "mean", "error", "n", "paper"))
        for row in self.rows:
            for column, n in zip((*self.columns, "average"), (*row.numbers, row.average),
                                 strict=True):  # fmt: skip
                paper = row.paper if column == "average" else None
                values = (n.mean, n.error, n.n) if n else (None, None, 0)
                lines.writerow((row.name, column, *values, paper))
        return written.getvalue()

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def in_latex(number: Number | None) -> str:
    if number is None:
        return "--"
    error = "" if number.error is None else rf" $\pm$ {number.error:.2f}"
    return f"{number.mean:.2f}{error}"


def sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else text + "."


SPECIAL = {c: "\\" + c for c in "&%$#_{}"} | {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "±": r"$\pm$", "–": "--", "λ": r"$\lambda$", "→": r"$\to$", "×": r"$\times$", "<": "$<$",
    ">": "$>$",
}  # fmt: skip


def escaped(text: str) -> str:
    """Plain text as LaTeX prints it."""
    return "".join(SPECIAL.get(c, c) for c in text)


def cells(
    name: str,
    found: Mapping[str, Mapping[int, float]],
    columns: Sequence[str],
    published: tuple[str, ...] | None = None,
    listed: str | None = None,
) -> Row:
    """From {target: {seed: value}}. The average is taken seed by seed over all targets.

    So its error is that of a table's mean, and there is none while a target lacks the seed.
    `listed` is the method's name in the paper's table, if it is there.
    """
    by_target = [found.get(c, {}) for c in columns]
    seeds = [s for s in by_target[0] if all(s in values for values in by_target)]
    per_seed = [fmean(values[s] for values in by_target) for s in seeds]
    numbers = tuple(Number.of(list(values.values())) for values in by_target)
    paper = paper_number(published, listed, columns) if published and listed else None
    return Row(name, numbers, Number.of(per_seed), paper)


def paper_number(item: tuple[str, ...], method: str, columns: Sequence[str]) -> float | None:
    """The published average, where it is over the same targets.

    `item` is of paper, table and, where the table has several, data set and backbone.
    """
    for row in paper_rows(*item):
        if row.method.lower() == method and not row.variant:
            same = row.cells.keys() - {AVERAGE} == set(columns)
            return row.cells[AVERAGE].value if same and AVERAGE in row.cells else None
    return None
