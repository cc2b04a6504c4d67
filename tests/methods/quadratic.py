"""One weight w, and sites whose loss is (w - t)^2: rounds that can be worked out on paper.

The gradient is 2 (w - t), so that a plain step at rate 1/4 halves the distance: w <- (w + t) / 2.
"""

import torch
from torch import nn

from feddg.catalogue import compose
from feddg.data.domain import Collection, Examples, Federation, Site
from feddg.engines.inprocess import InProcess
from feddg.engines.loop import Run
from feddg.models import Anatomy
from feddg.recipe import Recipe
from feddg.tasks import Regression
from tests import toy

RECIPE = Recipe(lr=0.25, steps=2, batch_size=1)
SITES = {"a": (1, 8.0), "b": (3, -4.0)}  # number of examples, t


class Scalar(nn.Module):
    anatomy = Anatomy("line")

    def __init__(self, start=0.0):
        super().__init__()
        self.line = nn.Linear(1, 1, bias=False)
        nn.init.constant_(self.line.weight, start)

    def forward(self, x):
        return self.line(x)


def run(spec, rounds=2, recipe=RECIPE, sites=SITES, start=0.0, **options):
    own = [
        Site(name, Examples(torch.ones(n, 1), torch.full((n, 1), t)))
        for name, (n, t) in sites.items()
    ]
    fed = Federation(tuple(own), (), Collection("quadratic", (), Regression()))
    return Run(compose(spec), Scalar(start), fed, recipe, rounds, **options)


def history(spec, rounds=2, engine=None, **options):
    return list(toy.history(run(spec, rounds, **options), engine or InProcess()))


def weights(done):
    """w after every round."""
    return [k.state.model.vector.item() for k in done]
