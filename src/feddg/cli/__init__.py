"""The command line. Commands import what they need when they run, so that --help is quick."""

import sys

import typer

from feddg.cli import bench, data, methods, model, run
from feddg.errors import FeddgError

app = typer.Typer(
    help="Federated domain generalisation: train across private sites, work at one nobody has seen.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("run")(run.run)
app.command("bench")(bench.bench)
app.command("demo")(bench.demo)
app.command("methods")(methods.methods)
app.command("predict")(model.predict)
app.command("evaluate")(model.evaluate)
app.add_typer(data.app, name="data")


def main() -> None:
    """Errors that a user can mend are one sentence and exit code 2; Ctrl-C says how to go on."""
    try:
        app()
    except FeddgError as error:
        print(f"feddg: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print(
            "\nfeddg: interrupted; nothing is lost. Run the same command again to go on.",
            file=sys.stderr,
        )
        sys.exit(130)
