"""`feddg reproduce`: a paper's table or figure by its name, the paper's numbers and ours."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from feddg.cli import options as o
from feddg.cli.draw import draw, print_json, say

if TYPE_CHECKING:
    from feddg.benchmark.beside import Sheet
    from feddg.benchmark.reproduce import Plan
    from feddg.benchmark.shards import Shard
    from feddg.engines.compute import Compute

Paper = Annotated[str | None, typer.Argument(help="csac, csac-v1, ppdg, copa or ga.")]
Name = Annotated[str | None, typer.Argument(help="table3, fig6, …; without one all are listed.")]
List = Annotated[bool, typer.Option("--list", help="All of them: data, cost, what is there.")]
Quick = Annotated[bool, typer.Option("--quick", help="A minute's version, marked as such.")]
Methods = Annotated[str | None, typer.Option(help="Some rows: fedavg,csac or the paper's names.")]
Targets = Annotated[str | None, typer.Option(help="Some of the domains to hold out.")]
Seeds = Annotated[int | None, typer.Option(help="Runs per cell; the default is the paper's.")]
Markdown = Annotated[bool, typer.Option("--markdown", help="Print the table as Markdown.")]


def reproduce(
    paper: Paper = None,
    item: Name = None,
    every: List = False,
    quick: Quick = False,
    methods: Methods = None,
    targets: Targets = None,
    seeds: Seeds = None,
    data_option: o.DataOption = None,
    weights: o.Weights = None,
    shard: o.Shard = None,
    out: o.Out = None,
    workers: o.Workers = None,
    device: o.Device = "auto",
    precision: o.Precision = "auto",
    execution: o.Execution = "auto",
    json: o.Json = False,
    markdown: Markdown = False,
) -> None:
    """Run a table or figure of the papers; print the paper's numbers beside ours."""
    from feddg.benchmark.papers import find, items
    from feddg.benchmark.reproduce import plan
    from feddg.benchmark.shards import shard as part
    from feddg.errors import ConfigError

    compute, options = (
        o.compute(workers, device, precision, execution),
        o.pairs(data_option, "--data-option"),
    )
    if every or paper is None or item is None:
        chosen = find(paper, item) if paper else items()
        listing(chosen, options, compute, json)
        return
    if seeds is not None and seeds < 1:
        raise ConfigError(f"--seeds must be at least 1, not {seeds}")
    plans = [
        plan(
            one, methods=o.names(methods), targets=o.names(targets), seeds=seeds, quick=quick,
            options=options, weights=weights or "", how=compute,
        )
        for one in find(paper, item)
    ]  # fmt: skip
    conduct(plans, out or Path("runs"), compute, part(shard), json, markdown)


def conduct(
    plans: "list[Plan]",
    root: Path,
    compute: "Compute",
    shard: "Shard",
    json: bool,
    markdown: bool,
) -> None:
    """Every item that has its data; at the end, those that have not, and what failed."""
    from feddg.benchmark.overall import overall
    from feddg.benchmark.reproduce import absent
    from feddg.errors import ConfigError, RunsFailed

    lacking, found, failed, tried = [], [], dict[str, str](), 0
    for wanted in plans:
        why = "" if wanted.stand_in else absent(wanted.item, wanted.options)
        if why:
            lacking.append(f"{wanted.item.name}: {why}")
            continue
        sheet, reasons = conducted(wanted, root, compute, shard, quiet=json)
        tried += len(wanted.runs())
        failed |= reasons
        found.append({**sheet.to_dict(), "runs": str(root)})
        if not json:
            show(sheet, root, markdown)
    last = overall(plans, root) if len(found) == len(plans) else None
    if last:
        found.append({**last.to_dict(), "runs": str(root)})
        if not json:
            show(last, root, markdown)
    if json and found:
        print_json(found[0] if len(plans) == 1 else found)
    if failed:
        raise RunsFailed(failed, tried)
    if lacking:
        raise ConfigError("; ".join(lacking) + " (--quick runs on the embedded digits instead)")


def conducted(
    wanted: "Plan", root: Path, compute: "Compute", shard: "Shard", quiet: bool
) -> "tuple[Sheet, dict[str, str]]":
    from feddg.benchmark.bench import run_all
    from feddg.benchmark.sheets import sheet
    from feddg.cli.progress import follow
    from feddg.errors import RunsFailed

    root = root / "alone" if wanted.alone else root
    runs, failed = wanted.runs(), dict[str, str]()
    mine = {key: runs[key] for key in shard.mine(runs)}
    try:
        follow(run_all(runs, root, compute, shard, wanted.alone), mine, root, quiet=quiet)
    except RunsFailed as error:  # the table of all the others comes first
        failed = error.reasons
    return sheet(wanted, root, failed), failed


def show(sheet: "Sheet", root: Path, markdown: bool = False) -> None:
    if markdown:
        print(sheet.markdown() + "\n")
        return
    say(sheet.title, "bold")
    drawn(sheet.head, sheet.body, sheet.left)
    for note in sheet.notes:
        say(note, "dim")
    say(f"runs: {root.resolve()}")


def drawn(head: Any, body: Any, left: int) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table()
    for i, name in enumerate(head):
        justify: Any = "left" if i < left else "right"
        table.add_column(Text(name), justify=justify, no_wrap=True)
    for row in body:
        table.add_row(*map(Text, row), end_section="difference" in row[:2])
    draw(table)


def listing(chosen: Any, options: dict[str, str], compute: "Compute", json: bool) -> None:
    """What a full run costs here, and whether its data are there."""
    from feddg.benchmark.estimate import Estimator, clock
    from feddg.benchmark.reproduce import absent

    estimate = Estimator(compute)
    rows = []
    for item in chosen:
        why = absent(item, options)
        rows.append(
            {
                "paper": item.paper, "item": item.item, "kind": item.kind, "title": item.title,
                "data": item.data, "model": item.model, "runs": estimate.runs(item),
                "seconds": round(estimate.seconds(item)), "there": not why, "absent": why,
            }
        )  # fmt: skip
    if json:
        print_json({"estimate": estimate.said, "items": rows})
        return
    head = ("paper", "item", "what", "data", "network", "runs", "about", "data there")
    body = [
        (
            r["paper"], r["item"], r["title"].partition(": ")[2], r["data"], r["model"],
            str(r["runs"]), clock(r["seconds"]), "yes" if r["there"] else "no",
        )
        for r in rows
    ]  # fmt: skip
    drawn(head, body, 5)
    say(estimate.said, "dim")
    for why in dict.fromkeys(r["absent"] for r in rows if r["absent"]):
        say(f"not there: {why}", "dim")
    say("feddg reproduce csac table3 runs one; --quick is a minute's version on digits.")
