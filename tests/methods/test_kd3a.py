"""KD3A's merge: consensus focus for the sites, their size for the target."""

import pytest
import torch

from feddg.catalogue import compose
from feddg.errors import ConfigError
from feddg.methods.kd3a import KD3A
from feddg.parts.knowledge import consensus_focus, focused
from feddg.weights import load
from tests import toy


def test_reference_weights_of_a_round():
    """Sizes 36, 48, 60 and 60 of the target: α_T = 60/204; the rest by N_k CF_k.

    Nothing is distilled (epochs=0), so w_T is the model that the sites were sent.
    """
    method = compose("kd3a(gate=(0.37, 0.37), epochs=0)")
    run = toy.run(method, 1)
    sent = method.init(run.model, run.names).model
    [done] = toy.history(run)
    x = toy.at_server(run).x
    with torch.no_grad():
        p = torch.stack([load(run.model, r.model).eval()(x).softmax(1) for r in done.replies])
    sizes = [r.weight for r in done.replies]
    assert sizes == [36, 48, 60]
    say = focused(sizes, consensus_focus(p, 0.37))
    assert len(set(say)) > 1
    share = 60 / 204
    assert done.state.trace["target"] == pytest.approx(share)
    mean = sum(a * r.model.parameters for a, r in zip(say, done.replies, strict=True))
    expected = (1 - share) * mean + share * sent.parameters
    torch.testing.assert_close(done.state.model.parameters, expected)


def test_the_gate_rises_from_the_first_round_to_the_last():
    run = toy.run(KD3A(), 11)
    gates = [KD3A().gate_at(run.job(run.server, k)) for k in (0, 5, 10)]
    assert gates == pytest.approx([0.9, 0.925, 0.95])
    assert KD3A().gate_at(toy.run(KD3A(), 1).job(run.server, 0)) == 0.9


def test_it_learns_from_what_the_sites_agree_on():
    losses = [k.state.trace["tuning_loss"] for k in toy.history(toy.run(KD3A(), 8))]
    assert losses[-1] > 0
    trace = toy.final(KD3A(), 8).state.trace
    assert trace["labelled"] > 0.3


@pytest.mark.parametrize(
    ("options", "word"), [("gate=(0.9,)", "first, last"), ("gate=(0.9, 1.5)", "between 0 and 1")]
)
def test_nonsense_is_refused(options, word):
    with pytest.raises(ConfigError, match=word):
        compose(f"kd3a({options})")
