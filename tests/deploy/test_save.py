import json
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import ClassVar

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from feddg.data.transforms import Scale
from feddg.deploy import Architecture, load_model, predict, save_model
from feddg.engines.loop import Run
from feddg.errors import ConfigError
from feddg.local import outputs
from feddg.method import Method, Wrapper, title
from feddg.methods.fedavg import FedAvg
from feddg.methods.fedprox import FedProx
from feddg.methods.median import FedMedian
from feddg.packets import State
from feddg.weights import Weights
from tests import toy
from tests.deploy.saved import NET, output, save, trained

NIGHT = toy.collection()["night"].examples


@dataclass(frozen=True)
class Shifted(Wrapper):
    """A predictor that needs a note: the head's bias is moved by it. Another note is private."""

    inner: Method = FedAvg()
    deploys: ClassVar[tuple[str, ...]] = ("shift",)

    def init(self, model, sites):
        state = self.inner.init(model, sites)
        return state.noting("shift", {"by": torch.ones(3), "times": 2}).noting("other", 7)

    def predictor(self, packet, model):
        module = self.inner.predictor(packet, model)
        with torch.no_grad():
            module.get_parameter("head.bias").add_(
                packet.notes["shift"]["by"] * packet.notes["shift"]["times"]
            )
        return module


@dataclass(frozen=True)
class Deeper(Wrapper):
    """Changes the network: one more layer, with batch norm's integer buffer among the rest."""

    inner: Method = FedAvg()

    def architecture(self, model):
        if len(model.dense) > 3:
            return model
        fresh = deepcopy(model)
        fresh.dense.append(nn.Linear(16, 16)).append(nn.BatchNorm1d(16))
        return fresh


@pytest.mark.parametrize("before", [True, False])
def test_a_method_that_changes_the_network_changes_the_loaded_one(tmp_path, before):
    method = Deeper()
    run = toy.run(method)
    changed = method.architecture(run.model)
    state = State(model=Weights.of(changed))
    given = replace(run, model=changed) if before else run
    save_model(tmp_path / "model", given, state, architecture=NET)
    deployed = load_model(tmp_path / "model", method=method)
    assert len(list(deployed.predictor.get_submodule("dense").children())) == 5
    assert predict(deployed, NIGHT).output.equal(output(replace(run, model=changed), state))


@pytest.mark.parametrize("method", [FedAvg(), FedProx(mu=0.5), FedProx(FedMedian())], ids=repr)
def test_the_outputs_are_the_same_to_the_bit(tmp_path, method):
    run, state = save(tmp_path / "model", method)
    deployed = load_model(tmp_path / "model")
    assert not deployed.predictor.training
    assert deployed.classes == ("row", "column", "diagonal")
    assert predict(deployed, NIGHT).output.equal(output(run, state))


def test_the_notes_that_a_predictor_needs_come_along_and_no_others(tmp_path):
    run = toy.run(Shifted())
    state = run.method.init(run.model, run.names)
    save_model(tmp_path / "model", run, state, architecture=NET)
    names = set(load_file(tmp_path / "model" / "model.safetensors"))
    assert {n for n in names if n.startswith("notes/")} == {"notes/shift/by", "notes/shift/times#"}
    with pytest.raises(ConfigError, match=r"not in the catalogue; pass it: .*method="):
        load_model(tmp_path / "model")
    again = predict(load_model(tmp_path / "model", method=Shifted()), NIGHT).output
    assert again.equal(output(run, state))
    assert not again.equal(output(replace(run, method=FedAvg()), state))


