import pytest
import torch
import torch.nn.functional as F
from torch import nn

from feddg.catalogue import compose
from feddg.local import Forward
from feddg.methods.fediir import FedIIR, Invariance, head_slope, mean_slope
from feddg.models import Anatomy, build
from feddg.packets import Reply, State
from feddg.tasks import Classification
from feddg.weights import Weights
from tests import toy
from tests.methods import stacked

TASK = Classification(("a", "b"))


class Net(nn.Module):
    anatomy = Anatomy("head")

    def __init__(self):
        super().__init__()
        self.body = nn.Linear(2, 3)
        self.head = nn.Linear(3, 2)

    def forward(self, x):
        return self.head(self.body(x).tanh())


def test_reference_gradient_of_softmax_regression():
    """With a head of zeros p = (1/2, 1/2); g_W = mean (p - e_y) z^T, g_b = mean (p - e_y).

    z = (2, 0) with y = 0 and (0, 4) with y = 1: rows of g_W are ((-1/2)(2, 0) + 1/2 (0, 4))/2 =
    (-.5, 1) and (.5, -1); g_b = 0.
    """
    head = nn.Linear(2, 2)
    zero = {k: torch.zeros_like(v) for k, v in head.named_parameters()}
    z, y = torch.tensor([[2.0, 0.0], [0.0, 4.0]]), torch.tensor([0, 1])
    g = head_slope(head, TASK, zero, z, y, 0.0)
    torch.testing.assert_close(g["weight"], torch.tensor([[-0.5, 1.0], [0.5, -1.0]]))
    torch.testing.assert_close(g["bias"], torch.zeros(2))


def test_the_penalty_and_its_gradient_are_those_of_double_backpropagation():
    net, x, y = Net(), torch.randn(5, 2), torch.arange(5) % 2
    mean = {"weight": torch.randn(2, 3), "bias": torch.randn(2)}
    z = net.body(x).tanh()
    values: dict[str, torch.Tensor] = dict(net.named_parameters())
    layout = Weights.of(net).layout
    fwd = Forward(net, TASK, layout, {}, values, x, y, net.head(z), {"head:in": z})
    mine = torch.autograd.grad(Invariance(mean, "head", 3.0).loss(fwd), list(net.parameters()))
    loss = F.cross_entropy(net(x), y)
    g = torch.autograd.grad(loss, list(net.head.parameters()), create_graph=True)
    apart = torch.stack([(a - b).square().sum() for a, b in zip(g, mean.values(), strict=True)])
    theirs = torch.autograd.grad(3.0 * apart.sum(), list(net.parameters()))
    for a, b in zip(mine, theirs, strict=True):
        torch.testing.assert_close(a, b)


def test_what_a_site_sends_is_the_gradient_of_the_whole_at_the_model_that_was_sent():
    """Without batch norm and with batches of one size, the mean over batches is that of all."""
    run = toy.run(compose("fediir"), federation=toy.balanced(1), norm=False)
    state = run.method.init(run.model, run.names)
    job = run.job(run.sites[0], 0)
    sent = mean_slope(run.method.broadcast(state, 0), job)
    n = sent["batches"] * 16
    assert n == len(job.train) == 48
    loss = F.cross_entropy(run.model(job.train.x), job.train.y)
    g = torch.autograd.grad(loss, list(run.model.get_submodule("head").parameters()))
    torch.testing.assert_close(sent["gradient"]["weight"], g[0])
    torch.testing.assert_close(sent["gradient"]["bias"], g[1])


def test_reference_the_mean_moves_by_one_twentieth():
    """m = 10, gradients 2 (of 3 batches) and 6 (of 1): mean 3; .95 * 10 + .05 * 3 = 9.65."""
    run = toy.run(compose("fediir"))
    model = Weights.of(build("tests.toy:Net"))
    state = State(model=model, notes={"fediir": {"bias": torch.full((2,), 10.0)}})
    replies = [
        Reply(
            site=s, model=model,
            notes={"fediir": {"gradient": {"bias": torch.full((2,), v)}, "batches": b}},
        )
        for s, v, b in (("a", 2.0, 3), ("b", 6.0, 1))
    ]  # fmt: skip
    work = FedIIR().aggregate(state, replies, run.job(None, 0))
    with pytest.raises(StopIteration) as end:
        next(work)
    torch.testing.assert_close(end.value.value.notes["fediir"]["bias"], torch.full((2,), 9.65))


def test_the_sites_are_sent_the_mean_of_the_round_before():
    done = list(toy.history(toy.run(compose("fediir"), 2)))
    new = [r.notes["fediir"] for r in done[0].replies]
    total = sum(v["batches"] for v in new)
    mean = sum(v["batches"] / total * v["gradient"]["weight"] for v in new)
    torch.testing.assert_close(done[0].state.notes["fediir"]["weight"], 0.05 * mean)


def test_its_loss_is_there():
    assert toy.final(compose("fediir"), 2).replies[0].losses["Invariance"] > 0


def test_runs_under_vmap():
    stacked.check("fediir(weight=0.1)")
