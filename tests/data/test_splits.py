"""The manifest of splits: what stands in it, and that a difference is found and named."""

import importlib.util
import json
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
import torch

from feddg.data import splits
from feddg.data.catalogue import open_collection
from feddg.data.check import check
from feddg.data.domain import Domain, Examples
from feddg.tasks import Classification, Regression
from tests.cli.command import feddg

TASK = Classification(("cat", "dog"))
SCRIPT = Path(__file__).parents[2] / "scripts" / "build_splits_manifest.py"


def domain(n=20, name="art", **fields):
    y = torch.arange(n) % 2
    names = tuple(f"{name}/{k % 2}/{k:02d}.png" for k in range(n))
    return Domain(name, Examples(torch.zeros(n, 1), y), **{"files": names, **fields})


@dataclass
class Listing:
    paths: list[Path]
    labels: list[int]
    splits: dict[str, list[int]] = field(default_factory=dict)


def test_examples_are_known_by_domain_class_and_file_or_row():
    assert splits.identities(domain(3), TASK) == ["art/cat/00.png", "art/dog/01.png",
                                                  "art/cat/02.png"]  # fmt: skip
    assert splits.identities(domain(2, files=()), TASK) == ["art/cat/0", "art/dog/1"]
    assert splits.identities(domain(2), Regression()) == ["art/00.png", "art/01.png"]


def test_a_digest_is_of_the_sorted_names():
    assert splits.digest(["b", "a"]) == splits.digest(["a", "b"])
    assert splits.digest(["a", "b"]) != splits.digest(["a", "c"])
    assert len(splits.digest([])) == 16


def test_an_entry_has_the_parts_and_what_each_seed_holds_out():
    plain = splits.entry(domain(), TASK)
    assert plain["examples"] == 20
    assert "parts" not in plain
    held = domain().split(0.2, 3).splits["val"]
    names = splits.identities(domain(), TASK)
    assert plain["held"]["0.2"][3] == splits.digest(splits.picked(names, held))
    assert len({*plain["held"]["0.1"], *plain["held"]["0.2"]}) == 10
    parts = {"train": torch.arange(15), "test": torch.arange(15, 20)}
    given = splits.entry(domain(splits=parts), TASK)
    assert given["parts"] == {
        "test": [5, splits.digest(names[15:])], "train": [15, splits.digest(names[:15])],
    }  # fmt: skip
    assert given["held"] != plain["held"]  # drawn from the training part alone
    official = domain(splits={"train": torch.arange(15), "val": torch.arange(15, 20)})
    assert "held" not in splits.entry(official, TASK)
    assert "held" not in splits.entry(domain(splits={"test": torch.arange(20)}), TASK)
    assert splits.entry(domain(3), TASK)["held"]["0.1"] == [""] * 5  # too few for a tenth


def test_image_files_need_not_be_decoded():
    there = domain(4, splits={"train": torch.arange(3), "test": torch.tensor([3])})
    paths = [Path("/anywhere") / file for file in there.files]
    listings = {"art": Listing(paths, [0, 1, 0, 1], {"train": [0, 1, 2], "test": [3], "val": []})}
    (listed,) = splits.undecoded(listings, official=True)
    assert splits.entry(listed, TASK) == splits.entry(there, TASK)
    (bare,) = splits.undecoded(listings, official=False)
    assert "parts" not in splits.entry(bare, TASK)


PARTS = {"train": torch.arange(15), "test": torch.arange(15, 20)}


@pytest.mark.parametrize(
    ("mine", "theirs", "sentence"),
    [
        (domain(19), domain(), "19 examples where 20 are expected"),
        (domain(files=domain(name="photo").files[::-1]), domain(), "as many examples, but other"),
        (domain(splits=PARTS), domain(), "its part 'test' has 5 examples, others than the 0 there"),
        (
            domain(splits=PARTS | {"test": torch.arange(14, 19)}), domain(splits=PARTS),
            "its part 'test' has 5 examples, others than the 5 there",
        ),
    ],
)  # fmt: skip
def test_differences_are_named(mine, theirs, sentence):
    wanted = {"art": splits.entry(theirs, TASK)}
    assert splits.differences([theirs], TASK, wanted) == ()
    (said,) = splits.differences([mine], TASK, wanted)
    assert said.startswith("domain 'art' is not as in the manifest: ")
    assert sentence in said


