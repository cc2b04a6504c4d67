"""A run's model as a folder: weights, what they are, and a card for people."""

import os
import platform
import shutil
from collections.abc import Mapping
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save as to_bytes
from torch import Tensor, nn

import feddg
from feddg.catalogue import compose, spelled
from feddg.deploy.card import card
from feddg.deploy.manifest import (
    CARD,
    MANIFEST,
    WEIGHTS,
    Architecture,
    File,
    Manifest,
    features,
    shaped,
)
from feddg.engines.loop import Run
from feddg.errors import ConfigError, FeddgError
from feddg.method import Method, adapts, chain
from feddg.models.catalogue import made
from feddg.packets import State
from feddg.weights import load
from feddg.wire import flatten


def save_model(
    folder: str | Path,
    run: Run,
    state: State,
    about: Mapping[str, Any] | None = None,
    architecture: Architecture | None = None,
) -> None:
    """Writes the folder beside its place and moves it there; an older model is replaced.

    architecture   what builds `run.model`, if `build_model` did not; None for a module of the
                   user's own, which whoever loads the model then brings along (or which is built
                   without arguments)
    about          goes into model.json as it is, besides `start` (the pretrained weights). The
                   card shows `scores` ({"test/x": {"accuracy": 0.9}}), `selection` (the rule, a
                   sentence), `round` (that of the state), `sources` (what the data are and whose)
                   and `limits` (a sentence)

    The same state gives the same bytes of weights.
    """
    weights = to_bytes(tensors(run, state))
    manifest = manifest_of(run, weights, state, about or {}, architecture or own(run.model))
    files = {
        WEIGHTS: weights,
        MANIFEST: manifest.to_json().encode(),
        CARD: card(manifest, run.method).encode(),
    }
    write_folder(Path(folder), files)


def tensors(run: Run, state: State) -> dict[str, Tensor]:
    """The merged model by the names of its state_dict, and the notes that the predictor needs.

    Integer buffers, which do not travel, are there too: any program can load the file.
    """
    network = load(shaped(run.method, run.model), state.model)
    named = {**state.model.views(), **network.state_dict()}
    wanted = deployed_notes(run.method)
    notes = flatten({"notes": {k: v for k, v in state.notes.items() if k in wanted}})
    everything = {**named, **(notes if wanted & set(state.notes) else {})}
    return {k: v.detach().cpu().clone(memory_format=torch.contiguous_format)
            for k, v in sorted(everything.items())}  # fmt: skip


def deployed_notes(method: Method) -> set[str]:
    return {note for link in chain(method) for note in getattr(link, "deploys", ())}


def manifest_of(
    run: Run, weights: bytes, state: State, about: Mapping[str, Any], architecture: Architecture
) -> Manifest:
    data, example = run.federation.collection, run.sites[0].train
    spec = spelled(run.method)
    return Manifest(
        method=spec,
        own_method=not catalogued(run.method, spec),
        architecture=architecture,
        layout=state.model.layout,
        task=data.task,
        prepare=tuple(written(t) for t in data.prepare),
        shape=tuple(example.shape),
        dtype=example.store.dtype,
        columns=features(data.columns),
        data=data.name,
        protocol=data.protocol,
        weights=File(len(weights), sha256(weights).hexdigest()),
        training={
            "sites": {s.name: len(s.train) for s in run.sites},
            "targets": [d.name for d in run.federation.targets],
            "validation": [d.name for d in run.federation.validation],
            **({"unlabelled": len(run.server.train)} if run.server and adapts(run.method) else {}),
            "rounds": run.rounds,
            "seed": run.seed,
            "participation": run.participation,
            "recipe": asdict(run.recipe),
        },
        versions={
            "feddg": feddg.__version__,
            "torch": str(torch.__version__),
            "python": platform.python_version(),
        },
        about={**about, **started(run.model)},
    )


def own(model: nn.Module) -> Architecture:
    """A module that was given as an object: as `build_model` made it, else by its class."""
    if (known := made(model)) is not None:
        return Architecture(known.model, known.options)
    cls = type(model)
    return Architecture(f"{cls.__module__}:{cls.__qualname__}", own=True)


def started(model: nn.Module) -> dict[str, str]:
    known = made(model)
    return {"start": str(known.start)} if known and known.start else {}


def catalogued(method: Method, spec: str) -> bool:
    """Whether `compose` finds every part of the method again."""
    try:
        again = chain(compose(spec))
    except FeddgError:
        return False
    return [type(link) for link in again] == [type(link) for link in chain(method)]


def written(transform: Any) -> Mapping[str, Any]:
    """As the transform describes itself; one that cannot is the user's to bring along."""
    describe = getattr(transform, "describe", None)
    if describe is not None:
        found: Mapping[str, Any] = describe()
        return found
    return {"kind": "own", "class": f"{type(transform).__module__}:{type(transform).__qualname__}"}


def write_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """All files or none: written to a hidden sibling, which then takes the folder's place."""
    folder = folder.resolve()
    if folder.exists() and not replaceable(folder):
        raise ConfigError(f"{folder} exists and holds no model; choose another folder")
    new, old = (folder.with_name(f".{folder.name}.{mark}") for mark in ("new", "old"))
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        discard(new)
        new.mkdir()
        for name, data in files.items():
            with (new / name).open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        if folder.exists():
            discard(old)
            folder.rename(old)
        new.rename(folder)
        discard(old)
    except OSError as why:
        raise ConfigError(f"the model cannot be written to {folder}: {why}") from None


def replaceable(folder: Path) -> bool:
    return folder.is_dir() and ((folder / MANIFEST).exists() or not any(folder.iterdir()))


def discard(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)
