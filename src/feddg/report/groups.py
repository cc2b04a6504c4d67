"""Stored runs that may stand in one table: those whose numbers differ by the method alone.

Runs of other data, schedules, selections or recipes are groups of their own, each with its title.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import Any

from feddg.benchmark.bench import listed
from feddg.benchmark.experiment import Experiment
from feddg.benchmark.protocols import PAPER, experiment, protocol
from feddg.benchmark.roles import overview
from feddg.benchmark.selection import rule
from feddg.benchmark.stored import StoredRun
from feddg.benchmark.table import Cell, Table, cells, shown_metric
from feddg.catalogue import compose, methods, parameters, spelled, split
from feddg.catalogue import listed as named
from feddg.deploy.manifest import MANIFEST, read_manifest
from feddg.errors import ConfigError, DataError
from feddg.method import chain
from feddg.tasks import Classification, Regression, Task

Scores = Mapping[str, Mapping[str, Mapping[int, float]]]  # row -> target -> seed -> score


@dataclass(frozen=True, eq=False)
class Group:
    """`scores` are as tables show them; `references` are rows that no federation could make."""

    title: str
    task: Task
    runs: tuple[StoredRun, ...]
    scores: Scores
    targets: tuple[str, ...]
    references: frozenset[str] = frozenset()
    published: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()

    @property
    def methods(self) -> tuple[str, ...]:
        return tuple(row for row in self.scores if row not in self.references)

    @property
    def seeds(self) -> int:
        return max((len(s) for row in self.scores.values() for s in row.values()), default=0)

    def table(self) -> Table:
        rows = (
            replace(
                cells(row, found, self.targets, self.published, listed(row)),
                reference=row in self.references,
            )
            for row, found in self.scores.items()
        )
        return Table(self.title, self.targets, tuple(rows), self.notes, seeds=self.seeds,
                     published=self.published is not None)  # fmt: skip


def grouped(runs: Sequence[StoredRun], selection: str | None = None) -> tuple[Group, ...]:
    """All runs that were judged on a target and are through, by what their numbers depend on.

    `selection` picks the round of every run; without it each run's own rule does.
    """
    judged = [r for r in runs if r.experiment.targets and len(r.records) >= r.experiment.rounds]
    if not judged:
        raise ConfigError(
            "none of these runs was judged on a target and came to its end; `feddg bench` makes"
            " such runs, and goes on with what was cut off"
        )
    found: dict[str, list[StoredRun]] = {}
    for run in judged:
        chosen = replace(run.experiment, selection=selection or run.experiment.selection)
        found.setdefault(protocol_key(chosen), []).append(replace(run, experiment=chosen))
    return tuple(group(same) for same in found.values())


def protocol_key(one: Experiment) -> str:
    """All that a number depends on besides the row, the target left out and the seed."""
    held = one.targets if len(one.targets) > 1 else ()
    return replace(
        one, method="fedavg", targets=held, sources=(), seed=0, pooled=False, oracle=False,
        diagnostics=None,
    ).to_toml()  # fmt: skip


def group(runs: Sequence[StoredRun]) -> Group:
    first, task = runs[0].experiment, task_of(runs[0])
    order = in_order(runs)
    found: dict[str, dict[str, dict[int, float]]] = {}
    for run in sorted(runs, key=place):
        rule(first.selection).check(run.records[0]["scores"])
        for target in run.experiment.targets:
            cell = Cell.of(run.experiment, run.records, target, task)
            if cell is not None:
                row = found.setdefault(row_name(run.experiment), {})
                row.setdefault(target, {}).setdefault(run.experiment.seed, cell.value)
    scores = {
        row: {t: dict(sorted(by[t].items())) for t in order if t in by} for row, by in found.items()
    }
    targets = tuple(t for t in order if any(t in by for by in scores.values()))
    seeds = max((len(s) for by in scores.values() for s in by.values()), default=0)
    return Group(
        heading(first, task, seeds), task, tuple(runs), scores, targets,
        frozenset(row_name(r.experiment) for r in runs if bound(r.experiment)),
        protocol(first.data, first.data_options).published if as_published(first) else None,
        protocol(first.data, first.data_options).notes,
    )  # fmt: skip


def place(run: StoredRun) -> tuple[bool, int, str, int]:
    """Bounds first, then methods in the catalogue's order of their outermost links."""
    first = next(split(run.experiment.method)).partition("(")[0].strip()
    known = list(methods())
    at = known.index(first) if first in known else len(known)
    return not bound(run.experiment), at, row_name(run.experiment), run.experiment.seed


def bound(one: Experiment) -> bool:
    return one.pooled or one.oracle or len(one.sources) == 1


