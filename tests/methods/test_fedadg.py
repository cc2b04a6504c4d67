import pytest
import torch
from torch import nn

from feddg.catalogue import compose
from feddg.local import Forward
from feddg.parts.adversary import Adversaries, Sizes, judged, made
from feddg.tasks import Classification
from feddg.trees import each
from feddg.weights import Weights
from tests import toy
from tests.methods import stacked

SIZES = Sizes(8, 2)


def parties():
    rng = torch.Generator().manual_seed(0)
    own = {"generator": SIZES.generator(rng), "discriminator": SIZES.discriminator(rng)}
    return each(lambda v: v.requires_grad_(), own)


def looking(own, z, noise):
    layout, y = Weights.of(nn.Identity()).layout, torch.arange(len(z)) % 2
    task, empty = Classification(("a", "b")), torch.zeros(0)
    return Forward(
        nn.Identity(), task, layout, {"fedadg": own}, {}, empty, y, empty, {"z": z},
        draw={"noise": noise},
    )  # fmt: skip


def test_reference_an_undecided_discriminator():
    """D = 1/2 everywhere: (1 - D)^2 = D^2 = 1/4, so .15/4 + .7 (1/4 + 1/4 + 1/4) = .5625."""
    own = parties()
    own["discriminator"] = each(torch.zeros_like, own["discriminator"])
    term = Adversaries(own, SIZES.projection(), SIZES, "z", 0.15, 0.7)
    value = term.loss(looking(own, torch.randn(6, 8), torch.rand(6, SIZES.noise)))
    assert value.item() == pytest.approx(0.5625)


def test_every_party_follows_its_own_loss_only():
    own, z, noise = parties(), torch.randn(6, 8, requires_grad=True), torch.rand(6, SIZES.noise)
    projection = SIZES.projection()
    term = Adversaries(own, projection, SIZES, "z", 0.15, 0.7)
    term.loss(looking(own, z, noise)).backward()
    label = nn.functional.one_hot(torch.arange(6) % 2, 2).float()
    fake = made(own["generator"], noise, label)

    def judge(z):
        return judged(own["discriminator"], projection, z, label)

    def slopes(value, of):
        return torch.autograd.grad(value, of, retain_graph=True)

    for party, value in (
        ("generator", 0.7 * judge(fake).square().mean()),
        (
            "discriminator",
            0.7 * ((1 - judge(fake)).square().mean() + judge(z).square().mean()),
        ),
    ):
        values = list(own[party].values())
        for got, expected in zip(values, slopes(value, values), strict=True):
            torch.testing.assert_close(got.grad, expected)
    torch.testing.assert_close(z.grad, slopes(0.15 * (1 - judge(z)).square().mean(), [z])[0])


def test_sizes_are_in_the_released_proportions():
    big = Sizes(4096, 7)
    assert (big.noise, big.seen) == (2048, 1024)
    rows = SIZES.projection()
    assert rows.shape == (2, 8)
    torch.testing.assert_close(rows.norm(dim=1), torch.ones(2))
    assert torch.equal(rows, SIZES.projection())


def test_the_discriminator_stays_at_home_and_the_generator_travels():
    first, second = stacked.requests("fedadg", 2), stacked.requests("fedadg", 1)
    for late, early in zip(first, second, strict=True):
        [now] = [p for p in late.job.parts if isinstance(p, Adversaries)]
        [then] = [p for p in early.job.parts if isinstance(p, Adversaries)]
        for party in ("generator", "discriminator"):
            assert not torch.equal(now.learned[party]["in"], then.learned[party]["in"])
    a, b = (r.job.parts[-1].learned for r in first)
    assert torch.equal(a["generator"]["in"], b["generator"]["in"])
    assert not torch.equal(a["discriminator"]["in"], b["discriminator"]["in"])
    done = toy.final(compose("fedadg"), 1)
    assert set(done.state.notes["fedadg"]) == {"in", "in_bias", "out", "out_bias"}


def test_the_task_counts_by_alpha_and_is_smoothed():
    for request in stacked.requests("fedadg", 1):
        assert request.job.parts[0].weight == 0.85
        assert request.job.local.label_smoothing == 0.2
    for request in stacked.requests("fedadg(label_smoothing=0)", 1):
        assert request.job.local.label_smoothing == 0


def test_its_loss_is_there():
    assert toy.final(compose("fedadg"), 2).replies[0].losses["Adversaries"] > 0


def test_runs_under_vmap():
    stacked.check("fedadg")
