"""Pickles are read by their grammar: values come out as pickle's own, and nothing is called."""

import collections
import gzip
import os
import pickle

import numpy as np
import pytest

from feddg.data import plain_pickle
from feddg.errors import DataError

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)
SAID: list[str] = []


def called(text):
    SAID.append(text)
    return text


class Calls:
    def __reduce__(self):
        return called, ("it ran",)


class Runs:
    def __reduce__(self):
        return os.system, ("exit 3",)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_plain_values_and_arrays(protocol, tmp_path):
    x = np.arange(24.0).reshape(2, 3, 4)
    y = np.array([3, -1, 300], ">i2")
    plain = ["text", 3.5, None, True, 2**40, b"bytes", {"a": (1, 2), "b": []}]
    value = [[x, y], (np.asfortranarray(x), np.float32(2.5)), np.array(["a", "bc"]), plain, x]
    path = tmp_path / "a.pkl.gz"
    path.write_bytes(gzip.compress(pickle.dumps(value, protocol)))
    [[one, two], (turned, number), texts, others, again] = plain_pickle.read(path)
    assert np.array_equal(one, x)
    assert np.array_equal(again, x), "the second mention of an array is from the memo"
    assert np.array_equal(turned, x)
    assert two.tolist() == [3, -1, 300]
    assert (number, texts.tolist(), others) == (2.5, ["a", "bc"], plain)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_arrays_of_texts_are_lists(protocol, tmp_path):
    """As FedBN's lists of paths are."""
    path = tmp_path / "a.pkl"
    path.write_bytes(pickle.dumps(np.array(["x/1.jpg", "y"], dtype=object), protocol))
    assert plain_pickle.read(path) == ["x/1.jpg", "y"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("thing", [Calls(), Runs(), [collections.OrderedDict()], print])
def test_a_pickle_that_would_call_something_is_refused(thing, protocol, tmp_path):
    path = tmp_path / "bad.pkl"
    path.write_bytes(pickle.dumps(thing, protocol))
    with pytest.raises(DataError, match=r"bad\.pkl is a pickle that would call"):
        plain_pickle.read(path)
    assert SAID == []


@pytest.mark.parametrize("keep", [1, 30, 120])
def test_a_pickle_that_is_cut_short(keep, tmp_path):
    path = tmp_path / "cut.pkl"
    path.write_bytes(pickle.dumps([np.arange(100)], 4)[:keep])
    with pytest.raises(DataError, match=r"cut\.pkl is "):
        plain_pickle.read(path)


def test_what_is_no_gzip(tmp_path):
    (tmp_path / "a.pkl.gz").write_bytes(b"plain")
    with pytest.raises(DataError, match=r"a\.pkl\.gz is no readable pickle"):
        plain_pickle.read(tmp_path / "a.pkl.gz")
