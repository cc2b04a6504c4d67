"""--diagnostics: which there are, what they record, and the sites' models in the run's folder."""

from dataclasses import replace

import pytest
import torch

from feddg.api import train
from feddg.benchmark.diagnostics import diagnosed, diagnostics
from feddg.benchmark.distances import between, distances
from feddg.benchmark.driver import conduct
from feddg.benchmark.experiment import Experiment
from feddg.benchmark.locals import LOCALS, read_locals, read_packets
from feddg.benchmark.stored import stored_runs
from feddg.catalogue import compose
from feddg.errors import ConfigError
from feddg.local import Evaluation, evaluate
from feddg.packets import Reply
from feddg.recipe import Recipe
from feddg.weights import Layout, Weights
from tests import toy

HEART = Experiment(
    data="heart-disease", targets=("va",), model="mlp", rounds=2, recipe=Recipe(lr=0.05)
)
LAYOUT = Layout(("a.weight", "a.bias", "b.weight"), ((2,), (1,), (1,)), 3)


def conducted(root, **changes):
    one = replace(HEART, **changes)
    list(conduct([one], root, 1))
    return next(r for r in stored_runs([root]) if r.key == one.key)


def test_several_by_commas_in_one_order():
    assert diagnostics(" models,curves,") == ("curves", "models")
    assert diagnostics(None) == ()
    with pytest.raises(ConfigError, match="unknown diagnostics 'curve'; did you mean 'curves'"):
        replace(HEART, diagnostics="models,curve")
    keys = {replace(HEART, diagnostics=d).key for d in ("curves,models", "models,curves")}
    assert len(keys) == 1
    assert replace(HEART, diagnostics="").key == HEART.key


def test_a_real_federation_refuses():
    class Remote:
        pass

    run = toy.run(compose("fedavg"), 1)
    [done] = toy.history(run)
    remote: object = Remote()
    with pytest.raises(ConfigError, match="leave it out in a real federation"):
        diagnosed(remote, [(run, done)], [("distances",)])
    assert diagnosed(remote, [(run, done)], [()]) == [{}]


def test_distances_by_hand():
    """Layer a of x, y, z: (0,0,0), (3,4,0), (0,0,12): xy 5, xz 12, yz 13; b: 1, 1, 3."""
    vectors = {"x": [0.0, 0, 0, 1], "y": [3.0, 4, 0, 1], "z": [0.0, 0, 12, 3]}
    models = {k: Weights(torch.tensor(v), LAYOUT) for k, v in vectors.items()}
    assert between(models)["x", "y"] == {"a": 5, "b": 0}
    found = distances([Reply(site=k, model=m) for k, m in models.items()])
    assert found["a"] == {"x": 8.5, "y": 9, "z": 12.5}
    assert found["b"] == {"x": 1, "y": 1, "z": 2}
    assert distances([Reply(site="x", model=models["x"])]) == {}


def test_distances_are_recorded_every_round(tmp_path):
    run = conducted(tmp_path, diagnostics="distances", method="ind-average")
    hospitals = {"cleveland", "hungarian", "switzerland"}
    assert all(by.keys() == hospitals for r in run.records for by in r["distances"].values())
    first, last = (r["distances"]["head"]["cleveland"] for r in run.records)
    assert 0 < first < last  # who does not hear of the others drifts apart


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


def test_the_model_is_the_same_with_and_without(tmp_path):
    runs = [conducted(tmp_path, diagnostics=d) for d in (None, "models,distances")]
    files = [(r.folder / "model" / "model.safetensors").read_bytes() for r in runs]
    assert files[0] == files[1]
    assert not (runs[0].folder / LOCALS).exists()
    with pytest.raises(ConfigError, match="--diagnostics models keeps them"):
        read_locals(runs[0])


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
