"""Runs as they would be read from a disk, with records made by hand."""

from pathlib import Path
from typing import Any

from feddg.benchmark.protocols import experiment
from feddg.benchmark.stored import StoredRun


def record(target: str, accuracy: float | None, k: int = 0, **more: Any) -> dict[str, Any]:
    scores = {f"test/{target}": {"accuracy": accuracy, "balanced_accuracy": accuracy}}
    return {
        "round": k, "scores": scores, "losses": {}, "trace": {}, "sites": [], "failures": {},
        "bytes_up": 1_000_000, "bytes_down": 2_000_000, "seconds": 0.5, **more,
    }  # fmt: skip


def stored(
    method: str,
    target: str = "m0",
    seed: int = 0,
    accuracies: tuple[float | None, ...] = (0.5,),
    data: str = "rotated-mnist",
    records: tuple[dict[str, Any], ...] | None = None,
    folder: Path = Path("nowhere"),
    **changes: Any,
) -> StoredRun:
    """One whose rounds had these accuracies on the target; or one of these records."""
    lines = records or tuple(record(target, a, k) for k, a in enumerate(accuracies))
    wanted = {"rounds": len(lines), "targets": (target,), **changes}
    one = experiment(data, method=method, seed=seed, **wanted).resolved()
    return StoredRun(folder / one.key, one, lines, {"device": "cpu"}, False)
