"""`feddg run`: one federation, one method, and a model to take away."""

from pathlib import Path
from typing import Annotated

import typer

from feddg.cli import options as o


def run(
    data: Annotated[str | None, typer.Argument(help="A data set's name, or a folder.")] = None,
    method: Annotated[str, typer.Option(help="A name or composition: ga+fedprox(mu=0.01).")] = "fedavg",
    target: Annotated[
        str | None, typer.Option(help="Domains to hold out and judge on; none: all sites train.")
    ] = None,
    sources: Annotated[str | None, typer.Option(help="Sites; all others by default.")] = None,
    validation: Annotated[str | None, typer.Option(help="Domains for selection only.")] = None,
    rounds: o.Rounds = None,
    seed: o.Seed = 0,
    model: o.Model = None,
    schedule: o.Schedule = "paper",
    selection: o.Selection = None,
    settings: o.Set = None,
    data_option: o.DataOption = None,
    share: Annotated[
        float | None, typer.Option(help="Of each site's data, held out for validation.")
    ] = None,
    participation: Annotated[
        str, typer.Option(help="Sites asked per round: a share such as 0.5, or a number such as 3.")
    ] = "1.0",
    min_sites: Annotated[
        int | None, typer.Option(help="Go on as long as so many sites reply; default: all asked.")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="A config.toml to run, in place of all else.")] = None,
    out: o.Out = None,
    workers: o.Workers = None,
    device: o.Device = "auto",
    json: o.Json = False,
) -> None:
    """Train one federation by one method; the run's folder holds the model."""
    from feddg.benchmark.driver import conduct
    from feddg.benchmark.experiment import from_toml
    from feddg.benchmark.protocols import experiment
    from feddg.benchmark.records import read_records
    from feddg.cli.progress import follow
    from feddg.errors import ConfigError

    o.check_device(device)
    if config is not None:
        wanted = from_toml(config)
    elif data is None:
        raise ConfigError("say what to train on: feddg run DATA, or feddg run --config FILE")
    else:
        wanted = experiment(
            data, schedule=schedule, data_options=o.pairs(data_option, "--data-option"),
            recipe=o.recipe_changes(settings), method=method, targets=o.names(target),
            sources=o.names(sources), validation=o.names(validation), rounds=rounds, seed=seed,
            model=model, selection=selection, share=share,
            participation=asked(participation), min_sites=min_sites,
        )  # fmt: skip
    root = out or Path("runs")
    folder = root / wanted.key
    done = len(list(read_records(folder / "results.jsonl")))
    follow(conduct([wanted], root, workers), [wanted], done, quiet=json)
    show(folder, json)


def asked(text: str) -> float | int:
    """3 is a number of sites, 0.5 and 1.0 are shares."""
    from feddg.errors import ConfigError

    try:
        value = int(text) if text.isdigit() else float(text)
    except ValueError:
        raise ConfigError(f"--participation {text!r}: give a share such as 0.5 or a number") from None
    if value <= 0 or (isinstance(value, float) and value > 1):
        raise ConfigError(f"--participation {text}: a share lies above 0 and up to 1.0")
    return value


def show(folder: Path, json: bool) -> None:
    from feddg.benchmark.records import read_records

    *_, last = read_records(folder / "results.jsonl")
    if json:
        import json as encoder

        print(encoder.dumps({"folder": str(folder), "model": str(folder / "model"), "last": last}))
        return
    from rich.console import Console
    from rich.table import Table

    drawn = Table(title=f"round {last['round']}", title_justify="left")
    drawn.add_column("judged on")
    metrics = list(next(iter(last["scores"].values()), {}))
    for metric in metrics:
        drawn.add_column(metric.replace("_", " "), justify="right")
    for name, scores in last["scores"].items():
        drawn.add_row(name, *(f"{scores[m]:.4f}" if m in scores else "–" for m in metrics))
    console = Console()
    console.print(drawn)
    console.print(f"run:   {folder.resolve()}", soft_wrap=True)
    console.print(f"model: {(folder / 'model').resolve()}", soft_wrap=True)
    console.print(f"next:  feddg evaluate {folder / 'model'} DATA", soft_wrap=True)
