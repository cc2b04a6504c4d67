"""Leave one domain out × methods × seeds, and the table that comes of it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from feddg.benchmark import bounds
from feddg.benchmark.bounds import BOUNDS
from feddg.benchmark.driver import Event, conduct
from feddg.benchmark.experiment import Experiment
from feddg.benchmark.protocols import PAPER, Protocol, altering, experiment, protocol
from feddg.benchmark.records import finished, read_records, started
from feddg.benchmark.roles import overview
from feddg.benchmark.selection import Record, rule
from feddg.benchmark.shards import WHOLE, Shard
from feddg.benchmark.table import Cell, Table, bootstrap_interval, cells, shown_metric
from feddg.catalogue import compose
from feddg.data.adaptation import adapted, comes_split
from feddg.data.domain import Collection, official_splits
from feddg.engines.compute import Compute
from feddg.errors import ConfigError, DataError, RunsFailed, said_once, unknown


@dataclass(frozen=True, kw_only=True)
class Bench:
    """What is compared. Empty `targets`: every domain in turn."""

    data: str
    methods: tuple[str, ...]
    seeds: int = 1
    targets: tuple[str, ...] = ()
    schedule: str = PAPER
    selection: str | None = None
    data_options: Mapping[str, str] = field(default_factory=dict)
    recipe: Mapping[str, Any] = field(default_factory=dict)
    changes: Mapping[str, Any] = field(default_factory=dict)  # of the experiment: rounds, model, …
    task: str = "dg"

    def __post_init__(self) -> None:
        adapted(self.task)
        if not self.methods:
            raise ConfigError("name at least one method: --methods fedavg,fedprox")
        if len(set(self.methods)) < len(self.methods):
            raise ConfigError(f"--methods names one twice: {', '.join(self.methods)}")
        if self.seeds < 1:
            raise ConfigError(f"--seeds must be at least 1, not {self.seeds}")
        for method in self.methods:
            if method not in BOUNDS:
                compose(method)
        rule(self.rule)

    @property
    def protocol(self) -> Protocol:
        return protocol(self.data, self.data_options)

    @property
    def collection(self) -> Collection:
        return overview(self.data, self.data_options)

    @property
    def altered(self) -> dict[str, Any]:
        """What makes the numbers others than the protocol's."""
        return {k: v for k, v in self.changes.items() if k != "diagnostics"}

    @property
    def rule(self) -> str:
        return self.selection or self.protocol.selection

    def domains(self) -> tuple[str, ...]:
        """The domains to hold out, in the data's order."""
        held = self.official
        names = held["targets"] if held else self.collection.names
        if len(names) < 2 and not held:
            raise DataError(
                f"{self.data} has one domain only ({names[0]}); to leave one out takes two or more"
            )
        for target in self.targets:
            if target not in names:
                raise unknown(f"domain of {self.data}", target, names)
        return tuple(n for n in names if not self.targets or n in self.targets)

    @property
    def official(self) -> dict[str, tuple[str, ...]]:
        """Data that say who is judged on hold all these out at once; else there is nothing."""
        if not self.protocol.official:
            return {}
        fed = official_splits(self.collection)
        names = {"targets": fed.targets, "validation": fed.validation}
        return {role: tuple(d.name for d in domains) for role, domains in names.items()}

    def rows(self) -> list[tuple[str, dict[str, Any]]]:
        """Row names and what they change: the references first, then the methods."""
        asked = dict.fromkeys((*self.protocol.references, *self.methods))
        names = self.collection.names
        return [row for name in asked for row in bounds.rows(name, names)]

    def experiments(self) -> list[tuple[str, str, Experiment]]:
        """(row, target, experiment) of every cell and seed."""
        found = []
        together = self.official
        for row, change in self.rows():
            for target in self.domains():
                held = together or {"targets": (target,)}
                if change.get("sources") == (target,):
                    continue  # a hospital alone is not judged on itself
                for seed in range(self.seeds):
                    one = experiment(
                        self.data, schedule=self.schedule, data_options=self.data_options,
                        recipe=self.recipe, seed=seed, selection=self.selection, task=self.task,
                        **{**held, **self.changes, **change},
                    )  # fmt: skip
                    found.append((row, target, one))
        return found

    def unique(self) -> dict[str, Experiment]:
        """Every run once: two names of one method (fedavg, fedavg:paper) share theirs."""
        return {one.key: one for _, _, one in self.experiments()}


def run(
    bench: Bench, root: Path, how: Compute | int | None = None, shard: Shard = WHOLE
) -> Iterator[Event]:
    """Every experiment that is not finished yet, a batch at a time; at the end, what failed."""
    yield from run_all(bench.unique(), root, how, shard)


def run_all(
    experiments: Mapping[str, Experiment],
    root: Path,
    how: Compute | int | None = None,
    shard: Shard = WHOLE,
) -> Iterator[Event]:
    """Those of the shard, by key. Runs of one data set and network go on together."""
    compute, failed = Compute.of(how), dict[str, str]()
    mine = set(shard.mine(experiments))
    todo = [one for key, one in experiments.items() if key in mine and not finished(root / key)]
    for batch in batches(todo, compute.visits_at_once):
        try:
            yield from conduct(batch, root, compute)
        except RunsFailed as error:
            failed |= error.reasons
    if failed:
        raise RunsFailed(failed, len(todo))


