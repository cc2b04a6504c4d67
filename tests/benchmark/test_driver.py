"""Runs conducted together: recorded, selected, resumed."""

import re
import time
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import pytest
import torch

from feddg import checkpoint
from feddg.benchmark import driver
from feddg.benchmark.driver import Conducted, conduct, conducted, plainly, recorded, size, worst
from feddg.benchmark.experiment import Experiment
from feddg.benchmark.records import RunFolder, finished, read_records
from feddg.catalogue import compose
from feddg.engines import loop
from feddg.engines.compute import Compute
from feddg.engines.loop import Failure
from feddg.errors import ConfigError, RunsFailed, SiteFailure
from feddg.methods.median import FedMedian as Median
from feddg.recipe import Recipe
from tests import toy

HEART = Experiment(
    data="heart-disease", targets=("va",), model="mlp", rounds=3, recipe=Recipe(lr=0.05)
)


def vectors(run):
    return [k.state.model.vector for k in toy.history(run)]


def conducted_toy(selection="last", folder=None, rounds=3, **options):
    one = Conducted(toy.run(compose("fedavg"), rounds, **options), "toy", selection, folder)
    events = list(conducted([one], Compute(workers=1)))
    return one, events


def test_in_memory_it_is_the_loop():
    one, events = conducted_toy()
    state, record = one.chosen
    assert torch.equal(state.model.vector, vectors(one.run)[-1])
    assert [e.record["round"] for e in events] == [0, 1, 2]
    assert record is one.records[-1]


@pytest.mark.parametrize("selection", ["source-val", "oracle"])
def test_the_state_that_the_rule_prefers_is_kept(selection):
    """The last round is made bad, so that another is chosen; its very weights come back."""
    one, _ = conducted_toy(selection, rounds=5, recipe=toy.steps(toy.RECIPE, lr=0.6))
    prefix = {"source-val": "val/", "oracle": "test/"}[selection]
    means = [
        sum(v["accuracy"] for k, v in r["scores"].items() if k.startswith(prefix))
        for r in one.records
    ]
    best = means.index(max(means))
    state, record = one.chosen
    assert record["round"] == best
    assert torch.equal(state.model.vector, vectors(one.run)[best])


def test_several_runs_in_lockstep_are_each_as_alone(tmp_path):
    together = [HEART, replace(HEART, method="fedprox"), replace(HEART, rounds=2, seed=1)]
    events = list(conduct(together, tmp_path / "t", 1))
    assert len(events) == 8
    for one in together:
        list(conduct([one], tmp_path / "alone", 1))
        files = [tmp_path / d / one.key / "model" / "model.safetensors" for d in ("t", "alone")]
        assert files[0].read_bytes() == files[1].read_bytes()


def test_what_is_finished_is_left_alone(tmp_path, monkeypatch):
    list(conduct([HEART], tmp_path, 1))
    monkeypatch.setattr(Experiment, "prepared", None)
    assert list(conduct([HEART], tmp_path, 1)) == []


def test_all_is_checked_before_the_first_folder_is_made(tmp_path):
    good, bad = HEART, replace(HEART, targets=("nowhere",))
    with pytest.raises(ConfigError, match="nowhere"):
        list(conduct([good, bad], tmp_path, 1))
    assert not list(tmp_path.iterdir())


def test_left_between_two_rounds_it_goes_on_to_the_same_bytes(tmp_path, monkeypatch):
    """Closed after every round in turn; what is kept is the last whole round."""
    monkeypatch.setattr(driver, "SECONDS_BETWEEN_CHECKPOINTS", 3600.0)
    list(conduct([HEART], tmp_path / "whole", 1))
    for done in range(1, HEART.rounds):
        with closing(conduct([HEART], tmp_path / "cut", 1)) as events:
            next(events)
        folder = tmp_path / "cut" / HEART.key
        assert checkpoint.load(folder / "checkpoint.safetensors").next_round == done
    list(conduct([HEART], tmp_path / "cut", 1))
    for name in ("model/model.safetensors", "config.toml", "split.json"):
        a, b = (tmp_path / d / HEART.key / name for d in ("whole", "cut"))
        assert a.read_bytes() == b.read_bytes()
    assert not (folder / "checkpoint.safetensors").exists()
    records = read_records(folder / "results.jsonl")
    assert [r["round"] for r in records] == [0, 1, 2]


def test_checkpoints_that_take_long_are_few(tmp_path, monkeypatch):
    """Two runs in lockstep, 2 s each time: 40 s lie between. A round takes 12 s."""
    now, saved = time.monotonic(), dict[str, list[float]]()

    def save(path, at):
        nonlocal now
        saved.setdefault(path.parent.name, []).append(now)
        now += 2.0

    monkeypatch.setattr(driver, "time", SimpleNamespace(monotonic=lambda: now))
    monkeypatch.setattr(checkpoint, "save", save)
    runs = [replace(HEART, seed=seed, rounds=12) for seed in (0, 1)]
    for _ in conduct(runs, tmp_path, 1):
        now += 6.0
    for times in saved.values():
        *gaps, _ = [b - a for a, b in pairwise(times)]
        assert len(gaps) == 2
        assert all(40 < gap < 40 + 2 + 16 for gap in gaps)  # and at the very end in any case


