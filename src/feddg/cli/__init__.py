"""The command line. Commands import what they need when they run, so that --help is quick."""

import shlex
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

import typer

from feddg.cli import (
    bench,
    compare,
    data,
    figure,
    methods,
    model,
    reproduce,
    run,
    sweep,
    table,
)  # fmt: skip
from feddg.errors import FeddgError

AGAIN = "every finished round is kept. To go on, run the same command again:"


def graceful(command: Callable[..., None], resumable: bool = False) -> Callable[..., None]:
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
            print("\nfeddg: interrupted" + f"; {AGAIN} {same}" * resumable, file=sys.stderr)
            raise typer.Exit(130) from None

    return wrapped


app = typer.Typer(
    help="Federated domain generalisation: train where the data are, work where nobody has been.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("run")(graceful(run.run, resumable=True))
app.command("bench")(graceful(bench.bench, resumable=True))
app.command("demo")(graceful(bench.demo, resumable=True))
app.command("reproduce")(graceful(reproduce.reproduce, resumable=True))
app.command("sweep")(graceful(sweep.sweep, resumable=True))
app.command("table")(graceful(table.table))
app.command("compare")(graceful(compare.compare))
app.command("figure")(graceful(figure.figure))
app.command("methods")(graceful(methods.methods))
app.command("predict")(graceful(model.predict))
app.command("evaluate")(graceful(model.evaluate))
data_app = typer.Typer(help="Data sets: list them, check a folder.", no_args_is_help=True)
data_app.command("list")(graceful(data.list_data))
data_app.command("check")(graceful(data.check))
app.add_typer(data_app, name="data")


def main() -> None:
    """`--model my_package:Net` is looked for in the current folder, too."""
    if "" not in sys.path:
        sys.path.append("")
    app(prog_name="feddg")
