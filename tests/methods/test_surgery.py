"""AgrSum, AgrRand, PCGrad and FedGMA."""

import pytest
import torch

from feddg.catalogue import compose
from feddg.errors import ConfigError
from feddg.methods.surgery import Masked, Projected, Unanimous
from tests import toy
from tests.methods.test_ppdg import CONFLICT, gathered

# Three sites. First weight: all go up. Second: one goes down, so the agreement is |1+1-1|/3 = 1/3.
UPDATES = [(1.0, 3.0), (2.0, 2.0), (3.0, -2.0)]


def test_agrsum_by_hand():
    """The first weight moves by the mean 2 (published: the sum 6), the second stays."""
    assert Unanimous()(gathered(UPDATES)).step.tolist() == pytest.approx([2.0, 0.0])
    assert Unanimous(scale="sum")(gathered(UPDATES)).step.tolist() == pytest.approx([6.0, 0.0])


def test_agrsum_with_other_says_by_hand():
    """a = (1/2, 1/4, 1/4): 1/2 + 2/4 + 3/4 = 7/4."""
    step = Unanimous()(gathered(UPDATES, [2.0, 1.0, 1.0])).step
    assert step.tolist() == pytest.approx([1.75, 0.0])


def test_agrsum_takes_a_site_that_stays_for_disagreement():
    assert Unanimous()(gathered([(1.0, 1.0), (0.0, 1.0)])).step.tolist() == [0.0, 1.0]


def test_agrrand_by_hand():
    """The second weight is drawn from N(0, 2^2), the first moves by 2: twice a standard normal."""
    drawn = []
    for seed in range(400):
        got = gathered(UPDATES, seed=seed)
        step = Unanimous(redraw=True)(got).step
        assert step[0] == pytest.approx(2.0)
        drawn.append(step[1].item())
    sample = torch.tensor(drawn)
    assert abs(sample.mean()) < 0.3  # three standard errors
    assert sample.std() == pytest.approx(2.0, rel=0.12)


def test_agrrand_scales_noise_with_the_sum():
    mean, total = (
        Unanimous(redraw=True, scale=s)(gathered(UPDATES, seed=1)).step for s in ("mean", "sum")
    )
    assert torch.allclose(total, 3 * mean)


def test_agrrand_leaves_alone_what_no_site_moves():
    assert Unanimous(redraw=True)(gathered([(1.0, 0.0), (3.0, 0.0)])).step.tolist() == [2.0, 0.0]


def test_agrrand_without_any_agreement_stays():
    """There is no size to draw at."""
    assert Unanimous(redraw=True)(gathered([(1.0, 1.0), (-1.0, -2.0)])).step.tolist() == [0.0, 0.0]


def test_pcgrad_by_hand():
    """g_1 <- (2, 0) + 4/5 (-2, 1) = (0.4, 0.8); g_2 <- (-2, 1) + 4/4 (2, 0) = (0, 1); any order."""
    for seed in range(4):
        merged = Projected()(gathered(CONFLICT, seed=seed))
        assert merged.step.tolist() == pytest.approx([0.2, 0.9])
        assert merged.trace["conflicts"]["a"] == {"b": pytest.approx(-4 / 20**0.5)}
    total = Projected(scale="sum")(gathered(CONFLICT)).step
    assert total.tolist() == pytest.approx([0.4, 1.8])
    weighed = Projected()(gathered(CONFLICT, [3.0, 1.0])).step
    assert weighed.tolist() == pytest.approx([0.3, 0.85])


def test_fedgma_by_hand():
    """Means 2 and 1; agreements 1 and 1/3: at tau = 0.4 the second moves by 1/3, at 0.3 by 1."""
    assert Masked(0.4)(gathered(UPDATES)).step.tolist() == pytest.approx([2.0, 1 / 3])
    assert Masked(0.3)(gathered(UPDATES)).step.tolist() == pytest.approx([2.0, 1.0])
    assert Masked(1.0)(gathered(UPDATES)).step.tolist() == pytest.approx([2.0, 1 / 3])
    half = Masked(0.4, server_lr=0.5)(gathered(UPDATES)).step
    assert half.tolist() == pytest.approx([1.0, 1 / 6])


@pytest.mark.parametrize(("up", "k"), [(3, 5), (4, 5), (4, 7), (5, 7), (7, 10), (8, 12)])
def test_fedgma_keeps_agreement_of_exactly_tau(up, k):
    """3 up and 2 down agree to 1/5, also in float32: at tau = 1/5 the mean, 1/5, is kept whole."""
    updates = [(1.0, 1.0)] * up + [(-1.0, -1.0)] * (k - up)
    tau = (2 * up - k) / k
    for edge, factor in ((tau, 1.0), (tau + 1e-6, tau)):
        step = Masked(edge)(gathered(updates, dtype=torch.float32)).step
        assert step.tolist() == pytest.approx([tau * factor] * 2, rel=1e-5)


@pytest.mark.parametrize("spec", ["agrsum", "agrrand", "pcgrad", "fedgma"])
def test_one_site_is_itself(spec):
    plain, one = (toy.vector(compose(s), 2, federation=toy.balanced(1)) for s in ("fedavg", spec))
    torch.testing.assert_close(one, plain, rtol=0, atol=1e-6)


def test_what_the_server_sees():
    seen = {s: compose(s).reveals.server_sees for s in ("agrsum", "agrrand", "pcgrad", "fedgma")}
    assert seen == {
        "agrsum": "everything", "agrrand": "everything", "pcgrad": "gram", "fedgma": "everything",
    }  # fmt: skip


def test_refusals():
    with pytest.raises(ConfigError, match="scale of agrsum 'total'"):
        compose("agrsum(scale='total')")
    with pytest.raises(ConfigError, match="tau is a share"):
        compose("fedgma(tau=1.5)")
    with pytest.raises(ConfigError, match="both decide how the replies become one model"):
        compose("pcgrad+fedgma")
