"""Tune methods on the sources' validation data, every method with as many trials.

For each unseen domain the setting is chosen by what the sites of that very federation held out.
The choice is handed records without the target's scores (`blind`), so it cannot look at them; what
the chosen setting scores on the target is shown afterwards, and said to be for show.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from feddg.benchmark.bench import Bench, whole
from feddg.benchmark.beside import Sheet
from feddg.benchmark.experiment import Experiment
from feddg.benchmark.grids import Trial
from feddg.benchmark.protocols import PAPER, protocol
from feddg.benchmark.selection import Record, rule
from feddg.benchmark.table import NONE, Cell, scale, shown_metric
from feddg.tasks import Task

BY = rule("source-val")
HELD = 0.2  # of each site, where the protocol holds nothing out


@dataclass(frozen=True, kw_only=True)
class Sweep:
    data: str
    trials: tuple[Trial, ...]
    targets: tuple[str, ...] = ()
    seeds: int = 1
    schedule: str = PAPER
    data_options: Mapping[str, str] = field(default_factory=dict)
    recipe: Mapping[str, Any] = field(default_factory=dict)
    changes: Mapping[str, Any] = field(default_factory=dict)
    task: str = "dg"

    def bench(self, trial: Trial) -> Bench:
        """Without the data set's references, which nobody tunes."""
        own = protocol(self.data, self.data_options).share or HELD
        return Bench(
            data=self.data, methods=(trial.spec,), seeds=self.seeds, targets=self.targets,
            schedule=self.schedule, selection=BY.name, data_options=self.data_options,
            recipe={**self.recipe, **trial.recipe}, changes={"share": own, **self.changes},
            task=self.task,
        )  # fmt: skip

    def experiments(self, trial: Trial) -> list[tuple[str, Experiment]]:
        """(target, experiment) of every seed."""
        found = self.bench(trial).experiments()
        return [(target, one) for row, target, one in found if row == trial.spec]

    def runs(self) -> dict[str, Experiment]:
        return {one.key: one for t in self.trials for _, one in self.experiments(t)}


def blind(records: Sequence[Record]) -> list[Record]:
    """What the choice is made from: the sources' validation scores, and nothing else."""
    return [
        {
            "round": r["round"],
            "scores": {k: r["scores"][k] for k in r["scores"] if k.startswith(BY.prefix)},
        }
        for r in records
    ]


def validation(records: Sequence[Record], task: Task) -> float | None:
    """Of the round that is best by it; the higher, the better."""
    seen = blind(records)
    return BY.score(BY.pick(seen, task), task)


@dataclass(frozen=True)
class Outcome:
    """A trial with one target left out: the sources' validation score, the mean over seeds."""

    trial: Trial
    where: str
    score: float | None
    keys: tuple[str, ...]


def outcomes(wanted: Sweep, root: Path) -> list[Outcome]:
    """A trial that lacks a seed has no score yet."""
    task = wanted.bench(wanted.trials[0]).collection.task
    found = []
    for trial in wanted.trials:
        runs: dict[str, list[Experiment]] = {}
        for target, one in wanted.experiments(trial):
            runs.setdefault(target, []).append(one)
        for target, ones in runs.items():
            known = [validation(r, task) for one in ones if (r := whole(one, root))]
            full = [v for v in known if v is not None]
            score = fmean(full) if len(full) == len(ones) else None
            found.append(Outcome(trial, target, score, tuple(one.key for one in ones)))
    return found


def chosen(found: Sequence[Outcome]) -> dict[tuple[str, str], Outcome]:
    """By method and target, once all its trials are through; the earlier of equals."""
    best: dict[tuple[str, str], Outcome] = {}
    for method, where in dict.fromkeys((o.trial.method, o.where) for o in found):
        of = [o for o in found if (o.trial.method, o.where) == (method, where)]
        scored = [(o.score, o) for o in of if o.score is not None]
        if len(scored) == len(of):
            best[method, where] = max(scored, key=lambda pair: pair[0])[1]
    return best


