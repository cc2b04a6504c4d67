"""One training step of two sites, each alone and both at once under vmap: the same numbers."""

from dataclasses import replace

import torch

from feddg.catalogue import compose
from feddg.engines.inprocess import InProcess, perform
from feddg.local import Training
from feddg.training import Batch, begin, columns, draws, order, tape_grad, updater
from feddg.trees import pick, stack
from tests import toy


class Listening(InProcess):
    """Keeps the training requests that it answers, both sites' side by side."""

    gathers = True

    def answer(self, requests):
        self.heard = [
            *getattr(self, "heard", []),
            *(r for r in requests if isinstance(r, Training)),
        ]
        return [perform(r) for r in requests]


def requests(spec, rounds=2, **options):
    """The last round's training requests."""
    fed = toy.federation(share=0.0)
    options = {"federation": replace(fed, sites=fed.sites[:2])} | options
    engine = Listening()
    list(toy.history(toy.run(compose(spec), rounds, **options), engine))
    return engine.heard[-2:]


def first(request):
    rows = order(request)[0]
    own = {i: {k: v[rows] for k, v in c.items()} for i, c in columns(begin(request)[3]).items()}
    chance = next(iter(draws(request, [rows])))
    return Batch(request.data.x[rows], request.data.y[rows], own), chance


def check(spec, atol=1e-5, **options):
    pair = requests(spec, **options)
    rate, alone = torch.tensor(0.05), []
    for r in pair:
        theta, buffers, opt, parts = begin(r)
        alone.append(updater(r, tape_grad)(theta, buffers, opt, parts, *first(r), rate))
    theta, buffers, opt, parts = (stack(vs) for vs in zip(*(begin(r) for r in pair), strict=True))
    (a, da), (b, db) = (first(r) for r in pair)
    xs, ys = torch.stack([a.x, b.x]), torch.stack([a.y, b.y])
    cols, chance, once = stack([a.columns, b.columns]), stack([da, db]), updater(pair[0])

    def step(theta, buffers, opt, parts, x, y, cols, chance):
        return once(theta, buffers, opt, parts, Batch(x, y, cols), chance, rate)

    together = torch.vmap(step, randomness="error")(
        theta, buffers, opt, parts, xs, ys, cols, chance
    )
    for k, mine in enumerate(alone):
        both = torch.utils._pytree.tree_leaves((mine, pick(together, k)))
        half = len(both) // 2
        for one, other in zip(both[:half], both[half:], strict=True):
            torch.testing.assert_close(one, other, atol=atol, rtol=1e-4)
