from pathlib import Path

import pytest

from feddg.benchmark.driver import conduct
from feddg.benchmark.protocols import experiment
from feddg.benchmark.stored import stored_runs
from feddg.data.catalogue import open_collection
from feddg.errors import ConfigError


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    wanted = [
        experiment("heart-disease", method=m, targets=("va",), rounds=2)
        for m in ("fedavg", "fedmedian")
    ]
    for _ in conduct(wanted, folder / "deep" / "er", 1):
        pass
    return folder


def test_finds_what_was_run_anywhere_below(root):
    runs = stored_runs([root, root / "deep"])
    assert [r.experiment.method.partition("(")[0] for r in runs] == ["fedavg", "fedmedian"]
    for run in runs:
        assert run.experiment.key == run.key
        assert run.finished
        assert len(run.records) == 2
        assert run.environment["device"] == "cpu"
        assert run.selected(open_collection("heart-disease").task)["round"] == 1


def test_says_where_nothing_is(tmp_path):
    with pytest.raises(ConfigError, match="no run in"):
        stored_runs([tmp_path])
    with pytest.raises(ConfigError, match="no folder"):
        stored_runs([tmp_path / "nowhere"])