def on_target(wanted: Sweep, one: Outcome, root: Path) -> float | None:
    """What the chosen setting scores where nobody has been; asked for after the choice."""
    task = wanted.bench(one.trial).collection.task
    runs = {e.key: e for _, e in wanted.experiments(one.trial)}
    cells = [Cell.of(runs[k], whole(runs[k], root), one.where, task) for k in one.keys]
    values = [c.value for c in cells if c is not None]
    return fmean(values) if values else None


def sheet(wanted: Sweep, root: Path) -> Sheet:
    """Every trial's validation score by target, * the chosen; below, what the chosen score."""
    found = outcomes(wanted, root)
    best = chosen(found)
    bench = wanted.bench(wanted.trials[0])
    targets, task = bench.domains(), bench.collection.task
    sign = scale(task) * (1 if task.higher_is_better else -1)
    final = {key: on_target(wanted, o, root) for key, o in best.items()}
    body = []
    for method in dict.fromkeys(t.method for t in wanted.trials):
        for trial in (t for t in wanted.trials if t.method == method):
            line = [o for o in found if o.trial is trial]
            marks = ("*" if best.get((method, o.where)) is o else "" for o in line)
            cells = (
                NONE if o.score is None else f"{sign * o.score:.2f}{mark}"
                for o, mark in zip(line, marks, strict=True)
            )  # fmt: skip
            body.append((method, trial.said, *cells))
        last = (final.get((method, t)) for t in targets)
        body.append(("", "target, of *", *(NONE if v is None else f"{v:.2f}" for v in last)))
    return Sheet(
        heading(wanted, bench), ("method", "setting", *targets), tuple(body),
        notes(wanted, found, best),
        {"trials": [told(o, best, final, sign) for o in found], "targets": list(targets)},
    )  # fmt: skip


def told(
    o: Outcome,
    best: Mapping[tuple[str, str], Outcome],
    final: Mapping[tuple[str, str], float | None],
    sign: int,
) -> dict[str, Any]:
    key = (o.trial.method, o.where)
    return {
        "method": o.trial.method, "spec": o.trial.spec, "recipe": dict(o.trial.recipe),
        "target": o.where, "source_val": None if o.score is None else sign * o.score,
        "chosen": best.get(key) is o, "runs": list(o.keys),
        "target_score_not_used": final[key] if best.get(key) is o else None,
    }  # fmt: skip


def heading(wanted: Sweep, bench: Bench) -> str:
    each = len(wanted.trials) // len({t.method for t in wanted.trials})
    parts = [
        f"{wanted.data}: {shown_metric(bench.collection.task)} on the sources' validation data"
        f" (share {bench.changes['share']:g} of each), by which settings are chosen",
        f"{each} trial{'s' * (each > 1)} a method",
        f"{wanted.seeds} seed{'s' * (wanted.seeds > 1)}",
    ]
    if wanted.schedule != PAPER:
        parts.append(f"SHORTENED schedule '{wanted.schedule}'")
    changed = {k: v for k, v in {**wanted.changes, **wanted.recipe}.items() if k != "share"}
    if changed:
        parts.append("with " + ", ".join(f"{k}={v}" for k, v in changed.items()))
    return "; ".join(parts)


def notes(
    wanted: Sweep, found: Sequence[Outcome], best: Mapping[tuple[str, str], Outcome]
) -> tuple[str, ...]:
    missing = [o for o in found if o.score is None]
    said = ["* chosen on the sources alone. The target's score was not used for choosing."]
    if missing:
        said.append(f"{len(missing)} of {len(found)} trials are not finished in this folder.")
    picked: dict[str, list[str]] = {}
    for o in best.values():
        settings = "".join(f" --set {k}={v}" for k, v in o.trial.recipe.items())
        picked.setdefault(o.trial.spec + settings, []).append(o.where)
    said += [f"{spec}: chosen for {', '.join(where)}." for spec, where in picked.items()]
    return tuple(said)
