from dataclasses import replace

import torch
from torch import nn

from feddg.catalogue import compose
from feddg.methods.independent import Ensemble
from feddg.packets import State
from tests import toy


def alone(site: int, n: int = 3) -> State:
    """A site that trains by itself: a federation of one."""
    fed = toy.federation()
    return toy.final(compose("fedavg"), n, federation=replace(fed, sites=(fed.sites[site],))).state


def test_reference_the_average_of_sites_that_train_alone():
    expected = torch.stack([alone(i).model.vector for i in range(3)]).mean(0)
    found = toy.vector(compose("ind-average+fedavg(weights='uniform')"))
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)


def test_reference_the_mean_logits_of_sites_that_train_alone():
    run = toy.run(compose("ind-ensemble"))
    *_, done = toy.history(run)
    x = toy.images(3, 10).x
    plain = compose("fedavg")
    each = [plain.predictor(alone(i), run.model).eval()(x) for i in range(3)]
    found = run.method.predictor(done.state, run.model).eval()(x)
    torch.testing.assert_close(found, sum(each) / 3, atol=1e-4, rtol=1e-4)


def test_effect_the_ensemble_is_not_the_average():
    x, found = toy.images(3, 10).x, []
    for spec in ("ind-average", "ind-ensemble"):
        run = toy.run(compose(spec))
        *_, done = toy.history(run)
        found.append(run.method.predictor(done.state, run.model).eval()(x))
    assert not torch.allclose(found[0], found[1], atol=1e-3)


def test_a_late_joiner_sets_out_from_the_same_model():
    """Not from an average, in which others' work would be."""
    fed = toy.federation()
    late = replace(fed.sites[2], joins=2)
    run = toy.run(compose("ind-average"), 3, federation=replace(fed, sites=(*fed.sites[:2], late)))
    start = run.method.init(run.model, run.names)
    *_, done = toy.history(run)
    inbox = run.method.broadcast(done.state, 3)
    assert torch.equal(inbox.model.vector, start.model.vector)


def test_before_anybody_has_answered_the_ensemble_is_the_initial_model():
    run = toy.run(compose("ind-ensemble"))
    start = run.method.init(run.model, run.names)
    x = toy.images(3, 4).x
    found = run.method.predictor(start, run.model)
    torch.testing.assert_close(found.eval()(x), run.model.eval()(x))


def test_ensemble_by_hand():
    one, two = nn.Linear(1, 1), nn.Linear(1, 1)
    x = torch.randn(3, 1)
    torch.testing.assert_close(Ensemble([one, two])(x), (one(x) + two(x)) / 2)
