"""From plain values to a run, and the name of its folder."""

from dataclasses import replace

import pytest
import torch

from feddg.benchmark import roles
from feddg.benchmark.experiment import Experiment, from_toml, plain
from feddg.errors import ConfigError, DataError
from feddg.models.small import MLP
from feddg.recipe import Recipe
from feddg.seeds import generator
from tests.cli.command import sites

HEART = Experiment(data="heart-disease", targets=("va",), model="mlp", rounds=2)


def test_prepared_has_sites_targets_and_a_network_of_the_right_size():
    run, architecture = HEART.prepared_run()
    assert run.names == ["cleveland", "hungarian", "switzerland"]
    assert [d.name for d in run.federation.targets] == ["va"]
    assert isinstance(run.model, MLP)
    assert architecture.options == {"inputs": 26, "outputs": 2}


def test_toml_gives_the_experiment_back(tmp_path):
    one = replace(
        HEART, recipe=Recipe(lr=1.0, steps=5), participation=2, min_sites=1,
        data_options={"scaling": "site"}, sources=("cleveland", "hungarian"),
    )  # fmt: skip
    (tmp_path / "c.toml").write_text(one.to_toml())
    again = from_toml(tmp_path / "c.toml")
    assert again == one
    assert type(again.participation) is int
    assert again.key == one.key


def test_the_key_is_the_configuration_and_nothing_else():
    assert HEART.key == replace(HEART, method="fedavg(weights='size')").key
    assert HEART.key == HEART.resolved().key
    assert HEART.key.startswith("fedavg_va_seed0_")
    changes = (
        {"seed": 1}, {"rounds": 3}, {"method": "fedprox"}, {"recipe": Recipe(lr=0.5)},
        {"targets": ("cleveland",)}, {"selection": "source-val"},
        {"data_options": {"scaling": "site"}}, {"allow_missing_classes": True},
    )  # fmt: skip
    keys = {replace(HEART, **c).key for c in changes}
    assert len(keys) == len(changes)
    assert HEART.key not in keys


def test_the_key_of_a_folder_does_not_depend_on_how_it_is_written(tmp_path, monkeypatch):
    sites(tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    one, other = Experiment(data="data"), Experiment(data=f"{tmp_path}/data/")
    assert one.key == other.key
    assert one.resolved().data == str(tmp_path / "data")


def test_plain_names_are_safe():
    assert plain("csac+../../etc (x=1)") == "csac+..-..-etc--x-1"
    assert plain("..") == ""
    assert len(plain("x" * 200)) == 60


def test_pooled_is_one_site_with_everybodys_data():
    run, _ = replace(HEART, pooled=True).prepared_run()
    alone, _ = HEART.prepared_run()
    [site] = run.sites
    assert len(site.train) == sum(len(s.train) for s in alone.sites)
    assert site.val is not None
    assert torch.equal(site.val.y, torch.cat([s.val.y for s in alone.sites if s.val]))


def test_statistics_of_the_data_come_from_the_sources_alone():
    """Trained on Cleveland alone, the scaling is Cleveland's; the target's is in none."""
    every, _ = HEART.prepared_run()
    one, _ = replace(HEART, sources=("cleveland",)).prepared_run()
    without, _ = replace(HEART, targets=("va", "hungarian")).prepared_run()
    same, _ = replace(
        HEART, targets=("va", "hungarian"), sources=("cleveland", "switzerland")
    ).prepared_run()
    prepares = [r.federation.collection.prepare for r in (every, one, without)]
    assert prepares[0] != prepares[1] != prepares[2]
    assert prepares[2] == same.federation.collection.prepare


def test_the_option_sources_must_not_hold_what_is_held_out():
    with pytest.raises(DataError, match="domain 'va' is held out and in the data option sources="):
        replace(HEART, data_options={"sources": "cleveland,va"}).prepared_run()
    run, _ = replace(HEART, data_options={"sources": "cleveland"}).prepared_run()
    assert run.federation.collection.scaled_on == ("cleveland",)


def test_methods_of_a_bench_share_one_federation():
    roles.federated.cache_clear()
    a, _ = HEART.prepared_run()
    b, _ = replace(HEART, method="fedprox").prepared_run()
    assert a.federation is b.federation
    assert a.model is not b.model


def test_splits_say_which_rows_are_held_out():
    ready = HEART.prepared()
    data = ready.run.federation.collection
    for site in ready.run.sites:
        rows = ready.splits[site.name]
        assert rows["examples"] == len(data[site.name].examples)
        assert site.val is not None
        torch.testing.assert_close(  # NaN where a value is missing
            data[site.name].examples.x[rows["val"]], site.val.x, rtol=0, atol=0, equal_nan=True
        )
    other = replace(HEART, seed=1).prepared().splits
    assert other != ready.splits
    assert replace(HEART, share=0.0).prepared().splits["cleveland"]["val"] == []


def test_a_class_that_a_site_lacks(tmp_path):
    root = sites(tmp_path / "data")
    text = (root / "a.csv").read_text().replace(",well", ",ill")
    (root / "a.csv").write_text(text)
    one = Experiment(data=str(root), targets=("c",))
    with pytest.raises(DataError, match="site 'a' of data has no example of class 'well'"):
        one.prepared()
    assert replace(one, allow_missing_classes=True).prepared().run.names == ["a", "b"]


def test_a_class_that_is_held_out_whole_is_missing_too(tmp_path):
    """Site a has a single 'well'; some seed's validation split takes it from the training rows."""
    root = sites(tmp_path / "data")
    header, first, *rest = (root / "a.csv").read_text().split()
    lines = [header, first.rsplit(",", 1)[0] + ",well"]
    lines += [row.rsplit(",", 1)[0] + ",ill" for row in rest]
    (root / "a.csv").write_text("\n".join(lines) + "\n")
    held = {s: 0 in torch.randperm(40, generator=generator(s, "split"))[:20] for s in range(9)}
    assert set(held.values()) == {True, False}
    for seed, gone in held.items():
        one = Experiment(data=str(root), targets=("c",), share=0.5, seed=seed)
        if not gone:
            assert one.prepared().run.names == ["a", "b"]
            continue
        with pytest.raises(DataError, match="site 'a' of data has no example of class 'well'"):
            one.prepared()


@pytest.mark.parametrize(
    "wrong",
    [
        {"rounds": 0}, {"share": 1.0}, {"share": -0.1}, {"selection": "x"}, {"participation": 0},
        {"participation": 1.5}, {"min_sites": 0}, {"method": "fedporx"}, {"model": "mpl"},
    ],
)  # fmt: skip
def test_impossible_values_are_refused_at_once(wrong):
    with pytest.raises(ConfigError):
        replace(HEART, **wrong)


def test_labels_of_runs():
    assert HEART.label == "fedavg→va"
    assert replace(HEART, pooled=True).label == "fedavg (pooled)→va"
    assert replace(HEART, sources=("cleveland",)).label == "fedavg (cleveland)→va"
    assert replace(HEART, targets=()).label == "fedavg→all sites"
