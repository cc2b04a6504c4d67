"""PPDG: Algorithm 1 as a merge."""

import warnings

import pytest
import torch
from torch import nn

from feddg.catalogue import compose
from feddg.engines.inprocess import InProcess
from feddg.errors import ConfigError
from feddg.merges import Gathered
from feddg.merges.geometry import meetings
from feddg.method import chain
from feddg.methods.ppdg import PPDG, Calmed, warn_of_divergence
from feddg.packets import Reply
from feddg.seeds import generator
from feddg.weights import Layout, Weights
from tests import toy
from tests.merges.test_geometry import literal_ppdg

LAYOUT = Layout.of(nn.Linear(2, 1, bias=False))


def gathered(updates, says=None, seed=0, dtype=torch.float64):
    """Replies start + update, of a model of two weights."""
    start = torch.tensor([0.5, 0.25], dtype=dtype)
    says = says or [1.0] * len(updates)
    models = [Weights(start + torch.tensor(u, dtype=dtype), LAYOUT) for u in updates]
    replies = [
        Reply(site=name, model=model, weight=a)
        for name, model, a in zip("abcdefghijklm", models, says, strict=False)
    ]
    return Gathered(Weights(start, LAYOUT), replies, generator(seed))


CONFLICT = [(2.0, 0.0), (-2.0, 1.0)]


def firsts(k=2):
    """A seed for each row that comes first."""
    found: dict[int, int] = {}
    for seed in range(50):
        found.setdefault(next(meetings(k, generator(seed)))[0], seed)
    return found


def test_reference_by_hand():
    """g_1 = (2, 0), g_2 = (-2, 1), lam = 0.1, a first; both are changed (case 3, Eq. 9-10).

    g_1 <- (1.2, 0.2) and g_2 <- (-1.36, 0.84), as worked out in test_geometry; their mean is
    (-0.08, 0.52). With b first, g_2 <- 0.8 g_2 + 0.2 g_1 = (-1.2, 0.8), <g_1, g_2> = -2.4 < 0 and
    g_1 <- 0.8 (2, 0) + 0.2 (-1.2, 0.8) = (1.36, 0.16): the mean is (0.08, 0.48).
    """
    seeds = firsts()
    for first, want in ((0, (-0.08, 0.52)), (1, (0.08, 0.48))):
        step = Calmed(0.1)(gathered(CONFLICT, seed=seeds[first])).step
        assert step.tolist() == pytest.approx(want)


def test_the_sites_say_weighs_the_changed_updates():
    """a first, says 1 and 3: (1.2, 0.2)/4 + 3 (-1.36, 0.84)/4 = (-0.72, 0.68). GA sets such."""
    step = Calmed(0.1)(gathered(CONFLICT, [1.0, 3.0], seed=firsts()[0])).step
    assert step.tolist() == pytest.approx([-0.72, 0.68])


def test_the_servers_step_is_a_factor():
    got = gathered(CONFLICT)
    whole = Calmed(0.1)(gathered(CONFLICT)).step
    assert torch.allclose(Calmed(0.1, server_lr=0.5)(got).step, whole / 2)


def test_without_conflict_it_is_the_mean():
    updates = [(2.0, 0.0), (1.0, 1.0), (0.0, 3.0)]
    merged = Calmed(0.3)(gathered(updates))
    assert merged.step.tolist() == pytest.approx([1.0, 4 / 3])
    assert merged.trace["conflicts"] == {}


def test_ignoring_the_conflict_test_changes_that():
    """Table 6. Two sites, a first, lam = 0.25: g_1 <- (g_1 + g_2)/2, g_2 <- g_1/4 + 3/4 g_2."""
    updates = [(2.0, 0.0), (1.0, 1.0)]
    step = Calmed(0.25, test_conflicts=False)(gathered(updates, seed=firsts()[0])).step
    assert step.tolist() == pytest.approx([(1.5 + 1.25) / 2, (0.5 + 0.75) / 2])


def test_the_record_names_who_conflicts_and_who_was_mixed():
    merged = Calmed(0.1)(gathered(CONFLICT, seed=firsts()[0]))
    assert merged.trace["weights"] == {"a": 0.5, "b": 0.5}
    assert merged.trace["conflicts"]["a"] == {"b": pytest.approx(-4 / 20**0.5)}
    assert merged.trace["conflicts"]["b"] == {"a": pytest.approx(-2.2 / (5 * 1.48) ** 0.5)}
    assert merged.trace["mixing"]["b"] == pytest.approx({"a": 0.16, "b": 0.84})


@pytest.mark.parametrize("test", [True, False])
def test_a_round_is_the_literal_algorithm_on_its_replies(test):
    run = toy.run(PPDG(lam=0.2, test_conflicts=test), 2, federation=toy.at_odds())
    first, second = toy.history(run)
    old = first.state.model
    x = torch.stack([r.model.parameters - old.parameters for r in second.replies]).double()
    order = meetings(len(x), run.job(None, 1).rng("merge"))
    exact, nearest = literal_ppdg(x, 0.2, order, test)
    assert nearest > 1e-4
    assert second.state.trace["conflicts"]
    step = second.state.model.parameters - old.parameters
    torch.testing.assert_close(step.double(), exact.mean(0), rtol=1e-4, atol=1e-7)
    buffers = torch.stack([r.model.buffers for r in second.replies]).mean(0)
    torch.testing.assert_close(second.state.model.buffers, buffers)


def test_in_the_toy_federation_nobody_conflicts():
    """Why the battery's effect of lam needs toy.at_odds."""
    assert not any(r.state.trace["conflicts"] for r in toy.history(toy.run(PPDG())))


def test_sites_count_alike():
    done = toy.final(PPDG(), 1)
    assert set(done.state.trace["weights"].values()) == {1 / 3}


def test_lambda_of_a_half_warns_once_and_runs():
    warn_of_divergence.cache_clear()
    with pytest.warns(UserWarning, match=r"ppdg\(lam=0.5\).*lam < 0.5") as caught:
        method = compose("fedprox+ppdg(lam=0.5)")
    assert len(caught) == 1
    assert caught[0].filename != PPDG.__init__.__code__.co_filename
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        done = toy.final(method, 1, federation=toy.at_odds())
        compose("ppdg(lam=0.49)")
    assert torch.isfinite(done.state.model.vector).all()
    warn_of_divergence.cache_clear()


def test_refusals():
    with pytest.raises(ConfigError, match="lam must not be negative"):
        PPDG(lam=-0.1)
    for other in ("csac", "fedmedian", "pcgrad"):
        with pytest.raises(ConfigError, match="both decide how the replies become one model"):
            compose(f"ppdg+{other}")


def test_the_server_needs_the_gram_matrix_only():
    assert compose("ppdg").reveals.server_sees == "gram"
    assert compose("ppdg").reveals.notes == {}


def test_presets_have_the_papers_lambdas():
    found = {name: chain(compose(f"ppdg:{name}"))[0].lam for name in PPDG.presets}
    assert found == {
        "camelyon17": 0.1, "poverty": 0.1, "fmow": 0.05, "rotated-mnist": 0.001,
        "terra-incognita": 0.2,
    }  # fmt: skip


def test_partial_participation_mixes_those_present():
    run = toy.run(PPDG(), 2, federation=toy.at_odds(), participation=2)
    for done in toy.history(run, InProcess()):
        assert set(done.state.trace["mixing"]) == {r.site for r in done.replies}
