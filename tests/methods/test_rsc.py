import pytest
import torch
from torch import nn

from feddg.catalogue import compose
from feddg.errors import FeddgError
from feddg.local import Forward
from feddg.methods.rsc import SelfChallenged, count, top
from feddg.models import Anatomy
from feddg.tasks import Classification, Regression
from feddg.weights import Weights
from tests import toy
from tests.methods import stacked


class Linear(nn.Module):
    """Features are the inputs; the head's rows are the classes."""

    anatomy = Anatomy("head")

    def __init__(self, rows):
        super().__init__()
        self.head = nn.Linear(3, 2, bias=False)
        self.head.weight.data = torch.tensor(rows)

    def forward(self, x):
        return self.head(x)


def looking(net, x, y):
    weights = Weights.of(net)
    values = dict(net.named_parameters())
    task = Classification(("a", "b"))
    theta = {"model": weights.vector}
    return Forward(net, task, weights.layout, theta, values, x, y, net(x), {"head:in": x})


ROWS = [[3.0, 1.0, 0.0], [0.0, 0.0, 2.0]]


def test_reference_the_strongest_feature_of_the_most_shaken_example_is_muted():
    """Three examples with three features by hand.

    The gradient of the true class's output is its row: (3, 1, 0) for class 0, (0, 0, 2) for
    class 1. One third of three features is one: feature 0 for class 0, feature 2 for class 1.

    Example 0: z = (1, 1, 0), y = 0: outputs (4, 0) -> (1, 0) without feature 0: the softmax falls
    from .982 to .731, by .251.
    Example 1: z = (0, 1, 1), y = 1: outputs (1, 2) -> (1, 0): .731 to .269, by .462.
    Example 2: z = (0, 2, 0), y = 0: feature 0 is not there: falls by 0.
    One third of the batch is one example: number 1, and its loss is log(1 + e^(1-0)) = 1.3133.
    The others keep log(1 + e^-4) = .0181 and log(1 + e^-2) = .1269; the mean is .4861.
    """
    x = torch.tensor([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0], [0.0, 2.0, 0.0]])
    fwd = looking(Linear(ROWS), x, torch.tensor([0, 1, 0]))
    rsc = SelfChallenged("head", 1 / 3, 1 / 3)
    muted = rsc.muted(fwd, x, fwd.y[:, None])
    assert muted.tolist() == [[False] * 3, [False, False, True], [False] * 3]
    assert rsc.loss(fwd).item() == pytest.approx(0.4861, abs=1e-4)


def test_the_gradient_flows_through_what_is_left():
    """Backwards through the muted features.

    Example 1 of the reference, alone: z = (0, 1, 0) after muting, so that the head's gradient
    is (p - e_y) z^T with p = softmax(1, 0) = (.731, .269): column 1 only, (.731, -.731).
    """
    net = Linear(ROWS)
    x = torch.tensor([[0.0, 1.0, 1.0]])
    SelfChallenged("head", 1 / 3, 1.0).loss(looking(net, x, torch.tensor([1]))).backward()
    expected = torch.tensor([[0.0, 0.7311, 0.0], [0.0, -0.7311, 0.0]])
    torch.testing.assert_close(net.head.weight.grad, expected, atol=1e-4, rtol=0)


def test_shares_count_as_percentiles_do():
    """What reaches a percentile, counted.

    numpy's percentile lies between ranks: what reaches it is as many as the share rounded up.
    For 16 values and the upper third, the percentile has rank (2/3) 15 = 10: 6 of 16 reach it.
    """
    assert [count(1 / 3, n) for n in (3, 6, 7, 16, 512)] == [1, 2, 3, 6, 171]
    for n in (3, 6, 7, 16, 512):
        values = torch.randn(n)
        reach = values >= torch.quantile(values, 2 / 3)
        assert torch.equal(top(values, 1 / 3), reach)
    assert not top(torch.randn(5), 0.0).any()
    assert top(torch.randn(5), 1.0).all()


def test_its_loss_is_not_the_plain_one():
    """The trap of the public code: labels that never arrive make RSC an expensive FedAvg."""
    heard = stacked.requests("rsc", 1)
    assert [type(p).__name__ for p in heard[0].job.parts] == ["SelfChallenged"]
    plain = toy.final(compose("fedavg"), 1).replies[0].losses["total"]
    assert toy.final(compose("rsc"), 1).replies[0].losses["total"] > plain + 0.01


@pytest.mark.parametrize("spec", ["rsc(features=0)", "rsc(batch=0)"])
def test_no_share_is_fedavg_bit_for_bit(spec):
    assert torch.equal(toy.vector(compose(spec)), toy.vector(compose("fedavg")))


def test_runs_under_vmap():
    stacked.check("rsc")


def test_refuses_a_regression():
    run = toy.run(compose("rsc"), 1)
    collection = type(run.federation.collection)("toy", (), Regression())
    fed = type(run.federation)(run.sites, run.federation.targets, collection)
    with pytest.raises(FeddgError, match="rsc mutes by the true class's score"):
        toy.final(compose("rsc"), 1, federation=fed)