def test_another_order_holds_out_other_examples():
    order = torch.arange(20).flip(0)
    there = domain()
    turned = Domain("art", there.examples.take(order), files=there.files[::-1])
    said = splits.difference(splits.entry(turned, TASK), splits.entry(there, TASK))
    assert said == "seed 0 holds out other examples at share 0.1: another order"


def test_only_what_is_in_both_is_compared():
    """A part of Digit-Five may be opened, and the manifest may have a part of it."""
    wanted = {"photo": splits.entry(domain(name="photo"), TASK)}
    assert splits.differences([domain()], TASK, wanted) == ()


def test_options_that_choose_among_images_are_another_protocol(tmp_path):
    chosen = {"root": tmp_path, "classes": "10"}
    assert splits.of_listings(False, chosen) == "seeded split, classes=10"
    assert splits.of_listings(True, {"root": tmp_path}) == "official split"


def test_a_protocol_is_known_without_the_layout_it_lay_in():
    assert splits.kind("official split; PACS/<domain>/<class>") == "official split"
    assert splits.known("heart-disease", "not scaled; somewhere") is not None
    assert splits.known("heart-disease", "unheard of") is None
    assert splits.known("pcas", "csac") is None


@pytest.mark.parametrize("name", ["rotated-mnist", "heart-disease"])
def test_check_compares_with_the_manifest(name, monkeypatch, capsys):
    report = check(name)
    assert report.splits == "as in the manifest"
    assert not any("manifest" in w for w in report.warnings)
    found = json.loads(json.dumps(splits.manifest()))
    second = list(found[name][0]["domains"])[1]
    found[name][0]["domains"][second]["held"]["0.2"][4] = "0" * 16
    monkeypatch.setattr(splits, "manifest", lambda: found)
    report = check(name)
    assert report.splits == "not as in the manifest"
    (warning,) = [w for w in report.warnings if "manifest" in w]
    assert warning == (
        f"domain {second!r} is not as in the manifest: seed 4 holds out other examples at share"
        " 0.2: another order"
    )
    del found[name][0]["domains"][second]
    report = check(name)
    assert report.splits == f"as in the manifest; not in it: {second}"
    monkeypatch.setattr(splits, "manifest", dict)
    said = feddg(capsys, "data", "check", name)
    assert "splits: not in the manifest for protocol" in said.out


def test_the_manifest_is_what_the_script_writes(tmp_path, monkeypatch, capsys):
    """Writing the entries of the package's own data again changes nothing."""
    spec = importlib.util.spec_from_file_location("build_splits_manifest", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    before = script.PLACE.read_text("utf-8")
    monkeypatch.setattr(script, "PLACE", tmp_path / "splits.json")
    (tmp_path / "splits.json").write_text(before, "utf-8")
    script.main([])
    assert (tmp_path / "splits.json").read_text("utf-8") == before


def test_every_seed_and_share_of_embedded_data_is_covered():
    for name in ("rotated-mnist", "heart-disease"):
        data = open_collection(name)
        wanted = splits.known(name, data.protocol)
        assert wanted is not None
        assert list(wanted) == list(data.names)
        for entry in wanted.values():
            assert {k: len(v) for k, v in entry["held"].items()} == {"0.1": 5, "0.2": 5}
            assert all("" not in seeds for seeds in entry["held"].values())


def test_a_moved_file_is_the_same_example():
    moved = replace(domain(), files=tuple(f"elsewhere/{f}" for f in domain().files))
    assert splits.entry(moved, TASK) == splits.entry(domain(), TASK)
