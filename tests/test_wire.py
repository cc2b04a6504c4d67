"""What is sent comes back: kinds, shapes, types and bits."""

from math import prod

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from feddg import wire
from feddg.packets import Inbox, Reply, State
from feddg.weights import Weights

DTYPES = (
    *(torch.float32, torch.float64, torch.float16),
    *(torch.int64, torch.int32, torch.uint8, torch.bool),
)
keys = st.text("abcxyz.:_-0", min_size=1, max_size=5)
tensors = st.builds(
    lambda shape, dtype: torch.arange(float(prod(shape))).view(shape).to(dtype),
    st.lists(st.integers(0, 3), max_size=3),
    st.sampled_from(DTYPES),
)
leaves = tensors | st.floats(allow_nan=False) | st.integers(-(2**62), 2**62)
trees = st.recursive(
    st.dictionaries(keys, leaves, max_size=3),
    lambda t: st.dictionaries(keys, leaves | t, max_size=3),
    max_leaves=8,
)


def same(a, b):
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, torch.Tensor):
        return a.dtype == b.dtype and a.shape == b.shape and torch.equal(a, b)
    return type(a) is type(b) and a == b


@given(trees)
def test_any_tree_comes_back(tree):
    assert same(wire.unpack(wire.pack(tree)), tree)


def test_flat_names():
    tree = {"a": torch.zeros(2), "b": {"n": 3, "x": 0.5}, "c": {}}
    flat = wire.flatten(tree)
    assert list(flat) == ["a", "b/n#", "b/x#", "c/"]
    assert flat["b/n#"].dtype == torch.int64
    assert flat["b/x#"].dtype == torch.float64
    assert same(wire.unflatten(flat), tree)


@pytest.mark.parametrize("key", ["a/b", "a#"])
def test_keys_that_the_names_could_not_tell_apart(key):
    with pytest.raises(ValueError, match="cannot be a key"):
        wire.flatten({key: 1})


def test_what_cannot_cross():
    with pytest.raises(TypeError, match="x/y: a str cannot cross the wire"):
        wire.flatten({"x": {"y": "text"}})


def test_shared_and_sliced_tensors_are_sent_as_they_look():
    whole = torch.arange(6.0).view(2, 3)
    back = wire.unpack(wire.pack({"all": whole, "part": whole[:, 1], "turned": whole.T}))
    assert torch.equal(back["part"], torch.tensor([1.0, 4.0]))
    assert torch.equal(back["turned"], whole.T)


def test_gradients_do_not_cross():
    assert not wire.unpack(wire.pack({"x": torch.ones(1, requires_grad=True)}))["x"].requires_grad


MODEL = Weights.of(nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2)))
PACKETS = [
    State(model=MODEL, notes={"a": torch.ones(2)}, trace={"weights": {"x": 0.5}, "list": [1, 2]}),
    Inbox(model=MODEL, round=7, notes={"c": {"d": 1}}),
    Reply(model=MODEL, site="north", weight=3.5, steps=4, losses={"total": 0.25}),
]


@pytest.mark.parametrize("packet", PACKETS, ids=lambda p: type(p).__name__)
def test_packets_come_back(packet):
    back = wire.unpack_packet(wire.pack_packet(packet))
    assert type(back) is type(packet)
    assert torch.equal(back.model.vector, packet.model.vector)
    assert back.model.layout == packet.model.layout
    assert same(dict(back.notes), dict(packet.notes))
    for name in wire.HEADERS[type(packet).__name__]:
        assert getattr(back, name) == getattr(packet, name)


def test_the_same_packet_is_the_same_bytes():
    assert wire.pack_packet(PACKETS[0]) == wire.pack_packet(PACKETS[0])