def batches(todo: Sequence[Experiment], visits: int) -> Iterator[list[Experiment]]:
    """As many runs as make so many visits to sites in a round."""
    at = 0
    while at < len(todo):
        sites = len(overview(todo[at].data, todo[at].data_options).names) - 1
        size = max(1, visits // max(1, sites))
        yield list(todo[at : at + size])
        at += size


def table(bench: Bench, root: Path, failed: Mapping[str, str] | None = None) -> Table:
    """From the records on disk, by the selection rule; a cell without all its seeds says so.

    `failed`: the runs that failed just now, by key, and why.
    """
    task = bench.collection.task
    found: dict[str, dict[str, dict[int, float]]] = {row: {} for row, _ in bench.rows()}
    reasons: dict[str, list[tuple[str, str]]] = {row: [] for row in found}
    lost: dict[str, list[str]] = {row: [] for row in found}
    missing = set[str]()
    for row, target, one in bench.experiments():
        if failed and one.key in failed:
            lost[row].append(target)
            reasons[row].append((f"{target} (seed {one.seed})", failed[one.key]))
            continue
        records = whole(one, root)
        if not records:
            missing.add(one.key)
            continue
        cell = Cell.of(one, records, target, task)
        if cell is not None:
            found[row].setdefault(target, {})[one.seed] = cell.value
    published = bench.protocol.published if compares(bench) else None
    domains = bench.domains()
    rows = [
        replace(cells(row, found[row], domains, published, listed(row)), failed=tuple(lost[row]))
        for row in found
    ]
    told = [f"{row} failed on {said_once(why)}" for row, why in reasons.items() if why]
    told += unfinished(len(missing), len(bench.unique()))
    return Table(
        title=heading(bench), columns=domains, rows=tuple(rows),
        notes=(*bench.protocol.notes, *intervals(bench, root), *starts(bench, root), *told),
        published=published is not None, seeds=bench.seeds,
    )  # fmt: skip


def whole(one: Experiment, root: Path) -> list[Record]:
    """The records of a run that came to its end; else none."""
    records = read_records(root / one.key / "results.jsonl")
    return records if len(records) >= one.rounds else []


def unfinished(missing: int, runs: int) -> Iterator[str]:
    """What shards, or a run that was cut off, have not brought yet."""
    if missing:
        yield f"{missing} of {runs} runs are not finished in this folder; their cells are empty."


def intervals(bench: Bench, root: Path) -> Iterator[str]:
    """How far chance in who the patients are reaches, for the targets that the protocol names."""
    task = bench.collection.task
    for target in bench.protocol.intervals:
        found = []
        y = bench.collection[target].examples.y
        counts = (int((y == 0).sum()), int((y == 1).sum()))
        for row, held, one in bench.experiments():
            if held != target or one.seed or row not in bench.methods:
                continue
            records = whole(one, root)
            if not records:
                continue
            scores = rule(one.selection).pick(records, task)["scores"][f"test/{target}"]
            reach = bootstrap_interval((scores["specificity"], scores["sensitivity"]), counts)
            low, high = (100 * v for v in reach)
            found.append(f"{row} {low:.1f} to {high:.1f}")
        if found:
            yield f"95% bootstrap interval on {target}, seed 0: {'; '.join(found)}."


def starts(bench: Bench, root: Path) -> Iterator[str]:
    """What pretrained weights there were, and which part of the network they left fresh."""
    if bench.changes.get("weights", bench.protocol.weights):
        found = [started(root / key) for key in bench.unique()]
        yield from (f"Start: {line}." for line in dict.fromkeys(found) if line)


def compares(bench: Bench) -> bool:
    """Whether all but the method is as the paper has it."""
    plain = not bench.recipe and not bench.altered and not altering(bench.data_options)
    plain = plain and bench.task == "dg"
    return plain and bench.schedule == PAPER and bench.rule == bench.protocol.selection


def listed(spec: str) -> str | None:
    """The name under which a paper lists a row; None where its parameters are others."""
    if " " in spec:
        return "deepall" if spec.startswith("deepall ") else None
    name = spec.partition("(")[0].partition(":")[0].strip().lower()
    return name if "+" not in name and compose(spec) == compose(name) else None


def judged(bench: Bench) -> str:
    if bench.task == "dg":
        return "the domain left out"
    own = all(comes_split(bench.collection[t]) for t in bench.domains())
    least, most = ("its test part", "its training part") if own else ("20% of it", "80% of it")
    return f"the domain left out, task uda: {most} at the server, without labels; judged on {least}"


def heading(bench: Bench) -> str:
    """All that the numbers depend on besides the method."""
    of = ", ".join(f"{k}={v}" for k, v in bench.data_options.items())
    by = rule(bench.rule)
    parts = [
        f"{bench.data}{f' ({of})' if of else ''}: {shown_metric(bench.collection.task)}"
        f" on {judged(bench)}",
        f"selection: {by.name} ({by.line})",
        f"{bench.seeds} seed{'s' * (bench.seeds > 1)}",
    ]
    if bench.schedule != PAPER:
        line = bench.protocol.schedules[bench.schedule].line
        parts.append(f"SHORTENED schedule '{bench.schedule}' ({line})")
    changed = {**bench.altered, **bench.recipe}
    if changed:
        parts.append("with " + ", ".join(f"{k}={v}" for k, v in changed.items()))
    return "; ".join(parts)
