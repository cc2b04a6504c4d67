"""A target in two parts: one for the server, without its labels, and one to judge on."""

from dataclasses import replace

import torch

from feddg.data.domain import Domain, Examples, Federation, Site
from feddg.errors import DataError, unknown

JUDGED = 0.2  # of a target that comes without a split into train and test
SERVER = "server"
TASKS = ("dg", "uda")


def adapted(task: str) -> bool:
    """Of a task by name: whether the server is given the target, unlabelled."""
    if task not in TASKS:
        raise unknown("task", task, TASKS)
    return task == "uda"


def unlabelled(examples: Examples) -> Examples:
    """The inputs alone. What stands where labels were is the same for all, and no class."""
    y = examples.y
    nothing = torch.full_like(y, float("nan") if y.is_floating_point() else -1)
    return Examples(examples.store, nothing, None, examples.rows)


def comes_split(target: Domain) -> bool:
    """Whether the data themselves say what to learn from and what to judge on."""
    train, test = target.splits.get("train"), target.splits.get("test")
    return train is not None and test is not None and not bool(torch.isin(train, test).any())


def divided(target: Domain, seed: int) -> Domain:
    """With a "train" part to learn from and a "test" part to judge on: the data's own, or 80:20."""
    if comes_split(target):
        return replace(target, splits={k: target.splits[k] for k in ("train", "test")})
    drawn = replace(target, splits={}).split(JUDGED, seed).splits
    return replace(target, splits={"train": drawn["train"], "test": drawn["val"]})


def adapting(fed: Federation, seed: int) -> Federation:
    """The federation with its one target's unlabelled part at the server, judged on the rest."""
    if len(fed.targets) != 1:
        names = ", ".join(d.name for d in fed.targets) or "none"
        raise DataError(
            f"adaptation (task 'uda') is to one target domain at a time, not to {len(fed.targets)}"
            f" ({names}); name one"
        )
    target = divided(fed.targets[0], seed)
    learned = target.examples.take(target.splits["train"])
    judged = replace(target, splits={"test": target.splits["test"]})
    return replace(fed, targets=(judged,), server=Site(SERVER, unlabelled(learned)))
