"""A checkpoint comes back to the bit, or is refused in words."""

import os
from pathlib import Path

import pytest
import torch
from safetensors.torch import save as to_bytes

from feddg import wire
from feddg.catalogue import compose
from feddg.checkpoint import Checkpoint, load, save, write_whole
from feddg.engines.inprocess import InProcess
from feddg.errors import ConfigError
from feddg.packets import State
from tests import toy


def flat(state: State | None):
    assert state is not None
    return wire.flatten({"model": state.model.vector, "notes": state.notes})


def same(a, b):
    return a.keys() == b.keys() and all(torch.equal(a[k], b[k]) for k in a)


@pytest.mark.parametrize("spec", ["fedavg", "scaffold", "csac"])
def test_comes_back_to_the_bit(spec, tmp_path):
    """With notes, memories of several kinds, and a best state."""
    engine = InProcess()
    run = toy.run(compose(spec), 2, recipe=toy.steps(toy.RECIPE, optimizer_state="keep"))
    first, last = (k.state for k in toy.history(run, engine))
    at = Checkpoint(2, last, engine.memories(run), first, 0, 0.5)
    save(tmp_path / "c", at)
    back = load(tmp_path / "c")
    assert same(flat(back.state), flat(last))
    assert same(flat(back.best), flat(first))
    assert back.state.model.layout == last.model.layout
    assert back.memories.keys() == {"dawn", "noon", "dusk"}
    assert same(wire.flatten(back.memories), wire.flatten(at.memories))
    assert (back.next_round, back.best_round, back.best_score) == (2, 0, 0.5)


def test_without_a_best_state_and_without_memories(tmp_path):
    run = toy.run(compose("fedavg"))
    save(tmp_path / "c", Checkpoint(0, run.method.init(run.model, run.names), {}))
    back = load(tmp_path / "c")
    assert back.best is None
    assert back.best_score is None
    assert back.memories == {}


def test_the_same_state_gives_the_same_bytes(tmp_path):
    run = toy.run(compose("scaffold"))
    for name in "ab":
        save(tmp_path / name, Checkpoint(0, run.method.init(run.model, run.names), {}))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize(
    "data", [b"", b"nonsense", to_bytes({"x": torch.zeros(1)}),
             to_bytes({"meta": torch.frombuffer(bytearray(b"{}"), dtype=torch.uint8)})],
)  # fmt: skip
def test_what_is_no_checkpoint_is_named(data, tmp_path):
    (tmp_path / "c").write_bytes(data)
    with pytest.raises(ConfigError, match=r"c is no checkpoint .* remove it to start anew"):
        load(tmp_path / "c")


def test_another_format_is_named(tmp_path):
    meta = torch.frombuffer(bytearray(b'{"format": 99}'), dtype=torch.uint8)
    (tmp_path / "c").write_bytes(to_bytes({"meta": meta}))
    with pytest.raises(ConfigError, match="format 99"):
        load(tmp_path / "c")


def test_a_file_is_the_old_one_until_the_new_one_is_whole(tmp_path, monkeypatch):
    write_whole(tmp_path / "x", b"old")

    def cut_off(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", cut_off)
    with pytest.raises(KeyboardInterrupt):
        write_whole(tmp_path / "x", b"new")
    assert (tmp_path / "x").read_bytes() == b"old"


def test_a_full_disk_is_the_users_to_mend():
    with pytest.raises(ConfigError, match="cannot write /dev/null/x: Not a directory; make room"):
        write_whole(Path("/dev/null/x"), b"")
