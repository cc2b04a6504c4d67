"""Leave one domain out × methods × seeds, and the table that comes of it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from feddg.benchmark.driver import Event, conduct
from feddg.benchmark.experiment import Experiment, domain_names
from feddg.benchmark.protocols import Protocol, experiment, protocol
from feddg.benchmark.records import read_records
from feddg.benchmark.table import Cell, Table, cells
from feddg.catalogue import compose
from feddg.errors import ConfigError, DataError, unknown

VISITS_AT_ONCE = 24  # site visits in lockstep: enough to keep the cores busy, few to keep in memory


@dataclass(frozen=True, kw_only=True)
class Bench:
    """What is compared. Empty `targets`: every domain in turn."""

    data: str
    methods: tuple[str, ...]
    seeds: int = 1
    targets: tuple[str, ...] = ()
    schedule: str = "paper"
    selection: str | None = None
    data_options: Mapping[str, str] = field(default_factory=dict)
    recipe: Mapping[str, Any] = field(default_factory=dict)
    changes: Mapping[str, Any] = field(default_factory=dict)  # of the experiment: rounds, model, …

    def __post_init__(self) -> None:
        if not self.methods:
            raise ConfigError("name at least one method: --methods fedavg,fedprox")
        if self.seeds < 1:
            raise ConfigError(f"--seeds must be at least 1, not {self.seeds}")
        for method in self.methods:
            compose(method)

    @property
    def protocol(self) -> Protocol:
        return protocol(self.data, self.data_options)

    def domains(self) -> tuple[str, ...]:
        """The domains to hold out, in the data's order."""
        names = domain_names(self.data, self.data_options)
        if len(names) < 2:
            raise DataError(
                f"{self.data} has one domain only ({names[0]}); to leave one out takes two or more"
            )
        for target in self.targets:
            if target not in names:
                raise unknown(f"domain of {self.data}", target, names)
        return tuple(n for n in names if not self.targets or n in self.targets)

    def rows(self) -> list[tuple[str, dict[str, Any]]]:
        """Row names and what they change: the references first, then the methods."""
        methods: list[tuple[str, dict[str, Any]]] = [(m, {"method": m}) for m in self.methods]
        if not self.protocol.references:
            return methods
        names = domain_names(self.data, self.data_options)
        alone = [(f"{n} alone", {"method": "fedavg", "sources": (n,)}) for n in names]
        return [*alone, ("all pooled", {"method": "fedavg", "pooled": True}), *methods]

    def experiments(self) -> list[tuple[str, str, Experiment]]:
        """(row, target, experiment) of every cell and seed."""
        found = []
        for row, change in self.rows():
            for target in self.domains():
                if change.get("sources") == (target,):
                    continue  # a hospital alone is not judged on itself
                for seed in range(self.seeds):
                    one = experiment(
                        self.data, schedule=self.schedule, data_options=self.data_options,
                        recipe=self.recipe, targets=(target,), seed=seed,
                        selection=self.selection, **{**self.changes, **change},
                    )  # fmt: skip
                    found.append((row, target, one))
        return found


def run(bench: Bench, root: Path, workers: int | None = None) -> Iterator[Event]:
    """Every experiment that is not finished yet, a batch at a time."""
    todo = [e for _, _, e in bench.experiments()]
    while todo:
        sites = len(domain_names(bench.data, bench.data_options)) - 1
        size = max(1, VISITS_AT_ONCE // sites)
        batch, todo = todo[:size], todo[size:]
        yield from conduct(batch, root, workers)


def table(bench: Bench, root: Path) -> Table:
    """From the records on disk, by the selection rule; a cell without all its seeds says so."""
    found: dict[str, dict[str, list[float]]] = {}
    selection = bench.selection or bench.protocol.selection
    metric = ""
    for row, target, one in bench.experiments():
        records = list(read_records(root / one.key / "results.jsonl"))
        places = found.setdefault(row, {}).setdefault(target, [])
        if len(records) < one.rounds:
            continue
        cell = Cell.of(one, records, target)
        metric = cell.metric
        places.append(cell.value)
    domains = bench.domains()
    full = bench.schedule == "paper" and not bench.recipe and not bench.changes
    published = bench.protocol.published if full else None
    rows = [
        cells(row, found[row], domains, published if row in bench.methods else None)
        for row, _ in bench.rows()
    ]
    return Table(
        title=heading(bench, selection, metric), columns=domains, rows=tuple(rows),
        notes=bench.protocol.notes, published=published is not None,
    )  # fmt: skip


def heading(bench: Bench, selection: str, metric: str) -> str:
    plan = bench.protocol.schedules[bench.schedule]
    parts = [
        f"{bench.data}: {metric.replace('_', ' ')} (%) on the domain left out",
        f"selection: {selection}",
        f"{bench.seeds} seed{'s' * (bench.seeds > 1)}",
    ]
    if bench.schedule != "paper":
        parts.append(f"SHORTENED schedule '{bench.schedule}' ({plan.line})")
    return "; ".join(parts)
