from math import log

import pytest
import torch
from torch import nn

from feddg.catalogue import compose
from feddg.data.domain import Domain, Examples, Federation, Site
from feddg.errors import FeddgError
from feddg.local import Forward
from feddg.methods.jigen import Jigsaw
from feddg.models import Anatomy
from feddg.packets import Reply
from feddg.parts.puzzles import orders, puzzle
from feddg.parts.shared import averaged
from feddg.tasks import Classification
from feddg.weights import Weights
from tests import toy
from tests.methods import stacked


def test_reference_tiles_of_one_pixel():
    """On 3 x 3 pixels a tile is a pixel: position t shows pixel order[t]."""
    x = torch.arange(9.0).view(1, 1, 3, 3)
    order = torch.tensor([[8, 7, 6, 5, 4, 3, 2, 1, 0]])
    assert puzzle(x, order).flatten().tolist() == [8, 7, 6, 5, 4, 3, 2, 1, 0]


def test_reference_tiles_of_many_pixels_and_a_border():
    """A swap of two tiles by hand.

    7 x 8 pixels: tiles of 2 x 2; row 6 and columns 6 and 7 stay where they are. The order
    swaps tiles 0 and 5 (rows 2-3, columns 4-5).
    """
    x = torch.randn(2, 3, 7, 8)
    order = torch.tensor([5, 1, 2, 3, 4, 0, 6, 7, 8]).expand(2, -1)
    expected = x.clone()
    expected[..., 0:2, 0:2], expected[..., 2:4, 4:6] = x[..., 2:4, 4:6], x[..., 0:2, 0:2]
    assert torch.equal(puzzle(x, order), expected)


def test_every_order_is_a_permutation_and_the_set_is_far_apart():
    """Distances of the chosen set.

    Nine permutations can differ pairwise in all nine places (a Latin square), and a set of 31
    by greedy choice keeps a mean distance of more than 8 of 9.
    """
    found = orders(30)
    assert found.shape == (31, 9)
    assert torch.equal(found[0], torch.arange(9))
    assert torch.equal(found.sort(1)[0], torch.arange(9).expand(31, 9))
    apart = (found[:, None] != found[None]).sum(-1)
    assert (apart[~torch.eye(31, dtype=torch.bool)] > 0).all()
    assert (apart[0, 1:4] == 9).all()
    assert apart.sum().item() / (31 * 30) > 8


class Flat(nn.Module):
    anatomy = Anatomy("head")

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(9, 2)

    def forward(self, x):
        return self.head(x.flatten(1))


def test_reference_loss_of_a_head_that_knows_one_pixel():
    """A puzzle head by hand.

    Two orders: as it is, and reversed. The image has a 1 in pixel 0 only; the head's output is
    (a z_0, a z_8). In order: (a, 0), loss log(1 + e^-a); reversed: (0, a) and label 1, the same.
    """
    net, a = Flat(), 2.0
    x = torch.zeros(2, 1, 3, 3)
    x[:, 0, 0, 0] = 1
    head = {"weight": torch.zeros(2, 9), "bias": torch.zeros(2)}
    head["weight"][0, 0] = head["weight"][1, 8] = a
    both = torch.stack([torch.arange(9), torch.arange(9).flip(0)])
    weights = Weights.of(net)
    fwd = Forward(
        net, Classification(("a", "b")), weights.layout, {"jigen": head},
        dict(net.named_parameters()), x, torch.zeros(2, dtype=torch.long), net(x), {},
        draw={"order": torch.tensor([0, 1])},
    )  # fmt: skip
    value = Jigsaw(head, both, 0.5, 0.0, "head:in").loss(fwd)
    assert value.item() == pytest.approx(0.5 * log(1 + torch.tensor(-a).exp().item()))


def test_as_many_images_are_in_order_as_asked():
    solve = Jigsaw({}, orders(30), 1.0, 0.9, "head:in")
    drawn = solve.draw(torch.Generator().manual_seed(0), 10_000)["order"]
    assert (drawn == 0).float().mean().item() == pytest.approx(0.9 + 0.1 / 31, abs=0.01)
    assert drawn.unique().tolist() == list(range(31))


def test_the_head_learns_and_its_loss_falls():
    losses = [
        done.replies[0].losses["Jigsaw"]
        for done in toy.history(toy.run(compose("jigen(ordered=0.5, weight=1.0)"), 8))
    ]
    assert 0 < losses[-1] < losses[0] - 0.2
    assert toy.final(compose("jigen")).state.notes["jigen"]["weight"].abs().sum() > 0


def test_a_shared_head_is_the_mean_by_the_models_shares():
    """Weights 3 and 1: (3 * 1 + 1 * 5)/4 = 2."""
    model = Weights(torch.zeros(0), Weights.of(nn.Identity()).layout)
    replies = [
        Reply(model=model, site=s, weight=w, notes={"jigen": {"bias": torch.tensor([v])}})
        for s, w, v in (("a", 3.0, 1.0), ("b", 1.0, 5.0))
    ]
    assert averaged(replies, "jigen")["bias"].tolist() == [2.0]


def test_a_local_head_stays_at_home():
    done = toy.final(compose("jigen(head='local')"), 2)
    assert not done.state.notes
    assert not any(r.notes for r in done.replies)


@pytest.mark.parametrize("head", ["shared", "local"])
def test_weight_zero_is_fedavg_bit_for_bit(head):
    assert torch.equal(
        toy.vector(compose(f"jigen(weight=0, head={head!r})")), toy.vector(compose("fedavg"))
    )


def test_runs_under_vmap():
    stacked.check("jigen")


def test_refuses_tables():
    data = Examples(torch.randn(20, 5), torch.arange(20) % 3)
    fed = Federation((Site("clinic", data),), (Domain("elsewhere", data),), toy.collection())
    with pytest.raises(FeddgError, match="jigen needs images"):
        toy.final(compose("jigen"), 1, federation=fed)
