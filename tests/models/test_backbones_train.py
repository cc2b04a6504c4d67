"""Every backbone through feddg: a step by the papers' methods, and a folder that comes back."""

from dataclasses import replace
from functools import cache

import pytest
import torch
from torch import nn

from feddg.catalogue import compose
from feddg.deploy import load_model, save_model
from feddg.engines.loop import Run
from feddg.local import outputs
from feddg.models.norms import HBIN
from feddg.recipe import Recipe
from feddg.weights import Layout, Weights
from tests import toy
from tests.models.mini import MINIS, federation, mini

ONE_STEP = Recipe(steps=1, batch_size=4, lr=0.01)
SMALLER = {"resnet101": 1e-4}  # a hundred fresh layers on four tiny images: slopes are huge
BACKBONES = list(MINIS)


@cache
def trained(name, method):
    """Rounds of one step, of CSAC and GA two: in the second they do what is theirs."""
    rounds = 2 if method in ("csac", "ga") else 1
    recipe = replace(ONE_STEP, lr=SMALLER.get(name, ONE_STEP.lr))
    run = Run(compose(method), mini(name), federation(name), recipe, rounds)
    return run, list(toy.history(run))


@pytest.mark.parametrize("name", BACKBONES)
@pytest.mark.parametrize("method", ["fedavg", "csac", "copa", "ga"])
def test_it_takes_a_step(name, method):
    run, rounds = trained(name, method)
    assert all(len(done.replies) == 2 for done in rounds)
    losses = rounds[-1].replies[0].losses
    assert {"csac": "alignment" in losses, "copa": len(losses) > 2}.get(method, True)
    state = rounds[-1].state
    start, end = Weights.of(run.method.architecture(run.model)), state.model
    assert end.vector.isfinite().all()
    before = end.layout.take(start.layout, start.vector)
    moved = {k: not torch.equal(v, end.views()[k]) for k, v in end.layout.views(before).items()}
    assert all(moved[k] for k in moved if k.endswith(("weight", "running_mean")))
    predictor = run.method.predictor(state, run.method.architecture(run.model)).eval()
    assert outputs(predictor, MINIS[name].images(2), ()).shape == (2, 3)


@pytest.mark.parametrize("name", BACKBONES)
def test_copa_puts_hbin_after_every_convolution_or_in_place_of_batch_norm(name):
    model = mini(name)
    norms = sum(isinstance(m, nn.BatchNorm2d) for m in model.modules())
    convolutions = sum(isinstance(m, nn.Conv2d) for m in model.modules())
    changed = trained(name, "copa")[0].method.architecture(model)
    assert sum(isinstance(m, HBIN) for m in changed.modules()) == (norms or convolutions)
    assert not any(isinstance(m, nn.BatchNorm2d) for m in changed.modules())


@pytest.mark.parametrize("name", BACKBONES)
@pytest.mark.parametrize("method", ["fedavg", "copa"])
def test_a_saved_folder_stands_alone(name, method, tmp_path):
    """The name and options are enough to build it again, and every number comes back."""
    run, rounds = trained(name, method)
    save_model(tmp_path / "model", run, rounds[-1].state)
    deployed = load_model(tmp_path / "model")
    assert deployed.meta.architecture.model == name
    predictor = run.method.predictor(rounds[-1].state, run.method.architecture(run.model)).eval()
    x = MINIS[name].images(2)
    assert torch.equal(outputs(deployed.predictor, x, ()), outputs(predictor, x, ()))


@pytest.mark.parametrize("name", BACKBONES)
def test_batch_norms_statistics_travel(name):
    """One site after its step has the batch's statistics, not those it started with."""
    model = mini(name)
    stored = {k for k, v in model.named_buffers() if v.is_floating_point()}
    norms = [k for k, m in model.named_modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    assert stored == {f"{k}.running_{what}" for k in norms for what in ("mean", "var")}
    assert set(Layout.of(model).buffers().names) == stored
    views = trained(name, "fedavg")[1][0].replies[0].model.views()
    assert not any(torch.equal(views[k], dict(model.named_buffers())[k]) for k in stored)
