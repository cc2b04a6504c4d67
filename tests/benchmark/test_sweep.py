"""Settings are chosen by the sources' validation data, and the target's score is never read."""

import json

import pytest

from feddg.benchmark import sweep as module
from feddg.benchmark.bench import run_all
from feddg.benchmark.grids import Trial, trials
from feddg.benchmark.sweep import Outcome, Sweep, chosen, outcomes, sheet, validation
from feddg.engines.compute import Compute
from feddg.tasks import Classification, Regression
from tests.cli.command import sites

TASK = Classification(("ill", "well"))


class Sealed(dict):
    """Scores of which the target's cannot be read."""

    def __getitem__(self, key):
        assert not key.startswith("test/"), "the choice has looked at the target"
        return super().__getitem__(key)

    def items(self):
        return [(k, self[k]) for k in self]

    def values(self):
        return [self[k] for k in self]


def record(k, val, test):
    return {
        "round": k,
        "scores": Sealed({"val/a": {"accuracy": val}, "test/c": {"accuracy": test}}),
    }


def test_the_choice_sees_the_sources_alone():
    """Of two rounds the better by validation, 0.8, though the target is best in the other."""
    assert validation([record(0, 0.6, 0.99), record(1, 0.8, 0.1)], TASK) == 0.8


def test_the_lower_the_better_is_turned_round():
    class Error(Regression):
        pass

    task = Error(("y",), "loss", higher_is_better=False)
    records = [{"round": k, "scores": {"val/a": {"loss": v}}} for k, v in enumerate((3.0, 2.0))]
    assert validation(records, task) == -2.0


def outcome(spec, where, score):
    return Outcome(Trial("m", spec, {}, spec), where, score, ())


def test_best_by_target_the_earlier_of_equals_and_none_before_all_are_through():
    found = [
        outcome("x", "a", 0.5), outcome("y", "a", 0.7), outcome("z", "a", 0.7),
        outcome("x", "b", 0.9), outcome("y", "b", None), outcome("z", "b", 0.1),
    ]  # fmt: skip
    assert {k: o.trial.spec for k, o in chosen(found).items()} == {("m", "a"): "y"}


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    root = tmp_path_factory.mktemp("sweep")
    wanted = Sweep(
        data=str(sites(root / "data")), trials=trials(["fedavg"], ["lr=[0.001,0.3,0.1]"]),
        seeds=2, changes={"rounds": 2},
    )  # fmt: skip
    list(run_all(wanted.runs(), root / "runs", Compute(device="cpu", workers=1)))
    return wanted, root / "runs"


def test_every_trial_is_in_the_records(swept):
    wanted, root = swept
    assert len(wanted.runs()) == 3 * 3 * 2
    assert {p.name for p in root.iterdir()} == set(wanted.runs())
    held = [one.share for one in wanted.runs().values()]
    assert set(held) == {0.2}
    assert {one.selection for one in wanted.runs().values()} == {"source-val"}


def test_other_scores_of_the_target_change_nothing_in_the_choice(swept, tmp_path):
    """The records again with the target's scores upside down: the same settings are chosen."""
    wanted, root = swept
    before = {k: o.trial.said for k, o in chosen(outcomes(wanted, root)).items()}
    for key in wanted.runs():
        lines = (root / key / "results.jsonl").read_text().splitlines()
        turned = []
        for line in map(json.loads, lines):
            for part, values in line["scores"].items():
                if part.startswith("test/"):
                    values["accuracy"] = 1 - values["accuracy"]
            turned.append(json.dumps(line))
        (tmp_path / key).mkdir()
        (tmp_path / key / "results.jsonl").write_text("\n".join(turned) + "\n")
    after = {k: o.trial.said for k, o in chosen(outcomes(wanted, tmp_path)).items()}
    assert after == before
    assert len(before) == 3
    one, two = (json.loads(json.dumps(sheet(wanted, r).to_dict())) for r in (root, tmp_path))
    assert [t["source_val"] for t in one["trials"]] == [t["source_val"] for t in two["trials"]]
    picked = [t["target_score_not_used"] for t in one["trials"] if t["chosen"]]
    assert all(v is not None for v in picked)


def test_the_table(swept):
    wanted, root = swept
    found = sheet(wanted, root)
    assert "on the sources' validation data (share 0.2 of each)" in found.title
    assert "3 trials a method; 2 seeds" in found.title
    assert found.head == ("method", "setting", "a", "b", "c")
    assert [row[1] for row in found.body] == ["lr=0.001", "lr=0.3", "lr=0.1", "target, of *"]
    columns = list(zip(*found.body[:3], strict=True))[2:]
    assert all(sum(cell.endswith("*") for cell in column) == 1 for column in columns)
    assert "not used for choosing" in found.notes[0]


def test_a_target_scores_only_after_the_choice(swept, monkeypatch):
    """Scores of targets are asked for the chosen trials alone."""
    wanted, root = swept
    asked = []
    real = module.on_target

    def noting(of, one, place):
        asked.append(one)
        return real(of, one, place)

    monkeypatch.setattr(module, "on_target", noting)
    sheet(wanted, root)
    assert [o.where for o in asked] == ["a", "b", "c"]


def test_what_is_missing_is_said_and_nothing_chosen_of_it(swept, tmp_path):
    wanted, _ = swept
    found = sheet(wanted, tmp_path)
    assert "9 of 9 trials are not finished in this folder." in found.notes
    assert {cell for row in found.body for cell in row[2:]} == {"–"}
