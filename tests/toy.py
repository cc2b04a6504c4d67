"""A small federation on which every method can learn in seconds: stripes, shifted by domain.

Images 1x12x12 of three classes (a bright row band, column band or diagonal), whose background,
contrast and noise are the domain's. Sites differ in size.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from feddg.data.adaptation import unlabelled
from feddg.data.domain import Collection, Domain, Examples, Federation, Site, leave_one_domain_out
from feddg.engines.inprocess import InProcess
from feddg.engines.loop import Question, Round, Run, rounds
from feddg.method import Method
from feddg.models import Anatomy, build
from feddg.recipe import Recipe
from feddg.seeds import generator
from feddg.tasks import Classification

RECIPE = Recipe(epochs=2, batch_size=16, lr=0.05, momentum=0.5)
SIZES = {"dawn": 48, "noon": 64, "dusk": 80, "night": 60}


def images(domain: int, n: int) -> Examples:
    rng = generator("toy", domain)
    y = torch.arange(n) % 3
    x = 0.3 * torch.randn(n, 1, 12, 12, generator=rng)
    at = torch.randint(1, 9, (n,), generator=rng)
    for i, (label, a) in enumerate(zip(y.tolist(), at.tolist(), strict=True)):
        band = torch.zeros(12, 12)
        if label == 0:
            band[a : a + 2] = 2.0
        elif label == 1:
            band[:, a : a + 2] = 2.0
        else:
            band += 2.0 * torch.eye(12)
        x[i, 0] += band * (0.7 + 0.2 * domain)
    return Examples(x + 0.3 * domain, y)


@cache
def collection() -> Collection:
    domains = tuple(Domain(k, images(i, n)) for i, (k, n) in enumerate(SIZES.items()))
    return Collection("toy", domains, Classification(("row", "column", "diagonal")))


def federation(target: str = "night", share: float = 0.25) -> Federation:
    """The server has the target's images, without labels, for methods that look at them."""
    fed = leave_one_domain_out(collection(), target, share=share)
    return replace(fed, server=Site("server", unlabelled(collection()[target].examples)))


def at_server(run: Run) -> Examples:
    """What the server has of the target."""
    assert run.server is not None
    return run.server.train


def balanced(sites: int = 3) -> Federation:
    """Sites of unequal size with the same share of every class."""
    fed = federation(share=0.0)
    even = [s.train.take(torch.arange(len(s.train) // 3 * 3)) for s in fed.sites]
    own = tuple(replace(s, train=t) for s, t in zip(fed.sites, even, strict=True))
    return replace(fed, sites=own[:sites])


def equal() -> Federation:
    """Sites with the same examples, on which a model has the same loss."""
    fed = federation(share=0.0)
    first, *_ = fed.sites
    return replace(fed, sites=tuple(replace(s, train=first.train) for s in fed.sites))


def tiny() -> Federation:
    """Two sites of twelve examples, for what must only run."""
    fed = federation()
    few = torch.arange(12)
    sites = tuple(replace(s, train=s.train.take(few)) for s in fed.sites[:2])
    return replace(fed, sites=sites)


def at_odds() -> Federation:
    """One site names the classes differently: its updates conflict with the others'."""
    fed = federation()
    odd, *others = fed.sites
    renamed = replace(odd.train, y=(odd.train.y + 1) % 3)
    return replace(fed, sites=(replace(odd, train=renamed), *others))


class Net(nn.Module):
    """Two convolutions, one with batch norm, and two dense layers."""

    anatomy = Anatomy("head", ("early", "late"))

    def __init__(self, norm: bool = True) -> None:
        super().__init__()
        bn = nn.BatchNorm2d(6) if norm else nn.Identity()
        self.early = nn.Sequential(nn.Conv2d(1, 6, 3), bn, nn.ReLU(), nn.MaxPool2d(2))
        self.late = nn.Sequential(nn.Conv2d(6, 8, 3), nn.ReLU())
        self.dense = nn.Sequential(nn.Flatten(), nn.Linear(72, 16), nn.ReLU())
        self.head = nn.Linear(16, 3)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.head(self.dense(self.late(self.early(x))))
        return y


def run(method: Method, rounds: int = 3, **options: Any) -> Run:
    chosen: dict[str, Any] = {"seed": 0, "recipe": RECIPE, "federation": federation(), **options}
    norm = chosen.pop("norm", True)
    model = build("tests.toy:Net", seed=chosen["seed"], norm=norm)
    return Run(method, model, rounds=rounds, **chosen)


def history(run: Run, engine: InProcess | None = None) -> Iterator[Round]:
    for [(_, done)] in rounds([run], engine or InProcess()):
        yield done


def final(method: Method, n: int = 3, **options: Any) -> Round:
    return list(history(run(method, n, **options)))[-1]


def vector(method: Method, n: int = 3, **options: Any) -> Tensor:
    return final(method, n, **options).state.model.vector


def accuracy(run: Run, done: Round) -> float:
    [answer] = InProcess().score([Question(run, done.state, ("test/night",))])
    return answer["test/night"]["accuracy"]


def steps(recipe: Recipe, **changes: Any) -> Recipe:
    return replace(recipe, **changes)
