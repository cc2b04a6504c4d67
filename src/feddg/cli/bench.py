"""`feddg bench`: the leave-one-domain-out table. `feddg demo`: a minute of it."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from feddg.cli import options as o
from feddg.cli.draw import drawn, print_json, say

if TYPE_CHECKING:
    from feddg.benchmark.bench import Bench
    from feddg.benchmark.shards import Shard
    from feddg.benchmark.table import Table
    from feddg.engines.compute import Compute
    from feddg.report.sinks import Sink

DEMO_METHODS = "fedavg,fedprox,fedmedian"

Methods = Annotated[str, typer.Option(help="Names and compositions: fedavg,ga+fedprox.")]
Seeds = Annotated[int, typer.Option(help="Runs per cell, seeds 0 to n-1.")]
Targets = Annotated[str | None, typer.Option(help="Domains to hold out; all by default.")]
Markdown = Annotated[bool, typer.Option("--markdown", help="Print the table as Markdown.")]


def bench(
    data: o.Data,
    methods: Methods = "fedavg",
    seeds: Seeds = 3,
    targets: Targets = None,
    task: o.Task = "dg",
    schedule: o.Schedule = "paper",
    selection: o.Selection = None,
    rounds: o.Rounds = None,
    model: o.Model = None,
    weights: o.Weights = None,
    settings: o.Set = None,
    data_option: o.DataOption = None,
    share: o.Share = None,
    allow_missing: o.AllowMissing = False,
    diagnostics: o.Diagnostics = None,
    out: o.Out = None,
    workers: o.Workers = None,
    device: o.Device = "auto",
    precision: o.Precision = "auto",
    execution: o.Execution = "auto",
    track: o.Track = None,
    shard: o.Shard = None,
    profile: o.Profile = False,
    json: o.Json = False,
    markdown: Markdown = False,
) -> None:
    """Leave one domain out × methods × seeds: a table with mean ± standard error."""
    from feddg.benchmark.bench import Bench
    from feddg.benchmark.shards import shard as part

    compute = o.compute(workers, device, precision, execution)
    changes = {
        "rounds": rounds, "model": model, "weights": weights, "share": share,
        "allow_missing_classes": allow_missing or None, "diagnostics": diagnostics,
    }  # fmt: skip
    wanted = Bench(
        data=data, methods=o.names(methods), seeds=seeds, targets=o.names(targets),
        schedule=schedule, selection=selection, data_options=o.pairs(data_option, "--data-option"),
        recipe=o.recipe_changes(settings), changes=o.given(changes), task=task,
    )  # fmt: skip
    conduct(
        wanted, out or Path("runs"), compute, json, markdown, part(shard), o.sinks(track), profile
    )


def demo(out: o.Out = None, workers: o.Workers = None, json: o.Json = False) -> None:
    """A minute on the embedded data: three methods, an unseen rotation, the table."""
    from feddg.benchmark.bench import Bench

    wanted = Bench(
        data="rotated-mnist", methods=o.names(DEMO_METHODS), targets=("m75",), schedule="demo"
    )
    conduct(wanted, out or Path("runs"), workers, json)


def conduct(
    wanted: "Bench",
    root: Path,
    how: "Compute | int | None",
    json: bool,
    markdown: bool = False,
    shard: "Shard | None" = None,
    sinks: "Sequence[Sink]" = (),
    profile: bool = False,
) -> None:
    from feddg.benchmark.bench import run, table
    from feddg.benchmark.shards import WHOLE
    from feddg.cli.progress import follow, profiling
    from feddg.errors import RunsFailed

    failure, part, runs = None, shard or WHOLE, wanted.unique()
    mine = {key: runs[key] for key in part.mine(runs)}
    try:
        drive = profiling if profile else follow
        drive(run(wanted, root, how, part), mine, root, quiet=json, sinks=sinks)
    except RunsFailed as error:  # the table of all the others comes first
        failure = error
    found = table(wanted, root, failure.reasons if failure else {})
    if json:
        print_json({**found.to_dict(), "runs": str(root)})
    elif markdown:
        print(found.markdown())
    else:
        show(found, root)
    if failure:
        raise failure


def show(found: "Table", root: Path) -> None:
    drawn(found.title, found.lines(), found.notes)
    say(f"runs: {root.resolve()}")
