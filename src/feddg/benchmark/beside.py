"""Paper and ours side by side: the numbers, their difference, and whether ours lies within ±."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from feddg.benchmark.bench import unfinished, whole
from feddg.benchmark.bounds import BOUNDS
from feddg.benchmark.published import AVERAGE, Printed
from feddg.benchmark.reproduce import Plan, Scores, heading, scores
from feddg.benchmark.table import NONE, Number, Row, cells
from feddg.errors import said_once

NO_VERDICT = "No verdict: another schedule, start or data than the paper's."
WITHIN, OUTSIDE = "within", "outside"


@dataclass(frozen=True)
class Sheet:
    """A table as text; `data` is the same for programs."""

    title: str
    head: tuple[str, ...]
    body: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict)
    left: int = 2  # columns of names

    def markdown(self) -> str:
        align = ["---"] * self.left + ["---:"] * (len(self.head) - self.left)
        lines = ["| " + " | ".join(r) + " |" for r in (self.head, align, *self.body)]
        return "\n".join([self.title, "", *lines, *(f"\n{n}" for n in self.notes)])

    def to_dict(self) -> dict[str, Any]:
        return {"title": self.title, "notes": list(self.notes), **self.data}


@dataclass(frozen=True)
class Compared:
    """One row. Without `ours` only the paper has it; without `paper` only we do."""

    name: str
    method: str
    paper: Mapping[str, Printed]
    ours: Mapping[str, Number]
    quoted: bool = False
    shares: bool = False  # data leave their sites

    @property
    def said(self) -> str:
        return self.name + " (shares data)" * self.shares

    def difference(self, column: str) -> float | None:
        printed, number = self.paper.get(column), self.ours.get(column)
        return number.mean - printed.value if printed and number else None

    def verdict(self, column: str) -> str | None:
        """Whether ours lies within the published ±; None where there is no ±, or no number."""
        apart, printed = self.difference(column), self.paper.get(column)
        if apart is None or printed is None or printed.reach is None:
            return None
        return WITHIN if abs(apart) <= printed.reach + 1e-9 else OUTSIDE


def compared(wanted: Plan, root: Path, failed: Mapping[str, str] | None = None) -> list[Compared]:
    """The paper's rows in its order, then those that it does not print."""
    found, columns = scores(wanted, root, failed), wanted.columns
    ours = {r.key: r for r in wanted.rows}
    printed = {} if wanted.stand_in else {p.key: p for p in wanted.item.published()}
    everything = len(wanted.rows) == len(wanted.item.rows)
    rows = []
    for key in dict.fromkeys((*printed, *ours)):
        if key not in ours and not (everything and key in printed):
            continue
        theirs = printed.get(key)
        mine = numbers(found[key], columns) if key in ours else {}
        name = ours[key].name if key in ours else " ".join(key).rstrip()
        method = wanted.method(ours[key]) if key in ours else ""
        bound = BOUNDS.get(method)
        shares = bool(bound and bound.shares_data) or (key in ours and ours[key].pooled)
        rows.append(
            Compared(
                name, method, of_all(wanted, theirs.cells) if theirs else {}, mine,
                quoted=bool(theirs and theirs.quoted),
                shares=shares or bool(theirs and theirs.shares_data),
            )
        )  # fmt: skip
    return rows


def numbers(found: Scores, columns: tuple[str, ...]) -> dict[str, Number]:
    row: Row = cells("", found, columns)
    known = dict(zip((*columns, AVERAGE), (*row.numbers, row.average), strict=True))
    return {k: v for k, v in known.items() if v is not None}


def of_all(wanted: Plan, printed: Mapping[str, Printed]) -> dict[str, Printed]:
    """The paper's cells; its average only where ours is over the same targets."""
    whole_table = set(wanted.item.targets) <= set(wanted.columns)
    return {k: v for k, v in printed.items() if k != AVERAGE or whole_table}


