"""Settings to try: a grid by method, as text, and as many trials for each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import torch

from feddg.benchmark.config import typed, value_of
from feddg.catalogue import compose, parameters, split, top_level
from feddg.errors import ConfigError, unknown
from feddg.method import chain
from feddg.recipe import Recipe
from feddg.seeds import generator

ALIASES = {"lambda": "lam"}  # a word of Python's
Grid = dict[str, tuple[Any, ...]]


@dataclass(frozen=True)
class Trial:
    """One setting of one method: a composition, and what of the recipe is changed."""

    method: str
    spec: str
    recipe: Mapping[str, Any]
    said: str


def trials(
    methods: Sequence[str], grids: Sequence[str], count: int | None = None, seed: int = 0
) -> tuple[Trial, ...]:
    """As many for every method: all of its grid, or `count` of it drawn by the seed."""
    found = {m: every(m, grid) for m, grid in read(methods, grids).items()}
    sizes = {m: len(all_of) for m, all_of in found.items()}
    said = ", ".join(f"{m} has {n}" for m, n in sizes.items())
    if count is None and len(set(sizes.values())) > 1:
        raise ConfigError(
            f"every method is given as many settings, and {said}; --trials"
            f" {min(sizes.values())} draws so many of each"
        )
    if count is not None and not 1 <= count <= min(sizes.values()):
        raise ConfigError(f"--trials {count}: {said}; give from 1 to {min(sizes.values())}")
    return tuple(t for m, all_of in found.items() for t in drawn(m, all_of, count, seed))


def drawn(method: str, all_of: list[Trial], count: int | None, seed: int) -> list[Trial]:
    if count is None:
        return all_of
    order = torch.randperm(len(all_of), generator=generator(seed, "sweep", method))
    return [all_of[k] for k in sorted(order[:count].tolist())]


def read(methods: Sequence[str], texts: Sequence[str]) -> dict[str, Grid]:
    """`lam=[0,.2]` is for every method that has it; `csac.lam=[0,.2]` for csac alone."""
    found: dict[str, Grid] = {m: {} for m in methods}
    if len(found) < len(methods) or not methods:
        raise ConfigError("name at least one method to tune, and each once")
    known = {m: {k for link in chain(compose(m)) for k in parameters(type(link))} for m in methods}
    settings = set(Recipe.__dataclass_fields__)
    for text in texts:
        name, equals, values = (part.strip() for part in text.partition("="))
        if not equals or not values:
            raise ConfigError(f"--grid {text!r}: write lam=[0,.2,.4], or csac.lam=[0,.2,.4]")
        owner = next((m for m in methods if name.startswith(f"{m}.")), None)
        name = name.removeprefix(f"{owner}.") if owner else name
        name = ALIASES.get(name, name)
        whose = [m for m in ([owner] if owner else methods) if name in known[m] | settings]
        if not whose:
            raise unknown("parameter in --grid", name, settings.union(*known.values()))
        for m in whose:
            found[m][name] = values_of(values, text)
    return found


def values_of(values: str, text: str) -> tuple[Any, ...]:
    inside = values[1:-1] if values[0] == "[" and values[-1] == "]" else values
    found = tuple(value_of(v.strip()) for v in top_level(inside) if v.strip())
    if not found or len(set(map(repr, found))) < len(found):
        raise ConfigError(f"--grid {text!r} must hold values, and each once")
    return found


def every(method: str, grid: Grid) -> list[Trial]:
    """All combinations, in the grid's order."""
    own = {k for link in chain(compose(method)) for k in parameters(type(link))}
    found = []
    for values in product(*grid.values()):
        setting = dict(zip(grid, values, strict=True))
        spec = method
        for name in setting.keys() & own:
            spec = optioned(spec, name, setting[name])
        compose(spec)
        recipe = {k: v for k, v in setting.items() if k not in own}
        said = ", ".join(f"{k}={v}" for k, v in setting.items()) or "as it is"
        found.append(Trial(method, spec, typed(Recipe, recipe, "--grid"), said))
    return found


def optioned(spec: str, name: str, value: Any) -> str:
    """The composition with a parameter of its first link that has it set."""
    pieces = [piece.strip() for piece in split(spec)]
    for i, piece in enumerate(pieces):
        if name in parameters(type(compose(piece))):
            option = f"{name}={value!r}"
            pieces[i] = f"{piece[:-1]}, {option})" if piece.endswith(")") else f"{piece}({option})"
            break
    return "+".join(pieces)
