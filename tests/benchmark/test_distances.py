"""How far apart the sites' models are: by hand, and in the record."""

from dataclasses import replace

import torch

from feddg.benchmark.distances import between, distances
from feddg.benchmark.driver import conduct
from feddg.benchmark.experiment import Experiment
from feddg.benchmark.stored import stored_runs
from feddg.packets import Reply
from feddg.recipe import Recipe
from feddg.weights import Layout, Weights

HEART = Experiment(
    data="heart-disease", targets=("va",), model="mlp", rounds=2, recipe=Recipe(lr=0.05)
)
LAYOUT = Layout(("a.weight", "a.bias", "b.weight"), ((2,), (1,), (1,)), 3)


def conducted(root, **changes):
    one = replace(HEART, **changes)
    list(conduct([one], root, 1))
    return next(r for r in stored_runs([root]) if r.key == one.key)


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
