from dataclasses import replace

import pytest
import torch

from feddg.catalogue import compose
from feddg.engines.inprocess import InProcess
from feddg.errors import ConfigError, SiteFailure
from tests import toy
from tests.methods import quadratic, stacked


def controls(spec, rounds=2, **options):
    run, engine = quadratic.run(spec, rounds, **options), InProcess()
    done = list(toy.history(run, engine))
    mine = {k: v["scaffold"].item() for k, v in engine.memories(run).items()}
    return quadratic.weights(done), [k.state.notes["scaffold"]["c"].item() for k in done], mine


def test_reference_option_2_two_rounds_by_hand():
    """Two plain steps at rate 1/4; a has t = 8 and a say of 1/4, b has t = -4 and 3/4.

    Round 0, all controls 0: a: 0 -> 4 -> 6, b: 0 -> -2 -> -3; w = 6/4 - 9/4 = -3/4.
    c_a = (0 - 6) / (1/2) = -12, c_b = (0 + 3) / (1/2) = 6; c = (-12 + 6) / 2 = -3: plain mean.

    Round 1, w <- w - 1/4 (2 (w - t) + c - c_i):
    a: c - c_a = 9:  w <- w/2 + 4 - 9/4 = w/2 + 7/4: -3/4 -> 11/8 -> 39/16
    b: c - c_b = -9: w <- w/2 - 2 + 9/4 = w/2 + 1/4: -3/4 -> -1/8 -> 3/16
    w = 1/4 * 39/16 + 3/4 * 3/16 = 48/64 = 3/4.
    c_a = -12 + 3 + 2 (-3/4 - 39/16) = -9 - 51/8 = -123/8, c_b = 6 + 3 + 2 (-3/4 - 3/16) = 57/8;
    c = (-123/8 + 57/8) / 2 = -33/8.
    """
    w, c, mine = controls("scaffold")
    assert w == [-0.75, 0.75]
    assert c == [-3.0, -33 / 8]
    assert mine == {"a": -123 / 8, "b": 57 / 8}


def test_reference_option_1_two_rounds_by_hand():
    """Round 0 as before, w = -3/4, but c_a = 2 (0 - 8) = -16, c_b = 2 (0 + 4) = 8, c = -4.

    Round 1: a: c - c_a = 12: w <- w/2 + 4 - 3 = w/2 + 1; b: c - c_b = -12: w <- w/2 - 2 + 3.
    Both: -3/4 -> 5/8 -> 21/16. c_a = 2 (-3/4 - 8), c_b = 2 (-3/4 + 4), c = -11/2.
    """
    w, c, mine = controls("scaffold(option=1)")
    assert w == [-0.75, 21 / 16]
    assert c == [-4.0, -5.5]
    assert mine == {"a": -17.5, "b": 6.5}


def test_absent_sites_count_in_the_mean():
    """One of two sites in a round: c moves by half of its change (|S|/N = 1/2)."""
    run = quadratic.run("scaffold", 1, participation=1)
    [done] = toy.history(run)
    [reply] = done.replies
    assert reply.notes["scaffold"].item() == {"a": -12.0, "b": 6.0}[reply.site]
    assert done.state.notes["scaffold"]["c"] == reply.notes["scaffold"] / 2


def test_an_absent_site_keeps_its_control():
    run, engine = quadratic.run("scaffold", 6, participation=1), InProcess()
    before: dict = {}
    for done in toy.history(run, engine):
        now = {k: v["scaffold"].item() for k, v in engine.memories(run).items()}
        away = set(before) - {done.replies[0].site}
        assert {k: now[k] for k in away} == {k: before[k] for k in away}
        before = now
    assert set(before) == {"a", "b"}


def test_the_rates_are_summed_where_they_change():
    """Rates 1/4 and 1/8 (a step schedule half-way): 0 -> 4 -> 4 - 1/8 * 2 (4 - 8) = 5.

    c_a = (0 - 5) / (1/4 + 1/8) = -40/3.
    """
    recipe = replace(quadratic.RECIPE, schedule="step", decay=0.5, decay_at=(0.5,), per="step")
    _, _, mine = controls("scaffold", 1, recipe=recipe)
    assert mine["a"] == pytest.approx(-40 / 3, rel=1e-6)


HEAVY = replace(quadratic.RECIPE, lr=0.001, momentum=0.9, steps=40)


def test_with_momentum_the_control_is_still_a_gradient():
    """At so small a rate w hardly moves from 0 in a round, so c_a is about 2 (0 - 8) = -16."""
    _, _, mine = controls("scaffold", 1, recipe=HEAVY)
    assert mine["a"] == pytest.approx(-16, rel=0.3)
    _, _, literal = controls("scaffold(momentum_aware=False)", 1, recipe=HEAVY)
    assert literal["a"] < 5 * mine["a"]


def test_with_momentum_the_letter_of_the_paper_diverges():
    aware, literal = (
        max(map(abs, controls(s, 5, recipe=HEAVY)[2].values()))
        for s in ("scaffold", "scaffold(momentum_aware=False)")
    )
    assert aware < 20
    assert literal > 1e3


def test_controls_have_no_buffers():
    done = toy.final(compose("scaffold"), 1)
    cut = done.state.model.layout.cut
    assert len(done.replies[0].notes["scaffold"]) == cut < len(done.state.model.vector)


def test_option_1_sees_the_gradient_of_all_batches():
    """Against autograd: the mean over the batches of one pass, at the model that was sent."""
    spec = "scaffold(option=1)"
    recipe = toy.steps(toy.RECIPE, batch_size=1000)
    run, engine = toy.run(compose(spec), 1, recipe=recipe), InProcess()
    list(toy.history(run, engine))
    site = run.sites[0]
    net = run.model.train()
    x, y = site.train.x, site.train.y
    slopes = torch.autograd.grad(
        torch.nn.functional.cross_entropy(net(x), y), list(net.parameters())
    )
    mine = engine.memories(run)[site.name]["scaffold"]
    torch.testing.assert_close(mine, torch.cat([g.flatten() for g in slopes]), atol=1e-6, rtol=1e-4)


def test_adam_is_refused_where_its_way_is_no_gradient():
    adam = replace(quadratic.RECIPE, optimizer="adam")
    with pytest.raises(SiteFailure, match="scaffold\\(option=1\\)"):
        quadratic.history("scaffold", 1, recipe=adam)
    assert quadratic.history("scaffold(option=1)", 1, recipe=adam)


def test_unknown_option():
    with pytest.raises(ConfigError, match="option=1 and option=2"):
        compose("scaffold(option=3)")


@pytest.mark.parametrize("spec", ["scaffold", "scaffold(option=1)"])
def test_stacked(spec):
    stacked.check(spec, recipe=toy.steps(toy.RECIPE, steps=2))
