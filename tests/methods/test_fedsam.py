import pytest
import torch

from feddg.catalogue import compose
from feddg.errors import ConfigError
from feddg.local import Outcome
from feddg.parts.terms import SAM
from feddg.training import func_grad, tape_grad
from tests import toy
from tests.methods import quadratic, stacked

ONE_STEP = toy.steps(toy.RECIPE, steps=1)


def test_reference_by_hand():
    """One site, t = 8, rho = 1, two steps at rate 1/4 from 0.

    g = -16: look at -1, where the gradient is -18: w = 18/4 = 9/2.
    g = -7: look at 7/2, where it is -9: w = 9/2 + 9/4 = 27/4. Without: 0 -> 4 -> 6.
    """
    one = {"a": (1, 8.0)}
    assert quadratic.weights(quadratic.history("fedsam(rho=1)", 1, sites=one)) == [6.75]
    assert quadratic.weights(quadratic.history("fedsam(rho=0)", 1, sites=one)) == [6.0]


@pytest.mark.parametrize("grad", [tape_grad, func_grad])
def test_reference_the_norm_is_of_all_parameters_at_once(grad):
    """Loss ||theta||^2 / 2 at (3; 4): g = theta of norm 5, so rho = 5 looks at 2 theta = (6; 8).

    The outcome is the first evaluation's.
    """

    def loss(theta, /, *, batch=None, change=None):
        value = sum(x.square().sum() for x in theta.values()) / 2
        return value, Outcome(value.detach(), torch.zeros(1), torch.zeros(1))

    theta = {"model": torch.tensor([3.0]), "own": torch.tensor([[4.0]])}
    g, outcome = SAM(5.0)(loss, theta, grad, {})
    assert g["model"].item() == pytest.approx(6.0)
    assert g["own"].item() == pytest.approx(8.0)
    assert outcome.buffers == 12.5


def test_no_gradient_no_perturbation():
    done = quadratic.history("fedsam(rho=1)", 1, sites={"a": (1, 0.0)})
    assert quadratic.weights(done) == [0.0]


def test_only_the_first_forward_updates_batch_norm():
    """One step: statistics as FedAvg's, bit for bit, though the step is another."""
    sam, plain = (toy.final(compose(m), 1, recipe=ONE_STEP) for m in ("fedsam(rho=0.5)", "fedavg"))
    for mine, theirs in zip(sam.replies, plain.replies, strict=True):
        start = toy.run(compose("fedavg")).model.state_dict()["early.1.running_mean"]
        assert not torch.equal(theirs.model.views()["early.1.running_mean"], start)
        assert torch.equal(mine.model.buffers, theirs.model.buffers)
        assert not torch.allclose(mine.model.parameters, theirs.model.parameters)


def test_a_composition_has_one_kind_of_step():
    with pytest.raises(ConfigError, match="how a local update is made"):
        compose("fedsam+harmofl")


def test_stacked():
    stacked.check("fedsam")
