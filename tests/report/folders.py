"""Runs as they lie on a disk, with records made by hand: six accuracies that are easily added."""

import json
from pathlib import Path
from typing import Any

from feddg.benchmark.stored import StoredRun, stored_runs
from tests.report.stored import record, stored

HOSTILE = "<img src=x onerror=document.title='broken'>"  # a name from outside
ENVIRONMENT = {"feddg": "0.1.0", "device": "cpu"}
# method -> target -> the last accuracy of seeds 0 and 1
ACCURACIES = {
    "fedavg": {"m0": (0.80, 0.82), "m15": (0.60, 0.64)},
    "ga": {"m0": (0.70, 0.70), "m15": (0.90, 0.92)},
    "fedprox(mu=0.01)": {"m0": (0.75, 0.76), "m15": (0.65, 0.72)},
}


def written(run: StoredRun, environment: dict[str, str] | None = None) -> Path:
    run.folder.mkdir(parents=True)
    (run.folder / "config.toml").write_text(run.experiment.to_toml(), "utf-8")
    (run.folder / "environment.json").write_text(json.dumps(environment or ENVIRONMENT), "utf-8")
    lines = "".join(json.dumps(r) + "\n" for r in run.records)
    (run.folder / "results.jsonl").write_text(lines, "utf-8")
    return run.folder


def rounds(target: str, last: float, trace: dict[str, Any] | None = None) -> tuple[Any, ...]:
    """Three, each a tenth better than the one before; who has more say changes."""
    found = []
    for k in range(3):
        weights = {"m30": 0.5 + k / 10, "m45": 0.5 - k / 10}
        told = {"ga": {"weights": weights}} if trace is None else trace
        more = {"losses": {"total": 1 - k / 4}, "trace": told}
        found.append(record(target, round(last - (2 - k) / 10, 4), k, **more))
    return tuple(found)


def bench(root: Path, data: str = "rotated-mnist") -> tuple[StoredRun, ...]:
    """Three methods on two targets with two seeds, and a site alone."""
    for method, by_target in ACCURACIES.items():
        for target, values in by_target.items():
            for seed, last in enumerate(values):
                records = rounds(target, last, None if method == "ga" else {})
                written(stored(method, target, seed, records=records, folder=root, data=data))
    alone = rounds("m0", 0.5, {})
    written(stored("fedavg", "m0", 0, records=alone, folder=root, sources=("m15",)))
    return stored_runs([root])
