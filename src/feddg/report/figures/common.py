"""What the figures share: runs of one protocol, means over seeds, and what is missing in words."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from feddg.benchmark.experiment import plain
from feddg.benchmark.selection import Record
from feddg.benchmark.stored import StoredRun
from feddg.benchmark.table import Number, scale, shown_metric
from feddg.errors import ConfigError
from feddg.report.charts import Chart, Series
from feddg.report.groups import Group, bound, grouped, place, row_name, short

Charts = tuple[Chart, ...]
MERGED = "merged"


class Lacking(ConfigError):
    """The runs do not have what a figure needs; whoever draws all that there are passes over it."""


def lacking(figure: str, what: str, command: str) -> Lacking:
    """One sentence: what the runs lack, and the command that makes them."""
    return Lacking(f"the figure {figure} needs {what}; make some with `{command}`")


def named(*parts: str) -> str:
    """A chart's key, fit for a file's name."""
    return "-".join(map(plain, parts))


def one_protocol(runs: Sequence[StoredRun]) -> Group:
    """Numbers of different protocols never share a figure."""
    groups = grouped(runs)
    if len(groups) > 1:
        raise apart(groups)
    return groups[0]


def apart(groups: Sequence[Group]) -> ConfigError:
    titles = " | ".join(g.title for g in groups)
    return ConfigError(
        f"these runs are of {len(groups)} protocols, whose numbers do not compare ({titles});"
        " name folders with runs of one"
    )


def distinct(runs: Iterable[StoredRun]) -> list[StoredRun]:
    """By seed; one that was run again (for its diagnostics, or elsewhere) counts once."""
    found: dict[tuple[str, tuple[str, ...], int], StoredRun] = {}
    for run in sorted(runs, key=lambda r: (*place(r), not r.finished)):
        one = run.experiment
        found.setdefault((row_name(one), one.targets, one.seed), run)
    return list(found.values())


def by_row(runs: Iterable[StoredRun]) -> dict[str, list[StoredRun]]:
    """Methods in the catalogue's order, their runs by seed; bounds are left out."""
    found: dict[str, list[StoredRun]] = {}
    for run in distinct(runs):
        if not bound(run.experiment):
            found.setdefault(row_name(run.experiment), []).append(run)
    return found


def preferred(rows: Mapping[str, list[StoredRun]], link: str) -> str:
    """The row of the method that the paper draws, where it is there; else the first."""
    return next((row for row in rows if link in row.partition("(")[0].split("+")), next(iter(rows)))


def on(runs: Iterable[StoredRun], target: str) -> list[StoredRun]:
    return [r for r in runs if target in r.experiment.targets]


def narrowed(
    runs: Sequence[StoredRun], target: str | None = None, method: str | None = None
) -> tuple[StoredRun, ...]:
    """Those of one target or one method, however it is spelled."""
    found = [r for r in runs if target is None or target in r.experiment.targets]
    if not found:
        raise ConfigError(f"none of these runs has the target {target!r}")
    name = None if method is None else short(method)
    found = [r for r in found if name is None or short(r.experiment.method) == name]
    if not found:
        raise ConfigError(f"none of these runs is of the method {name!r}")
    return tuple(found)


def metric(group: Group) -> str:
    return shown_metric(group.task)


def numbered(
    name: str, x: Sequence[float | str], numbers: Sequence[Number | None], **more: Any
) -> Series:
    """Means ± standard errors; None is a gap."""
    means = tuple(None if n is None else n.mean for n in numbers)
    errors = tuple(None if n is None else n.error for n in numbers)
    return Series(name, tuple(x), means, errors, **more)


def rounds_of(runs: Sequence[StoredRun]) -> tuple[float, ...]:
    """1, 2, …: as many as all of them have."""
    return tuple(float(k + 1) for k in range(min(len(r.records) for r in runs)))


def over_rounds(
    name: str, runs: Sequence[StoredRun], value: Callable[[Record], float | None], **more: Any
) -> Series:
    """One number of every round, its mean ± standard error over the runs."""
    x = rounds_of(runs)
    rows = [[value(k) for k in r.records[: len(x)]] for r in runs]
    numbers = [
        Number.of([v for v in column if v is not None]) for column in zip(*rows, strict=True)
    ]
    return numbered(name, x, numbers, **more)


def at(*path: str, by: float = 1.0) -> Callable[[Record], float | None]:
    """What a record holds under these keys, times `by`; None where it lacks one of them."""

    def value(record: Record) -> float | None:
        found: Any = record
        for key in path:
            found = found.get(key) if isinstance(found, Mapping) else None
        return None if found is None else by * found

    return value


def shown_score(group: Group, target: str) -> Callable[[Record], float | None]:
    return at("scores", f"test/{target}", group.task.metric, by=scale(group.task))


def told(group: Group, runs: Sequence[StoredRun]) -> str:
    """From which runs."""
    many = f"{len(runs)} run{'s' * (len(runs) > 1)}: {runs[0].key}" + " …" * (len(runs) > 1)
    return f"{group.title}. {many}"
