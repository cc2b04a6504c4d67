"""A table over several data sets ends in the average of their averages (GA's Tables 1 and 3)."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean

from feddg.benchmark.beside import Compared, Sheet, lines, tally, told
from feddg.benchmark.published import AVERAGE, PaperRow, everything, paper_rows
from feddg.benchmark.reproduce import Plan, scores
from feddg.benchmark.table import Number


def overall(plans: Sequence[Plan], root: Path) -> Sheet | None:
    """Where all parts of such a table were run whole; else there is none."""
    printed = {row.key: row for row in combined(plans)}
    if not printed or any(set(p.columns) < set(p.item.targets) or p.stand_in for p in plans):
        return None
    found = [scores(p, root) for p in plans]
    first, judged = plans[0], all(p.compares for p in plans)
    rows = []
    for row in first.rows:
        seeds = {s for part in found for by in part.get(row.key, {}).values() for s in by}
        values = [v for s in sorted(seeds) if (v := average(plans, found, row.key, s)) is not None]
        number = Number.of(values)
        paper = printed[row.key].cells if row.key in printed else {}
        ours = {AVERAGE: number} if number else {}
        rows.append(Compared(row.name, row.method, paper, ours))
    columns = (AVERAGE,)
    body = tuple(line for r in rows for line in lines(r, columns, first.seeds, judged))
    data = {"columns": [AVERAGE], "rows": [told(r, columns, judged) for r in rows]}
    title = f"{first.item.title.partition(':')[0]}: the average over {' and '.join(named(plans))}"
    return Sheet(title, ("method", "", AVERAGE), body, tuple(tally(rows, columns, judged)), data)


def average(
    plans: Sequence[Plan],
    found: Sequence[dict[tuple[str, str], dict[str, dict[int, float]]]],
    key: tuple[str, str],
    seed: int,
) -> float | None:
    """Of one seed: over the data sets, of each over its targets; None where one is missing."""
    parts = []
    for wanted, by_row in zip(plans, found, strict=True):
        cells = by_row.get(key, {})
        if any(seed not in cells.get(column, {}) for column in wanted.columns):
            return None
        parts.append(fmean(cells[column][seed] for column in wanted.columns))
    return fmean(parts)


def combined(plans: Sequence[Plan]) -> Iterator[PaperRow]:
    """The paper's rows over just these data sets."""
    of = {(p.item.paper, p.item.numbers.item) for p in plans if p.item.numbers}
    if len(plans) < 2 or len(of) != 1:
        return
    [(paper, item)] = of
    for dataset in dict.fromkeys(r["dataset"] for r in everything()):
        if "+" in dataset and set(dataset.split("+")) == set(named(plans)):
            yield from paper_rows(paper, item, dataset)


def named(plans: Sequence[Plan]) -> list[str]:
    return [p.item.data for p in plans]