def side_by_side(wanted: Plan, root: Path, failed: Mapping[str, str] | None = None) -> Sheet:
    rows = compared(wanted, root, failed)
    if wanted.stand_in:
        return on_digits(wanted, rows, tuple(notes(wanted, root, failed)))
    averaged = any(AVERAGE in r.paper for r in rows) or not wanted.item.columns
    columns = (*wanted.columns, *([AVERAGE] if averaged else []))
    judged = wanted.compares
    body = [line for row in rows for line in lines(row, columns, wanted.seeds, judged)]
    data = {"columns": list(columns), "rows": [told(r, columns, judged) for r in rows]}
    return Sheet(
        heading(wanted), ("method", "", *columns), tuple(body),
        (*tally(rows, columns, judged), *notes(wanted, root, failed)), data,
    )  # fmt: skip


def on_digits(wanted: Plan, rows: list[Compared], more: tuple[str, ...]) -> Sheet:
    """Other data than the paper's: its average stands beside ours, and no difference."""
    columns = (*wanted.columns, AVERAGE)
    printed = {p.key: p.cells.get(AVERAGE) for p in wanted.item.published()}
    theirs = {r.name: printed.get(r.key) for r in wanted.rows}
    body = [
        (
            r.said, *(counted(r.ours.get(c), wanted.seeds) for c in columns),
            str(theirs[r.name] or NONE),
        )
        for r in rows
    ]  # fmt: skip
    head = ("method", *columns, f"paper's average, {wanted.item.data}")
    data = {"columns": list(columns), "rows": [told(r, columns, judged=False) for r in rows]}
    return Sheet(heading(wanted), head, tuple(body), (NO_VERDICT, *more), data, left=1)


def lines(
    row: Compared, columns: tuple[str, ...], seeds: int, judged: bool
) -> Iterator[tuple[str, ...]]:
    """Paper, ours, difference: as many of them as there are."""
    name = row.said
    if row.paper:
        kind = "paper, quoted" if row.quoted else "paper"
        yield name, kind, *(str(row.paper.get(c, NONE)) for c in columns)
        name = ""
    if row.method:
        yield name, "ours", *(counted(row.ours.get(c), seeds) for c in columns)
    if row.paper and row.method:
        yield "", "difference", *(apart(row, c, judged) for c in columns)


def counted(number: Number | None, seeds: int) -> str:
    if number is None:
        return NONE
    return str(number) + (f" (n={number.n})" if number.n < seeds else "")


def apart(row: Compared, column: str, judged: bool) -> str:
    """+0.12 within."""
    difference = row.difference(column)
    if difference is None:
        return NONE
    verdict = row.verdict(column) if judged else None
    return f"{difference:+.2f}" + (f" {verdict}" if verdict else "")


def tally(rows: list[Compared], columns: tuple[str, ...], judged: bool) -> Iterator[str]:
    """How many cells lie within ±, row by row."""
    if not judged:
        yield NO_VERDICT
        return
    for row in rows:
        found = [v for v in (row.verdict(c) for c in columns) if v]
        if found:
            own = row.verdict(AVERAGE)
            average = f", the average {own}" if own else ""
            yield (
                f"{row.name}: {found.count(WITHIN)} of {len(found)} numbers within the published"
                f" ±{average}."
            )


def notes(wanted: Plan, root: Path, failed: Mapping[str, str] | None) -> Iterator[str]:
    runs = wanted.runs()
    lost = failed or {}
    missing = [k for k, one in runs.items() if k not in lost and not whole(one, root)]
    yield from unfinished(len(missing), len(runs))
    if lost:
        yield f"Failed: {said_once((runs[k].label, why) for k, why in lost.items() if k in runs)}."
    if wanted.item.chart:
        yield f"`feddg figure {wanted.item.chart} {root}` draws the figure from these runs."
    if wanted.item.unstated and not wanted.stand_in:
        yield f"Unstated in the paper, and taken here: {'; '.join(wanted.item.unstated)}."


def told(row: Compared, columns: tuple[str, ...], judged: bool) -> dict[str, Any]:
    """For programs."""
    found: dict[str, Any] = {"name": row.name, "method": row.method}
    found |= {"quoted": row.quoted, "shares_data": row.shares}
    for c in columns:
        printed, number = row.paper.get(c), row.ours.get(c)
        found[c] = {
            "paper": printed.value if printed else None,
            "paper_error": printed.reach if printed else None,
            "ours": number.mean if number else None,
            "ours_error": number.error if number else None,
            "n": number.n if number else 0,
            "difference": row.difference(c),
            "verdict": row.verdict(c) if judged else None,
        }
    return found
