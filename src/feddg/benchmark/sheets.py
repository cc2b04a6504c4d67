"""An item's table by its kind: accuracies, how long training took, which differences are chance."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import fmean

from feddg.benchmark.beside import (
    NO_VERDICT,
    Compared,
    Sheet,
    compared,
    counted,
    notes,
    side_by_side,
)
from feddg.benchmark.published import AVERAGE
from feddg.benchmark.reproduce import Plan, heading, scores
from feddg.benchmark.table import NONE
from feddg.errors import FeddgError, said_once

BASE = "FedAvg"
MACHINES = (
    "Hours of another machine do not compare; how much longer a method takes than FedAvg does."
    " Each run was trained alone."
)


def sheet(wanted: Plan, root: Path, failed: Mapping[str, str] | None = None) -> Sheet:
    """The table of an item's kind."""
    kinds = {"cost": costs, "significance": significance}
    return kinds.get(wanted.item.kind, side_by_side)(wanted, root, failed)


def costs(wanted: Plan, root: Path, failed: Mapping[str, str] | None = None) -> Sheet:
    """Hours in the paper, seconds of all rounds here, and for both the ratio to FedAvg."""
    rows = compared(wanted, root, failed)
    columns = (*wanted.columns, AVERAGE)
    base = next((r for r in rows if r.name == BASE), None)
    body = []
    for row in rows:
        name = row.name
        if row.paper:
            hours = (str(row.paper.get(c, NONE)) for c in columns)
            body.append((name, "paper (h)", *hours, ratio(row, base, ours=False)))
            name = ""
        seconds = (counted(row.ours.get(c), wanted.seeds) for c in columns)
        body.append((name, "ours (s)", *seconds, ratio(row, base, ours=True)))
    data = {
        "columns": list(columns),
        "rows": [
            {
                "name": r.name, "method": r.method,
                "paper_hours": {c: p.value for c, p in r.paper.items()},
                "our_seconds": {c: n.mean for c, n in r.ours.items()},
                "paper_ratio": relative(r, base, ours=False),
                "our_ratio": relative(r, base, ours=True),
            }
            for r in rows
        ],
    }  # fmt: skip
    head = ("method", "", *columns, f"ratio to {BASE}")
    return Sheet(heading(wanted), head, tuple(body), (MACHINES, *notes(wanted, root, failed)), data)


def relative(row: Compared, base: Compared | None, *, ours: bool) -> float | None:
    if base is None:
        return None
    if ours:
        own, theirs = row.ours.get(AVERAGE), base.ours.get(AVERAGE)
        return own.mean / theirs.mean if own and theirs and theirs.mean else None
    printed, whose = row.paper.get(AVERAGE), base.paper.get(AVERAGE)
    return printed.value / whose.value if printed and whose else None


def ratio(row: Compared, base: Compared | None, *, ours: bool) -> str:
    found = relative(row, base, ours=ours)
    return NONE if found is None else f"{found:.2f}"


def significance(wanted: Plan, root: Path, failed: Mapping[str, str] | None = None) -> Sheet:
    """p of a paired t-test against the item's chosen method; pairs share target and seed."""
    found = scores(wanted, root, failed)
    chosen = next((r for r in wanted.rows if r.label == wanted.item.against), None)
    printed = {} if wanted.stand_in else {r.key: r.cells for r in wanted.item.published()}
    body, rows, reasons = [], [], []
    for row in wanted.rows:
        if row == chosen:
            continue
        pairs = list(paired(found[row.key], found[chosen.key])) if chosen else []
        p, reason = tested(pairs)
        reasons += [(row.label, reason)] if reason else []
        cell = printed.get(row.key, {}).get("")
        gap = fmean(b - a for a, b in pairs) if pairs else None
        shown = (
            row.label, str(cell) if cell else NONE, NONE if p is None else f"{p:.3g}",
            NONE if gap is None else f"{gap:+.2f}", str(len(pairs)),
        )  # fmt: skip
        body.append(shown)
        rows.append(
            {
                "name": row.label, "method": wanted.method(row),
                "paper": cell.value if cell else None, "ours": p, "gap": gap, "n": len(pairs),
            }
        )  # fmt: skip
    against = wanted.item.against
    head = (f"{against} against", "p in the paper", "p here", f"{against} is better by", "pairs")
    unlike = () if wanted.compares else (NO_VERDICT,)
    untested = (f"No test: {said_once(reasons)}.",) if reasons else ()
    said = (*unlike, *untested, *notes(wanted, root, failed))
    return Sheet(heading(wanted), head, tuple(body), said, {"against": against, "rows": rows}, 1)


def paired(
    one: Mapping[str, Mapping[int, float]], other: Mapping[str, Mapping[int, float]]
) -> Iterator[tuple[float, float]]:
    """Scores of the same target and seed."""
    for column, by_seed in one.items():
        for seed, value in by_seed.items():
            if seed in other.get(column, {}):
                yield value, other[column][seed]


def tested(pairs: list[tuple[float, float]]) -> tuple[float | None, str]:
    """Of the paired t-test, or why there is none."""
    from feddg.report.statistics import paired_t

    if not pairs:
        return None, ""
    try:
        return paired_t(*([p[k] for p in pairs] for k in (0, 1))), ""
    except FeddgError as why:
        return None, str(why)
