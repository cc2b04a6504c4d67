"""What was recorded round by round, as charts: scores by domain, losses, what merges decided."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, sqrt
from statistics import fmean
from typing import Any

from feddg.benchmark.experiment import plain
from feddg.benchmark.selection import Record
from feddg.benchmark.stored import StoredRun
from feddg.benchmark.table import scale, shown_metric
from feddg.report.charts import Chart, Series
from feddg.report.groups import Group
from feddg.report.rows import Row
from feddg.tasks import Task

Read = Callable[[Record], float | None]
POINTS = 200  # a longer curve is thinned to about so many
# Names of the records' traces in words; any other name stands as it is.
WORDS = {
    "weights": "Say of each site",
    "ga/weights": "Say of each site",
    "ga/gaps": "Generalisation gaps: the loss of the model sent less that of the own last one",
    "layers": "Say of each site, by layer",
    "met": "Conflicts met in a round",
    "conflicts": "Cosines of conflicting updates, by the site that gave way",
    "mixing": "What each site's update became: what it kept, and took of others",
    "distance": "Distance from the merged model",
    "csac/variance": "Variance of features, by site",
    "curves": "Every site's own model, and the merged one, by domain",
}


@dataclass(frozen=True)
class Family:
    """Charts of one kind, a domain each."""

    name: str
    charts: tuple[Chart, ...]


@dataclass(frozen=True)
class Inside:
    """What the merges of one row did while one domain was held out."""

    row: str
    target: str
    kinds: tuple[Family, ...]


def families(group: Group, rows: Sequence[Row]) -> tuple[Family, ...]:
    """Score, source validation and loss over the rounds; means over the seeds."""
    task, shown = group.task, shown_metric(group.task)
    asked: list[tuple[str, Callable[[str], Read]]] = [
        (f"{shown}, target", lambda t: lambda r: score(r, task, [f"test/{t}"])),
        (f"{shown}, sources' validation", lambda _: lambda r: score(r, task, own_parts(r))),
        ("training loss", lambda _: lambda r: r["losses"].get("total")),
    ]
    found = (Family(name, tuple(by_target(group, rows, name, read))) for name, read in asked)
    return tuple(f for f in found if f.charts)


def score(record: Record, task: Task, parts: Iterable[str]) -> float | None:
    """The mean over parts, as tables show it."""
    values = [record["scores"].get(p, {}).get(task.metric) for p in parts]
    known = [v for v in values if v is not None]
    return scale(task) * fmean(known) if known else None


def own_parts(record: Record) -> list[str]:
    return [part for part in record["scores"] if part.startswith("val/")]


def by_target(
    group: Group, rows: Sequence[Row], name: str, read: Callable[[str], Read]
) -> Iterator[Chart]:
    for target in group.targets:
        lines = [
            line for row in rows if target in row.runs
            for line in averaged(row.name, list(row.runs[target].values()), read(target))
        ]  # fmt: skip
        if lines:
            yield Chart(
                f"{plain(name)}-{plain(target)}", target, "line", "round", name, tuple(lines)
            )


def averaged(name: str, runs: Sequence[StoredRun], read: Read) -> list[Series]:
    """One line: the mean over the runs that have the round, ± its standard error."""
    by_round: dict[int, list[float]] = {}
    for run in runs:
        for record in run.records:
            value = read(record)
            if value is not None:
                by_round.setdefault(record["round"], []).append(value)
    return [series(name, by_round)] if by_round else []


def series(name: str, by_round: Mapping[int, Sequence[float]]) -> Series:
    """Rounds are counted from one; those without a value are gaps."""
    last = max(by_round)
    every = max(1, (last + 1) // POINTS)
    kept = [k for k in range(last + 1) if k % every == 0 or k == last]
    means = [fmean(by_round[k]) if k in by_round else None for k in kept]
    errors = [error(by_round.get(k, ())) for k in kept]
    known = tuple(errors) if any(e is not None for e in errors) else ()
    return Series(name, tuple(k + 1 for k in kept), tuple(means), known)


def error(values: Sequence[float]) -> float | None:
    """As tables have it; statistics.stdev, which computes in fractions, is slow for this many."""
    n = len(values)
    if n < 2:
        return None
    mean = fmean(values)
    return sqrt(fsum((v - mean) ** 2 for v in values) / (n - 1) / n)


def insides(rows: Sequence[Row]) -> tuple[Inside, ...]:
    return tuple(
        Inside(row.name, target, kinds)
        for row in rows
        for target, runs in row.runs.items()
        if (kinds := decided(f"{row.name}-{target}", list(runs.values())))
    )


def decided(key: str, runs: Sequence[StoredRun]) -> tuple[Family, ...]:
    """A chart of every table of numbers in the traces; what never changes says nothing."""
    lines: dict[tuple[str, str], dict[str, dict[int, list[float]]]] = {}
    for run in runs:
        for record in run.records:
            for path, value in leaves(told(record)):
                rounds = lines.setdefault(place(path), {}).setdefault(path[-1], {})
                rounds.setdefault(record["round"], []).append(round(value, 6))
    seen: list[dict[str, dict[int, list[float]]]] = []
    found: dict[str, list[Chart]] = {}
    for (kind, title), values in lines.items():
        if values not in seen and moves(values):
            seen.append(values)
            drawn = tuple(series(name, by_round) for name, by_round in values.items())
            name = WORDS.get(kind, kind.replace("/", ": "))
            chart = Chart(
                "-".join(map(plain, (key, kind, title))), title, "line", "round", name, drawn
            )
            found.setdefault(name, []).append(chart)
    return tuple(Family(kind, tuple(charts)) for kind, charts in found.items())


def place(path: tuple[str, ...]) -> tuple[str, str]:
    """Which kind of chart, and which of its kind: `layers/conv1/site` is conv1's of the layers."""
    whole = "/".join(path[:-1])
    if whole in WORDS or len(path) < 3:
        return whole or path[0], ""
    return "/".join(path[:-2]), path[-2]


def told(record: Record) -> dict[str, Any]:
    """The trace; conflicts counted, too; and diagnostic curves by domain."""
    trace = dict(record["trace"])
    if isinstance(trace.get("conflicts"), dict):
        pairs = sum(1 for _ in leaves(trace["conflicts"]))
        trace = {"met": {"conflicts": pairs}, **trace}
    for whose, by_domain in record.get("curves", {}).items():
        for domain, value in by_domain.items():
            trace.setdefault("curves", {}).setdefault(domain, {})[whose] = value
    return trace


def leaves(tree: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], float]]:
    """Every number and where it stands; lists, which have no names, are left out."""
    if isinstance(tree, Mapping):
        for key, below in tree.items():
            yield from leaves(below, (*path, str(key)))
    elif isinstance(tree, int | float) and not isinstance(tree, bool) and path:
        yield path, float(tree)


def moves(lines: Mapping[str, Mapping[int, Sequence[float]]]) -> bool:
    return any(
        max(v for values in by_round.values() for v in values)
        > min(v for values in by_round.values() for v in values) + 1e-9
        for by_round in lines.values()
    )
