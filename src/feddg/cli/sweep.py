"""`feddg sweep`: tune methods on the sources' validation data, never on the target."""

from pathlib import Path
from typing import Annotated

import typer

from feddg.cli import options as o
from feddg.cli.draw import print_json

Methods = Annotated[list[str], typer.Argument(help="What is tuned: csac, or csac ppdg ga+fedprox.")]
Data = Annotated[str, typer.Option(help="A data set's name (feddg data list) or a folder.")]
Grid = Annotated[
    list[str],
    typer.Option(help="lam=[0,.2,.4]; csac.lam=[…] of one method; lr=[…] of the recipe."),
]
Trials = Annotated[
    int | None, typer.Option(help="So many settings of each method's grid, drawn by --seed.")
]
Seeds = Annotated[int, typer.Option(help="Runs per trial and target, seeds 0 to n-1.")]
Targets = Annotated[str | None, typer.Option(help="Domains to hold out; all by default.")]
Markdown = Annotated[bool, typer.Option("--markdown", help="Print the table as Markdown.")]


def sweep(
    methods: Methods,
    data: Data,
    grid: Grid,
    trials: Trials = None,
    seed: o.Seed = 0,
    seeds: Seeds = 1,
    targets: Targets = None,
    task: o.Task = "dg",
    schedule: o.Schedule = "paper",
    rounds: o.Rounds = None,
    model: o.Model = None,
    weights: o.Weights = None,
    settings: o.Set = None,
    data_option: o.DataOption = None,
    share: o.Share = None,
    allow_missing: o.AllowMissing = False,
    shard: o.Shard = None,
    out: o.Out = None,
    workers: o.Workers = None,
    device: o.Device = "auto",
    precision: o.Precision = "auto",
    execution: o.Execution = "auto",
    json: o.Json = False,
    markdown: Markdown = False,
) -> None:
    """Try every setting of a grid; choose by the sources' validation data; equal trials for all."""
    from feddg.benchmark.bench import run_all
    from feddg.benchmark.grids import trials as drawn
    from feddg.benchmark.shards import shard as part
    from feddg.benchmark.sweep import Sweep, sheet
    from feddg.cli.progress import follow
    from feddg.cli.reproduce import show
    from feddg.errors import RunsFailed

    changes = {
        "rounds": rounds, "model": model, "weights": weights, "share": share,
        "allow_missing_classes": allow_missing or None,
    }  # fmt: skip
    names = [name for text in methods for name in o.names(text)]
    wanted = Sweep(
        data=data, trials=drawn(names, grid, trials, seed), targets=o.names(targets),
        seeds=seeds, schedule=schedule, data_options=o.pairs(data_option, "--data-option"),
        recipe=o.recipe_changes(settings), changes=o.given(changes), task=task,
    )  # fmt: skip
    root, compute = out or Path("runs"), o.compute(workers, device, precision, execution)
    runs, ours, failure = wanted.runs(), part(shard), None
    mine = {key: runs[key] for key in ours.mine(runs)}
    try:
        follow(run_all(runs, root, compute, ours), mine, root, quiet=json)
    except RunsFailed as error:  # the table of all the others comes first
        failure = error
    found = sheet(wanted, root)
    if json:
        print_json({**found.to_dict(), "runs": str(root)})
    else:
        show(found, root, markdown)
    if failure:
        raise failure