def test_two_saves_have_the_same_bytes(tmp_path):
    run, state = save(tmp_path / "a")
    again = replace(state, model=Weights(state.model.vector.clone(), state.model.layout))
    save_model(tmp_path / "b", run, again, architecture=NET)
    for file in ("model.safetensors", "model.json", "README.md"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_any_program_can_load_the_weights(tmp_path):
    run, state = save(tmp_path / "model")
    net = toy.Net()
    net.load_state_dict(load_file(tmp_path / "model" / "model.safetensors"))
    assert outputs(net, NIGHT.x, ()).equal(output(run, state))


def test_an_older_model_is_replaced_and_nothing_else_is_left(tmp_path):
    save(tmp_path / "model", FedProx(mu=0.5))
    (tmp_path / ".model.new").mkdir()  # as a killed run leaves it
    save(tmp_path / "model")
    assert load_model(tmp_path / "model").meta.method == "fedavg(weights='size')"
    assert [p.name for p in tmp_path.iterdir()] == ["model"]


def test_a_failing_save_leaves_the_older_model(tmp_path, monkeypatch):
    save(tmp_path / "model")
    monkeypatch.setattr("os.fsync", lambda file: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(ConfigError, match="disk full"):
        save(tmp_path / "model", FedProx(mu=0.5))
    assert load_model(tmp_path / "model").meta.method == "fedavg(weights='size')"


def test_what_is_no_model_is_not_replaced(tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "thesis.tex").write_text("years of work")
    with pytest.raises(ConfigError, match="exists and holds no model"):
        save(tmp_path / "thesis")
    assert (tmp_path / "thesis" / "thesis.tex").exists()


def test_the_manifest_says_what_the_model_is(tmp_path):
    save(tmp_path / "model", about={"scores": {"test/night": {"accuracy": float("nan")}}})
    content = json.loads((tmp_path / "model" / "model.json").read_text())
    assert content["input"] == {"shape": [1, 12, 12], "dtype": "float32", "columns": []}
    assert content["training"]["targets"] == ["night"]
    assert content["architecture"] == {"model": NET.model, "options": NET.options, "own": False}
    assert content["about"] == {"scores": {"test/night": {"accuracy": None}}}


def test_the_preprocessing_is_part_of_the_model(tmp_path):
    run, state = trained()
    scaled = replace(run.federation.collection, prepare=(Scale((0.5,), (0.25,)),))
    run = replace(run, federation=replace(run.federation, collection=scaled))
    save_model(tmp_path / "model", run, state, architecture=NET)
    deployed = load_model(tmp_path / "model")
    assert deployed.prepare == scaled.prepare
    assert predict(deployed, NIGHT).output.equal(output(run, state))


class Halve:
    """A transform that does not describe itself."""

    def apply(self, value, draw):
        return value / 2


def test_a_transform_of_the_users_own_is_brought_along(tmp_path):
    run, state = trained()
    halved = replace(run.federation.collection, prepare=(Halve(),))
    run = replace(run, federation=replace(run.federation, collection=halved))
    save_model(tmp_path / "model", run, state, architecture=NET)
    with pytest.raises(ConfigError, match=r"pass the transforms: .*prepare="):
        load_model(tmp_path / "model")
    deployed = load_model(tmp_path / "model", prepare=(Halve(),))
    assert predict(deployed, NIGHT).output.equal(output(run, state))


def test_a_module_that_is_built_without_arguments_needs_no_help(tmp_path):
    run, state = trained()
    save_model(tmp_path / "model", replace(run, model=toy.Net()), state)
    deployed = load_model(tmp_path / "model")
    assert deployed.meta.architecture == Architecture("tests.toy:Net", own=True)
    assert predict(deployed, NIGHT).output.equal(output(run, state))


def test_a_network_of_build_model_is_known_by_its_name_and_options(tmp_path):
    run, state = save(tmp_path / "model", architecture=None)
    deployed = load_model(tmp_path / "model")
    assert deployed.meta.architecture == Architecture("tests.toy:Net", {"norm": True})
    assert predict(deployed, NIGHT).output.equal(output(run, state))


def test_a_module_with_arguments_is_brought_along(tmp_path):
    class Local(nn.Module):
        def __init__(self, outputs):
            super().__init__()
            self.head = nn.Linear(144, outputs)

        def forward(self, x):
            return self.head(x.flatten(1))

    run = Run(FedAvg(), Local(3), toy.federation(), toy.RECIPE, 1)
    state = State(model=Weights.of(run.model))
    save_model(tmp_path / "model", run, state)
    with pytest.raises(ConfigError, match=r"pass the network: load_model\(.*model=\.\.\.\)"):
        load_model(tmp_path / "model")
    mine = Local(3)
    before = Weights.of(mine).vector
    assert predict(load_model(tmp_path / "model", mine), NIGHT).output.equal(output(run, state))
    assert Weights.of(mine).vector.equal(before)
    assert "the user's own" in (tmp_path / "model" / "README.md").read_text()


def test_the_card_has_what_a_reader_asks(tmp_path):
    about = {
        "scores": {"val/dawn": {"accuracy": 0.75}, "test/night": {"accuracy": 0.5, "auc": 0.625}},
        "selection": "the round with the best mean val accuracy of the sites",
        "round": 1,
    }
    save(tmp_path / "model", FedProx(mu=0.5), about=about)
    card = (tmp_path / "model" / "README.md").read_text()
    for words in (
        "# toy: fedprox(mu=0.5)",
        "row, column, diagonal",
        "Held out: night.",
        "feddg predict FOLDER DATA",
        "| dawn | 36 |",
        "| val/dawn | 0.7500 | – |",
        "| test/night | 0.5000 | 0.6250 |",
        about["selection"],
        "FedProx: FedProx (Li et al., MLSys 2020): stay near the model that was sent.",
        "lr=0.05",
        "- seed: 0",
        "after round 1",
        "number of training examples",
    ):
        assert words in card, words
    assert title(FedAvg()) in card
