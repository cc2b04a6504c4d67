"""What the page shows, as plain values: groups with their rows, runs, charts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from shlex import join
from statistics import fmean
from typing import Any

from feddg.benchmark.protocols import PAPER, protocol
from feddg.benchmark.selection import rule
from feddg.benchmark.stored import StoredRun
from feddg.benchmark.table import Number, shown_metric
from feddg.catalogue import compose
from feddg.data.catalogue import catalogue
from feddg.report.charts import Chart
from feddg.report.compare import compared
from feddg.report.groups import Group, altered, grouped
from feddg.report.rounds import Family, families, insides
from feddg.report.rows import Published, Row, about, published, rows, twice
from feddg.report.shown import shown
from feddg.tasks import Task


@dataclass(eq=False)
class Shared:
    """Runs by their place in a list, and lines of text that many configurations share."""

    runs: list[dict[str, Any]] = field(default_factory=list)
    lines: dict[str, int] = field(default_factory=dict)
    environments: dict[tuple[tuple[str, str], ...], int] = field(default_factory=dict)
    places: dict[int, int] = field(default_factory=dict)

    def place(self, run: StoredRun) -> int:
        if id(run) not in self.places:
            self.places[id(run)] = len(self.runs)
            self.runs.append(self.run(run))
        return self.places[id(run)]

    def run(self, run: StoredRun) -> dict[str, Any]:
        config = run.folder / "config.toml"
        text = config.read_text("utf-8").splitlines()
        around = tuple(run.environment.items())
        return {
            "key": run.key,
            "seed": run.experiment.seed,
            "rounds": run.experiment.rounds,
            "done": len(run.records),
            "config": [self.lines.setdefault(line, len(self.lines)) for line in text],
            "environment": self.environments.setdefault(around, len(self.environments)),
            "again": join(["feddg", "run", "--config", str(config), "--out", "again"]),
            **spent(run),
        }


def content(
    runs: Sequence[StoredRun], figures: Sequence[Chart] = (), asked: Sequence[str] = ()
) -> dict[str, Any]:
    """`figures` stand at the end, those `asked` for by their keys with their groups."""
    shared = Shared()
    groups = sorted(grouped(runs), key=lambda g: len(g.runs), reverse=True)
    of = shown(groups, asked)
    found = [{**group_content(g, shared), "figures": list(map(drawn, of(g)))} for g in groups]
    there = {r.folder for g in groups for r in g.runs}
    return {
        "groups": found,
        "left": [r.key for r in runs if r.folder not in there],
        "figures": [drawn(c) for c in figures],
        "runs": shared.runs,
        "lines": list(shared.lines),
        "environments": [list(map(list, e)) for e in shared.environments],
    }


def group_content(group: Group, shared: Shared) -> dict[str, Any]:
    e, found = group.runs[0].experiment, rows(group)
    known = catalogue()
    return {
        "title": known[e.data].title if e.data in known else Path(e.data).name,
        "caption": group.title,
        "metric": shown_metric(group.task),
        "higher": group.task.higher_is_better,
        "facts": facts(group),
        "notes": notes(group),
        "columns": list(group.targets),
        "rows": [row_content(group, row, shared) for row in found],
        "tests": [tested(group, row.name, found) for row in found if not row.line.reference],
        "families": list(map(kind, families(group, found))),
        "insides": [
            {"row": i.row, "column": i.target, "kinds": list(map(kind, i.kinds))}
            for i in insides(found)
        ],
    }


def facts(group: Group) -> list[list[str]]:
    """What the group's numbers depend on besides method, target and seed, in short."""
    e, by = group.runs[0].experiment, rule(group.runs[0].experiment.selection)
    shortened = f", the shortened schedule {e.schedule!r}" if e.schedule else ""
    work = f"{e.recipe.steps} steps" if e.recipe.steps else f"{e.recipe.epochs} epochs"
    first = e.recipe.first_epochs
    where = "+".join(e.targets) if len(e.targets) > 1 else "the domain left out"
    adapted = ", whose unlabelled data the server has (uda)" if e.adapted else ""
    found = [
        ["judged on", where + adapted],
        ["selection", f"{by.name} ({by.line})"],
        ["network", e.model + (f", from {e.weights}" if e.weights else "")],
        ["rounds", f"{e.rounds}{shortened}"],
        ["local work", work + (f", {first} in the first round" if first else "")],
        ["recipe", f"{e.recipe.optimizer}, rate {e.recipe.lr:g}, batches of {e.recipe.batch_size}"],
        ["held out at home", f"{e.share:.0%} of each site" if e.share else "nothing"],
        ["seeds", str(group.seeds)],
    ]
    if e.data_options:
        found.append(["data", ", ".join(f"{k}={v}" for k, v in e.data_options.items())])
    if e.participation != 1.0:
        found.append(["sites a round", f"{e.participation:g}"])
    if changed := altered(e):
        found.append(["unlike its protocol", ", ".join(f"{k}={v}" for k, v in changed.items())])
    return found


