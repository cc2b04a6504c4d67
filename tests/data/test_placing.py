"""Stores that fit a device and stores that do not; `meta` stands for a device with no memory."""

import pytest
import torch

from feddg.catalogue import compose
from feddg.data import placing
from feddg.data.domain import Examples
from feddg.engines import lanes
from feddg.engines.lanes import Pool
from feddg.engines.stacked import Stacked
from tests import toy

META = torch.device("meta")


def examples(n=10):
    x = torch.arange(n * 12, dtype=torch.uint8).view(n, 3, 2, 2)
    return Examples(x, torch.arange(n), torch.arange(n) % 2)


@pytest.fixture
def limit(monkeypatch):
    def of(free):
        monkeypatch.setattr(placing, "room", lambda device: free)

    return of


def test_what_fits_goes_there_and_is_shared(limit):
    """120 bytes are half of 240."""
    limit(240)
    whole = examples()
    part = whole.take(torch.tensor([3, 1]))
    there, some = whole.to(META), part.to(META)
    assert {t.device for t in (there.store, there.y, some.store, some.y, some.rows)} == {META}
    assert there.store is some.store
    assert whole.to(META) is there


def test_what_does_not_fit_stays_and_batches_go(limit):
    limit(239)
    whole = examples()
    there = whole.to(META)
    assert there.store is whole.store
    assert there.y.device == there.groups.device == META
    assert there.inputs(torch.tensor([3, 1])).device == META
    some = there.take(torch.tensor([3, 1, 2]))
    assert some.rows.device == some.store.device == torch.device("cpu")
    assert some.y.device == META
    assert [tuple(b.shape) for b in some.batches(2)] == [(2, 3, 2, 2), (1, 3, 2, 2)]
    assert {b.device for e in (some, there) for b in e.batches(4)} == {META}
    assert there.to(META) is there


def test_batches_copy_their_own_rows_only(monkeypatch):
    whole = examples()
    some = whole.take(torch.tensor([8, 0, 4]))
    assert some.store is whole.store
    assert torch.equal(some.inputs(torch.tensor([2, 0])), whole.store[[4, 8]])
    assert torch.equal(torch.cat(list(some.batches(2))), whole.store[[8, 0, 4]])
    assert next(whole.batches(4)).data_ptr() == whole.store.data_ptr()
    seen = []
    plain = torch.Tensor.index_select

    def noted(store, dim, rows):
        seen.append(rows.tolist())
        return plain(store, dim, rows)

    monkeypatch.setattr(torch.Tensor, "index_select", noted)
    some.inputs(torch.tensor([1]))
    assert seen == [[0]]


@pytest.mark.parametrize("bytes_at_once", [1, 1 << 28])
def test_training_from_the_host_is_the_same(bytes_at_once, monkeypatch):
    """The stacked engine, whose pool finds the inputs elsewhere."""

    def trained():
        run = toy.run(compose("fedavg"), 2)
        *_, last = toy.history(run, Stacked(stacking=True))
        return last.state.model.vector

    plain = trained()
    monkeypatch.setattr(lanes, "BROUGHT", bytes_at_once)
    monkeypatch.setattr(Pool, "of", staticmethod(lambda members, kept: Pool(None, [0] * 99)))
    assert torch.equal(trained(), plain)
