"""A paper's table or figure as benches: what is run, on which data, and what came of it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

from feddg.benchmark import bounds
from feddg.benchmark.bench import Bench, whole
from feddg.benchmark.experiment import Experiment
from feddg.benchmark.papers import Column, Item, ItemRow
from feddg.benchmark.protocols import ROTATED_MNIST, altering
from feddg.benchmark.selection import Record, rule
from feddg.benchmark.table import scale
from feddg.data.catalogue import resolve
from feddg.data.domain import Collection
from feddg.data.listed import IMAGE
from feddg.engines.compute import Compute
from feddg.errors import FeddgError, unknown
from feddg.tasks import Task

DIGITS, MIDDLE = "rotated-mnist", "m45"
OTHERS = ("m30", "m60", "m15", "m75", "m0")  # sources, where an item counts them
ROUNDS, FIRST, STEPS = 3, 30, 10  # of a quick version
RATE = {"sgd": 0.05, "adam": 0.002, "adamw": 0.002}  # at least, for there are so few steps
SMALL = ("rotated-mnist-cnn", "lenet", "digits-dg-cnn", "digit-five-cnn")

Scores = dict[str, dict[int, float]]  # column -> seed -> what is shown


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What of an item is run. `stand_in`: why the embedded digits take the place of its data."""

    item: Item
    rows: tuple[ItemRow, ...]
    targets: tuple[str, ...]
    seeds: int
    quick: bool = False
    stand_in: str = ""
    options: Mapping[str, str] = field(default_factory=dict)  # of the data, such as root=
    weights: str = ""  # other pretrained ones than the item's

    @property
    def data(self) -> str:
        return DIGITS if self.stand_in else self.item.data

    @property
    def data_options(self) -> dict[str, str]:
        return {} if self.stand_in else {**self.item.data_options, **self.options}

    @property
    def official(self) -> bool:
        return self.item.official and not self.stand_in

    @property
    def columns(self) -> tuple[str, ...]:
        if self.item.columns and not self.stand_in:
            return tuple(c.name for c in self.item.columns)
        return tuple(dict.fromkeys(t for row in self.rows for t in self.held(row)))

    def held(self, row: ItemRow) -> tuple[str, ...]:
        return self.targets if self.stand_in or not row.targets else row.targets

    def method(self, row: ItemRow) -> str:
        return row.stand_in if self.stand_in and row.stand_in else row.method

    def recipe(self) -> dict[str, Any]:
        """All of it: nothing of the data set's own protocol shows through."""
        found = ROTATED_MNIST.recipe if self.stand_in else self.item.recipe
        if not self.quick:
            return asdict(found)
        changes: dict[str, Any] = {"first_steps": FIRST, "steps": STEPS, "first_epochs": None}
        if self.stand_in or self.item.model in SMALL:
            changes["lr"] = max(found.lr, RATE[found.optimizer])
        return asdict(replace(found, **changes))

    def changes(self, row: ItemRow) -> dict[str, Any]:
        """Of the experiment."""
        of = self.item
        found = {
            "model": ROTATED_MNIST.model if self.stand_in else of.model,
            "weights": "" if self.stand_in else self.weights or of.weights,
            "rounds": min(of.rounds, ROUNDS) if self.quick else of.rounds,
            "share": of.share, "diagnostics": of.diagnostics, "pooled": row.pooled or None,
            "participation": 1.0 if self.stand_in else of.participation,
            "allow_missing_classes": of.allow_missing_classes or None,
            "sources": (OTHERS[: len(row.sources)] if self.stand_in else row.sources) or None,
        }  # fmt: skip
        return {k: v for k, v in found.items() if v is not None}

    @property
    def selection(self) -> str:
        """The digits have no domain for validation."""
        own = self.item.selection
        return "last" if self.stand_in and own == "domain-val" else own

    def benches(self) -> list[tuple[tuple[ItemRow, ...], Bench]]:
        """Rows that differ by their method alone are one bench."""
        groups: dict[str, list[ItemRow]] = {}
        for row in self.rows:
            groups.setdefault(repr((self.changes(row), self.held(row))), []).append(row)
        return [(tuple(rows), self.bench(rows)) for rows in groups.values()]

    def bench(self, rows: Sequence[ItemRow]) -> Bench:
        return Bench(
            data=self.data, methods=tuple(dict.fromkeys(map(self.method, rows))),
            seeds=self.seeds, targets=() if self.official else self.held(rows[0]),
            selection=self.selection, data_options=self.data_options, recipe=self.recipe(),
            changes=self.changes(rows[0]), task=self.item.task,
        )  # fmt: skip

    def runs(self) -> dict[str, Experiment]:
        return {key: one for _, bench in self.benches() for key, one in bench.unique().items()}

    @property
    def compares(self) -> bool:
        """Whether it is the paper's schedule, data and start, so that a verdict means something."""
        return not (self.quick or self.weights or altering(self.options))

    @property
    def alone(self) -> bool:
        """Runs that are timed do not go side by side, nor with those that did."""
        return self.item.kind == "cost"

    @property
    def collection(self) -> Collection:
        return self.bench(self.rows[:1]).collection


