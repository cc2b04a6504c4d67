"""`feddg bench`: the leave-one-domain-out table. `feddg demo`: a minute of it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from feddg.cli import options as o

if TYPE_CHECKING:
    from feddg.benchmark.bench import Bench
    from feddg.benchmark.table import Table

DEMO_METHODS = "fedavg,fedprox,fedmedian"


def bench(
    data: o.Data,
    methods: Annotated[str, typer.Option(help="Names and compositions: fedavg,ga+fedprox.")] = "fedavg",
    seeds: Annotated[int, typer.Option(help="Runs per cell, seeds 0 to n-1.")] = 3,
    targets: Annotated[str | None, typer.Option(help="Domains to hold out; all by default.")] = None,
    schedule: o.Schedule = "paper",
    selection: o.Selection = None,
    rounds: o.Rounds = None,
    model: o.Model = None,
    settings: o.Set = None,
    data_option: o.DataOption = None,
    out: o.Out = None,
    workers: o.Workers = None,
    device: o.Device = "auto",
    json: o.Json = False,
) -> None:
    """Leave one domain out × methods × seeds: a table with mean ± standard error."""
    from feddg.benchmark.bench import Bench

    o.check_device(device)
    changes = {"rounds": rounds, "model": model}
    wanted = Bench(
        data=data, methods=o.names(methods), seeds=seeds, targets=o.names(targets),
        schedule=schedule, selection=selection, data_options=o.pairs(data_option, "--data-option"),
        recipe=o.recipe_changes(settings), changes={k: v for k, v in changes.items() if v is not None},
    )  # fmt: skip
    conduct(wanted, out or Path("runs"), workers, json)


def demo(out: o.Out = None, workers: o.Workers = None, json: o.Json = False) -> None:
    """A minute on the embedded data: three methods, an unseen rotation, the table."""
    from feddg.benchmark.bench import Bench

    wanted = Bench(
        data="rotated-mnist", methods=o.names(DEMO_METHODS), targets=("m75",), schedule="demo"
    )
    conduct(wanted, out or Path("runs"), workers, json)


def conduct(wanted: "Bench", root: Path, workers: int | None, json: bool) -> None:
    from feddg.benchmark.bench import run, table
    from feddg.benchmark.records import read_records
    from feddg.cli.progress import follow

    experiments = [e for _, _, e in wanted.experiments()]
    done = sum(len(list(read_records(root / e.key / "results.jsonl"))) for e in experiments)
    follow(run(wanted, root, workers), experiments, done, quiet=json)
    show(table(wanted, root), root, json)


def show(found: "Table", root: Path, json: bool) -> None:
    if json:
        import json as encoder

        print(encoder.dumps({**found.to_dict(), "runs": str(root)}))
        return
    from rich.console import Console
    from rich.measure import Measurement
    from rich.table import Table as Drawn

    head, *body = found.lines()
    drawn = Drawn()
    for i, name in enumerate(head):
        drawn.add_column(name, justify="left" if i == 0 else "right", no_wrap=True)
    for row in body:
        drawn.add_row(*row)
    console = Console()
    whole = Measurement.get(console, console.options.update(max_width=10_000), drawn).maximum
    console.print(found.title, style="bold", soft_wrap=True)
    # A number cut short is worse than a line that is too wide.
    Console(width=max(whole, console.width)).print(drawn)
    for note in found.notes:
        console.print(note, style="dim", soft_wrap=True)
    console.print(f"runs: {root.resolve()}", soft_wrap=True)