def row_name(one: Experiment) -> str:
    """As in the table of `feddg bench`."""
    method = short(one.method)
    if one.pooled or one.oracle:
        name = "deepall" if one.pooled else "oracle"
        return f"{name if method == 'fedavg' else f'{name} {method}'} (shares data)"
    if len(one.sources) == 1 and method == "fedavg":
        return f"{one.sources[0]} alone"
    return method + (f" ({'+'.join(one.sources)})" if one.sources else "")


@cache
def short(spec: str) -> str:
    """The composition with what differs from the defaults: ppdg(lam=0.2), csac:official."""
    method = compose(spec)
    *wrappers, leaf = chain(method)
    implied = leaf == type(leaf)() or any(w.leaf is not None for w in wrappers)
    links = [link_name(link) for link in (wrappers if wrappers and implied else chain(method))]
    return spelled(method) if None in links else "+".join(filter(None, links))


def link_name(link: Any) -> str | None:
    name = named(type(link))
    if name is None:
        return None
    changed = changes(link)
    ways = [name + (f"({', '.join(f'{k}={v!r}' for k, v in changed.items())})" if changed else "")]
    for preset, options in getattr(type(link), "presets", {}).items():
        if changed and changes(type(link)(**options)) == changed:
            ways.append(f"{name}:{preset}")
    return min(ways, key=len)


def changes(link: Any) -> dict[str, Any]:
    return {k: v for k, default in parameters(type(link)).items()
            if (v := getattr(link, k)) != default}  # fmt: skip


def task_of(run: StoredRun) -> Task:
    """From the saved model where there is one, so that the data need not be at hand.

    Without both, what was measured tells the kind of task, but not what data in groups go by.
    """
    if run.finished:
        return read_manifest(run.folder / "model" / MANIFEST).task
    try:
        return overview(run.experiment.data, run.experiment.data_options).task
    except DataError:
        measured = {name for scores in run.records[0]["scores"].values() for name in scores}
        for task in (Classification(()), Regression()):
            if task.metric in measured and "worst_group" not in measured:
                return task
        raise


def in_order(runs: Iterable[StoredRun]) -> list[str]:
    """All domains in the data's order, pieced together from who trained in which run."""
    after: dict[str, set[str]] = {}
    for run in runs:
        sites = [s for s in sites_of(run) if s not in run.experiment.targets]
        for name in (*run.experiment.targets, *sites):
            after.setdefault(name, set())
        for before, behind in pairwise(sites):
            after[behind].add(before)
    try:
        return list(TopologicalSorter(after).static_order())
    except CycleError:
        return sorted(after)


def sites_of(run: StoredRun) -> list[str]:
    try:
        return list(json.loads((run.folder / "split.json").read_text("utf-8")))
    except (OSError, ValueError):
        return list(run.experiment.sources)


def heading(one: Experiment, task: Task, seeds: int) -> str:
    """All that the numbers depend on besides the method."""
    of = ", ".join(f"{k}={v}" for k, v in one.data_options.items())
    by = rule(one.selection)
    where = "+".join(one.targets) if len(one.targets) > 1 else "the domain left out"
    parts = [
        f"{one.data}{f' ({of})' if of else ''}: {shown_metric(task)} on {where}"
        + (", task uda" if one.adapted else ""),
        f"selection: {by.name} ({by.line})",
        f"{seeds} seed{'s' * (seeds > 1)}",
    ]
    if one.schedule:
        plan = protocol(one.data).schedules.get(one.schedule)
        line = f" ({plan.line})" if plan and plan.line else ""
        parts.append(f"SHORTENED schedule {one.schedule!r}{line}")
    changed = altered(one)
    if changed:
        parts.append("with " + ", ".join(f"{k}={v}" for k, v in changed.items()))
    return "; ".join(parts)


def altered(one: Experiment) -> dict[str, Any]:
    """What differs from the data set's protocol, recipe and all."""
    known = protocol(one.data).schedules
    schedule = one.schedule if one.schedule in known else PAPER
    usual = experiment(one.data, schedule=schedule)
    names = ("model", "rounds", "share", "participation", "min_sites", "allow_missing_classes",
             "weights", "validation", "model_options")  # fmt: skip
    found = {k: v for k in names if (v := getattr(one, k)) != getattr(usual, k)}
    recipe, other = asdict(one.recipe), asdict(usual.recipe)
    return {**found, **{k: v for k, v in recipe.items() if v != other[k]}}


def as_published(one: Experiment) -> bool:
    """Whether all but the method is as the paper has it."""
    usual = not altered(one) and not one.data_options and not one.schedule and not one.adapted
    return usual and len(one.targets) == 1 and one.selection == protocol(one.data).selection
