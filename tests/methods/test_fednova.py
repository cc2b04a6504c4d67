from dataclasses import replace

import pytest
import torch

from feddg.catalogue import compose
from feddg.engines.inprocess import InProcess
from feddg.local import Job
from feddg.methods.fednova import reach
from feddg.packets import State
from feddg.recipe import Recipe
from feddg.tasks import Regression
from tests import toy
from tests.methods import quadratic

ONE_EACH = replace(quadratic.RECIPE, steps=None, epochs=1)  # a makes 1 step, b makes 3
SITES = {"a": (1, 16.0), "b": (3, -16.0)}


def test_reference_by_hand():
    """From 0, with p = (1/4, 3/4) and 1 and 3 plain steps:

    a: 0 -> 8; b: 0 -> -8 -> -12 -> -14. tau_eff = 1/4 * 1 + 3/4 * 3 = 5/2.
    w = 5/2 (1/4 * 8 / 1 - 3/4 * 14 / 3) = 5/2 (2 - 7/2) = -15/4; FedAvg: 2 - 21/2 = -17/2.
    """
    [done] = quadratic.history("fednova", 1, recipe=ONE_EACH, sites=SITES)
    assert quadratic.weights([done]) == [pytest.approx(-3.75, rel=1e-6)]
    assert done.state.trace["fednova"] == {"a": 2.5, "b": pytest.approx(2.5 / 3)}
    assert quadratic.weights(quadratic.history("fedavg", 1, recipe=ONE_EACH, sites=SITES)) == [-8.5]


def test_reference_with_momentum_by_hand():
    """With momentum 1/2 and a gradient of one: v = 1, 3/2, 7/4, so ||a|| = 1 and 17/4.

    a: g = -32, w = 8. b: v = 32, w = -8; v = 16 + 16, w = -16; v = 16 + 0, w = -20.
    tau_eff = 1/4 + 3/4 * 17/4 = 55/16; w = 55/16 (1/4 * 8 - 3/4 * 20 * 4/17).
    """
    recipe = replace(ONE_EACH, momentum=0.5)
    done = quadratic.history("fednova", 1, recipe=recipe, sites=SITES)
    assert quadratic.weights(done) == [pytest.approx(55 / 16 * (2 - 60 / 17), rel=1e-6)]


def test_takes_its_shares_from_the_replies_weights():
    """As GA sets them: with a_i = (1, 0), w = 1 (8 / 1)."""
    run = quadratic.run("fednova", 1, recipe=ONE_EACH, sites=SITES)
    [done] = toy.history(run)
    ga = [replace(r, weight=w) for r, w in zip(done.replies, (1.0, 0.0), strict=True)]
    start = run.method.init(run.model, run.names)
    [after] = InProcess().work([run.method.aggregate(start, ga, run.job(None, 0))])
    assert isinstance(after, State), after
    assert after.model.vector.item() == 8.0


RECIPES = [
    Recipe(lr=0.3, steps=7),
    Recipe(lr=0.3, steps=7, momentum=0.9),
    Recipe(lr=0.3, steps=7, momentum=0.9, nesterov=True),
    Recipe(lr=0.3, steps=7, momentum=0.5, schedule="cosine", per="step"),
]


@pytest.mark.parametrize("recipe", RECIPES)
def test_reach_is_how_far_the_optimiser_goes_under_a_gradient_of_one(recipe):
    [site] = quadratic.run("fedavg", sites={"a": (4, 0.0)}).sites
    job = Job(site, quadratic.Scalar(), Regression(), recipe, 0, round=1, rounds=3)
    theta = {"model": torch.zeros(1, dtype=torch.float64)}
    sgd, rates = recipe.make_optimizer(), recipe.rates(1, 3, 4)
    state, one = sgd.init(theta), {"model": torch.ones(1, dtype=torch.float64)}
    for rate in rates:
        theta, state = sgd.step(theta, one, state, torch.tensor(rate, dtype=torch.float64))
    assert reach(job) == pytest.approx(-theta["model"].item(), rel=1e-12)
    assert reach(job, momentum_aware=False) == pytest.approx(sum(rates))


def test_buffers_are_merged_as_they_come():
    nova, plain = (toy.final(compose(m), 1).state.model for m in ("fednova", "fedavg"))
    assert torch.equal(nova.buffers, plain.buffers)
    assert not torch.equal(nova.parameters, plain.parameters)


def test_any_merge_may_follow():
    """The median of equally long updates, not of those of the longest training."""
    done = quadratic.history("fednova+fedmedian", 1, recipe=ONE_EACH, sites=SITES)
    assert [r.model.vector.item() for r in done[0].replies] == [8.0, -14.0]
    assert quadratic.weights(done) == [pytest.approx((2 * 8 - 2 * 14 / 3) / 2, rel=1e-6)]
