"""The Python interface: ten lines from one's own module and data to a federated model."""

from dataclasses import replace

import pytest
import torch
from torch import nn

import feddg
from feddg import deploy
from feddg.catalogue import compose
from feddg.data.domain import federation
from feddg.errors import ConfigError, DataError
from feddg.models import build
from tests import toy


def network(seed=0):
    return build("tests.toy:Net", seed=seed)


def trained(**options):
    options = {"rounds": 3, "recipe": toy.RECIPE, "target": "night", "workers": 1} | options
    return feddg.train(network(), toy.collection(), **options)


def test_ten_lines():
    torch.manual_seed(0)
    rule = torch.randn(6, 3)
    inputs = {f"site{i}": torch.randn(90, 6) + 0.3 * i for i in range(4)}
    data = feddg.from_tensors({k: (x, (x @ rule).argmax(1)) for k, x in inputs.items()}, "abc")
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))
    recipe = feddg.Recipe(lr=0.1, momentum=0.9)
    result = feddg.train(
        model, data, "fedprox(mu=0.01)", target="site3", rounds=6, recipe=recipe, workers=1
    )
    assert result.scores["test/site3"]["accuracy"] > 0.7
    assert result.predictor(inputs["site3"]).shape == (90, 3)


def test_it_is_the_loop():
    """The same run by hand, with a federation of the same split."""
    fed = feddg.leave_one_domain_out(toy.collection(), "night", share=0.2)
    result = trained()
    again = feddg.train(network(), fed, rounds=3, recipe=toy.RECIPE, workers=1)
    *_, by_hand = toy.history(toy.run(compose("fedavg"), 3, federation=fed))
    assert torch.equal(result.state.model.vector, again.state.model.vector)
    assert torch.equal(result.state.model.vector, by_hand.state.model.vector)


def test_the_users_module_is_left_as_it_is():
    model = network()
    before = {k: v.clone() for k, v in model.state_dict().items()}
    feddg.train(model, toy.collection(), rounds=1, recipe=toy.RECIPE, workers=1)
    assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())


def test_without_a_target_all_domains_train():
    result = trained(target=None, rounds=1)
    assert result.run.names == list(toy.collection().names)
    assert result.scores.keys() == {f"val/{n}" for n in toy.collection().names}


def test_scores_and_state_are_those_of_the_selected_round():
    result = trained(selection="oracle", rounds=4, recipe=toy.steps(toy.RECIPE, lr=0.6))
    values = [r["scores"]["test/night"]["accuracy"] for r in result.records]
    assert result.record["round"] == values.index(max(values))
    right = (result.predictor(toy.collection()["night"].examples.x).argmax(1) ==
             toy.collection()["night"].examples.y).double().mean().item()  # fmt: skip
    assert right == pytest.approx(max(values))
    assert result.scores["test/night"]["accuracy"] == max(values)


def test_saved_and_loaded(tmp_path):
    result = trained()
    result.save(tmp_path / "model")
    loaded = deploy.load_model(tmp_path / "model", model=network(seed=1))
    x = toy.collection()["night"].examples.x
    assert torch.equal(deploy.predict(loaded, x).output, result.predictor(x).detach())
    assert loaded.meta.about["round"] == 2


def test_in_a_folder_the_same_call_goes_on(tmp_path):
    """Interrupted by its own progress after two of four rounds."""

    def stop(event):
        if event.record["round"] == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trained(rounds=4, out=tmp_path / "run", progress=stop)
    seen = []
    went_on = trained(
        rounds=4, out=tmp_path / "run", progress=lambda e: seen.append(e.record["round"])
    )
    assert seen == [2, 3]
    assert torch.equal(went_on.state.model.vector, trained(rounds=4).state.model.vector)
    finished = trained(rounds=4, out=tmp_path / "run")
    assert torch.equal(finished.state.model.vector, went_on.state.model.vector)
    assert finished.records == went_on.records
    assert (tmp_path / "run" / "model" / "model.safetensors").exists()
    assert (tmp_path / "run" / "split.json").exists()


def test_a_folder_of_another_run_is_refused(tmp_path):
    trained(rounds=1, out=tmp_path)
    with pytest.raises(ConfigError, match="holds another run"):
        trained(rounds=1, out=tmp_path, seed=1)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"target": "nigth"}, "did you mean 'night'"),
        ({"selection": "lsat"}, "did you mean 'last'"),
        ({"selection": "source-val", "share": 0.0}, "needs validation data"),
        ({"selection": "oracle", "target": None}, "needs the target's labels"),
        ({"method": "fedporx"}, "did you mean 'fedprox'"),
        ({"rounds": 0}, "rounds must be at least 1"),
        ({"workers": 0}, "--workers must be at least 1"),
    ],
)
def test_mistakes_are_named_and_leave_no_folder(options, words, tmp_path):
    with pytest.raises(ConfigError, match=words):
        trained(out=tmp_path / "run", **options)
    assert not (tmp_path / "run").exists()


def test_a_target_beside_a_federation():
    with pytest.raises(ConfigError, match="a Federation names its targets"):
        feddg.train(network(), toy.federation(), target="night")


def test_one_domain():
    one = replace(toy.collection(), domains=toy.collection().domains[:1])
    with pytest.raises(DataError, match="one domain only"):
        feddg.train(network(), one, target="dawn")
    assert feddg.train(network(), one, rounds=1, workers=1).run.names == ["dawn"]


def test_a_class_that_a_site_lacks():
    fed = toy.federation(share=0.0)
    first, *others = fed.sites
    lacking = replace(first, train=first.train.take((first.train.y != 1).nonzero()[:, 0]))
    fed = replace(fed, sites=(lacking, *others))
    with pytest.raises(DataError, match="site 'dawn' of toy has no example of class 'column'"):
        feddg.train(network(), fed, workers=1)
    result = feddg.train(
        network(), fed, rounds=1, recipe=toy.RECIPE, allow_missing_classes=True, workers=1
    )
    assert result.run.names[0] == "dawn"


def test_a_site_that_joins_late(tmp_path):
    """Round 0 is as if dusk were not there; from round 1 on it takes part."""

    def after(rounds, sources, **options):
        fed = federation(toy.collection(), sources, ["night"], **options)
        run = feddg.train(network(), fed, rounds=rounds, recipe=toy.RECIPE, workers=1)
        return run.state.model.vector

    late, two = {"joins": {"dusk": 1}}, ["dawn", "noon"]
    assert torch.equal(after(1, [*two, "dusk"], **late), after(1, two))
    assert not torch.equal(after(2, [*two, "dusk"], **late), after(2, two))
    assert not torch.equal(after(1, [*two, "dusk"], **late), after(1, [*two, "dusk"]))


def test_public_names_are_all_there():
    for name in feddg.__all__:
        assert getattr(feddg, name) is not None
    with pytest.raises(AttributeError):
        _ = feddg.no_such_name
