import gc

import pytest
import torch

from feddg.data.domain import Examples
from feddg.errors import ConfigError
from feddg.parts import features
from feddg.parts.features import (
    Remembered,
    digest,
    digest_inputs,
    digest_once,
    known_taps,
    tap_features,
    weight_of,
)
from feddg.seeds import generator
from feddg.weights import Weights
from tests import toy


def examples(n=5):
    return Examples(torch.randn(n, 1, 12, 12), torch.zeros(n, dtype=torch.long))


def test_features_are_those_of_eval_mode_in_any_batches():
    net, x = toy.Net().train(), examples().x
    found = tap_features(net, x, (), ("early", "head:in"), batch=2)
    assert net.training
    net.eval()
    with torch.no_grad():
        early = net.early(x)
        torch.testing.assert_close(found["early"], early)
        torch.testing.assert_close(found["head:in"], net.dense(net.late(early)))


def test_a_layer_that_is_not_there_is_named():
    with pytest.raises(ConfigError, match="unknown layer of Net 'erly'; did you mean 'early'"):
        known_taps(toy.Net(), ["erly"])


def test_computed_once_for_the_same_examples_and_key():
    store, data, calls = Remembered(), examples(), []

    def compute():
        calls.append(1)
        return {"t": torch.zeros(4)}

    for _ in range(3):
        store.get(data, "a", compute)
    store.get(data, "b", compute)
    store.get(examples(), "a", compute)
    assert len(calls) == 3


def test_bounded_and_forgetful_of_dead_examples():
    store, data = Remembered(limit=100), examples()
    for key in "abc":
        store.get(data, key, lambda: {"t": torch.zeros(10)})  # 40 bytes each
    assert [k for _, k in store.kept] == ["b", "c"]
    store.get(data, "b", dict)
    store.get(data, "d", lambda: {"t": torch.zeros(10)})
    assert [k for _, k in store.kept] == ["b", "d"]
    del data
    gc.collect()
    other = examples()
    store.get(other, "e", lambda: {"t": torch.zeros(10)})
    assert [k for _, k in store.kept] == ["e"]


def test_sizes_and_digests():
    assert weight_of({"a": torch.zeros(3), "b": torch.zeros(2).double()}) == 28
    a = torch.tensor([1.0, 2.0])
    assert digest(a) == digest(a.clone()) != digest(a + 1e-6)


def test_features_by_other_weights_than_the_modules_own():
    """As of a copy into which they are loaded; the module stays as it is."""
    net, other, x = toy.Net(), toy.Net(), examples().x
    for p in other.parameters():
        torch.nn.init.normal_(p)
    before = Weights.of(net).vector
    found = tap_features(net, x, (), ("early",), Weights.of(other).views())
    torch.testing.assert_close(found["early"], tap_features(other, x, (), ("early",))["early"])
    assert torch.equal(Weights.of(net).vector, before)


def test_a_tensors_digest_is_taken_once(monkeypatch):
    taken = []

    def counted(vector):
        taken.append(vector)
        return digest(vector)

    monkeypatch.setattr(features, "digest", counted)
    one, same = torch.ones(3), torch.ones(3)
    assert digest_once(one) == digest_once(one) == digest(one)
    assert len(taken) == 1
    assert digest_once(same) == digest_once(one)  # another tensor of the same bytes
    assert len(taken) == 2


def test_digest_of_inputs_is_that_of_all_of_them():
    data = Examples(torch.randn(200, 3), torch.arange(200))
    some = data.take(torch.randperm(200, generator=generator("rows"))[:130])
    assert digest_inputs(data) == digest(data.x)
    assert digest_inputs(some) == digest(some.x) != digest(data.x)
