"""Replies and their matrix in a file beyond the budget: the same bits, bounded memory."""

import gc
import sys
import tempfile
import threading
import warnings
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from feddg import shelf
from feddg.catalogue import compose
from feddg.data.domain import Site
from feddg.engines.inprocess import InProcess
from feddg.engines.loop import first_state, posted, rounds
from feddg.engines.workers import Workers
from feddg.errors import ConfigError
from feddg.merges import Gathered, WeightedMean
from feddg.packets import Reply
from feddg.shelf import Shelf, matrix
from tests import toy


@pytest.fixture(autouse=True)
def mapped(monkeypatch):
    """Where files are in memory."""
    places, plain = [], np.memmap

    def noted(*args, **options):
        own = plain(*args, **options)
        places.append((own.ctypes.data, own.ctypes.data + own.nbytes))
        return own

    monkeypatch.setattr(np, "memmap", noted)
    MAPPED[:] = [places]


MAPPED: list[list[tuple[int, int]]] = []


def in_file(vector):
    return any(low <= vector.data_ptr() < high for low, high in MAPPED[0])


def many(method, sites):
    """So many sites of a dozen examples."""
    fed = toy.federation(share=0.0)
    data = fed.sites[0].train.take(torch.arange(12))
    own = tuple(Site(f"s{i}", data) for i in range(sites))
    recipe = toy.steps(toy.RECIPE, epochs=1)
    return toy.run(compose(method), rounds=2, federation=replace(fed, sites=own), recipe=recipe)


def test_what_fits_stays_and_the_rest_comes_back_from_the_file_as_it_was():
    rows = [torch.randn(10) for _ in range(5)]
    with Shelf(left=2 * 40) as place:
        kept = [place.placed(r) for r in rows]
    assert [in_file(k) for k in kept] == [False, False, True, True, True]
    assert all(map(torch.equal, kept, rows))
    kept[4].zero_()  # one's own copy
    assert not torch.equal(kept[3], torch.zeros(10))


def test_the_matrix_of_updates_beyond_the_budget_is_in_a_file(monkeypatch):
    monkeypatch.setattr(shelf, "BUDGET", 100)
    like = torch.zeros(1, dtype=torch.float64)
    assert in_file(matrix(2, 7, like))
    assert not in_file(matrix(2, 6, like))
    x = matrix(3, 7, like)
    x.copy_(torch.arange(21).view(3, 7))
    assert x.dtype == torch.float64
    assert x.sum() == 210


@pytest.mark.parametrize("engine", ["one", "workers"])
@pytest.mark.parametrize("method", ["fedavg", "ppdg", "csac", "fedmedian"])
def test_every_kind_of_merge_gives_the_same_bits_from_the_file(monkeypatch, method, engine):
    """Sums, the Gram matrix, layers, everything."""
    run = many(method, 6)
    [*_, [(_, memory)]] = rounds([run], InProcess())
    monkeypatch.setattr(shelf, "BUDGET", 3000)
    if engine == "one":
        [*_, [(_, filed)]] = rounds([run], InProcess())
    else:
        with Workers(runs=[run], count=2) as workers:
            [*_, [(_, filed)]] = rounds([run], workers)
    assert any(in_file(r.model.vector) for r in filed.replies)
    assert torch.equal(filed.state.model.vector, memory.state.model.vector)


def in_memory(size):
    """Tensors of this many numbers, or more, that are in memory, views aside."""
    found = {}
    for thing in gc.get_objects():
        if type(thing) is torch.Tensor and thing.numel() >= size and not in_file(thing):
            found[thing.untyped_storage().data_ptr()] = thing
    return len(found)


@pytest.mark.parametrize("sites", [8, 20])
def test_a_merge_of_sums_holds_as_many_replies_however_many_sites(monkeypatch, sites):
    """Three on the shelf, the old model and the sum: counted while the merge reads each reply."""
    run = many("fedavg", sites)
    post = posted(run, 0, first_state(run))
    size = len(post.inbox.model.vector)
    monkeypatch.setattr(shelf, "BUDGET", 3 * 4 * size)
    before = in_memory(size)
    [answers] = InProcess().exchange([post])
    replies = [r for r in answers if isinstance(r, Reply)]
    counts = []

    class Counted(list):
        def __iter__(self):
            for reply in super().__iter__():
                counts.append(in_memory(size) - before)
                yield reply

    got = Gathered(post.inbox.model, Counted(replies), torch.Generator())
    merged = WeightedMean()(got)
    assert len(counts) >= sites
    assert max(counts) <= 3 + 2
    plain = WeightedMean()(Gathered(post.inbox.model, replies, torch.Generator()))
    assert torch.equal(merged.step, plain.step)


def anonymous():
    """MiB that the system cannot drop."""
    text = Path("/proc/self/status").read_text()
    return float(text.split("RssAnon:")[1].split()[0]) / 1024


def grown(sites, method):
    """At the highest of a round."""
    shelf.BUDGET = 8 << 20
    run = many(method, sites)
    wide = nn.Sequential(nn.Flatten(), nn.Linear(144, 1500), nn.Linear(1500, 3))  # 0.85 MiB
    run = replace(run, model=wide, rounds=1)
    peak, over = [before := anonymous()], threading.Event()

    def watch():
        while not over.wait(0.003):
            peak.append(anonymous())

    watcher = threading.Thread(target=watch)
    watcher.start()
    list(rounds([run], InProcess()))
    over.set()
    watcher.join()
    return max(peak) - before


def in_a_child(work, *args):
    """Its memory begins anew."""
    context = get_context("fork")
    ours, theirs = context.Pipe()
    child = context.Process(target=lambda: theirs.send(work(*args)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # pytest-xdist has a thread of its own
        child.start()
    found = ours.recv() if ours.poll(60) else None
    child.join()
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="the numbers come from /proc")
@pytest.mark.parametrize("method", ["fedavg", "ppdg"])
def test_memory_does_not_grow_with_the_sites(method):
    """100 and 200 sites answer with 86 and 172 MiB, twice that with the matrix."""
    few, more = (in_a_child(grown, n, method) for n in (100, 200))
    assert more < 60
    assert more - few < 30


def test_a_full_disk_is_said_in_words(monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    with pytest.raises(ConfigError, match="TMPDIR"):
        Shelf(left=0).placed(torch.zeros(4))
