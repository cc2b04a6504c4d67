"""The sites' last models in the run's folder: written, gone on with, read back."""

from dataclasses import replace

import pytest

from feddg.api import train
from feddg.benchmark.driver import conduct
from feddg.benchmark.experiment import Experiment
from feddg.benchmark.locals import LOCALS, read_locals, read_packets
from feddg.benchmark.stored import stored_runs
from feddg.errors import ConfigError
from feddg.local import Evaluation, evaluate
from feddg.recipe import Recipe
from tests import toy

HEART = Experiment(
    data="heart-disease", targets=("va",), model="mlp", rounds=2, recipe=Recipe(lr=0.05)
)


def conducted(root, **changes):
    one = replace(HEART, **changes)
    list(conduct([one], root, 1))
    return next(r for r in stored_runs([root]) if r.key == one.key)


def test_the_models_that_are_kept_are_the_last_replies(tmp_path):
    """Read back, each scores on every domain what the curves of the last round recorded."""
    run = conducted(tmp_path, diagnostics="curves,models", method="copa(norm='none')")
    found = read_locals(run)
    assert list(found.sites) == ["cleveland", "hungarian", "switzerland"]
    data = run.experiment.prepared().run
    va, task = data.judged["test/va"], data.federation.collection.task
    curves = run.records[-1]["curves"]
    packets = {**found.sites, "merged": found.merged}
    for whose, packet in packets.items():
        asked = Evaluation(found.predictor(packet), va, task, data.federation.collection.prepare)
        assert evaluate(asked)[task.metric] == pytest.approx(curves[whose]["va"], abs=1e-6)


def test_a_run_that_goes_on_keeps_who_was_there_before(tmp_path):
    """One site a round: after a break the earlier rounds' sites are still in the file."""
    one = replace(HEART, participation=1, rounds=4, diagnostics="models")
    list(conduct([one], tmp_path / "whole", 1))
    events = conduct([one], tmp_path / "cut", 1)
    next(events), next(events)
    events.close()
    list(conduct([one], tmp_path / "cut", 1))
    cut = tmp_path / "cut" / one.key / LOCALS
    assert cut.read_bytes() == (tmp_path / "whole" / one.key / LOCALS).read_bytes()
    assert len(read_packets(cut)[0]) > 1


def test_a_damaged_file_is_named(tmp_path):
    run = conducted(tmp_path, diagnostics="models")
    (run.folder / LOCALS).write_bytes(b"x" * 40)
    with pytest.raises(ConfigError, match=r"models\.safetensors holds no sites' models"):
        read_locals(run)


def test_from_python(tmp_path):
    with pytest.raises(ConfigError, match="name a folder"):
        train(toy.Net(), toy.federation(), rounds=1, diagnostics="models", workers=1)
    train(
        toy.Net(), toy.federation(), rounds=1, diagnostics="models", workers=1, out=tmp_path / "x"
    )
    assert list(read_packets(tmp_path / "x" / LOCALS)[0]) == ["dawn", "noon", "dusk"]
