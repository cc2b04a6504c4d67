"""Models trained apart, by hand; which examples are embedded."""

from dataclasses import replace

import pytest
import torch

from feddg.benchmark.locals import LOCALS, write_locals
from feddg.catalogue import compose
from feddg.data.domain import Domain, Federation, Site
from feddg.errors import ConfigError
from feddg.packets import Reply, State
from feddg.report.figures import features
from feddg.report.figures.features import clouds, independent, sampled
from feddg.weights import Layout, Weights
from tests.report.stored import stored
from tests.toy import collection

LAYOUT = Layout(("conv.weight", "conv.bias", "head.weight"), ((1, 2), (1,), (1, 1)), 3)


def kept(root, seed, method="ind-average", **sites):
    """A run whose sites' models are these four numbers."""
    run = stored(method, seed=seed, accuracies=(0.5, 0.5), folder=root)
    run.folder.mkdir(parents=True)
    replies = {
        name: Reply(site=name, model=Weights(torch.tensor(v), LAYOUT)) for name, v in sites.items()
    }
    merged = State(model=next(iter(replies.values())).model)
    write_locals(run.folder / LOCALS, compose("fedavg"), replies, merged)
    return replace(run, folder=run.folder)


def test_distances_within_and_between_domains_by_hand(tmp_path):
    """conv of seed 0: a (0,0,0), b (0,0,6); of seed 1: a (3,4,0), b (0,0,10).

    Within: a 5, b 4, mean 4.5, deviation √(1/2). Between, of different seeds: a0 b1 10,
    b0 a1 √(9+16+36) = 7.81. a0 b0 (6) share their start and do not count.
    """
    runs = [
        kept(tmp_path, 0, a=(0.0, 0, 0, 1), b=(0.0, 0, 6, 1)),
        kept(tmp_path, 1, a=(3.0, 4, 0, 1), b=(0.0, 0, 10, 1)),
    ]
    chart, *planes = independent(runs)
    within, between = chart.series
    assert within.x == ("conv", "head")
    assert within.y == pytest.approx((4.5, 0))
    assert within.error == pytest.approx((0.5**0.5, 0))
    assert between.y == pytest.approx(((10 + 61**0.5) / 2, 0))
    assert [p.title.rpartition(" ")[2] for p in planes] == ["conv", "head"]
    assert [(s.name, len(s.x)) for s in planes[0].series] == [("a", 2), ("b", 2)]
    assert planes[0].series[0].text == ("a, seed 0", "a, seed 1")


def test_models_that_heard_of_each_other_are_not_taken(tmp_path):
    runs = [kept(tmp_path, s, "fedavg", a=(0.0, 0, 0, 1), b=(1.0, 0, 0, 1)) for s in (0, 1)]
    with pytest.raises(ConfigError, match="trained without each other"):
        independent(runs)


def test_equally_many_examples_of_every_domain(monkeypatch):
    """Of 20 points in all and 4 domains five each; sources show what they hold out."""
    monkeypatch.setattr(features, "POINTS", 20)
    data = collection()
    sites = [Site.of(d.split(0.5, 0)) for d in data.domains[:3]]
    few = Domain("few", data.domains[3].examples.take(torch.arange(3)))
    found = sampled(Federation(tuple(sites), (few,), data), 0)
    assert [len(v) for v in found.values()] == [5, 5, 5, 3]
    held = sites[0].val
    assert held is not None
    rows = held.x.tolist()
    assert all(row in rows for row in found[sites[0].name].x.tolist())


def test_clouds_by_either_part_of_the_key():
    points = {("m0", "3"): [(0.0, 1.0)], ("m0", "4"): [(2.0, 2.0)], ("m15", "3"): [(5.0, 5.0)]}
    by_domain, by_class = clouds(points, ["m0", "m15", "m30"], 0), clouds(points, ["3", "4"], 1)
    assert [(s.name, s.x) for s in by_domain] == [("m0", (0.0, 2.0)), ("m15", (5.0,))]
    assert [(s.name, s.x) for s in by_class] == [("3", (0.0, 5.0)), ("4", (2.0,))]
    assert by_domain[0].text == ("m0, 3", "m0, 4")
