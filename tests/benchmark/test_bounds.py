"""Reference bounds: other federations through the same table."""

import pytest
import torch

from feddg.benchmark.bench import Bench, listed
from feddg.benchmark.bounds import BOUNDS, rows
from feddg.benchmark.protocols import experiment
from feddg.benchmark.roles import collection
from feddg.errors import ConfigError


def test_rows_of_bounds_and_methods():
    assert rows("fedprox", ("a", "b")) == [("fedprox", {"method": "fedprox"})]
    assert [name for name, _ in rows("source-only", ("a", "b"))] == ["a alone", "b alone"]
    [(name, changes)] = rows("deepall", ("a", "b"))
    assert "shares data" in name
    assert changes["pooled"]
    assert {k for k, b in BOUNDS.items() if b.shares_data} == {"deepall", "oracle"}


def test_the_oracle_trains_on_most_of_the_target_and_is_judged_on_the_rest():
    run, _ = experiment("heart-disease", targets=("va",), oracle=True).prepared_run()
    [site], [target] = run.federation.sites, run.federation.targets
    judged = run.judged["test/va"]
    assert (len(site.train), len(judged)) == (160, 40)
    whole = torch.cat([site.train.y, judged.y]).sort()[0]
    assert torch.equal(whole, target.examples.y.sort()[0])


def test_the_oracle_scales_by_its_own_hospital_only():
    one = experiment("heart-disease", targets=("va",), oracle=True)
    alone = experiment("heart-disease", sources=("va",), targets=("cleveland",))
    run, _ = one.prepared_run()
    assert run.federation.collection.prepare == collection(alone.roles).prepare


def test_deepall_has_one_site_with_all_sources():
    run, _ = experiment("heart-disease", targets=("va",), pooled=True).prepared_run()
    [site] = run.federation.sites
    assert len(site.train) + len(site.val) == 303 + 294 + 123  # type: ignore[arg-type]


def test_bounds_are_named_like_methods_and_stand_beside_the_papers_number():
    bench = Bench(data="rotated-mnist", methods=("deepall", "fedavg"))
    assert [name for name, _ in bench.rows()] == ["deepall (shares data)", "fedavg"]
    assert listed("deepall (shares data)") == "deepall"
    assert listed("m0 alone") is None


def test_heart_disease_shows_its_references_once():
    bench = Bench(data="heart-disease", methods=("deepall", "fedavg"))
    names = [name for name, _ in bench.rows()]
    assert names[:4] == ["cleveland alone", "hungarian alone", "switzerland alone", "va alone"]
    assert names[4:] == ["deepall (shares data)", "fedavg"]


def test_an_unknown_target_of_the_oracle_is_named():
    with pytest.raises(ConfigError, match="nowhere"):
        experiment("heart-disease", targets=("nowhere",), oracle=True).prepared_run()
