"""One vector and its layout: every name finds its own numbers again."""

import pytest
import torch
from torch import nn

from feddg.weights import Layout, Weights, load, rows
from tests import toy


def small():
    return nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))


def test_parameters_first_then_floating_buffers_and_no_counters():
    layout = Layout.of(small())
    assert layout.names[:4] == ("0.weight", "0.bias", "1.weight", "1.bias")
    assert layout.names[4:] == ("1.running_mean", "1.running_var")
    assert layout.shapes == ((3, 2), (3,), (3,), (3,), (3,), (3,))
    assert (layout.learned, layout.size, layout.cut) == (4, 21, 15)
    assert layout.offsets == [0, 6, 9, 12, 15, 18]


def test_frozen_parameters_travel_with_the_buffers():
    model = small()
    model[0].weight.requires_grad_(False)
    layout = Layout.of(model)
    assert layout.names[:3] == ("0.bias", "1.weight", "1.bias")
    assert layout.names[3] == "0.weight"
    assert layout.cut == 9


def test_tied_parameters_and_buffers_that_are_not_stored_count_once_or_not():
    model = small()
    model.register_buffer("scratch", torch.zeros(5), persistent=False)
    model.add_module("again", model[0])
    assert Layout.of(model).size == 21


def test_values_and_back():
    model = small()
    weights = Weights.of(model)
    for name, value in weights.views().items():
        assert torch.equal(value, model.state_dict()[name])
    other = load(small(), weights)
    assert all(torch.equal(v, model.state_dict()[k]) for k, v in other.state_dict().items())


def test_load_makes_a_copy():
    model = small()
    weights = Weights.of(model)
    fresh = load(model, Weights(torch.zeros_like(weights.vector), weights.layout))
    assert torch.equal(Weights.of(model).vector, weights.vector)
    assert not Weights.of(fresh).vector.any()


class Named(dict):
    """Its `copy`, which is dict's, would make it a plain one."""


def test_load_keeps_the_kind_of_a_dict_and_copies_it():
    model, own = small(), Named(width=3)
    vars(model)["options"] = own
    fresh = load(model, Weights.of(model))
    theirs = vars(fresh)["options"]
    assert type(theirs) is Named
    theirs["width"] = 4
    assert own == {"width": 3}


def test_parameters_and_buffers_part_the_vector():
    weights = Weights.of(small())
    assert torch.equal(torch.cat([weights.parameters, weights.buffers]), weights.vector)
    assert weights.layout.parameters().names == weights.layout.names[:4]
    assert weights.layout.buffers().names == weights.layout.names[4:]


def test_select_and_join():
    weights = Weights.of(toy.Net())
    head = weights.select(lambda k: k.startswith("head"))
    rest = weights.select(lambda k: not k.startswith("head"))
    assert head.layout.names == ("head.weight", "head.bias")
    assert torch.equal(head.joined(rest, weights.layout).vector, weights.vector)
    assert head.layout.learned == 2
    nothing = weights.select(lambda k: False)
    assert nothing.vector.numel() == 0


def test_layers_are_slices_of_the_parameters():
    layout = Layout.of(toy.Net())
    vector = torch.arange(float(layout.size))
    seen = [vector[s] for s in layout.layers.values()]
    assert torch.equal(torch.cat(seen), vector[: layout.cut])
    assert list(layout.layers) == ["early.0", "early.1", "late.0", "dense.1", "head"]
    views = layout.views(vector)
    both = torch.cat([views["head.weight"].reshape(-1), views["head.bias"]])
    assert torch.equal(vector[layout.layers["head"]], both)


def test_take_is_by_name():
    whole = Layout.of(small())
    vector = torch.arange(21.0)
    part = whole.select(lambda k: k in ("0.bias", "1.running_var"))
    assert part.take(whole, vector).tolist() == [6, 7, 8, 18, 19, 20]
    assert whole.take(whole, vector) is vector


def test_gradients_flow_through_views():
    weights = Weights.of(small())
    vector = weights.vector.clone().requires_grad_()
    weights.layout.views(vector)["0.bias"].sum().backward()
    assert vector.grad is not None
    assert vector.grad.nonzero().flatten().tolist() == [6, 7, 8]


def test_rows():
    weights = Weights.of(small())
    assert rows([weights, weights]).shape == (2, 21)


def test_a_model_without_parameters():
    assert Weights.of(nn.Flatten()).vector.shape == (0,)
    assert Layout.of(nn.Flatten()).layers == {}


@pytest.mark.parametrize("norm", [True, False])
def test_the_toy_network_round_trips(norm):
    weights = Weights.of(toy.Net(norm))
    back = Weights.of(load(toy.Net(norm), weights))
    assert torch.equal(back.vector, weights.vector)
