from math import log

import pytest
import torch

from feddg.parts.heads import Branch, head_layout
from feddg.parts.sourcefree import InformationMaximisation, clustered, entropy, nearest
from tests.parts.test_heads import Line, one_pass


def test_reference_entropy():
    p = torch.tensor([[0.5, 0.5], [1.0, 0.0]])
    torch.testing.assert_close(entropy(p), torch.tensor([log(2), 0.0]))
    assert entropy(p.mean(0)).item() == pytest.approx(-(0.75 * log(0.75) + 0.25 * log(0.25)))


@pytest.mark.parametrize("weight", [0.0, 0.3])
def test_reference_loss(weight):
    """The frozen head says (z, 0) of z = ±log 3: p = (3/4, 1/4) and (1/4, 3/4), on average 1/2.

    So it is H(1/4) − H(1/2), and `weight` times the cross-entropy of both with class 0. The
    network's own head (there it is the same) is not trained.
    """
    net, x = Line(), torch.tensor([[log(3)], [-log(3)]])
    term = InformationMaximisation(
        torch.tensor([1.0, 0.0]), Branch(head_layout(net), "head"), weight
    )
    fwd = one_pass(net, x, torch.tensor([0, 0]))
    loss = term.loss(fwd)
    sure = -(0.75 * log(0.75) + 0.25 * log(0.25))
    assert loss.item() == pytest.approx(
        sure - log(2) - weight * (log(0.75) + log(0.25)) / 2, abs=1e-6
    )
    [slope] = torch.autograd.grad(loss, [fwd.theta["model"]])
    assert slope[0] != 0
    assert slope[1:].tolist() == [0, 0]


def test_reference_clusters():
    """Directions 0°, 45°, 45° and 90°, of which the network calls the middle two class 0.

    Centroids by p: class 0 is 1 (0°) + 1.8 (45°), at 29°; class 1 is 0.2 (45°) + 1 (90°), at 83°.
    45° is nearer to 29° than to 83°; by these labels class 0 stays at 31°, class 1 is at 90°.
    """
    z = torch.tensor([[2.0, 0.0], [1.0, 1.0], [0.5, 0.5], [0.0, 3.0]])
    p = torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.9, 0.1], [0.0, 1.0]])
    assert clustered(z, p).tolist() == [0, 0, 0, 1]


def test_labels_follow_the_clusters_not_the_network():
    """Five examples in the east, one of them called 1, and three in the north."""
    z = torch.cat(
        [torch.tensor([[1.0, 0.1]]).repeat(5, 1), torch.tensor([[0.1, 1.0]]).repeat(3, 1)]
    )
    p = torch.tensor([[0.9, 0.1]] * 4 + [[0.4, 0.6]] + [[0.2, 0.8]] * 3)
    assert clustered(z, p).tolist() == [0] * 5 + [1] * 3


def test_a_class_of_nobody_has_no_centroid():
    z = torch.tensor([[1.0, 0.0], [-1.0, 0.0]])
    share = torch.tensor([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    assert nearest(z, share).tolist() == [0, 2]
