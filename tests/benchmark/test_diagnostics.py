"""--diagnostics: which there are, and that the model stays as it is."""

from dataclasses import replace

import pytest

from feddg.benchmark.diagnostics import diagnosed, diagnostics
from feddg.benchmark.driver import conduct
from feddg.benchmark.experiment import Experiment
from feddg.benchmark.locals import LOCALS, read_locals
from feddg.benchmark.stored import stored_runs
from feddg.catalogue import compose
from feddg.errors import ConfigError
from feddg.recipe import Recipe
from tests import toy

HEART = Experiment(
    data="heart-disease", targets=("va",), model="mlp", rounds=2, recipe=Recipe(lr=0.05)
)


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


def test_the_model_is_the_same_with_and_without(tmp_path):
    runs = [conducted(tmp_path, diagnostics=d) for d in (None, "models,distances")]
    files = [(r.folder / "model" / "model.safetensors").read_bytes() for r in runs]
    assert files[0] == files[1]
    assert not (runs[0].folder / LOCALS).exists()
    with pytest.raises(ConfigError, match="--diagnostics models keeps them"):
        read_locals(runs[0])
