"""SHOT: every site's model adapts by itself, after the last round, with its classifier frozen."""

import torch

from feddg.catalogue import compose
from feddg.engines.inprocess import InProcess
from feddg.methods.independent import KEY
from feddg.methods.shot import SHOT
from feddg.weights import Weights
from tests import toy


def models(spec, n=2, **options):
    run = toy.run(compose(spec), n, **options)
    *_, done = toy.history(run)
    return run, done, done.state.notes[KEY]["models"]


def test_identity_without_epochs():
    """Then it is the ensemble of independent sites."""
    _, _, none = models("shot(epochs=0)")
    _, _, plain = models("ind-ensemble")
    assert all(torch.equal(none[k], plain[k]) for k in plain)


def test_effects():
    _, _, found = models("shot(epochs=2)")
    for other in ("shot(epochs=1)", "shot(epochs=2, beta=0)", "ind-ensemble"):
        _, _, theirs = models(other)
        assert all(not torch.allclose(found[k], theirs[k], atol=1e-6) for k in found)


def test_the_schedule_begins_anew():
    """At the end of a cosine the sites hardly move; what is adapted then has a run of its own."""
    found, method = [], SHOT(epochs=1)
    for schedule in ("constant", "cosine"):
        recipe = toy.steps(toy.RECIPE, schedule=schedule)
        run = toy.run(method, 50, recipe=recipe)
        job = run.job(run.server, 49)
        [done] = InProcess().drive([method.adapted(Weights.of(run.model), "dawn", job)])
        assert isinstance(done, Weights)
        found.append(done.vector)
    assert torch.equal(*found)
    assert not torch.allclose(found[0], Weights.of(run.model).vector, atol=1e-3)


def test_only_extractors_adapt_and_only_after_the_last_round():
    run = toy.run(SHOT(epochs=1), 2)
    first, last = toy.history(run)
    layout = last.state.model.layout
    for reply in first.replies:
        assert torch.equal(first.state.notes[KEY]["models"][reply.site], reply.model.vector)
    for reply in last.replies:
        found = Weights(last.state.notes[KEY]["models"][reply.site], layout).views()
        source = reply.model.views()
        assert torch.equal(found["head.weight"], source["head.weight"])
        assert torch.equal(found["head.bias"], source["head.bias"])
        assert not torch.equal(found["early.0.weight"], source["early.0.weight"])


def test_the_models_vote_by_softmax():
    run, done, found = models("shot(epochs=1)")
    x = toy.images(3, 5).x
    each = []
    for vector in found.values():
        one = run.method.inner.predictor(
            type(done.state)(model=Weights(vector, done.state.model.layout)), run.model
        )
        each.append(one.eval()(x).softmax(1))
    whole = run.method.predictor(done.state, run.model).eval()(x)
    torch.testing.assert_close(whole.exp(), torch.stack(each).mean(0))


def test_it_makes_predictions_on_the_target_surer():
    def doubt(spec):
        run, done, _ = models(spec, 3)
        p = run.method.predictor(done.state, run.model).eval()(toy.at_server(run).x).softmax(1)
        return 1 - p.amax(1).mean().item()

    assert doubt("shot(epochs=5)") < 0.8 * doubt("shot(epochs=0)")
