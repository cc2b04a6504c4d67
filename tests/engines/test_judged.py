"""Small networks judged together score as they do one by one."""

import warnings
from dataclasses import replace

import pytest
import torch

from feddg.engines.judged import judge, kind
from feddg.engines.stacked import SlowPath, Stacked
from feddg.local import Evaluation, evaluate
from feddg.models import build
from feddg.tasks import Classification
from tests import toy


def requests(count=3, n=70, **options):
    task = Classification(("a", "b", "c"))
    data = [toy.images(i, n) for i in range(count)]
    nets = [build("small-cnn", i, outputs=3, channels=1, **options) for i in range(count)]
    return [Evaluation(net, d, task) for net, d in zip(nets, data, strict=True)]


def test_scores_are_those_of_one_by_one():
    asked = requests()
    for ours, theirs in zip(judge(asked), map(evaluate, asked), strict=True):
        assert ours == pytest.approx(theirs, rel=1e-5)
    assert len({s["loss"] for s in judge(asked)}) == 3


def test_kinds_differ_by_network_and_by_data():
    one, other = requests(2)
    assert kind(one) == kind(other)
    assert kind(one) != kind(requests(1, width=8)[0])
    assert kind(one) != kind(requests(1, n=30)[0])


def test_an_engine_answers_in_order_whatever_the_kinds():
    asked = [*requests(2), *requests(2, width=8), *requests(1, n=30)]
    mixed = [asked[i] for i in (0, 2, 4, 1, 3)]
    for ours, theirs in zip(Stacked().answer(mixed), map(evaluate, mixed), strict=True):
        assert ours == pytest.approx(theirs, rel=1e-5)


def test_large_networks_and_large_inputs_are_judged_one_by_one(monkeypatch):
    """They fill a device by themselves, and many of them at once would not fit."""
    judged = []

    def spied(asked):
        judged.append(len(asked))
        return judge(asked)

    monkeypatch.setattr("feddg.engines.stacked.judge", spied)
    small, wide = requests(2, n=9, width=4), requests(2, n=9, width=8)
    size = sum(p.numel() for p in small[0].predictor.parameters())
    monkeypatch.setattr("feddg.engines.stacked.SMALL_MODEL", size)
    engine = Stacked(stacking=True)
    engine.answer(wide)
    assert judged == []
    engine.answer(small)
    assert judged == [2]
    monkeypatch.setattr("feddg.engines.stacked.SMALL_INPUT", 12 * 12 - 1)
    engine.answer(small)
    assert judged == [2]


class Fussy(torch.nn.Module):
    """It looks at its numbers, which vmap forbids."""

    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(3))

    def forward(self, x):
        flat = x.flatten(1)[:, :3]
        return flat * self.scale if flat.sum() > 0 else -flat


def test_what_cannot_be_stacked_is_judged_alone_and_says_so_once():
    asked = [replace(r, predictor=Fussy()) for r in requests(2)]
    engine = Stacked()
    with pytest.warns(SlowPath, match="Fussy is judged site by site"):
        found = engine.answer(asked)
    assert found == [evaluate(r) for r in asked]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        engine.answer(asked)
