"""A network's weights in the form of products: the same numbers, the same slopes."""

import torch
from torch import nn
from torch.func import functional_call

from feddg.engines.laid import Laid, products_weights
from feddg.weights import Weights


def network():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.Flatten(), nn.Linear(27, 4)
    )


def laid(net, dtype=torch.float32):
    layout = Weights.of(net).layout.parameters()
    return Laid(layout, products_weights(net), dtype, torch.float32, torch.device("cpu"))


def test_the_weights_of_products_are_named():
    assert products_weights(network()) == {"0.weight", "4.weight"}
    assert products_weights(nn.Linear(2, 3)) == {"weight"}


def test_the_same_numbers_in_another_form():
    net = network()
    vector = Weights.of(net).parameters
    views, plain = laid(net).views(vector), Weights.of(net).layout.parameters().views(vector)
    assert views.keys() == plain.keys()
    for name, value in plain.items():
        assert views[name].equal(value), name
    assert views["0.weight"].is_contiguous(memory_format=torch.channels_last)


def test_only_products_change_their_type():
    net = network()
    views = laid(net, torch.bfloat16).views(Weights.of(net).parameters)
    low = {k for k, v in views.items() if v.dtype == torch.bfloat16}
    assert low == {"0.weight", "4.weight"}


def test_the_same_slopes():
    net = network()
    x, layout = torch.randn(5, 2, 5, 5), Weights.of(net).layout.parameters()
    found = []
    for views in (layout.views, laid(net).views):
        vector = Weights.of(net).parameters.clone().requires_grad_()
        out = functional_call(net, views(vector), (x,))
        found.append(torch.autograd.grad(out.square().sum(), vector)[0])
    assert found[0].any()
    torch.testing.assert_close(*found)
