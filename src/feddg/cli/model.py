"""`feddg predict` and `feddg evaluate`: a model folder at work."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from feddg.cli import options as o
from feddg.cli.draw import draw, print_json

if TYPE_CHECKING:
    from feddg.deploy import Deployed, Inputs

Folder = Annotated[Path, typer.Argument(help="A model's folder, or that of a run.")]
Data = Annotated[
    str, typer.Argument(help="A data set's name, a CSV, a folder of CSVs, an image or a folder.")
]
Domains = Annotated[
    list[str] | None, typer.Option("--domain", help="Only this domain; may be repeated.")
]
To = Annotated[Path | None, typer.Option(help="A file to write; otherwise it is printed.")]


def predict(
    model: Folder,
    data: Data,
    data_option: o.DataOption = None,
    domain: Domains = None,
    out: To = None,
    json: o.Json = False,
) -> None:
    """The class of every input and its probabilities, as CSV. Labels are not needed."""
    import json as encoder

    from feddg import deploy
    from feddg.checkpoint import write_whole

    deployed, inputs = opened(model, data, data_option)
    found = deploy.predict(deployed, inputs, domain or ())
    text = encoder.dumps(found.to_dict(), allow_nan=False) + "\n" if json else found.to_csv()
    if out is None:
        print(text, end="")
    else:
        write_whole(out, text.encode())


def evaluate(
    model: Folder,
    data: Data,
    data_option: o.DataOption = None,
    domain: Domains = None,
    json: o.Json = False,
) -> None:
    """How good the model is on labelled data: by domain, by class, confusion, calibration."""
    from feddg import deploy
    from feddg.deploy.show import evaluation_view

    deployed, inputs = opened(model, data, data_option)
    found = deploy.evaluate(deployed, inputs, domain or ())
    if json:
        print_json(found.to_dict())
    else:
        draw(evaluation_view(found))


def opened(model: Path, data: str, data_option: list[str] | None) -> "tuple[Deployed, Inputs]":
    """The model, and the data as it wants them."""
    from feddg.deploy import load_model, read_inputs

    inner = model / "model"
    folder = inner if inner.is_dir() and not (model / "model.json").exists() else model
    deployed = load_model(folder)
    return deployed, read_inputs(data, deployed, **o.pairs(data_option, "--data-option"))
