"""A dry start finds what does not fit, and leaves no trace."""

from dataclasses import replace

import pytest
import torch

from feddg.api import train
from feddg.benchmark.experiment import Experiment
from feddg.catalogue import compose
from feddg.engines.rehearsal import rehearse
from feddg.errors import ConfigError, FeddgError
from feddg.local import Training
from feddg.methods.fedavg import FedAvg
from feddg.recipe import Recipe
from tests import toy

HEART = Experiment(data="heart-disease", targets=("va",), model="mlp")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"method": "am"}, r"am\b.* images"),
        ({"method": "scaffold", "recipe": Recipe(optimizer="adam")}, r"scaffold\b.* SGD"),
        ({"method": "ga(on='val')", "share": 0.0}, r"ga\b.* no validation data"),
    ],
)
def test_what_does_not_fit_is_one_sentence_that_names_the_method(change, words):
    with pytest.raises(ConfigError, match=f"^{words}") as found:
        rehearse(replace(HEART, **change).prepared().run)
    assert "at any site; cleveland: " in str(found.value)
    assert "switzerland" not in str(found.value)


def test_one_step_is_made_and_no_more(monkeypatch):
    made = []

    class Watched(FedAvg):
        def local_update(self, inbox, job, memory):
            trained = yield Training(job, inbox.model, job.train)
            made.append(trained)
            raise AssertionError("it went on")

    steps = []
    monkeypatch.setattr("feddg.engines.rehearsal.perform", lambda r: steps.append(r.job.local))
    rehearse(toy.run(Watched()))
    assert [r.length(1000) for r in steps] == [1]
    assert not made


def test_all_that_is_asked_at_once_is_answered():
    """A score and the outputs for examples from all over the data, then the step."""
    told = []

    class Several(FedAvg):
        def local_update(self, inbox, job, memory):
            model = self.predictor(inbox, job.model)
            told.extend((yield [job.evaluation(model), job.prediction(model)]))
            told.append((yield job.training(inbox.model)))

    rehearse(toy.run(Several()))
    assert [type(t).__name__ for t in told] == ["dict", "Tensor"]
    assert "loss" in told[0]
    assert told[1].shape[1] == 3


def test_nothing_of_it_is_left():
    run = toy.run(compose("ga+fedprox"))
    before = [v.clone() for v in run.model.state_dict().values()]
    chance = torch.random.get_rng_state()
    first = toy.vector(compose("ga+fedprox"))
    rehearse(run)
    assert torch.equal(chance, torch.random.get_rng_state())
    after = run.model.state_dict().values()
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))
    assert torch.equal(list(toy.history(run))[-1].state.model.vector, first)


def broken_at(*names):
    fed = toy.federation()
    sites = [
        replace(s, train=replace(s.train, y=s.train.y + 7 * (s.name in names))) for s in fed.sites
    ]
    return replace(fed, sites=tuple(sites))


def test_one_sites_trouble_is_its_own():
    rehearse(toy.run(compose("fedavg"), federation=broken_at("dawn")))
    with pytest.raises(ConfigError, match="at any site; dawn: IndexError"):
        rehearse(toy.run(compose("fedavg"), federation=broken_at("dawn", "noon", "dusk")))


def test_train_is_rehearsed_before_its_folder_is_made(tmp_path):
    with pytest.raises(ConfigError, match=r"^scaffold.* cannot train"):
        train(
            toy.Net(), toy.federation(), "scaffold",
            recipe=Recipe(optimizer="adam"), out=tmp_path / "run", workers=1,
        )  # fmt: skip
    assert not list(tmp_path.iterdir())


def test_a_server_that_cannot_begin_is_said_in_words():
    class Deaf(FedAvg):
        def init(self, model, sites):
            raise KeyError("absent")

    with pytest.raises(FeddgError, match=r"Deaf.* failed at the server: KeyError: 'absent'"):
        rehearse(toy.run(Deaf()))
