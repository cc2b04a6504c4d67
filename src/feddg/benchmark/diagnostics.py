"""What else is noted of every round where it is asked for: --diagnostics curves,models.

All of it looks at single sites' models, which only a simulation in this process may do.
"""

from collections.abc import Sequence
from typing import Any

from feddg.benchmark.curves import curves
from feddg.benchmark.distances import distances
from feddg.engines.inprocess import InProcess
from feddg.engines.loop import Round, Run
from feddg.errors import ConfigError, unknown

CURVES, DISTANCES, MODELS = "curves", "distances", "models"
DIAGNOSTICS = {
    CURVES: "record every site's own model on every domain, each round",
    DISTANCES: "record how far the sites' models are from each other, layer by layer",
    MODELS: "keep every site's last model in the run's folder",
}


def diagnostics(names: str | None) -> tuple[str, ...]:
    """`curves,models` as names that exist, each once and in one order."""
    asked = [n.strip() for n in (names or "").split(",") if n.strip()]
    for name in asked:
        if name not in DIAGNOSTICS:
            raise unknown("diagnostics", name, DIAGNOSTICS)
    return tuple(n for n in DIAGNOSTICS if n in asked)


def diagnosed(
    engine: Any, done: Sequence[tuple[Run, Round]], asked: Sequence[tuple[str, ...]]
) -> list[dict[str, Any]]:
    """What goes into each run's record; `asked` says what of each."""
    if any(asked) and not isinstance(engine, InProcess):
        raise ConfigError(
            "--diagnostics looks at single sites' models, which only a simulation in this process"
            " has; leave it out in a real federation"
        )
    found: list[dict[str, Any]] = [{} for _ in done]
    wanted = [i for i, names in enumerate(asked) if CURVES in names]
    if wanted:
        scored = curves(engine, [done[i] for i in wanted])
        for i, one in zip(wanted, scored, strict=True):
            found[i][CURVES] = one
    for (_, k), names, more in zip(done, asked, found, strict=True):
        if DISTANCES in names:
            more[DISTANCES] = distances(k.replies)
    return found