def plan(
    item: Item,
    *,
    methods: Sequence[str] = (),
    targets: Sequence[str] = (),
    seeds: int | None = None,
    quick: bool = False,
    options: Mapping[str, str] | None = None,
    weights: str = "",
    how: Compute | None = None,
) -> Plan:
    """The item, or a part of it. A quick version takes the digits where the data are not here."""
    given = dict(options or {})
    rows = chosen(item, methods)
    why = replaced(item, given, how or Compute()) if quick else ""
    rows = tuple(r for r in rows if not (why and r.local)) or rows
    held = item.targets if not why else (MIDDLE,)
    for target in targets:
        if item.official or target not in item.targets:
            raise unknown(f"target of {item.name}", target, item.targets)
    if targets and not why:
        held = tuple(t for t in item.targets if t in targets)
    elif quick and len(held) > 1:
        held = held[len(held) // 2 :][:1]
    return Plan(
        item=item, rows=rows, targets=held, seeds=seeds or (1 if quick else item.seeds),
        quick=quick, stand_in=why, options=given, weights=weights,
    )  # fmt: skip


def chosen(item: Item, methods: Sequence[str]) -> tuple[ItemRow, ...]:
    """By composition, by the paper's name of the method, or by that and the variant."""
    found = set[ItemRow]()
    known = {name for r in item.rows for name in (r.name, r.method)}
    for name in methods:
        exact = [r for r in item.rows if r.method == name]
        low = name.lower()
        rows = exact or [r for r in item.rows if low in (r.label.lower(), r.name.lower())]
        if not rows:
            raise unknown(f"row of {item.name}", name, known)
        found.update(rows)
    if item.against:
        found.update(r for r in item.rows if r.label == item.against)
    return tuple(r for r in item.rows if not methods or r in found)


def absent(item: Item, options: Mapping[str, str] | None = None) -> str:
    """Why the data are not here, in a sentence; "" where they are."""
    asked = {**item.data_options, **(options or {})}
    try:
        spec, values = resolve(item.data, asked)
    except FeddgError as why:
        return str(why)
    root = values.get("root")
    if root is not None and not Path(root).expanduser().is_dir():
        return f"there is no folder {root} with {item.data}; name another by --data-option root=…"
    return (
        incomplete(item.data, tuple(sorted(asked.items()))) if spec.survey else spec.lacking(values)
    )


@cache
def incomplete(data: str, options: tuple[tuple[str, str], ...]) -> str:
    """What a survey of the images finds missing; it takes a second where they are many."""
    spec, values = resolve(data, dict(options))
    assert spec.survey is not None
    looked = {k: v for k, v in values.items() if k not in IMAGE}
    try:
        unfit = spec.survey(**looked).unfit(values.get("split", "found"))
    except FeddgError as why:
        return str(why)
    return unfit[0] if unfit else ""


def replaced(item: Item, options: Mapping[str, str], how: Compute) -> str:
    """Why a quick version is of the embedded digits."""
    if absent(item, options):
        own = item.data_options.get("protocol")
        return f"{item.data}{f' (protocol={own})' if own else ''} is not here"
    if item.model not in SMALL and not how.on_gpu:
        return f"{item.model} takes longer than a minute without a GPU"
    return ""


def scores(
    wanted: Plan, root: Path, failed: Mapping[str, str] | None = None
) -> dict[tuple[str, str], Scores]:
    """Of every row, from the records: a run that is not through, or failed, has none."""
    found: dict[tuple[str, str], Scores] = {row.key: {} for row in wanted.rows}
    for rows, bench in wanted.benches():
        task = bench.collection.task
        named: dict[str, list[ItemRow]] = {}
        for row in rows:
            [(name, _)] = bounds.rows(wanted.method(row), ())
            named.setdefault(name, []).append(row)
        for name, target, one in bench.experiments():
            records = whole(one, root) if one.key not in (failed or {}) else []
            for row in named[name] if records else ():
                for column, value in shown(wanted, row, target, one, records, task).items():
                    found[row.key].setdefault(column, {})[one.seed] = value
    return found


def shown(
    wanted: Plan, row: ItemRow, target: str, one: Experiment, records: list[Record], task: Task
) -> dict[str, float]:
    """The cells of one run, in the table's units."""
    if wanted.item.kind == "cost":
        return {target: sum(r["seconds"] for r in records[: one.rounds])}
    if row.local and not wanted.stand_in:
        return {target: scale(task) * records[0]["curves"][row.local][target]}
    record = rule(one.selection).pick(records[: one.rounds], task)
    if wanted.item.columns and not wanted.stand_in:
        cells = {c.name: over(record, c, task) for c in wanted.item.columns}
    else:
        cells = {target: record["scores"][f"test/{target}"].get(task.metric)}
    return {k: scale(task) * v for k, v in cells.items() if v is not None}


def over(record: Record, column: Column, task: Task) -> float | None:
    """The mean over the parts of a kind, or their worst group."""
    parts = [v for k, v in record["scores"].items() if k.startswith(f"{column.part}/")]
    if not column.worst:
        values = [v[task.metric] for v in parts if v.get(task.metric) is not None]
        return fmean(values) if values else None
    worst = [v.get("worst_group", v.get(task.metric)) for v in parts]
    return min((v for v in worst if v is not None), default=None)


def heading(wanted: Plan) -> str:
    """What the numbers depend on; that a version is quick, or of other data, comes first."""
    item, parts = wanted.item, [wanted.item.title]
    if wanted.quick:
        parts.append(
            f"QUICK: {min(item.rounds, ROUNDS)} rounds of {STEPS} steps (the first {FIRST}), which"
            " is not the paper's schedule"
        )
    if wanted.stand_in:
        parts.append(f"on the EMBEDDED DIGITS (Rotated MNIST), for {wanted.stand_in}")
    of = ", ".join(f"{k}={v}" for k, v in altering(wanted.options).items())
    if of and not wanted.stand_in:
        parts.append(f"with {of}, which the paper's data have not")
    if wanted.weights and not wanted.stand_in:
        parts.append(f"with weights={wanted.weights}, not {item.weights or 'from scratch'}")
    by = rule(wanted.selection)
    parts.append(f"selection: {by.name} ({by.line})")
    parts.append(f"{wanted.seeds} seed{'s' * (wanted.seeds > 1)}")
    return "; ".join(parts)
