import torch
from torch import nn

from feddg.models.norms import HBIN
from feddg.parts.moments import mixed_moments
from feddg.weights import Weights


def network(mean, var, layer=nn.BatchNorm1d):
    model = nn.Sequential(nn.Linear(1, 1), layer(1))
    model[1].running_mean.fill_(mean)  # type: ignore[operator]
    model[1].running_var.fill_(var)  # type: ignore[operator]
    return model


def test_reference_moments_of_a_mixture():
    """Shares 1/4 and 3/4, means 0 and 4, variances 1 and 2: the mean is 3,

    the second moments are 1 and 18, their mean 13.75, less 9: the variance is 4.75, not 1.75.
    """
    for layer in (nn.BatchNorm1d, HBIN):
        models = [network(0, 1, layer), network(4, 2, layer)]
        members = [Weights.of(m) for m in models]
        found = mixed_moments(models[0], members[0], members, [0.25, 0.75]).views()
        assert found["1.running_mean"].item() == 3
        assert found["1.running_var"].item() == 4.75
        torch.testing.assert_close(found["0.weight"], members[0].views()["0.weight"])


def test_equal_statistics_stay_and_networks_without_any_too():
    same = [Weights.of(network(2, 3))] * 2
    found = mixed_moments(network(2, 3), same[0], same, [0.5, 0.5])
    torch.testing.assert_close(found.vector, same[0].vector)
    bare = Weights.of(nn.Linear(2, 2))
    assert torch.equal(mixed_moments(nn.Linear(2, 2), bare, [bare], [1.0]).vector, bare.vector)
