"""A group's rows with the runs behind each number, and what is known of them in words."""

from collections.abc import Mapping
from dataclasses import dataclass

from feddg.benchmark.bench import listed
from feddg.benchmark.bounds import DEEPALL, ORACLE
from feddg.benchmark.experiment import Experiment
from feddg.benchmark.published import paper_rows
from feddg.benchmark.stored import StoredRun
from feddg.benchmark.table import Row as Line
from feddg.catalogue import BOUND, methods, split
from feddg.report.groups import Group, bound, row_name


@dataclass(frozen=True, eq=False)
class Row:
    """A method, or a bound: its line of the table, and its runs by target and seed."""

    line: Line
    experiment: Experiment  # of one of its runs
    runs: Mapping[str, Mapping[int, StoredRun]]

    @property
    def name(self) -> str:
        return self.line.name

    @property
    def every_run(self) -> list[StoredRun]:
        """A run that is judged on several targets stands once."""
        return list({id(r): r for by_seed in self.runs.values() for r in by_seed.values()}.values())


@dataclass(frozen=True)
class Published:
    value: float
    error: float | None
    source: str  # paper and item


def rows(group: Group) -> tuple[Row, ...]:
    """Methods before bounds, the best first, so that they have the first colours."""
    runs: dict[str, dict[str, dict[int, StoredRun]]] = {}
    for run in group.runs:
        by_target = runs.setdefault(row_name(run.experiment), {})
        for target in run.experiment.targets:
            by_target.setdefault(target, {}).setdefault(run.experiment.seed, run)
    found = []
    for line in group.table().rows:
        by_target = runs[line.name]
        one = next(iter(next(iter(by_target.values())).values()))
        in_order = {t: dict(sorted(by_target[t].items())) for t in group.targets if t in by_target}
        found.append(Row(line, one.experiment, in_order))
    sign = 1 if group.task.higher_is_better else -1

    def standing(row: Row) -> tuple[bool, bool, float]:
        average = row.line.average
        return row.line.reference, average is None, -sign * average.mean if average else 0.0

    return tuple(sorted(found, key=standing))


def twice(group: Group) -> list[str]:
    """Runs of the same method, target and seed beyond the first, which counts."""
    seen: dict[tuple[str, tuple[str, ...], int], str] = {}
    found = []
    for run in group.runs:
        e = run.experiment
        first = seen.setdefault((row_name(e), e.targets, e.seed), str(run.folder))
        if first != str(run.folder):
            found.append(run.key)
    return found


def about(e: Experiment) -> tuple[str, str]:
    """The family and the line that `feddg methods` has of a row."""
    if e.pooled or e.oracle:
        return BOUND, (DEEPALL if e.pooled else ORACLE).line
    if bound(e):
        return BOUND, "its own data only, without the others"
    names = [piece.strip().partition("(")[0].partition(":")[0].lower() for piece in split(e.method)]
    entries = [methods()[name] for name in names]
    return entries[0].family, "; ".join(entry.line for entry in entries)


def published(group: Group, row: Row) -> dict[str, Published]:
    """By target, and the average where the paper's is over the same targets."""
    name = listed(row.name) if group.published else None
    if group.published is None or name is None:
        return {}
    theirs = {
        target: Published(printed.value, printed.reach, " ".join(group.published[:2]))
        for paper in paper_rows(*group.published)
        if paper.method.lower() == name and not paper.variant
        for target, printed in paper.cells.items()
    }
    if theirs.keys() - {"average"} != set(group.targets):
        theirs.pop("average", None)
    return {c: v for c, v in theirs.items() if c in (*group.targets, "average")}
