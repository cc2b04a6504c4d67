import pytest
import torch

from feddg.catalogue import compose
from feddg.data.domain import Domain, Examples, Federation, Site
from feddg.errors import FeddgError
from feddg.methods.mixstyle import MixStatistics, beta, early
from feddg.models import build
from tests import toy
from tests.methods import stacked


def test_reference_a_feature_map_takes_half_of_anothers_statistics():
    """Two maps by hand.

    Maps (1, 3) and (10, 30) over two positions: means 2 and 20, deviations 1 and 10. With
    share 1/2 for the first and 1/4 for the second, the first becomes mean 11, deviation 5.5:
    (5.5, 16.5). The second becomes mean 1/4*20 + 3/4*2 = 6.5, deviation 1/4*10 + 3/4 = 3.25:
    (3.25, 9.75).
    """
    value = torch.tensor([[1.0, 3.0], [10.0, 30.0]]).view(2, 1, 1, 2)
    draw = {
        "on": torch.tensor(True),
        "other": torch.tensor([1, 0]),
        "share": torch.tensor([0.5, 0.25]),
    }
    expected = torch.tensor([[5.5, 16.5], [3.25, 9.75]]).view(2, 1, 1, 2)
    after = MixStatistics("early", 1.0, 0.1).apply(value, draw)
    torch.testing.assert_close(after, expected, atol=1e-4, rtol=1e-5)


def test_the_statistics_are_constants_for_the_gradient():
    """y = (x - m)/s * s' + m' with constants: dy/dx = s'/s, here 5.5/1."""
    value = torch.tensor([[1.0, 3.0], [10.0, 30.0]]).view(2, 1, 1, 2).requires_grad_()
    draw = {"on": torch.tensor(True), "other": torch.tensor([1, 0]), "share": torch.full((2,), 0.5)}
    MixStatistics("early", 1.0, 0.1).apply(value, draw)[0].sum().backward()
    assert value.grad is not None
    torch.testing.assert_close(value.grad[0].flatten(), torch.full((2,), 5.5), atol=1e-4, rtol=0)


def test_shares_are_beta_of_one_tenth():
    """The moments of Beta.

    Beta(a, a) has mean 1/2 and variance 1/(4(2a + 1)): 0.2083 for a = 0.1, near the 1/4 of a
    coin, so that most mixes lie close to one of the two.
    """
    shares = beta(torch.Generator().manual_seed(0), 0.1, 20_000)
    assert shares.isfinite().all()
    assert shares.min() >= 0
    assert shares.max() <= 1
    assert shares.mean().item() == pytest.approx(0.5, abs=0.01)
    assert shares.var().item() == pytest.approx(0.2083, abs=0.005)


def test_the_global_stream_is_left_alone():
    before = torch.get_rng_state()
    MixStatistics("early", 0.5, 0.1).draw(torch.Generator().manual_seed(0), 8)
    assert torch.equal(before, torch.get_rng_state())


def test_the_last_layer_is_not_mixed_unless_it_is_the_only_one():
    assert early(("a", "b", "c")) == ("a", "b")
    assert early(("a",)) == ("a",)


def test_named_taps_count():
    both = toy.vector(compose("mixstyle(p=1, taps=('early', 'late'))"), 1)
    assert not torch.allclose(both, toy.vector(compose("mixstyle(p=1)"), 1), atol=1e-5)


def test_runs_under_vmap():
    stacked.check("mixstyle(p=0.7)")


def test_refuses_layers_without_positions():
    data = Examples(torch.randn(20, 5), torch.arange(20) % 3)
    fed = Federation((Site("clinic", data),), (Domain("elsewhere", data),), toy.collection())
    run = toy.run(compose("mixstyle"), 1, federation=fed)
    table = build("mlp", inputs=5, outputs=3)
    with pytest.raises(FeddgError, match=r"the output of 'layers\.0' has no positions"):
        list(toy.history(type(run)(run.method, table, fed, run.recipe, 1)))
