"""What a deployed model says of data, and that as a CSV."""

import csv
import io
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from feddg.deploy.inputs import Given, Inputs, inputs_of
from feddg.deploy.load import Deployed
from feddg.errors import ConfigError
from feddg.local import outputs
from feddg.tasks import Classification, Task


@dataclass(frozen=True, eq=False)
class Predictions:
    """`output` is the model's own: a row per input; logits for classes, else the values."""

    task: Task
    inputs: Inputs
    output: Tensor

    @property
    def classes(self) -> tuple[str, ...]:
        return self.task.classes if isinstance(self.task, Classification) else ()

    @property
    def probabilities(self) -> Tensor | None:
        """Of the classes, in float64; None for real values."""
        return self.output.double().softmax(1) if self.classes else None

    @property
    def labels(self) -> Tensor:
        """The likeliest class of each, or the values."""
        return self.output.argmax(1) if self.classes else self.output

    def __len__(self) -> int:
        return len(self.output)

    @property
    def header(self) -> list[str]:
        """Domain, row, what is predicted, p(class) each, and the truth if it is known."""
        names = list(getattr(self.task, "names", ()))
        said = ["predicted", *(f"p({c})" for c in self.classes)] if self.classes else names
        truth = "label" if "label" not in said else "true label"
        return [
            "domain",
            self.inputs.id_name,
            *said,
            *([truth] if self.inputs.y is not None else []),
        ]

    def rows(self) -> Iterator[list[str | float]]:
        """A row per input, in the order of `header`."""
        y = self.inputs.y
        names = [(p.domain, i) for p in self.inputs.parts for i in p.ids]
        table = self.output if self.probabilities is None else self.probabilities
        truth = [None] * len(names) if y is None else y.tolist()
        top = self.output.argmax(1).tolist()
        for (domain, row), values, best, true in zip(
            names, table.tolist(), top, truth, strict=True
        ):
            said = [self.classes[best], *values] if self.classes else values
            known = [] if true is None else [self.classes[true] if self.classes else true]
            yield [domain, row, *said, *known]

    def to_dict(self) -> dict[str, Any]:
        """For --json: the rows as objects."""
        return {
            "data": self.inputs.name,
            "classes": list(self.classes),
            "predictions": [dict(zip(self.header, r, strict=True)) for r in self.rows()],
        }

    def to_csv(self) -> str:
        """Numbers with six digits after the point at most."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.header)
        for row in self.rows():
            writer.writerow([f"{v:.6g}" if isinstance(v, float) else v for v in row])
        return text.getvalue()

    def write_csv(self, path: str | Path) -> None:
        """All of it or nothing."""
        path = Path(path)
        new = path.with_name(f".{path.name}.new")
        try:
            new.write_text(self.to_csv(), "utf-8")
            os.replace(new, path)
        except OSError as why:
            new.unlink(missing_ok=True)
            raise ConfigError(f"predictions cannot be written to {path}: {why}") from None


def predict(deployed: Deployed, data: Given, domains: Sequence[str] = ()) -> Predictions:
    """Of all rows, or of those of the named `domains`."""
    inputs = inputs_of(data, deployed).only(domains)
    output = outputs(deployed.predictor, inputs.x, deployed.prepare)
    width = deployed.task.outputs
    if output.dim() == 1 and width == 1:
        output = output[:, None]
    if output.dim() != 2 or output.shape[1] != width:
        raise ConfigError(
            f"{deployed.folder}: the model's output is {'×'.join(map(str, output.shape[1:]))} per"
            f" input where its task has {width}"
        )
    return Predictions(deployed.task, inputs, output)
