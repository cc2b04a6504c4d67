import pytest

from feddg.benchmark.experiment import Experiment
from feddg.benchmark.stored import stored_runs
from feddg.report.groups import grouped
from feddg.report.rows import about, published, rows, twice
from tests.report.folders import bench, written
from tests.report.stored import stored


@pytest.fixture(scope="module")
def group(tmp_path_factory):
    [found] = grouped(bench(tmp_path_factory.mktemp("runs")))
    return found


def test_the_best_method_comes_first_and_bounds_come_last(group):
    """ga: (70 + 91) / 2 = 80.5; fedavg: (81 + 62) / 2 = 71.5; fedprox: (75.5 + 68.5) / 2."""
    found = rows(group)
    assert [r.name for r in found] == ["ga", "fedprox(mu=0.01)", "fedavg", "m15 alone"]
    assert [r.line.average and r.line.average.mean for r in found] == [
        pytest.approx(80.5), pytest.approx(72), pytest.approx(71.5), None,
    ]  # fmt: skip
    assert {t: list(by) for t, by in found[0].runs.items()} == {"m0": [0, 1], "m15": [0, 1]}
    assert len(found[0].every_run) == 4


def test_what_a_row_is_in_words():
    def told(**changes):
        return about(Experiment(data="rotated-mnist", targets=("m0",), **changes))

    assert told(method="ga+fedprox")[1] == (
        "sites that merging hurts have more say; stays near the model sent"
    )
    assert told(pooled=True) == ("reference bounds", "all sources' data pooled in one place")
    assert told(oracle=True)[1].startswith("trained on 80% of the target")
    assert told(sources=("m15",))[1] == "its own data only, without the others"


def test_a_run_that_was_made_twice_is_named(tmp_path, group):
    assert twice(group) == []
    for place in ("a", "b"):
        written(stored("fedavg", folder=tmp_path / place))
    [found] = grouped(stored_runs([tmp_path]))
    assert twice(found) == [found.runs[0].key]


def test_papers_numbers_by_target_and_their_average_over_the_same_targets():
    """CSAC's Table 3, FedAvg: 92.65 on the average of its six targets."""
    names = [f"m{k}" for k in range(0, 90, 15)]

    def of(targets, rounds=41):
        accuracies = (0.9,) * rounds
        runs = [stored("fedavg", t, accuracies=accuracies, rounds=41) for t in targets]
        [group] = grouped(runs)
        return published(group, rows(group)[0])

    whole = of(names)
    assert set(whole) == {*names, "average"}
    assert whole["average"].value == 92.65
    assert whole["average"].source == "csac table3"
    assert set(of(names[:2])) == set(names[:2])


def test_no_papers_number_beside_another_protocol(group):
    assert published(group, rows(group)[0]) == {}
