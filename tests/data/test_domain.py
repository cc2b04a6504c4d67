"""Domains in their roles."""

from dataclasses import replace

import pytest
import torch

from feddg.data.domain import Collection, Domain, Examples, federation, official_splits
from feddg.errors import ConfigError, DataError
from feddg.tasks import Classification


def collection(**splits):
    domains = []
    for name, parts in splits.items():
        n = sum(parts.values())
        rows = torch.arange(n).split(list(parts.values()))
        examples = Examples(torch.zeros(n, 2), torch.arange(n) % 2)
        domains.append(Domain(name, examples, dict(zip(parts, rows, strict=True))))
    return Collection("wild", tuple(domains), Classification(("a", "b")))


def test_official_splits_as_wilds_has_them():
    """Hospitals 0 and 3 train (3 keeps rows to validate in-distribution), 1 validates, 2 tests."""
    fed = official_splits(
        collection(h0={"train": 6}, h1={"val": 4}, h2={"test": 8}, h3={"train": 4, "val": 2})
    )
    assert [(s.name, len(s.train)) for s in fed.sites] == [("h0", 6), ("h3", 4)]
    assert fed.sites[0].val is None
    assert fed.sites[1].val is not None
    assert len(fed.sites[1].val) == 2
    assert [d.name for d in fed.validation] == ["h1"]
    assert [d.name for d in fed.targets] == ["h2"]


def test_no_official_split_is_said():
    with pytest.raises(DataError, match="no official split"):
        official_splits(collection(h0={"train": 6}, h1={"train": 4}))


def test_late_joiners_are_sources():
    data = collection(a={"train": 4}, b={"train": 4}, c={"train": 4})
    fed = federation(data, ["a", "b"], ["c"], joins={"b": 3})
    assert [s.joins for s in fed.sites] == [0, 3]
    with pytest.raises(ConfigError, match="site of wild 'c'"):
        federation(data, ["a", "b"], ["c"], joins={"c": 1})
    with pytest.raises(DataError, match="'a' cannot join in round -1"):
        federation(data, ["a", "b"], ["c"], joins={"a": -1})


@pytest.mark.parametrize("name", ["b", "x/y", "x#", ""])
def test_names_of_sites(name):
    fed = federation(collection(a={"train": 4}, b={"train": 4}), ["a", "b"], [])
    sites = (replace(fed.sites[0], name=name), fed.sites[1])
    with pytest.raises(DataError, match=r"two sites are called 'b'|cannot name a site"):
        replace(fed, sites=sites)


def test_parts_of_a_split_share_one_store():
    """Nothing is copied before it is asked for: a mapped tensor stays one mapping."""
    whole = Examples(torch.arange(20.0).view(10, 2), torch.arange(10))
    part = whole.take(torch.tensor([7, 1, 4])).take(torch.tensor([2, 0]))
    assert part.store is whole.store
    assert part.x.tolist() == [[8.0, 9.0], [14.0, 15.0]]
    assert part.inputs(torch.tensor([1])).tolist() == [[14.0, 15.0]]
    assert torch.equal(torch.cat(list(part.batches(1))), part.x)
    assert part.y.tolist() == [4, 7]
