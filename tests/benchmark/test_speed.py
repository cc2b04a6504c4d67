"""The speed benchmark: its table, its own scripts, and peers that fail."""

import json
import sys
import venv
from pathlib import Path

import numpy as np
import pytest
import torch

from feddg.benchmark.speed import environments, measure
from feddg.benchmark.speed.environments import PEERS, Peer, called, interpreter
from feddg.benchmark.speed.measure import (
    BESIDE,
    DEFAULT,
    OURS,
    PLAIN,
    TARGETS,
    Contender,
    Plan,
    attempted,
    lines,
    ours,
    plain,
    scripts,
    the_run,
)
from feddg.benchmark.speed.peers.shared_work import Net, Work, train
from feddg.catalogue import compose
from feddg.errors import FeddgError
from feddg.weights import Weights
from tests import toy


def test_the_time_is_the_median_of_the_later_rounds_over_the_turns():
    """Later rounds 2, 4, 3 and 5, 5, 8: medians 3 and 5, and 4 between them."""
    one = Contender("x", rounds=[[9, 2, 4, 3], [9, 5, 5, 8]])
    assert one.seconds == 4
    assert one.told()["first_round"] == 9


def test_two_side_by_side_do_two_rounds_in_the_time_of_one():
    """3 and 5 seconds each: a round takes 4 in the mean, and there are two of them."""
    one = Contender(BESIDE)
    attempted(one, lambda: ([[3.0, 3.0], [5.0, 5.0]], 1.5))
    assert one.rounds == [[2.0, 2.0]]
    assert one.startup == [1.5]


def test_the_table_has_ratios_to_ours_and_says_who_failed():
    found = {
        "work": {"images": 4960},
        "contenders": [
            Contender(DEFAULT, "2", [[3.0, 1.0]], [1.0]).told(),
            Contender(OURS, "2", [[1.0, 0.5]], [0.0]).told(),
            Contender("Apple's pfl", trouble="not installed: no network").told(),
        ],
    }
    _, default, mine, failed = lines(found)
    assert default[2:6] == ("1.000", "4,960", "2.00×", "1.6×")
    assert mine[4] == "1.00×"
    assert failed[2] == "not installed: no network"
    json.dumps(found)


def test_targets_name_contenders():
    assert TARGETS.keys() == {BESIDE, DEFAULT, *(p.name for p in PEERS)}


def test_their_network_and_work_are_ours():
    """The same layers, and a site's round as many steps."""
    run = the_run(Plan())
    shapes = [tuple(p.shape) for p in run.model.parameters()]
    assert [tuple(p.shape) for p in Net().parameters()] == shapes
    work = Work("", 1, 32, 0.01, 0.5, 1, 1, "")
    few = torch.zeros(70, 1, 28, 28), torch.zeros(70, dtype=torch.int64)
    assert train(Net(), few, work) == run.recipe.length(70) == 2
    assert (run.recipe.lr, run.recipe.momentum) == (work.lr, work.momentum)


def test_plain_loops_and_ours_are_timed_by_the_round(tmp_path):
    scripts(tmp_path)
    np.savez(
        tmp_path / "digits.npz", x=np.zeros((2, 64, 1, 28, 28), "u1"), y=np.zeros((2, 64), "i8")
    )
    work = Work(str(tmp_path / "digits.npz"), 1, 32, 0.01, 0.5, 3, 0, "")
    beside, startup = plain(tmp_path, work, 1, 2)
    assert [len(r) for r in beside] == [3, 3]
    assert min(map(min, beside)) > 0
    assert startup > 0
    [took], _ = ours(toy.run(compose("fedavg"), 5), 3, 1)
    assert len(took) == 3


def test_a_peer_that_cannot_be_installed_is_named_with_the_reason(tmp_path, monkeypatch):
    monkeypatch.setattr(venv, "create", lambda *_, **__: None)
    odd = Peer("Odd", "odd==1", "odd.py", "odd")
    contender = Contender("Odd")
    measure.installed(odd, Plan(envs=tmp_path), contender, lambda _: None)
    assert contender.trouble.startswith("not installed: ")
    assert contender.told()["seconds"] is None


def test_a_failure_is_told_by_its_last_line_and_a_slow_one_by_its_time(tmp_path):
    with pytest.raises(FeddgError, match=r"failed: ValueError: no$"):
        called([sys.executable, "-c", "raise ValueError('no')"], 60, {})
    with pytest.raises(FeddgError, match="more than"):
        called([sys.executable, "-c", "import time; time.sleep(9)"], 0.2, {})


def test_an_environment_that_is_ready_is_not_made_again(tmp_path, monkeypatch):
    def never(*_, **__):
        raise AssertionError("made again")

    monkeypatch.setattr(venv, "create", never)
    peer = PEERS[0]
    home = tmp_path / peer.package
    home.mkdir()
    (home / environments.STAMP).write_text(f"{environments.TORCH} {peer.requirement}")
    assert interpreter(peer, tmp_path) == home / "bin" / "python"


def test_only_takes_parts_of_names():
    plan = Plan(only=("nvflare", "feddg"))
    assert plan.takes("NVFlare's simulator")
    assert plan.takes("feddg")
    assert not plan.takes(PLAIN)
    assert Plan().takes("anything")
    assert Path(the_run(plan).names[0]).name
    assert Weights.of(the_run(plan).model).layout.size == 117190
