from copy import deepcopy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from feddg.data.randaugment import RandAugment
from feddg.local import Forward
from feddg.models import Anatomy
from feddg.packets import Reply
from feddg.parts.heads import (
    Branch,
    Consistency,
    FrozenHeads,
    OwnHead,
    Vote,
    assembled,
    head_layout,
    voting,
)
from feddg.tasks import Classification, Regression
from feddg.training import forward
from feddg.weights import Layout, Weights
from tests import toy


class Line(nn.Module):
    """F(x) = w x and C(z) = (z, 0): one number each, for work by hand."""

    anatomy = Anatomy("head")

    def __init__(self) -> None:
        super().__init__()
        self.extractor = nn.Linear(1, 1, bias=False)
        self.head = nn.Linear(1, 2, bias=False)
        with torch.no_grad():
            self.extractor.weight.fill_(1.0)
            self.head.weight.copy_(torch.tensor([[1.0], [0.0]]))

    def forward(self, x):
        return self.head(self.extractor(x))


def one_pass(module: nn.Module, x, y, task=None, draw=None, learned=None) -> Forward:
    layout = Layout.of(module)
    weights = Weights.of(module)
    theta = {"model": weights.parameters.clone().requires_grad_(), **(learned or {})}
    own = {k: v.clone() for k, v in layout.buffers().views(weights.buffers).items()}
    values = {**layout.parameters().views(theta["model"]), **own}
    logits, taps = forward(module, values, x, ("head:in",), training=True)
    task = task or Classification(("a", "b", "c"))
    return Forward(
        module, task, layout.parameters(), theta, values, x, y, logits, taps, draw=draw or {}
    )


def sigmoid(v: float) -> float:
    return 1 / (1 + torch.tensor(-v).exp().item())


def test_reference_equation_5_by_hand():
    """One example x = 1 of class a, F(x) = w x with w = 1, two frozen heads (1, 0) and (2, 0).

    CE of head (c, 0) is log(1 + e^(-c w)): the sum is log(1 + e^-1) + log(1 + e^-2), and its
    slope in w is -sigmoid(-1) - 2 sigmoid(-2). The own head, and the frozen, get none.
    """
    net, at = Line(), head_layout(Line())
    heads = torch.tensor([[1.0, 0.0], [2.0, 0.0]], requires_grad=True)
    fwd = one_pass(net, torch.ones(1, 1), torch.tensor([0]))
    loss = FrozenHeads(heads.detach(), Branch(at, "head")).loss(fwd)
    expected = torch.tensor([-1.0, -2.0]).exp().log1p().sum()
    torch.testing.assert_close(loss, expected)
    [slope] = torch.autograd.grad(loss, fwd.theta["model"])
    by_hand = -sigmoid(-1.0) - 2 * sigmoid(-2.0)
    torch.testing.assert_close(slope, torch.tensor([by_hand, 0.0, 0.0]), atol=1e-6, rtol=1e-6)


def test_reference_equation_5_on_augmented_images():
    """Value and gradient of Σ_j CE(C'_j F(A(x))) as plain PyTorch has them, batch norm included."""
    net = toy.Net()
    x, y = toy.images(0, 16).x, toy.images(0, 16).y
    augment = RandAugment(p=0.9)
    draw = augment.draw(torch.Generator().manual_seed(5), 16)
    at = head_layout(net)
    heads = torch.randn(2, at.size)
    fwd = one_pass(net, x, y, draw=draw)
    term = FrozenHeads(heads, Branch(at, "head", augment))
    loss = term.loss(fwd)
    [slope] = torch.autograd.grad(loss, fwd.theta["model"])

    twin = deepcopy(net).train()
    z = twin.dense(twin.late(twin.early(augment.apply(x, draw))))
    each = [F.cross_entropy(F.linear(z, h[:48].view(3, 16), h[48:]), y) for h in heads.unbind(0)]
    total = torch.stack(each).sum()
    total.backward()
    torch.testing.assert_close(loss, total)
    for name, value in Layout.of(net).parameters().views(slope).items():
        mine = twin.get_parameter(name).grad
        torch.testing.assert_close(
            value, torch.zeros_like(value) if mine is None else mine, atol=1e-5, rtol=1e-4
        )
    assert not torch.allclose(
        FrozenHeads(heads, Branch(at, "head")).loss(fwd), loss
    )  # effect of A(.)


def test_the_second_pass_moves_running_statistics_only_where_asked():
    net = toy.Net()
    data, at = toy.images(0, 16), head_layout(net)
    augment = RandAugment(p=0.9)
    draw = augment.draw(torch.Generator().manual_seed(5), 16)
    after = {}
    for statistics in (False, True):
        fwd = one_pass(net, data.x, data.y, draw=draw)
        plain = fwd.values["early.1.running_mean"].clone()
        branch = Branch(at, "head", augment, statistics)
        FrozenHeads(torch.randn(2, at.size), branch).loss(fwd)
        after[statistics] = torch.equal(fwd.values["early.1.running_mean"], plain)
    assert after == {False: True, True: False}