def notes(group: Group) -> list[str]:
    e = group.runs[0].experiment
    found = list(protocol(e.data, e.data_options).notes)
    if e.schedule not in ("", PAPER):
        found.insert(0, f"Shortened schedule {e.schedule!r}: no paper's number compares.")
    if e.selection == "oracle":
        found.insert(0, "Selected by the target's own labels: an upper bound, not a result.")
    if more := twice(group):
        found.append(f"Made more than once, of which the first counts: {', '.join(more)}.")
    return found


def tested(group: Group, baseline: str, among: Sequence[Row]) -> dict[str, Any]:
    """As `feddg compare` has it: p of every method against one, a value for each row."""
    found = {r.method: r for r in compared(group, baseline).rows}
    tests = {"t-test, Holm": "t_holm", "t-test": "t", "Wilcoxon, Holm": "wilcoxon_holm",
             "Wilcoxon": "wilcoxon"}  # fmt: skip
    p = {
        name: [getattr(found.get(row.name), which, None) for row in among]
        for name, which in tests.items()
    }
    return {"baseline": baseline, "p": p}


def row_content(group: Group, row: Row, shared: Shared) -> dict[str, Any]:
    family, line = about(row.experiment)
    paper, runs = published(group, row), row.every_run
    return {
        "name": row.name,
        "family": family,
        "line": line,
        "bound": row.line.reference,
        "reveals": reveals(row),
        "cells": [
            cell_content(group, row, t, number, paper.get(t), shared)
            for t, number in zip(group.targets, row.line.numbers, strict=True)
        ],
        "average": numbered(row.line.average),
        "paper": printed(paper.get("average")),
        **{k: fmean(spent(r)[k] for r in runs) for k in ("seconds", "up", "down")},
    }


def cell_content(
    group: Group, row: Row, target: str, number: Number | None, paper: Published | None,
    shared: Shared,
) -> dict[str, Any] | None:  # fmt: skip
    """The number, and of every seed behind it which run it is and which round was chosen."""
    runs = row.runs.get(target, {})
    if not runs:
        return None
    values = group.scores[row.name].get(target, {})
    seeds = [
        {"run": shared.place(run), "value": values.get(seed), "round": chosen(run, group.task)}
        for seed, run in runs.items()
    ]
    return {"number": numbered(number), "paper": printed(paper), "seeds": seeds}


def chosen(run: StoredRun, task: Task) -> int:
    """Counted from one."""
    return int(run.selected(task)["round"]) + 1


def reveals(row: Row) -> dict[str, Any]:
    """As `feddg methods` says: what leaves a site, and what the server must see."""
    if row.experiment.pooled or row.experiment.oracle:
        return {"sends": [["data", "every example"]], "sees": "everything"}
    if row.line.reference:
        return {"sends": [], "sees": "nothing"}
    found = compose(row.experiment.method).reveals
    sends = [["model", "the site's weights"], *map(list, found.notes.items())]
    return {"sends": sends, "sees": found.server_sees}


def spent(run: StoredRun) -> dict[str, float]:
    """Seconds of training, and bytes over the wire, of the whole run."""
    return {
        "seconds": round(sum(r["seconds"] for r in run.records), 3),
        "up": sum(r["bytes_up"] for r in run.records),
        "down": sum(r["bytes_down"] for r in run.records),
    }


def numbered(number: Number | None) -> dict[str, Any] | None:
    if number is None:
        return None
    return {"mean": number.mean, "error": number.error, "n": number.n}


def printed(paper: Published | None) -> dict[str, Any] | None:
    if paper is None:
        return None
    return {"value": paper.value, "error": paper.error, "source": paper.source}


def kind(family: Family) -> dict[str, Any]:
    return {"name": family.name, "charts": [drawn(c) for c in family.charts]}


def drawn(chart: Chart) -> dict[str, Any]:
    """Without what is empty, and numbers no finer than anybody can see."""
    found: dict[str, Any] = shortened(chart.to_dict())
    return found


def shortened(value: Any) -> Any:
    if isinstance(value, Mapping):
        kept = {k: shortened(v) for k, v in value.items()}
        return {k: v for k, v in kept.items() if v not in ("", [], None) and v is not False}
    if isinstance(value, list | tuple):
        return [shortened(v) for v in value]
    if isinstance(value, float):
        return float(f"{value:.5g}") if isfinite(value) else None
    return value
