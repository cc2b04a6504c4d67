"""What of an item is run, on which data, and how it shares its records with `feddg bench`."""

import pytest

from feddg.benchmark import reproduce
from feddg.benchmark.bench import Bench
from feddg.benchmark.papers import Column, find
from feddg.benchmark.reproduce import absent, heading, over, plan
from feddg.engines.compute import Compute
from feddg.errors import ConfigError
from feddg.tasks import Classification
from tests.cli.command import images

[TABLE3] = find("csac", "table3")
[TABLE4] = find("ppdg", "table4")
[GA] = find("ga", "table1-pacs")
[OFFICE] = find("copa", "table2")
CPU = Compute(device="cpu")


def test_the_papers_own_size():
    wanted = plan(TABLE3)
    assert (wanted.seeds, wanted.targets) == (5, ("m0", "m15", "m30", "m45", "m60", "m75"))
    assert len(wanted.runs()) == 4 * 6 * 5


def test_a_bench_of_the_same_protocol_has_the_same_runs():
    """So `feddg bench rotated-mnist` and `feddg reproduce csac table3` share their records."""
    ours = plan(TABLE3, methods=("fedavg", "csac"), seeds=2).runs()
    bench = Bench(data="rotated-mnist", methods=("fedavg", "csac"), seeds=2).unique()
    assert set(ours) == set(bench)


def test_a_part_of_it():
    part = plan(TABLE3, methods=("CSAC", "fedavg"), targets=("m75", "m0"), seeds=1)
    assert [r.label for r in part.rows] == ["FedAvg", "CSAC"]
    assert part.columns == ("m0", "m75")
    assert len(part.runs()) == 4


@pytest.mark.parametrize(
    ("methods", "rows"),
    [
        (("fedavg",), ["FedAvg"]),  # the composition
        (("FedAvg",), ["FedAvg", "FedAvg +GA"]),  # the paper's name
        (("fedavg +ga",), ["FedAvg +GA"]),  # with the variant
        (("ga+rsc", "rsc"), ["RSC", "RSC +GA"]),
    ],
)
def test_rows_by_composition_and_by_the_papers_name(methods, rows):
    assert [r.name for r in plan(GA, methods=methods).rows] == rows


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"methods": ("csca",)}, "unknown row of csac table3 'csca'; did you mean 'csac'"),
        ({"targets": ("m7",)}, "unknown target of csac table3 'm7'"),
    ],
)
def test_misspelt(given, sentence):
    with pytest.raises(ConfigError, match=sentence):
        plan(TABLE3, **given)


def test_a_test_against_a_method_keeps_that_method():
    [item] = find("ppdg", "table7-rotated-mnist")
    assert [r.label for r in plan(item, methods=("fedavg",)).rows] == ["FedAvg", "PPDG"]


def test_a_quick_version_of_data_that_are_here():
    wanted = plan(TABLE3, quick=True, how=CPU)
    assert (wanted.stand_in, wanted.seeds, wanted.targets) == ("", 1, ("m45",))
    [one, *_] = wanted.runs().values()
    assert (one.data, one.rounds, one.recipe.at(0).steps, one.recipe.at(1).steps) == (
        "rotated-mnist", 3, 30, 10,
    )  # fmt: skip
    assert heading(wanted).startswith("CSAC, Table 3: Rotated MNIST; QUICK: 3 rounds of 10 steps")
    assert "DIGITS" not in heading(wanted)


def test_a_quick_version_of_data_that_are_not():
    wanted = plan(TABLE4, quick=True, how=CPU)
    assert wanted.stand_in == "rotated-mnist (protocol=domainbed) is not here"
    assert "on the EMBEDDED DIGITS (Rotated MNIST), for rotated-mnist" in heading(wanted)
    ones = list(wanted.runs().values())
    assert {(one.data, one.model, one.weights, one.share) for one in ones} == {
        ("rotated-mnist", "rotated-mnist-cnn", "", 0.1)
    }
    assert all(one.data_options == {} for one in ones)


def test_layers_of_another_network_and_domains_for_validation_give_way_on_digits():
    wanted = plan(OFFICE, quick=True, how=CPU)
    assert [wanted.method(r) for r in wanted.rows] == ["deepall", "copa"]
    [wilds] = find("ppdg", "table1")
    assert wilds.selection == "domain-val"
    assert plan(wilds, quick=True, how=CPU).selection == "last"


