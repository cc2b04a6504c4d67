"""`feddg bench-speed`: what this machine trains, beside plain PyTorch and other frameworks."""

import json as jsons
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from feddg.cli import options as o
from feddg.cli.draw import draw, print_json, say

Only = Annotated[
    str | None, typer.Option(help="Parts of names: plain,feddg,flower,nvflare,pfl; all by default.")
]
Turns = Annotated[int, typer.Option(min=1, help="Everybody in turn so many times.")]
Rounds = Annotated[int, typer.Option(min=2, help="Rounds of each turn; the first warms up.")]
Epochs = Annotated[int, typer.Option(min=1, help="Passes over a site's data in a round.")]
Envs = Annotated[
    Path | None,
    typer.Option(help="Where the peers' environments are kept; default ~/.cache/feddg/peers."),
]
OutFile = Annotated[Path | None, typer.Option("--out", help="Also write the JSON to this file.")]


def bench_speed(
    only: Only = None,
    turns: Turns = 3,
    rounds: Rounds = 8,
    epochs: Epochs = 1,
    envs: Envs = None,
    out: OutFile = None,
    json: o.Json = False,
) -> None:
    """FedAvg on five sites of digits: plain PyTorch, feddg, Flower, NVFlare, pfl in one table."""
    from feddg.benchmark.records import environment
    from feddg.benchmark.speed.environments import cache
    from feddg.benchmark.speed.measure import Plan, lines, measured
    from feddg.checkpoint import write_whole

    plan = Plan(epochs, rounds, turns, tuple(n.lower() for n in o.names(only)), envs or cache())
    found = {"environment": environment(), **measured(plan, told)}
    if out:
        write_whole(out, jsons.dumps(found, indent=1).encode())
    if json:
        print_json(found)
        return
    show(lines(found))
    top = found["ceiling"]
    say(
        f"the machine: product {top['product_gflops']:.0f} GFLOP/s"
        f" ({top['product_gflops_one_thread']:.0f} on one thread), copy"
        f" {top['copy_gbps']:.1f} GB/s; load {', '.join(f'{v:.1f}' for v in found['load'])}"
    )


def told(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def show(rows: Sequence[Sequence[str]]) -> None:
    from rich.table import Table
    from rich.text import Text

    head, *body = rows
    drawn = Table(title="seconds per round of the same federated work", title_justify="left")
    for i, name in enumerate(head):
        drawn.add_column(Text(name), justify="left" if i < 2 else "right", no_wrap=True)
    for row in body:
        drawn.add_row(*map(Text, row))
    draw(drawn)
