from math import exp, log, sqrt

import pytest
import torch
from torch import nn

from feddg.catalogue import compose
from feddg.engines.loop import Run
from feddg.local import Forward
from feddg.methods.fedsr import Norm
from feddg.models import anatomy, build
from feddg.parts.gaussian import GaussianHead, Noise, Prior, with_gaussian_head
from feddg.tasks import Classification
from feddg.weights import Weights, load
from tests import toy
from tests.methods import stacked

UNIT = log(exp(1) - 1)  # softplus of it is 1


def looking(taps, theta, y):
    empty = torch.zeros(0)
    net = nn.Identity()
    layout = Weights.of(net).layout
    return Forward(net, Classification(("a", "b")), layout, theta, {}, empty, y, empty, taps)


def test_reference_norm():
    """Lengths 5 and 1: mean 3; squares 25 and 1: mean 13."""
    fwd = looking({"z": torch.tensor([[3.0, 4.0], [0.0, 1.0]])}, {}, torch.zeros(2))
    assert Norm("z", 2.0, False).loss(fwd).item() == pytest.approx(6)
    assert Norm("z", 2.0, True).loss(fwd).item() == pytest.approx(26)


def test_a_feature_vector_of_zeros_has_a_gradient():
    z = torch.zeros(2, 3, requires_grad=True)
    Norm("z", 1.0, False).loss(looking({"z": z}, {}, torch.zeros(2))).backward()
    assert z.grad is not None
    assert torch.equal(z.grad, torch.zeros(2, 3))


def test_reference_divergence_of_two_gaussians():
    """Two priors by hand.

    Example 0, class 0: N(2 * .5, (2 * 1)^2) to N(0, 1): log(1/2) + (4 + 1)/2 - 1/2 = 2 - log 2.
    Example 1, class 1: N(2 * 1, 2^2) to N(4, 1): log(1/2) + (4 + 4)/2 - 1/2 = 3.5 - log 2.
    Scale 2, mean 2.75 - log 2; times the weight 10.
    """
    theta = {
        "fedsr": {
            "mean": torch.tensor([[0.0], [4.0]]),
            "rho": torch.full((2, 1), UNIT),
            "scale": torch.tensor(2.0),
        }
    }
    code = torch.tensor([[0.5, UNIT], [1.0, UNIT]])
    near = Prior(theta["fedsr"], "e", 10.0)
    value = near.loss(looking({"e": code}, theta, torch.tensor([0, 1])))
    assert value.item() == pytest.approx(10 * (2.75 - log(2)), rel=1e-5)


def test_it_is_torchs_divergence():
    dist = torch.distributions
    code, own = torch.randn(6, 8), {"mean": torch.randn(2, 4), "rho": torch.randn(2, 4)}
    y, soft = torch.arange(6) % 2, nn.functional.softplus
    p = dist.Normal(code[:, :4] * 0.7, soft(code[:, 4:]) * 0.7)
    q = dist.Normal(own["mean"][y], soft(own["rho"])[y])
    theta = {"fedsr": {**own, "scale": torch.tensor(0.7)}}
    value = Prior({}, "e", 1.0).loss(looking({"e": code}, theta, y))
    torch.testing.assert_close(value, dist.kl_divergence(p, q).sum(1).mean())


def test_a_sample_has_mean_mu_and_deviation_sigma():
    """mu = 3, sigma = softplus(2) = 2.1269."""
    code = torch.tensor([[3.0, 2.0]]).repeat(20_000, 1)
    noise = Noise("code:in", 1)
    z = noise.apply(code, noise.draw(torch.Generator().manual_seed(0), 20_000))
    assert z[:, 0].mean().item() == pytest.approx(3, abs=0.05)
    assert z[:, 0].std().item() == pytest.approx(2.1269, abs=0.05)
    assert torch.equal(z[:, 1], code[:, 1])


def test_the_mean_of_samples_at_test():
    """exp of the output is the mean softmax over the samples, so it sums to one."""
    head = GaussianHead(5, 4, 3, 20, torch.Generator().manual_seed(0)).eval()
    x = torch.randn(6, 5)
    mean, rho = head.encode(x).chunk(2, 1)
    one = [head.classify(mean + nn.functional.softplus(rho) * e).softmax(1) for e in head.noise]
    torch.testing.assert_close(head(x).softmax(1), torch.stack(one).mean(0))
    torch.testing.assert_close(head(x), torch.stack(one).mean(0).log())
    head.train()
    torch.testing.assert_close(head(x), head.classify(mean))
    few = GaussianHead(5, 4, 3, 0, torch.Generator().manual_seed(0)).eval()
    torch.testing.assert_close(few(x), head(x))


def test_the_new_head_is_seeded_by_the_network():
    nets = [build("tests.toy:Net", seed=s) for s in (0, 0, 1)]
    before = torch.get_rng_state()
    a, b, c = (Weights.of(with_gaussian_head(n, 0, 20)).vector for n in nets)
    assert torch.equal(before, torch.get_rng_state())
    assert torch.equal(a, b)
    assert not torch.equal(a[-200:], c[-200:])
    bound = 1 / sqrt(16)
    encode = with_gaussian_head(nets[0], 0, 20).get_parameter("head.encode.weight")
    assert encode.abs().max() <= bound
    assert encode.std().item() == pytest.approx(bound / sqrt(3), rel=0.1)


def test_the_network_is_changed_once_and_the_given_one_never():
    net = build("tests.toy:Net")
    names = set(net.state_dict())
    once = with_gaussian_head(net, 7, 20)
    assert with_gaussian_head(once, 7, 20) is once
    assert set(net.state_dict()) == names
    assert anatomy(once).features == "head.classify:in"
    assert anatomy(once).taps == anatomy(net).taps
    assert once.get_parameter("head.encode.weight").shape == (14, 16)
    assert "head.noise" not in once.state_dict()


def test_priors_stay_at_home_and_learn():
    heard = stacked.requests("fedsr", 2)
    [prior] = [p for p in heard[0].job.parts if isinstance(p, Prior)]
    assert prior.learned["mean"].abs().sum() > 0
    assert not toy.final(compose("fedsr"), 2).state.notes


@pytest.mark.parametrize(("spec", "names"), [("fedsr", {"Norm", "Prior"}), ("fedl2r", {"Norm"})])
def test_its_losses_are_there(spec, names):
    losses = toy.final(compose(spec), 1).replies[0].losses
    assert names <= losses.keys()
    assert all(losses[k] > 1e-4 for k in names)


@pytest.mark.parametrize("spec", ["fedsr", "fedcmi(size=5)", "fedl2r"])
def test_runs_under_vmap(spec):
    stacked.check(spec)


def test_a_predictor_is_made_of_what_was_sent():
    run = toy.run(compose("fedsr"))
    assert isinstance(run, Run)
    *_, last = toy.history(run)
    x = run.federation.targets[0].examples.x
    net = load(run.model, last.state.model).eval()
    torch.testing.assert_close(run.method.predictor(last.state, run.model).eval()(x), net(x))
    torch.testing.assert_close(net(x).exp().sum(1), torch.ones(len(x)))
