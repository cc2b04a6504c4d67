"""What the server's training has in common, whatever it is trained on."""

from dataclasses import replace
from typing import Any

from feddg.data.domain import Examples
from feddg.errors import ConfigError
from feddg.local import Job
from feddg.tasks import Classification

FEWEST = 2  # examples to train on: batch norm cannot take one


def tuning(job: Job, epochs: int, *parts: Any, name: str = "") -> Job:
    """The server's job as a training of so many epochs, with these parts for the task's loss.

    The rate and the optimiser are the sites' in the job's round; there is no label smoothing, and
    a last partial batch is left out. `name` tells several trainings of one round apart.
    """
    recipe = replace(
        job.recipe, epochs=epochs, steps=None, first_epochs=None, first_steps=None,
        label_smoothing=0.0, first_label_smoothing=None, drop_last=True,
    )  # fmt: skip
    return replace(job, recipe=recipe, parts=parts, name=f"{job.name}/{name}" if name else job.name)


def classifying(job: Job, method: str) -> None:
    if not isinstance(job.task, Classification):
        raise ConfigError(f"{method} adapts by predicted classes: it needs a classification")


def labelled(data: Examples, label: Any, rows: Any) -> Examples:
    """These rows, with labels that somebody has guessed for all."""
    return replace(data, y=label.to(data.y.dtype)).take(rows)