def test_a_record_ahead_of_its_checkpoint_is_not_written_twice(tmp_path):
    list(conduct([HEART], tmp_path, 1))
    folder = tmp_path / HEART.key
    before = (folder / "results.jsonl").read_bytes()
    model = (folder / "model" / "model.safetensors").read_bytes()
    (folder / "model" / "model.safetensors").unlink()  # no checkpoint either: from the start
    assert len(list(conduct([HEART], tmp_path, 1))) == 3
    assert (folder / "results.jsonl").read_bytes() == before
    assert (folder / "model" / "model.safetensors").read_bytes() == model


def test_a_checkpoint_ahead_of_its_record_is_reported(tmp_path):
    with closing(conduct([HEART], tmp_path, 1)) as events:
        next(events)
    (tmp_path / HEART.key / "results.jsonl").write_text("")
    with pytest.raises(ConfigError, match="0 rounds where the checkpoint has 1"):
        list(conduct([HEART], tmp_path, 1))


def test_a_failure_keeps_the_rounds_before_it(tmp_path, monkeypatch):
    real = loop.rounds

    def failing(*args):
        for k, done in enumerate(real(*args)):
            if k == 2:
                raise SiteFailure("no more")
            yield done

    monkeypatch.setattr(driver, "rounds", failing)
    with pytest.raises(SiteFailure):
        list(conduct([HEART], tmp_path, 1))
    at = checkpoint.load(tmp_path / HEART.key / "checkpoint.safetensors")
    assert at.next_round == 2
    monkeypatch.setattr(driver, "rounds", real)
    assert len(list(conduct([HEART], tmp_path, 1))) == 1


def test_the_folder_is_let_go_whatever_happens(tmp_path):
    with closing(conduct([HEART], tmp_path, 1)) as events:
        next(events)
    RunFolder.open(tmp_path / HEART.key, HEART.resolved().to_toml()).close()


def test_a_record_counts_bytes_and_names_failures():
    """Two floats are 8 bytes; three sites answered and one failed: down to four, up from three."""
    run = toy.run(compose("fedavg"), 1)
    [k] = toy.history(run)
    bytes_ = 4 * run.method.init(run.model, run.names).model.layout.size
    record = recorded(run, replace(k, failures=[Failure("x", "why")]), {})
    assert (record["bytes_down"], record["bytes_up"]) == (4 * bytes_, 3 * bytes_)
    assert record["failures"] == {"x": "why"}
    assert record["sites"] == ["dawn", "noon", "dusk"]
    assert record["losses"].keys() == {"TaskLoss", "total"}
    assert record["trace"]["weights"].keys() == {"dawn", "noon", "dusk"}


def test_size_counts_notes():
    state = toy.run(compose("fedavg")).method.init(toy.Net(), [])
    noted = state.noting("x", {"a": torch.zeros(3), "b": 1.0})
    assert size(noted) == size(state) + 12 + 8


def test_losses_are_of_the_sites_that_have_them():
    run = toy.run(compose("fedavg"), 1)
    [k] = toy.history(run)
    a, b, c = k.replies
    replies = [
        replace(a, losses={"t": 1.0}),
        replace(b, losses={"t": 3.0, "u": 5.0}),
        replace(c, losses={}),
    ]
    assert recorded(run, replace(k, replies=replies), {})["losses"] == {"t": 2.0, "u": 5.0}


def test_records_are_plain_values():
    found = plainly({"a": torch.tensor([1.0, 2.0]), "b": (1, float("nan")), 3: {"x": float("inf")}})
    assert found == {"a": [1.0, 2.0], "b": [1, None], "3": {"x": None}}


def test_the_worst_domain_of_each_kind():
    scores = {
        "val/a": {"accuracy": 0.9},
        "val/b": {"accuracy": 0.7},
        "test/c": {"accuracy": 0.4},
        "test/d": {"loss": 1.0},
    }
    assert worst(scores, "accuracy") == {"val": 0.7, "test": 0.4}


def test_a_run_that_fails_is_tried_again_from_its_checkpoint(tmp_path, monkeypatch):
    """Its neighbour in the lockstep is finished meanwhile."""
    good, bad = HEART, replace(HEART, method="fedmedian")
    list(conduct([bad], tmp_path / "whole", 1))
    real = Median.aggregate

    def failing(self, state, replies, job):
        if job.round == 2:
            raise KeyError("note")
        return (yield from real(self, state, replies, job))

    monkeypatch.setattr(Median, "aggregate", failing)
    with pytest.raises(RunsFailed, match=f"^{re.escape(bad.key)}: round 2: fedmedian") as found:
        list(conduct([good, bad], tmp_path / "cut", 1))
    assert found.value.reasons.keys() == {bad.key}
    assert finished(tmp_path / "cut" / good.key)
    assert not finished(tmp_path / "cut" / bad.key)
    with pytest.raises(SiteFailure, match=r"^round 2: fedmedian"):
        list(conduct([good, bad], tmp_path / "cut", 1))
    monkeypatch.setattr(Median, "aggregate", real)
    [last] = conduct([good, bad], tmp_path / "cut", 1)
    assert last.record["round"] == 2
    a, b = (tmp_path / d / bad.key / "model" / "model.safetensors" for d in ("whole", "cut"))
    assert a.read_bytes() == b.read_bytes()


def test_a_run_that_cannot_begin_has_no_folder_and_stops_no_other(tmp_path):
    good, bad = replace(HEART, rounds=1), replace(HEART, method="am")
    with pytest.raises(RunsFailed, match="cannot train"):
        list(conduct([bad, good], tmp_path, 1))
    assert [p.name for p in tmp_path.iterdir()] == [good.key]
    assert finished(tmp_path / good.key)
