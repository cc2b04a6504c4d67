"""Every method against one of them, over the (target, seed) cells that both have."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

from feddg.benchmark.stored import StoredRun
from feddg.benchmark.table import NONE, Number, cells
from feddg.errors import FeddgError, unknown
from feddg.report.groups import Group, grouped, short
from feddg.report.statistics import Ranking, Untestable, holm, paired_t, wilcoxon


@dataclass(frozen=True)
class Compared:
    """`difference` is method - the other, mean ± standard error over `pairs` cells.

    The corrected p-values are Holm's, over all methods of the table.
    """

    method: str
    average: Number | None
    difference: Number | None
    t: float | None = None
    t_holm: float | None = None
    wilcoxon: float | None = None
    wilcoxon_holm: float | None = None
    rank: float | None = None

    @property
    def pairs(self) -> int:
        return self.difference.n if self.difference else 0


HEAD = ("method", "average", "difference", "pairs", "p (t)", "Holm", "p (Wilcoxon)", "Holm", "rank")


@dataclass(frozen=True)
class Comparison:
    title: str
    against: str
    rows: tuple[Compared, ...]
    notes: tuple[str, ...] = ()

    def lines(self) -> list[list[str]]:
        return [list(HEAD), *([
            r.method, str(r.average or NONE), signed(r.difference), str(r.pairs or NONE),
            *map(p_text, (r.t, r.t_holm, r.wilcoxon, r.wilcoxon_holm)),
            NONE if r.rank is None else f"{r.rank:.2f}",
        ] for r in self.rows)]  # fmt: skip

    def markdown(self) -> str:
        head, *body = self.lines()
        lines = (head, ["---", *["---:"] * (len(head) - 1)], *body)
        rows = ["| " + " | ".join(line) + " |" for line in lines]
        return "\n".join([self.title, "", *rows, *[f"\n{n}" for n in self.notes]])

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"rows": [asdict(r) | {"pairs": r.pairs} for r in self.rows]}


def signed(number: Number | None) -> str:
    return NONE if number is None else ("+" if number.mean >= 0 else "") + str(number)


def p_text(p: float | None) -> str:
    return NONE if p is None else "< 0.0001" if p < 0.0001 else f"{p:.4f}"


def comparisons(
    runs: Sequence[StoredRun], against: str, selection: str | None = None
) -> tuple[Comparison, ...]:
    """One for every group of runs that has the method `against`."""
    groups = grouped(runs, selection)
    found = [c for g in groups if (name := named(against, g)) for c in [compared(g, name)]]
    if not found:
        raise unknown("method among these runs", against, {m for g in groups for m in g.methods})
    return tuple(found)


def named(against: str, group: Group) -> str | None:
    """The row that a composition has in a group, however it was spelled."""
    if against in group.scores:
        return against
    try:
        name = short(against)
    except FeddgError:
        return None
    return name if name in group.scores else None


def compared(group: Group, against: str) -> Comparison:
    """Bounds are no methods and stay out."""
    others = [m for m in group.methods if m != against]
    found = {m: pairs(group.scores[m], group.scores[against]) for m in others}
    ts: dict[str, float] = {}
    signs: dict[str, float] = {}
    why = []
    for name, (ours, theirs) in found.items():
        for test, into, called in ((paired_t, ts, "t"), (wilcoxon, signs, "Wilcoxon")):
            try:
                into[name] = test(ours, theirs)
            except Untestable as error:
                why.append(f"{name}, {called}: {error}.")
    t_holm, signs_holm = corrected(ts), corrected(signs)
    ranking = ranked(group)
    ranks = ranking.ranks if ranking else {}
    rows = []
    for name in (against, *others):
        ours, theirs = found.get(name, ([], []))
        rows.append(Compared(
            name, cells(name, group.scores[name], group.targets).average,
            Number.of([a - b for a, b in zip(ours, theirs, strict=True)]),
            ts.get(name), t_holm.get(name), signs.get(name), signs_holm.get(name), ranks.get(name),
        ))  # fmt: skip
    notes = [f"Against {against}, over the (target, seed) cells that both have; two-sided."]
    return Comparison(group.title, against, tuple(rows), (*notes, *ranks_told(ranking), *why))


def corrected(p: Mapping[str, float]) -> dict[str, float]:
    return dict(zip(p, holm(list(p.values())), strict=True))


Cells = Mapping[str, Mapping[int, float]]


def pairs(ours: Cells, theirs: Cells) -> tuple[list[float], list[float]]:
    """The scores of both, cell by cell."""
    both = [(t, s) for t, seeds in ours.items() for s in seeds if s in theirs.get(t, {})]
    return [ours[t][s] for t, s in both], [theirs[t][s] for t, s in both]


def ranked(group: Group) -> Ranking | None:
    """By the mean over the seeds that all methods have, on the targets where there are any."""
    scores: dict[str, list[float]] = {m: [] for m in group.methods}
    for target in group.targets:
        by = {m: group.scores[m].get(target, {}) for m in group.methods}
        seeds = set.intersection(*(set(s) for s in by.values()))
        if seeds:
            for m, values in by.items():
                scores[m].append(fmean(values[s] for s in seeds))
    if not group.task.higher_is_better:
        scores = {m: [-v for v in values] for m, values in scores.items()}
    try:
        return Ranking.of(scores)
    except Untestable:
        return None


def ranks_told(ranking: Ranking | None) -> list[str]:
    if ranking is None:
        return ["No ranks: they compare two methods at least, on targets that all of them have."]
    p = "" if ranking.p is None else f" Friedman's p: {p_text(ranking.p)}."
    return [
        f"Ranks over {ranking.targets} target{'s' * (ranking.targets > 1)}, 1 is the best.{p}"
        f" Nemenyi's critical difference at {ranking.alpha:g}: {ranking.difference:.2f}."
    ]