def test_reference_own_head_on_augmented_images_trains_it_too():
    """CE of (1, 0) on x = 1: slope -sigmoid(-1) in w, and ∓sigmoid(-1) in the head's rows."""
    net = Line()
    fwd = one_pass(net, torch.ones(1, 1), torch.tensor([0]))
    loss = OwnHead(Branch(head_layout(net), "head")).loss(fwd)
    [slope] = torch.autograd.grad(loss, fwd.theta["model"])
    s = sigmoid(-1.0)
    torch.testing.assert_close(slope, torch.tensor([-s, -s, s]))


def test_reference_consistency_by_hand():
    """Two classes, of which p and q are the first's: the loss is 2 (q - p)^2.

    Own head (1, 0) gives p = sigmoid(1), the expert; the others, (2, 0) and (0, 0), give the
    mean q = (sigmoid(2) + 1/2) / 2. The expert is constant, so that the own head gets no
    gradient; the others do.
    """
    net, at = Line(), head_layout(Line())
    heads = torch.tensor([[2.0, 0.0], [0.0, 0.0]], requires_grad=True)
    fwd = one_pass(net, torch.ones(1, 1), torch.tensor([0]), learned={"heads": heads})
    loss = Consistency(heads.detach(), Branch(at, "head")).loss(fwd)
    p, q = sigmoid(1.0), (sigmoid(2.0) + 0.5) / 2
    torch.testing.assert_close(loss, torch.tensor(2 * (q - p) ** 2))
    w, others = torch.autograd.grad(loss, [fwd.theta["model"], heads])
    assert torch.equal(w[1:], torch.zeros(2))
    assert w[0] != 0
    # dq/dc_j = q_j (1 - q_j) / 2 at z = 1
    q0 = sigmoid(2.0)
    assert others[0, 0].item() == pytest.approx(4 * (q - p) * q0 * (1 - q0) / 2, rel=1e-4)


def test_assembled_by_hand():
    """Copies 1 and 4 with say 1 and 2: 3. A single copy is kept to the bit, and so is no copy."""
    old = Weights.of(Line())

    def reply(site, say, **heads):
        heads = {k: torch.tensor([v]) for k, v in heads.items()}
        return Reply(model=old, site=site, weight=say, notes={"heads": heads})

    before = {k: torch.tensor([0.1]) for k in "abc"}
    after = assembled(before, [reply("a", 1.0, a=1.0, b=0.3), reply("b", 2.0, a=4.0)])
    assert {k: v.item() for k, v in after.items()} == {
        "a": pytest.approx(3.0),
        "b": torch.tensor(0.3).item(),
        "c": torch.tensor(0.1).item(),
    }


def test_vote_by_hand():
    """Outputs (0, log 3) and (0, 0): p = (1/4, 3/4) and (1/2, 1/2), mean (3/8, 5/8)."""
    heads = [nn.Linear(1, 2) for _ in range(2)]
    with torch.no_grad():
        for head, value in zip(heads, (3.0, 1.0), strict=True):
            head.weight.zero_()
            head.bias.copy_(torch.tensor([1.0, value]).log())
    z = torch.zeros(1, 1)
    torch.testing.assert_close(Vote(heads)(z).exp(), torch.tensor([[3 / 8, 5 / 8]]))
    mean = torch.tensor([[0.0, torch.tensor(3.0).log() / 2]])
    torch.testing.assert_close(Vote(heads, "logits")(z), mean)


def test_one_output_is_a_value_and_is_averaged():
    """PPDG runs COPA on PovertyMap, a regression."""
    heads = [nn.Linear(1, 1) for _ in range(2)]
    z = torch.randn(5, 1)
    torch.testing.assert_close(Vote(heads)(z), (heads[0](z) + heads[1](z)) / 2)
    at = Layout.of(heads[0])
    net = nn.Sequential(nn.Linear(2, 1), nn.Linear(1, 1))
    net.__dict__["anatomy"] = Anatomy("1")
    layout = head_layout(net)
    fwd = one_pass_regression(net)
    term = FrozenHeads(torch.randn(2, at.size), Branch(layout, "1"))
    assert torch.isfinite(term.loss(fwd))


def one_pass_regression(net: nn.Module) -> Forward:
    layout, weights = Layout.of(net), Weights.of(net)
    theta = {"model": weights.parameters}
    values = layout.parameters().views(theta["model"])
    x, y = torch.randn(4, 2), torch.randn(4)
    logits, taps = forward(net, values, x, ("1:in",), training=True)
    return Forward(net, Regression(), layout, theta, values, x, y, logits, taps)


def test_voting_copies_heads_and_nothing_else():
    """Heads (1, 0) and (0, 1) of one feature, z = 2: the logits' mean is (1, 1)."""

    class Whole(nn.Linear):
        def __deepcopy__(self, memo):
            raise AssertionError("the extractor was copied")

    model, found = Line(), Line()
    found.extractor.weight.data.fill_(2.0)
    model.extractor = Whole(1, 1, bias=False)
    before = model.head.weight.clone()
    heads = {"a": torch.tensor([1.0, 0.0]), "b": torch.tensor([0.0, 1.0])}
    vote = voting(found, model, heads, "logits")
    torch.testing.assert_close(vote(torch.ones(1, 1)), torch.ones(1, 2))
    assert torch.equal(model.head.weight, before)
