"""The command line. Commands import what they need when they run, so that --help is quick."""

import shlex
import sys
from collections.abc import Callable
from functools import wraps
from io import TextIOWrapper
from typing import Any

import typer

from feddg.cli import (
    bench,
    compare,
    data,
    figure,
    methods,
    model,
    report,
    reproduce,
    run,
    speed,
    sweep,
    table,
)
from feddg.errors import FeddgError

AGAIN = "To go on, run the same command again:"
ROUNDS = "every finished round"
BYTES = "what was downloaded"


def graceful(command: Callable[..., None], keeps: str = "") -> Callable[..., None]:
    """What a user can mend is one sentence and exit code 2; Ctrl-C is 130 and says how to go on."""

    @wraps(command)
    def wrapped(*args: Any, **options: Any) -> None:
        try:
            command(*args, **options)
            sys.stdout.flush()  # a closed pipe shows here, where typer ends quietly, not at exit
        except FeddgError as error:
            print("feddg:", " ".join(str(error).split()), file=sys.stderr)
            raise typer.Exit(2) from None
        except KeyboardInterrupt:
            same = shlex.join(["feddg", *sys.argv[1:]])
            kept = f"; {keeps} is kept. {AGAIN} {same}" if keeps else ""
            print(f"\nfeddg: interrupted{kept}", file=sys.stderr)
            raise typer.Exit(130) from None

    return wrapped


app = typer.Typer(
    help="Federated domain generalisation: train where the data are, work where nobody has been.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("run")(graceful(run.run, keeps=ROUNDS))
app.command("bench")(graceful(bench.bench, keeps=ROUNDS))
app.command("demo")(graceful(bench.demo, keeps=ROUNDS))
app.command("table")(graceful(table.table))
app.command("compare")(graceful(compare.compare))
app.command("report")(graceful(report.report))
app.command("figure")(graceful(figure.figure))
app.command("reproduce")(graceful(reproduce.reproduce, keeps=ROUNDS))
app.command("sweep")(graceful(sweep.sweep, keeps=ROUNDS))
app.command("bench-speed")(graceful(speed.bench_speed))
app.command("methods")(graceful(methods.methods))
app.command("predict")(graceful(model.predict))
app.command("evaluate")(graceful(model.evaluate))
data_app = typer.Typer(help="Data sets: list, get and check them.", no_args_is_help=True)
data_app.command("list")(graceful(data.list_data))
data_app.command("check")(graceful(data.check))
data_app.command("get")(graceful(data.get, keeps=BYTES))
app.add_typer(data_app, name="data")


def main() -> None:
    """`--model my_package:Net` is looked for in the current folder, too."""
    if "" not in sys.path:
        sys.path.append("")
    for stream in (sys.stdout, sys.stderr):  # file names need not be text
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    app(prog_name="feddg")