def test_photographs_take_digits_without_a_gpu(monkeypatch):
    monkeypatch.setattr(reproduce, "absent", lambda *_: "")
    assert "resnet18 takes longer than a minute" in plan(GA, quick=True, how=CPU).stand_in
    monkeypatch.setattr(Compute, "on_gpu", True)
    assert plan(GA, quick=True).stand_in == ""


def test_whether_the_data_are_here(tmp_path):
    assert absent(TABLE3) == ""
    assert "needs the full MNIST" in absent(TABLE4)
    for name in ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images.idx3-ubyte"):
        assert "has no file" in absent(TABLE4, {"root": str(tmp_path)})
        (tmp_path / name).touch()
    assert "no file t10k-labels-idx1-ubyte" in absent(TABLE4, {"root": str(tmp_path)})
    (tmp_path / "t10k-labels-idx1-ubyte.gz").touch()
    assert absent(TABLE4, {"root": str(tmp_path)}) == ""
    assert "there is no folder" in absent(TABLE4, {"root": str(tmp_path / "none")})
    assert absent(GA)


def test_digits_and_wilds_that_are_not_whole_are_not_here(tmp_path):
    """They have no survey of images; a folder of their name alone is not they."""
    at = {"root": str(tmp_path)}
    [five], [camelyon] = find("copa", "table4"), find("ppdg", "table1")
    for name in ("mnist", "mnist_m", "usps"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "train-images-idx3-ubyte").touch()
    assert "has no svhn, syn of digit-five" in absent(five, at)
    assert "no camelyon17 of WILDS: no metadata.csv with patches" in absent(camelyon, at)
    (tmp_path / "camelyon17_v1.0" / "patches").mkdir(parents=True)
    (tmp_path / "camelyon17_v1.0" / "metadata.csv").touch()
    assert absent(camelyon, at) == ""


def test_rows_of_other_sources_are_benches_of_their_own():
    """Figure 5 of CSAC: one source more at each of six steps, three methods at each."""
    [item] = find("csac", "fig5")
    benches = plan(item).benches()
    assert [len(rows) for rows, _ in benches] == [3] * 6
    assert [len(b.changes["sources"]) for _, b in benches] == [1, 2, 3, 4, 5, 6]


def test_on_digits_as_many_sources():
    [item] = find("csac", "fig5")
    runs = plan(item, methods=("csac",), quick=True, how=CPU).runs().values()
    assert sorted(len(one.sources) for one in runs) == [1, 2, 3, 4, 5]
    assert {one.targets for one in runs} == {("m45",)}
    assert not any("m45" in one.sources for one in runs)


def test_other_weights_are_said():
    """Where there is no hub: a file of the same network."""
    wanted = plan(GA, weights="mine.safetensors")
    assert "with weights=mine.safetensors, not hub" in heading(wanted)
    assert wanted.changes(GA.rows[0])["weights"] == "mine.safetensors"
    assert plan(GA).changes(GA.rows[0])["weights"] == "hub"
    assert (plan(GA).compares, wanted.compares) == (True, False)


def test_other_data_are_said_and_have_no_verdict():
    wanted = plan(GA, options={"size": "64", "root": "/there"})
    assert "with size=64, which the paper's data have not" in heading(wanted)
    assert "root" not in heading(wanted)
    assert not wanted.compares
    assert plan(GA, options={"root": "/there"}).compares


def test_a_data_set_that_lacks_a_domain_is_not_here(tmp_path):
    """A look at the files finds it, before anything is decoded."""
    root = images(tmp_path / "pacs", domains=("photo", "sketch"))
    assert "art_painting" in absent(GA, {"root": str(root)})


def test_scores_over_all_parts_of_a_kind_and_their_worst_group():
    task = Classification(("x", "o"))
    record = {
        "scores": {
            "val/a": {"accuracy": 0.1},
            "test/c": {"accuracy": 0.5, "worst_group": 0.3},
            "test/d": {"accuracy": 0.7, "worst_group": 0.4},
        }
    }
    assert over(record, Column(name="t", part="test"), task) == pytest.approx(0.6)
    assert over(record, Column(name="w", part="test", worst=True), task) == 0.3
    assert over(record, Column(name="v", part="validation"), task) is None
