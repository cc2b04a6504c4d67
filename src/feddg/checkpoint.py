"""A run between two rounds, as one file: written whole or not at all, read back to the bit."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as from_bytes
from safetensors.torch import save as to_bytes

from feddg.errors import ConfigError
from feddg.packets import State
from feddg.trees import Tree, moved
from feddg.weights import Layout, Weights
from feddg.wire import flatten, unflatten

FORMAT = 2  # 2: CSAC keeps Proj with channels last


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """`next_round` comes next; the record has all the rounds before it, and perhaps more.

    `best` is the state that the selection rule prefers so far, where that is not the last.
    """

    next_round: int
    state: State
    memories: Mapping[str, Tree]
    best: State | None = None
    best_round: int = -1
    best_score: float | None = None

    def to(self, device: torch.device) -> "Checkpoint":
        best = None if self.best is None else self.best.to(device)
        memories = {k: moved(v, device) for k, v in self.memories.items()}
        return replace(self, state=self.state.to(device), memories=memories, best=best)


def save(path: Path, checkpoint: Checkpoint) -> None:
    state, best = checkpoint.state, checkpoint.best
    layout = state.model.layout
    meta = {
        "format": FORMAT, "next_round": checkpoint.next_round,
        "layout": [layout.names, layout.shapes, layout.learned],
        "best_round": checkpoint.best_round, "best_score": checkpoint.best_score,
    }  # fmt: skip
    tree: dict[str, Any] = {"state": as_tree(state), "memories": dict(checkpoint.memories)}
    if best is not None:
        tree["best"] = as_tree(best)
    tensors = {k: v.detach().cpu().clone() for k, v in flatten(tree).items()}
    tensors["meta"] = torch.frombuffer(bytearray(json.dumps(meta).encode()), dtype=torch.uint8)
    write_whole(path, to_bytes(tensors))


def load(path: Path) -> Checkpoint:
    try:
        tensors = from_bytes(path.read_bytes())
        meta = json.loads(bytes(tensors.pop("meta").tolist()))
        if meta["format"] != FORMAT:
            raise ConfigError(
                f"{path} has checkpoint format {meta['format']}, this feddg reads {FORMAT};"
                " remove it to start anew"
            )
        names, shapes, learned = meta["layout"]
        layout = Layout(tuple(names), tuple(tuple(s) for s in shapes), learned)
        tree = unflatten(tensors)
        best = as_state(tree["best"], layout) if "best" in tree else None
        return Checkpoint(
            meta["next_round"], as_state(tree["state"], layout), tree.get("memories", {}),
            best, meta["best_round"], meta["best_score"],
        )  # fmt: skip
    except (SafetensorError, KeyError, ValueError, TypeError) as error:
        raise ConfigError(f"{path} is no checkpoint ({error}); remove it to start anew") from None


def as_tree(state: State) -> dict[str, Any]:
    return {"model": state.model.vector, "notes": dict(state.notes)}


def as_state(tree: Mapping[str, Any], layout: Layout) -> State:
    return State(model=Weights(tree["model"], layout), notes=tree.get("notes", {}))


def write_whole(path: Path, data: bytes) -> None:
    """Beside it, to the disk, then in its place: a reader sees the old file or the new one."""
    beside = path.with_name(path.name + ".part")
    with unwritable(path):
        with open(beside, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)


@contextmanager
def unwritable(path: Path, way: str = "make room and run the same command again") -> Iterator[None]:
    """A full or forbidden disk is the user's to mend."""
    try:
        yield
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}; {way}") from None
