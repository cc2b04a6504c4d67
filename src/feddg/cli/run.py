"""`feddg run`: one federation, one method, and a model to take away."""

from pathlib import Path
from shlex import join
from typing import TYPE_CHECKING, Annotated

import typer

from feddg.cli import options as o
from feddg.cli.draw import draw, print_json, say

if TYPE_CHECKING:
    from feddg.benchmark.experiment import Experiment
    from feddg.benchmark.selection import Record

WITH_CONFIG = (
    "config",
    "out",
    "workers",
    "device",
    "precision",
    "execution",
    "track",
    "profile",
    "json",
)  # all else stands in the file

OptionalData = Annotated[str | None, typer.Argument(help="A data set's name, or a folder.")]
MethodName = Annotated[str, typer.Option(help="A name or composition: ga+fedprox(mu=0.01).")]
Target = Annotated[
    str | None, typer.Option(help="Domains to hold out and judge on; none: all sites train.")
]
Sources = Annotated[str | None, typer.Option(help="Sites; all others by default.")]
Validation = Annotated[str | None, typer.Option(help="Domains for selection only.")]
Participation = Annotated[
    str, typer.Option(help="Sites asked per round: a share such as 0.5, or a number such as 3.")
]
MinSites = Annotated[
    int | None, typer.Option(help="Go on as long as so many sites reply; default: all asked.")
]
Config = Annotated[Path | None, typer.Option(help="A config.toml to run, in place of all else.")]


def run(
    context: typer.Context,
    data: OptionalData = None,
    method: MethodName = "fedavg",
    target: Target = None,
    task: o.Task = "dg",
    sources: Sources = None,
    validation: Validation = None,
    rounds: o.Rounds = None,
    seed: o.Seed = 0,
    model: o.Model = None,
    weights: o.Weights = None,
    schedule: o.Schedule = "paper",
    selection: o.Selection = None,
    settings: o.Set = None,
    data_option: o.DataOption = None,
    share: o.Share = None,
    participation: Participation = "1.0",
    min_sites: MinSites = None,
    allow_missing: o.AllowMissing = False,
    diagnostics: o.Diagnostics = None,
    config: Config = None,
    out: o.Out = None,
    workers: o.Workers = None,
    device: o.Device = "auto",
    precision: o.Precision = "auto",
    execution: o.Execution = "auto",
    track: o.Track = None,
    profile: o.Profile = False,
    json: o.Json = False,
) -> None:
    """Train one federation by one method; the run's folder holds the model."""
    from feddg.benchmark.driver import conduct
    from feddg.benchmark.protocols import experiment
    from feddg.cli.progress import follow, profiling
    from feddg.errors import ConfigError

    compute = o.compute(workers, device, precision, execution)
    if config is not None:
        alone(context)
        wanted, root = configured(config, out)
    elif data is None:
        raise ConfigError("say what to train on: feddg run DATA, or feddg run --config FILE")
    else:
        root = out or Path("runs")
        wanted = experiment(
            data, schedule=schedule, data_options=o.pairs(data_option, "--data-option"),
            recipe=o.recipe_changes(settings), method=method, targets=o.names(target),
            sources=o.names(sources), validation=o.names(validation), rounds=rounds, seed=seed,
            model=model, weights=weights, selection=selection, share=share,
            participation=asked(participation), min_sites=min_sites,
            allow_missing_classes=allow_missing, diagnostics=diagnostics, task=task,
        )  # fmt: skip
    events, sinks = conduct([wanted], root, compute), o.sinks(track)
    drive = profiling if profile else follow
    drive(events, {wanted.key: wanted}, root, quiet=json, sinks=sinks)
    show(wanted, root / wanted.key, json)


def alone(context: typer.Context) -> None:
    """--config FILE says it all; what else is given would be lost, so it is refused."""
    from feddg.errors import ConfigError

    for name in context.params:
        source = context.get_parameter_source(name)
        if name not in WITH_CONFIG and source is not None and source.name == "COMMANDLINE":
            raise ConfigError(f"--config says it all; leave out {name!r}, or change it in the file")


def configured(config: Path, out: Path | None) -> "tuple[Experiment, Path]":
    """A run's own config.toml goes on in its own folder."""
    from feddg.benchmark.experiment import from_toml

    wanted = from_toml(config)
    folder = config.resolve().parent
    home = folder.parent if folder.name == wanted.key else Path("runs")
    return wanted, out or home


def asked(text: str) -> float | int:
    """3 is a number of sites, 0.5 and 1.0 are shares."""
    from feddg.errors import ConfigError

    if text == "1":
        raise ConfigError("--participation 1 can mean all or one: write 1.0 for all, 0.01 for one")
    try:
        return int(text) if text.lstrip("-").isdigit() else float(text)
    except ValueError:
        raise ConfigError(
            f"--participation {text!r}: give a share such as 0.5 or a number such as 3"
        ) from None


def show(wanted: "Experiment", folder: Path, json: bool) -> None:
    from feddg.benchmark.records import read_records, started
    from feddg.benchmark.roles import overview
    from feddg.benchmark.selection import rule

    records = read_records(folder / "results.jsonl")
    task = overview(wanted.data, wanted.data_options).task
    chosen = rule(wanted.selection).pick(records, task)
    start = started(folder)
    if json:
        found = {"folder": str(folder), "model": str(folder / "model"), "selected": chosen}
        print_json({**found, "start": start} if start else found)
        return
    if chosen["scores"]:
        table(chosen, wanted)
    else:
        say("judged on nothing: no --target, and no --share of the sites held out")
    if start:
        say(f"start: {start}")
    say(f"run:   {folder.resolve()}")
    say(f"model: {(folder / 'model').resolve()}")
    options = [w for k, v in wanted.data_options.items() for w in ("--data-option", f"{k}={v}")]
    domains = [w for t in wanted.targets for w in ("--domain", t)]
    again = ["feddg", "evaluate", str(folder / "model"), wanted.data, *domains, *options]
    say(f"next:  {join(again)}")


def table(record: "Record", wanted: "Experiment") -> None:
    from rich.table import Table
    from rich.text import Text

    of = f"round {record['round'] + 1} of {wanted.rounds}, selected by {wanted.selection!r}"
    drawn = Table(title=Text(of), title_justify="left")
    drawn.add_column("judged on")
    metrics = list(dict.fromkeys(m for scores in record["scores"].values() for m in scores))
    for metric in metrics:
        drawn.add_column(metric.replace("_", " "), justify="right", no_wrap=True)
    for name, scores in record["scores"].items():
        cells = (scores.get(m) for m in metrics)
        drawn.add_row(Text(name), *("–" if v is None else f"{v:.4f}" for v in cells))
    draw(drawn)
