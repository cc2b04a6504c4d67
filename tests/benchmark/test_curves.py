"""--diagnostics curves: every site's own model on every domain, in the record."""

from dataclasses import replace

import pytest
import torch

from feddg.api import train
from feddg.benchmark.curves import curves
from feddg.benchmark.driver import Conducted, conduct, conducted
from feddg.benchmark.experiment import Experiment
from feddg.benchmark.records import read_records
from feddg.catalogue import compose
from feddg.engines.compute import Compute
from feddg.engines.inprocess import InProcess
from feddg.engines.workers import Workers
from feddg.recipe import Recipe
from feddg.weights import load
from tests import toy

HEART = Experiment(
    data="heart-disease", targets=("va",), model="mlp", rounds=2, recipe=Recipe(lr=0.05)
)


def share_right(model, data):
    with torch.no_grad():
        return (model.eval()(data.x).argmax(1) == data.y).float().mean().item()


def test_each_model_on_each_domain_by_hand():
    """dawn's reply, loaded into the network, on what noon holds out and on all of night."""
    run, engine = toy.run(compose("fedavg"), 2), InProcess()
    done = list(toy.history(run, engine))
    [found] = curves(engine, [(run, done[-1])])
    assert list(found) == ["dawn", "noon", "dusk", "merged"]
    assert all(list(row) == ["dawn", "noon", "dusk", "night"] for row in found.values())
    fed, last = run.federation, done[-1]
    own, merged = load(run.model, last.replies[0].model), load(run.model, last.state.model)
    noon, night = fed.sites[1].val, fed.targets[0].examples
    assert found["dawn"]["noon"] == pytest.approx(share_right(own, noon))
    assert found["dawn"]["night"] == pytest.approx(share_right(own, night))
    assert found["merged"]["night"] == pytest.approx(share_right(merged, night))


def test_a_site_that_holds_nothing_out_is_judged_on_what_it_trains_on():
    run, engine = toy.run(compose("fedavg"), 1, federation=toy.federation(share=0.0)), InProcess()
    [done] = toy.history(run, engine)
    [found] = curves(engine, [(run, done)])
    own = load(run.model, done.replies[1].model)
    assert found["noon"]["dawn"] == pytest.approx(share_right(own, run.sites[0].train))


@pytest.mark.parametrize("spec", ["copa", "ind-ensemble", "csac", "ga+fedsr"])
def test_methods_whose_model_is_more_than_its_weights(spec):
    """The predictor of a reply is the method's own affair: COPA's has that site's head alone."""
    run, engine = toy.run(compose(spec), 1), InProcess()
    [done] = toy.history(run, engine)
    [found] = curves(engine, [(run, done)])
    assert found.keys() == {"dawn", "noon", "dusk", "merged"}
    assert all(0 <= v <= 1 for row in found.values() for v in row.values())


def test_the_record_has_them_only_where_they_are_asked_for(tmp_path):
    """Their run is another folder, for its record is another; the model is the same."""
    asked = replace(HEART, diagnostics="curves")
    list(conduct([HEART, asked], tmp_path, 1))
    plain, more = (read_records(tmp_path / e.key / "results.jsonl") for e in (HEART, asked))
    assert all("curves" not in r for r in plain)
    hospitals = ["cleveland", "hungarian", "switzerland"]
    assert [sorted(r["curves"]) for r in more] == [sorted([*hospitals, "merged"])] * 2
    assert set(more[0]["curves"]["cleveland"]) == {*hospitals, "va"}
    assert more[-1]["curves"]["merged"]["va"] == more[-1]["scores"]["test/va"]["balanced_accuracy"]
    models = [tmp_path / e.key / "model" / "model.safetensors" for e in (HEART, asked)]
    assert models[0].read_bytes() == models[1].read_bytes()
    assert from_file(tmp_path / asked.key).diagnostics == "curves"


def from_file(folder):
    from feddg.benchmark.experiment import from_toml

    return from_toml(folder / "config.toml")


def test_workers_measure_the_same():
    run = toy.run(compose("fedavg"), 1)
    [done] = toy.history(run, InProcess())
    with Workers(runs=[run], count=2) as engine:
        assert curves(engine, [(run, done)]) == curves(InProcess(), [(run, done)])


def test_from_python():
    found = train(toy.Net(), toy.federation(), rounds=1, diagnostics="curves", workers=1)
    assert "curves" in found.records[0]


def test_a_broken_model_says_why():
    class Broken(InProcess):
        def answer(self, requests):
            return [RuntimeError("no memory left") for _ in requests]

    one = Conducted(toy.run(compose("fedavg"), 1), "toy", diagnostics=("curves",))
    assert len(list(conducted([one], Compute(workers=1)))) == 1
    [done] = toy.history(one.run)
    with pytest.raises(RuntimeError, match="no memory left"):
        curves(Broken(), [(one.run, done)])
