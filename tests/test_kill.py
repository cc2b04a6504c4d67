"""A run that is cut off at any moment and started again gives the bytes of one that was not."""

import json
import os
import signal
import sys
import time
from functools import partial
from pathlib import Path

import pytest
import torch

from feddg import checkpoint
from feddg.benchmark import driver
from feddg.seeds import generator
from tests import forked

MOMENTS = 20
ROUNDS = 6
# Source validation, so that the state to keep is not the last; momentum that stays at the sites.
RUN = (
    *("run", "heart-disease", "--target", "va", "--method", "scaffold"),
    *("--selection", "source-val", "--set", "optimizer_state=keep"),
    *("--set", "epochs=1", "--set", "batch_size=32"),
)

linux = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


def argv(root, workers=1, rounds=ROUNDS):
    return [*RUN, "--rounds", str(rounds), "--workers", str(workers), "--out", str(root)]


def model(root) -> bytes:
    [path] = Path(root).glob("*/model/model.safetensors")
    return path.read_bytes()


def records(root) -> list:
    [path] = Path(root).glob("*/results.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()]


def log(root) -> str:
    return "".join(p.read_text() for p in Path(root).glob("*/results.jsonl"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The model of a run that nobody disturbs, and how long it takes."""
    root = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:  # here, so that the children import nothing
        patch.setattr(sys, "argv", sys.argv)
        assert forked.called(argv(root)) == 0
    again = tmp_path_factory.mktemp("again")
    began = time.monotonic()
    assert forked.finish(argv(again), again / "said", forked.every_round) == 0
    took = time.monotonic() - began
    assert model(root) == model(again)
    return model(root), took


@pytest.mark.parametrize("workers", [2, 3])
def test_the_number_of_workers_does_not_matter(whole, tmp_path, workers):
    assert forked.finish(argv(tmp_path, workers), tmp_path / "said") == 0
    assert model(tmp_path) == whole[0]


def test_killed_at_random_moments(whole, tmp_path):
    """SIGKILL spread over the length of a run; killed and resumed with one worker and with two.

    Every other run saves now and then only, so that its record is ahead of its checkpoint.
    """
    rng = generator("kill")
    cut_off = 0
    for i in range(MOMENTS):
        root, said = tmp_path / str(i), tmp_path / f"said{i}"
        pace = slowly if i % 2 else forked.every_round
        pid = forked.start(argv(root, 1 + i % 2), said, pace)
        chance = torch.rand((), generator=rng).item()
        time.sleep((i + chance) / MOMENTS * whole[1])
        os.kill(pid, signal.SIGKILL)
        cut_off += forked.ended(pid) == -signal.SIGKILL
        before = log(root)
        assert forked.finish(argv(root, 1 + i // 2 % 2), said) == 0, said.read_text()
        assert model(root) == whole[0], f"killed after {i + chance:.2f} of {MOMENTS}"
        assert [r["round"] for r in records(root)] == list(range(ROUNDS))
        assert log(root).startswith(before[: before.rfind("\n") + 1])  # append-only
    assert cut_off > MOMENTS // 2  # or nothing was tested


def slowly():
    driver.SECONDS_BETWEEN_CHECKPOINTS = 0.05


def test_killed_before_every_write(whole, tmp_path):
    """No moment between two steps of the disk is left out: the child kills itself there."""
    k, survived = 0, False
    while not survived:
        root, said = tmp_path / str(k), tmp_path / f"said{k}"
        survived = forked.finish(argv(root, rounds=2), said, partial(dies_before, k)) == 0
        assert forked.finish(argv(root, rounds=2), said) == 0, said.read_text()
        assert model(root) == model(tmp_path / "0"), f"killed before write {k}"
        k += 1
    assert k > 10


def dies_before(k):
    """The k-th call that changes what a later process sees is the last thing that is not done."""
    forked.every_round()
    count = iter(range(k))

    def patched(name):
        real = getattr(os, name)

        def call(*args, **options):
            if next(count, None) is None:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*args, **options)

        setattr(os, name, call)

    for name in ("replace", "fsync", "rename", "unlink", "mkdir"):
        patched(name)


@linux
def test_no_worker_outlives_a_killed_run(tmp_path):
    pid = forked.start(argv(tmp_path, workers=2, rounds=500), tmp_path / "said")
    forked.until(lambda: log(tmp_path))
    workers = forked.children(pid)
    assert len(workers) == 2
    os.kill(pid, signal.SIGKILL)
    forked.ended(pid)
    forked.until(lambda: all(map(forked.gone, workers)), seconds=10)


@linux
@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_loses_nothing_and_says_how_to_go_on(whole, tmp_path, workers):
    said, went_on = tmp_path / "said", tmp_path / "went_on"
    pid = forked.start(argv(tmp_path, workers), said, patient)
    forked.until(lambda: log(tmp_path).count("\n") >= 2)
    processes = forked.children(pid)
    os.kill(pid, signal.SIGINT)
    assert forked.ended(pid) == 130
    assert all(map(forked.gone, processes))
    done = log(tmp_path).count("\n")
    [saved] = tmp_path.glob("*/checkpoint.safetensors")
    assert checkpoint.load(saved).next_round == done < ROUNDS
    assert "run the same command again: feddg run heart-disease" in said.read_text()
    assert "Traceback" not in said.read_text()
    assert forked.finish(argv(tmp_path, workers), went_on) == 0
    assert model(tmp_path) == whole[0]


def patient():
    """Nothing is saved before the end by itself, and a round takes long enough to be caught."""
    forked.never()
    noted = driver.Conducted.note

    def slow(*args):
        record = noted(*args)
        time.sleep(0.1)
        return record

    setattr(driver.Conducted, "note", slow)  # noqa: B010 (for mypy)


def test_a_finished_run_prints_its_result_at_once(tmp_path):
    root, first, second = tmp_path / "runs", tmp_path / "first", tmp_path / "second"
    assert forked.finish(argv(root), first) == 0
    before = {p: p.stat().st_mtime_ns for p in root.rglob("*") if p.is_file()}
    assert forked.finish(argv(root), second, no_training) == 0
    assert "round" in second.read_text()
    assert {p: p.stat().st_mtime_ns for p in root.rglob("*") if p.is_file()} == before


def no_training():
    setattr(driver, "open_engine", None)  # noqa: B010 (for mypy)
