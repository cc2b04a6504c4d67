from dataclasses import replace

import pytest
import torch
from torch import nn

from feddg.catalogue import compose
from feddg.data.domain import Domain, Examples, Federation, Site
from feddg.errors import FeddgError
from feddg.local import Forward
from feddg.methods.consistency import Agreement, Jitter, moved
from feddg.models import build
from feddg.tasks import Classification
from feddg.weights import Weights
from tests import toy
from tests.methods import stacked


def looking(net, x, draw):
    weights = Weights.of(net)
    values = {**dict(net.named_parameters()), **dict(net.named_buffers())}
    task, y = Classification(("a", "b")), torch.zeros(len(x), dtype=torch.long)
    return Forward(net, task, weights.layout.parameters(), {}, values, x, y, net(x), {}, draw=draw)


def scale(w):
    net = nn.Linear(1, 2, bias=False)
    net.weight.data = torch.tensor([[w], [0.0]])
    return net


def test_reference_squared_distance_of_softmax():
    """Two logistic examples by hand.

    Outputs (x, 0): softmax is (s(x), 1 - s(x)) with the logistic s. x = 0 and the view
    x = log 3 give (1/2, 1/2) and (3/4, 1/4): squared distance 2/16 = 1/8; the second example's
    view is itself: 0. With weight 4 the mean is 4 * 1/16 = 1/4.
    """
    x, draw = torch.tensor([[0.0], [1.0]]), {"noise": torch.tensor([[3.0], [1.0]]).log()}
    value = Agreement(4.0, True, Jitter(1.0, 0, (1,))).loss(looking(scale(1.0), x, draw))
    assert value.item() == pytest.approx(0.25)


def test_the_first_view_is_a_fixed_target_or_not():
    """The chain rule by hand.

    d/dw of 2 (s(w v) - s(w x))^2 at x = 1, v = 2, w = 1. Fixed: 4 (s(2) - s(1)) s'(2) 2; else
    minus 4 (s(2) - s(1)) s'(1) besides, with s' = s (1 - s).
    """
    s = [torch.sigmoid(torch.tensor(v)).item() for v in (1.0, 2.0)]
    slope = [v * (1 - v) for v in s]
    gap = 4 * (s[1] - s[0])
    for fixed, expected in ((True, gap * slope[1] * 2), (False, gap * (slope[1] * 2 - slope[0]))):
        net = scale(1.0)
        fwd = looking(net, torch.ones(1, 1), {"noise": torch.ones(1, 1)})
        Agreement(1.0, fixed, Jitter(1.0, 0, (1,))).loss(fwd).backward()
        got = (net.weight.grad[0] - net.weight.grad[1]).item() / 2
        assert got == pytest.approx(expected, rel=1e-5)


def test_images_move_by_whole_pixels_and_repeat_their_edge():
    """Down 1, right 0 repeats the first row; up 1, left 1 repeats the last row and column."""
    x = torch.arange(9.0).view(1, 1, 3, 3).repeat(2, 1, 1, 1)
    got = moved(x, torch.tensor([1, -1]), torch.tensor([0, -1]))
    assert got[0, 0].tolist() == [[0, 1, 2], [0, 1, 2], [3, 4, 5]]
    assert got[1, 0].tolist() == [[4, 5, 5], [7, 8, 8], [7, 8, 8]]


def test_batch_norm_counts_the_first_view_only():
    net = nn.Sequential(nn.BatchNorm1d(1), nn.Linear(1, 2))
    x = torch.randn(8, 1)
    fwd = looking(net, x, {"noise": torch.full((8, 1), 100.0)})
    before = {k: v.clone() for k, v in net.state_dict().items()}
    assert Agreement(1.0, True, Jitter(1.0, 0, (1,))).loss(fwd) > 0
    for k, v in net.state_dict().items():
        assert torch.equal(v, before[k])


def test_its_loss_is_there_and_falls_by_its_weight():
    small, large = (
        toy.final(compose(f"consistency(weight={w})"), 8).replies[0].losses for w in (0.01, 10.0)
    )
    assert small["Agreement"] > 0
    assert large["Agreement"] / 10 < small["Agreement"] / 0.01


@pytest.mark.parametrize("spec", ["consistency(cutout=4)", "consistency(view='jitter')"])
def test_runs_under_vmap(spec):
    stacked.check(spec)


def test_a_table_gets_noise():
    data = Examples(torch.randn(20, 5), torch.arange(20) % 3)
    fed = Federation((Site("clinic", data),), (Domain("elsewhere", data),), toy.collection())
    run = toy.run(compose("consistency"), 1, federation=fed)
    run = replace(run, model=build("mlp", inputs=5, outputs=3))
    [done] = toy.history(run)
    assert done.replies[0].losses["Agreement"] > 0


def test_knows_its_views():
    with pytest.raises(
        FeddgError, match="unknown view of consistency 'jiter'; did you mean 'jitter'"
    ):
        compose("consistency(view='jiter')")
