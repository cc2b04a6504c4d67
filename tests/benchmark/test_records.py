"""A run's folder and its record."""

import json

import pytest

from feddg.benchmark.records import RunFolder, finished, read_records
from feddg.errors import ConfigError

SPLIT = {"a": {"examples": 4, "val": [1]}}


@pytest.fixture
def folder(tmp_path):
    made = RunFolder.open(tmp_path / "run", "x = 1\n", SPLIT)
    yield made
    made.close()


def again(folder, config="x = 1\n", split=SPLIT):
    folder.close()
    return RunFolder.open(folder.path, config, split)


def test_the_record_grows_line_by_line(folder):
    folder.append({"round": 0})
    folder.append({"round": 1})
    assert folder.log.read_text() == '{"round": 0}\n{"round": 1}\n'
    assert folder.records() == read_records(folder.log) == [{"round": 0}, {"round": 1}]


def test_half_a_line_that_a_crash_left_goes_and_whole_lines_stay(folder):
    folder.append({"round": 0})
    with open(folder.log, "a") as file:
        file.write('{"round": 1, "sc')
    assert read_records(folder.log) == [{"round": 0}]
    assert folder.records() == [{"round": 0}]
    folder.append({"round": 1})
    assert folder.log.read_text() == '{"round": 0}\n{"round": 1}\n'


def test_a_damaged_line_is_reported(folder):
    folder.log.write_text('{"round": 0}\nnonsense\n{"round": 2}\n')
    with pytest.raises(ConfigError, match=r"results\.jsonl, line 2 is damaged"):
        folder.records()


def test_the_record_is_strict_json(folder):
    with pytest.raises(ValueError, match="not JSON compliant"):
        folder.append({"loss": float("nan")})


def test_no_record_yet(folder, tmp_path):
    assert folder.records() == []
    assert read_records(tmp_path / "no.jsonl") == []


def test_in_use_by_this_process(folder):
    with pytest.raises(ConfigError, match="in use by this very process"):
        RunFolder.open(folder.path / ".." / "run", "x = 1\n")


def test_let_go_when_closed(folder):
    again(folder).close()
    again(folder).close()


def test_another_configuration_is_refused_and_lets_go(folder):
    with pytest.raises(ConfigError, match="holds another run"):
        again(folder, "x = 2\n")
    again(folder).close()


def test_another_split_is_refused(folder):
    with pytest.raises(ConfigError, match="site 'a' had other data, or held out other rows"):
        again(folder, split={"a": {"examples": 4, "val": [2]}})
    with pytest.raises(ConfigError, match="site 'b'"):
        again(folder, split={**SPLIT, "b": {"examples": 1, "val": []}})
    (folder.path / "split.json").write_text("{")
    with pytest.raises(ConfigError, match="is damaged"):
        again(folder)


def test_nothing_written_twice(folder):
    before = {p.name: p.stat().st_mtime_ns for p in folder.path.iterdir() if p.suffix}
    again(folder).close()
    assert {p.name: p.stat().st_mtime_ns for p in folder.path.iterdir() if p.suffix} == before
    assert json.loads((folder.path / "split.json").read_text()) == SPLIT


def test_finished_means_there_is_a_model(folder):
    assert not folder.finished
    folder.model.mkdir()
    assert not finished(folder.path)
    (folder.model / "model.safetensors").write_bytes(b"")
    assert folder.finished
