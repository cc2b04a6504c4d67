from dataclasses import replace

import pytest
import torch

from feddg.catalogue import compose
from feddg.data.domain import Examples
from feddg.errors import ConfigError
from feddg.methods.arfl import weights
from tests import toy
from tests.methods import quadratic


def test_reference_by_hand():
    """n = (10, 20, 10), L = (1, 10, 2), lambda = 40/2 = 20.

    Best first: eta = (10 + 20) / 10 = 3 > 2, so the next joins: eta = (10 + 20 + 20) / 20 = 5/2,
    below 10, so the worst does not. w = 10 (5/2 - 1) / 20 = 3/4, 0, 10 (5/2 - 2) / 20 = 1/4.
    """
    assert weights([1.0, 10.0, 2.0], [10.0, 20.0, 10.0], 0.5) == [0.75, 0.0, 0.25]


def test_reference_round_by_hand():
    """t = 8 and -4 with 1 and 3 examples; w = 0 is sent: L = 64, 16; lam = 100: lambda = 400.

    eta = (48 + 400) / 3 = 149 1/3 > 64, then (48 + 64 + 400) / 4 = 128.
    w_a = (128 - 64) / 400 = .16, w_b = 3 (128 - 16) / 400 = .84.
    The sites go to 6 and -3: .16 * 6 - .84 * 3 = -1.56.
    """
    done = quadratic.history("arfl(lam=100)", 1)
    assert [r.notes["arfl"] for r in done[0].replies] == [64.0, 16.0]
    assert done[0].state.trace["weights"] == {"a": pytest.approx(0.16), "b": pytest.approx(0.84)}
    assert quadratic.weights(done) == [pytest.approx(-1.56, rel=1e-6)]


@pytest.mark.parametrize("lam", [0.01, 0.3, 3.0])
def test_minimises_its_objective_over_the_simplex(lam):
    """sum w L + lambda/2 sum w^2 / n, against 20,000 random points."""
    n, losses = torch.tensor([5.0, 20.0, 9.0, 30.0]), torch.tensor([0.5, 0.9, 0.2, 1.5])

    def objective(w):
        return (w * losses).sum(-1) + lam * n.sum() / 2 * (w.square() / n).sum(-1)

    mine = torch.tensor(weights(losses.tolist(), n.tolist(), lam))
    others = torch.distributions.Dirichlet(torch.full((4,), 0.5)).sample((20000,))
    assert mine.sum().item() == pytest.approx(1.0)
    assert (mine >= 0).all()
    assert objective(mine) <= objective(others).min() + 1e-6


def test_identity_equal_losses_are_fedavg():
    assert weights([0.7] * 3, [1.0, 2.0, 5.0], 0.01) == [pytest.approx(w / 8) for w in (1, 2, 5)]
    even = {"a": (1, 4.0), "b": (3, -4.0)}
    arfl, plain = (quadratic.history(m, 1, sites=even) for m in ("arfl(lam=0.01)", "fedavg"))
    assert quadratic.weights(arfl) == [pytest.approx(quadratic.weights(plain)[0], rel=1e-6)]


def test_effect_a_site_of_wrong_labels_loses_its_say():
    fed = toy.federation()
    first, *rest = fed.sites
    wrong = replace(first, train=Examples(first.train.x, (first.train.y + 1) % 3))
    run = toy.run(compose("arfl(lam=0.3)"), 6, federation=replace(fed, sites=(wrong, *rest)))
    says = [k.state.trace["weights"]["dawn"] for k in toy.history(run)]
    assert says[0] > 0.2
    assert says[-1] == 0


def test_who_else_decides_the_weights_is_refused():
    with pytest.raises(ConfigError, match="how much say each site has"):
        compose("arfl+fedmedian")


def test_lam_must_be_positive():
    with pytest.raises(ConfigError, match="lam must be positive"):
        compose("arfl(lam=0)")
