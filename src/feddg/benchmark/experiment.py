"""One run as plain values: what config.toml holds, and all that is needed to run it again."""

import inspect
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import tomli_w
import tomllib
import torch

from feddg.catalogue import compose, spelled
from feddg.data.catalogue import open_collection, resolve
from feddg.data.domain import Collection, Domain, Examples, Federation, Site, federation
from feddg.deploy import Architecture
from feddg.engines.loop import Run
from feddg.errors import ConfigError, DataError, unknown
from feddg.models import build
from feddg.models.catalogue import builder
from feddg.recipe import Recipe


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """Who trains on what, how, and on whom it is judged. Empty `sources`: all the others."""

    data: str
    method: str = "fedavg"
    model: str = "auto"
    targets: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    validation: tuple[str, ...] = ()
    pooled: bool = False  # all sources as one site: a bound that shares data
    rounds: int = 10
    seed: int = 0
    share: float = 0.2  # of each site's data, held out for validation
    selection: str = "last"
    participation: float | int = 1.0
    min_sites: int | None = None
    schedule: str = ""  # the name of a shortened schedule, for titles
    recipe: Recipe = field(default_factory=Recipe)
    data_options: Mapping[str, str] = field(default_factory=dict)
    model_options: Mapping[str, Any] = field(default_factory=dict)

    def resolved(self) -> "Experiment":
        """The method spelled in full, so that the file says every parameter."""
        return replace(self, method=spelled(compose(self.method)))

    @property
    def key(self) -> str:
        """Names the run's folder: the same configuration, the same folder."""
        digest = blake2b(to_toml(self.resolved()).encode(), digest_size=4).hexdigest()
        where = "+".join(self.targets) or "all-sites"
        return f"{plain(self.method)}_{plain(where)}_seed{self.seed}_{digest}"

    def prepared_run(self) -> tuple[Run, Architecture]:
        collection = open_experiment_data(self)
        architecture = architecture_for(self, collection)
        model = build(architecture.model, self.seed, **architecture.options)
        run = Run(
            compose(self.method), model, self.federated(collection), self.recipe, self.rounds,
            self.seed, self.participation, self.min_sites,
        )  # fmt: skip
        return run, architecture

    def federated(self, collection: Collection) -> Federation:
        taken = {*self.targets, *self.validation}
        sources = self.sources or tuple(n for n in collection.names if n not in taken)
        if not sources:
            raise DataError(
                f"{self.data} has only {', '.join(collection.names)}: no domain is left to train on"
            )
        fed = federation(
            collection, sources, self.targets, self.validation, share=self.share, seed=self.seed
        )
        return replace(fed, sites=(pool(fed.sites),)) if self.pooled else fed


def plain(text: str) -> str:
    kept = [c if c.isalnum() or c in "+-." else "-" for c in text]
    return "".join(kept).strip("-")[:60]


def open_experiment_data(experiment: Experiment) -> Collection:
    """Statistics of the data come from the sources alone, so it is opened for these targets."""
    options = dict(experiment.data_options)
    spec, _ = resolve(experiment.data, options)
    if spec.targeted and "sources" not in options and experiment.sources:
        options["sources"] = ",".join(experiment.sources)
    held = (*experiment.targets, *experiment.validation)
    if spec.targeted and "sources" not in options and len(held) > 1:
        names = open_collection(experiment.data, **options).names
        options["sources"] = ",".join(n for n in names if n not in held)
    target = held[0] if len(held) == 1 and "sources" not in options else None
    return open_collection(experiment.data, target=target, **options)


def pool(sites: tuple[Site, ...]) -> Site:
    def together(parts: list[Examples]) -> Examples:
        return Examples(torch.cat([p.x for p in parts]), torch.cat([p.y for p in parts]))

    held = [s.val for s in sites if s.val is not None]
    return Site("pooled", together([s.train for s in sites]), together(held) if held else None)


def architecture_for(experiment: Experiment, collection: Collection) -> Architecture:
    """The named network and the sizes that it asks for."""
    name = experiment.model if experiment.model != "auto" else suited(collection)
    shape = collection.domains[0].examples.x.shape[1:]
    sizes = {"outputs": collection.task.outputs, "channels": shape[0], "inputs": shape.numel()}
    asked = inspect.signature(builder(name)).parameters
    options = {k: v for k, v in sizes.items() if k in asked} | dict(experiment.model_options)
    return Architecture(name, options)


def suited(collection: Collection) -> str:
    """A network for data that names none: dense for tables, convolutions for images."""
    shape = collection.domains[0].examples.x.shape[1:]
    return "mlp" if len(shape) == 1 else "small-cnn"


def to_toml(experiment: Experiment) -> str:
    return tomli_w.dumps(cleaned(asdict(experiment)))


def cleaned(tree: Mapping[str, Any]) -> dict[str, Any]:
    """TOML has no null: what is None is left out."""
    return {
        k: cleaned(v) if isinstance(v, Mapping) else list(v) if isinstance(v, tuple) else v
        for k, v in tree.items()
        if v is not None
    }


def from_toml(path: Path) -> Experiment:
    try:
        values = tomllib.loads(path.read_text())
    except FileNotFoundError:
        raise ConfigError(f"there is no configuration file {path}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not TOML: {error}") from None
    values["recipe"] = Recipe(**checked(Recipe, values.get("recipe", {}), f"{path} [recipe]"))
    return Experiment(**checked(Experiment, values, str(path)))


def checked(cls: type[Any], values: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Known keys only, and lists as tuples."""
    known = {f.name for f in fields(cls)}
    for key in values:
        if key not in known:
            raise unknown(f"key in {where}:", key, known)
    return {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}


def domain_names(data: str, options: Mapping[str, str]) -> tuple[str, ...]:
    domains: tuple[Domain, ...] = open_collection(data, **options).domains
    return tuple(d.name for d in domains)
