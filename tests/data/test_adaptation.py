"""The target at the server: without labels, and apart from what is judged."""

from dataclasses import replace

import pytest
import torch

import feddg
from feddg.data.adaptation import adapted, adapting, divided, unlabelled
from feddg.data.domain import Domain, Examples, leave_one_domain_out
from feddg.deploy import load_model
from feddg.errors import ConfigError, DataError
from feddg.wire import flatten
from tests import toy

METHODS = [
    "copa-uda(threshold=0.4)", "kd3a(gate=(0.4, 0.5))", "shot(epochs=1)", "fada", "copa", "fedavg",
]  # fmt: skip


def test_labels_are_gone():
    data = replace(toy.images(0, 9), groups=torch.arange(9))
    bare = unlabelled(data)
    assert bare.y.tolist() == [-1] * 9
    assert bare.y.dtype == data.y.dtype
    assert bare.groups is None
    assert bare.store is data.store
    real = unlabelled(Examples(data.x, torch.randn(9, generator=torch.Generator().manual_seed(0))))
    assert real.y.isnan().all()


def test_four_fifths_and_the_rest():
    fed = adapting(leave_one_domain_out(toy.collection(), "night"), seed=3)
    [target] = fed.targets
    judged = target.part("test")
    assert fed.server is not None
    assert judged is not None
    assert (len(fed.server.train), len(judged)) == (48, 12)
    assert set(fed.server.train.y.tolist()) == {-1}
    both = torch.cat([fed.server.train.rows, judged.rows])  # type: ignore[list-item]
    assert sorted(both.tolist()) == list(range(60))
    again, other = (divided(toy.collection()["night"], seed) for seed in (3, 4))
    assert torch.equal(again.splits["test"], target.splits["test"])
    assert not torch.equal(other.splits["test"], target.splits["test"])


def test_a_split_of_the_datas_own_is_kept_and_one_that_overlaps_is_not():
    rows = torch.arange(60)
    given = {"train": rows[:30], "val": rows[30:40], "test": rows[40:]}
    own = divided(Domain("d", toy.images(0, 60), given), 0)
    assert {k: len(v) for k, v in own.splits.items()} == {"train": 30, "test": 20}
    drawn = divided(Domain("d", toy.images(0, 60), {**given, "test": rows}), 0)
    assert {k: len(v) for k, v in drawn.splits.items()} == {"train": 48, "test": 12}


def relabelled(collection):
    """The same data, the labels of the target in another order."""
    *rest, night = collection.domains
    y = night.examples.y.roll(1)
    return replace(
        collection,
        domains=(*rest, replace(night, examples=replace(night.examples, y=y))),
    )


@pytest.mark.parametrize("method", METHODS)
def test_the_targets_labels_change_no_bit_of_training(method):
    """Only the score on the other fifth knows them."""
    runs = [
        feddg.train(
            feddg.build_model("tests.toy:Net"), data, method, target="night", task="uda", rounds=3,
            recipe=toy.RECIPE, workers=1, seed=1,
        )
        for data in (toy.collection(), relabelled(toy.collection()))
    ]  # fmt: skip
    a, b = (flatten({"model": r.state.model.vector, "notes": r.state.notes}) for r in runs)
    assert a.keys() == b.keys()
    assert all(torch.equal(a[k], b[k]) for k in a)
    assert runs[0].scores["test/night"] != runs[1].scores["test/night"]


@pytest.mark.parametrize("method", METHODS)
def test_a_saved_model_predicts_as_the_run_did(method, tmp_path):
    result = feddg.train(
        feddg.build_model("tests.toy:Net"), toy.collection(), method, target="night", task="uda",
        rounds=2, recipe=toy.RECIPE, workers=1,
    )  # fmt: skip
    result.save(tmp_path / "model")
    x = toy.images(3, 5).x
    torch.testing.assert_close(load_model(tmp_path / "model").predictor(x), result.predictor(x))


def test_a_method_that_generalises_is_the_same_with_the_target_at_hand():
    """--task uda changes what it is judged on, and nothing else."""
    plain, given = (
        feddg.train(
            feddg.build_model("tests.toy:Net"), toy.collection(), "copa", target="night",
            task=task, rounds=2, recipe=toy.RECIPE, workers=1,
        )
        for task in ("dg", "uda")
    )  # fmt: skip
    assert torch.equal(plain.state.model.vector, given.state.model.vector)
    assert len(plain.run.judged["test/night"]) == 60
    assert len(given.run.judged["test/night"]) == 12


def test_adaptation_needs_the_target():
    with pytest.raises(ConfigError, match="--task uda"):
        feddg.train(toy.Net(), toy.collection(), "kd3a", target="night", workers=1)
    with pytest.raises(DataError, match="name one"):
        feddg.train(toy.Net(), toy.collection(), "kd3a", task="uda", workers=1)
    with pytest.raises(ConfigError, match="unknown task 'udaa'; did you mean 'uda'"):
        adapted("udaa")
