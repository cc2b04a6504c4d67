"""Own parameters of a method that travel beside the model, in notes."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from feddg.errors import ConfigError
from feddg.models import anatomy
from feddg.packets import Reply
from feddg.seeds import generator
from feddg.trees import Tree, each


def averaged(replies: Sequence[Reply], key: str) -> Tree:
    """The mean of the replies' notes, by their say in the model."""
    say = torch.tensor([r.weight for r in replies], dtype=torch.float64)
    shares = (say / say.sum()).tolist()

    def mean(*values: Tensor) -> Tensor:
        return torch.stack([a * v for a, v in zip(shares, values, strict=True)]).sum(0)

    found: Tree = each(mean, *(r.notes[key] for r in replies))
    return found


def width(model: nn.Module, head: str) -> int:
    """How many features the head reads."""
    found = getattr(model.get_submodule(head), "in_features", None)
    if not isinstance(found, int):
        raise ConfigError(
            f"the head {head!r} of {type(model).__name__} does not say how many features it reads;"
            " let the network's anatomy name a linear layer"
        )
    return found


def seeded_by(model: nn.Module, label: str) -> torch.Generator:
    """A stream that the network's initial head decides, so the experiment's seed, too."""
    head = model.get_submodule(anatomy(model).head)
    first = [float(v) for p in head.parameters() for v in p.detach().flatten()[:4]]
    return generator(label, *first)
