"""FADA: attention by how tightly a site's model clusters the target, and judges that are fooled."""

from math import exp

import pytest
import torch

from feddg.methods.fada import FADA
from feddg.methods.shot import extractor
from feddg.parts.confusion import spread
from tests import toy


def test_reference_attention():
    """The softmax of the gains over the model that was sent."""
    run = toy.run(FADA(epochs=0), 1)
    sent = run.method.init(run.model, run.names).model
    [done] = toy.history(run)

    def tight(weights):
        return spread(extractor(weights, run.model).eval()(toy.at_server(run).x).detach(), 3)

    powers = [exp(tight(sent) - tight(r.model)) for r in done.replies]
    expected = [a / sum(powers) for a in powers]
    assert len(set(expected)) > 1
    assert list(done.state.trace["weights"].values()) == pytest.approx(expected, abs=1e-5)


def test_sites_send_the_features_of_their_examples():
    done = toy.final(FADA(), 1)
    for reply, site in zip(done.replies, toy.run(FADA()).sites, strict=True):
        assert reply.notes["features"].shape == (len(site.train), 16)
        assert set(reply.notes) == {"features"}


def test_judges_learn_and_the_classifier_stands_still():
    plain = toy.final(FADA(epochs=0), 1).state
    tuned = toy.final(FADA(), 1).state
    assert set(tuned.notes["fada"]) == {"dawn", "noon", "dusk"}
    a, b = plain.model.views(), tuned.model.views()
    assert torch.equal(a["head.weight"], b["head.weight"])
    assert not torch.equal(a["early.0.weight"], b["early.0.weight"])
    later = toy.final(FADA(), 2).state.notes["fada"]["dawn"]["in"]
    assert not torch.equal(tuned.notes["fada"]["dawn"]["in"], later)


def test_a_network_that_stands_still_lets_the_judges_win():
    """With weight 0 nobody fools them: they tell the domains apart better and better."""
    losses = [
        k.state.trace["tuning_loss"] for k in toy.history(toy.run(FADA(weight=0, epochs=8), 4))
    ]
    assert losses[-1] < 0.9 * losses[0]
