"""One run as plain values: what config.toml holds, and all that is needed to run it again."""

import inspect
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

from feddg.benchmark import config
from feddg.benchmark.diagnostics import diagnostics
from feddg.benchmark.roles import Roles, Splits, federated
from feddg.benchmark.selection import rule
from feddg.catalogue import compose, spelled, split
from feddg.data.adaptation import adapted
from feddg.data.catalogue import catalogue
from feddg.data.domain import Collection
from feddg.deploy import Architecture
from feddg.engines.compute import Compute
from feddg.engines.loop import Run
from feddg.errors import ConfigError
from feddg.models import build
from feddg.models.catalogue import builder
from feddg.models.sources import is_file_name, known_digest
from feddg.recipe import Recipe

ON_CPU = Compute(device="cpu")


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
    oracle: bool = False  # train on most of the target, judge on its rest: a bound
    rounds: int = 10
    seed: int = 0
    share: float = 0.2  # of each site's data, held out for validation
    selection: str = "last"
    participation: float | int = 1.0
    min_sites: int | None = None
    allow_missing_classes: bool = False
    weights: str | None = None  # pretrained: a file, a package's name, or "hub"
    weights_sha256: str | None = None  # of their file, or its beginning; `resolved` finds it
    schedule: str = ""  # the name of a shortened schedule, for titles
    task: str | None = None  # uda: the target, unlabelled, at the server; or dg
    recipe: Recipe = field(default_factory=Recipe)
    data_options: Mapping[str, str] = field(default_factory=dict)
    model_options: Mapping[str, Any] = field(default_factory=dict)
    diagnostics: str | None = None  # what else is kept of every round: curves,models

    def __post_init__(self) -> None:
        for name in ("rounds", "min_sites", "participation"):
            value = getattr(self, name)
            if isinstance(value, int) and value < 1:
                raise ConfigError(f"{name} must be at least 1, not {value}")
        if isinstance(self.participation, float) and not 0 < self.participation <= 1:
            raise ConfigError(
                f"participation as a share lies above 0 and up to 1.0, not {self.participation};"
                " a whole number asks so many sites"
            )
        if not 0 <= self.share < 1:
            raise ConfigError(
                f"share, what each site holds out, lies from 0 to below 1, not {self.share}"
            )
        if self.model != "auto":
            builder(self.model)
        elif self.weights:
            raise ConfigError("weights are of one network; name the model too")
        adapted(self.task or "dg")
        compose(self.method)
        rule(self.selection)
        diagnostics(self.diagnostics)

    def resolved(self) -> "Experiment":
        """The method with every parameter, paths from the root: whoever runs it, and wherever."""
        options = dict(self.data_options)
        if "root" in options:
            options["root"] = absolute(options["root"])
        data = self.data if self.data in catalogue() else absolute(self.data)
        weights, pinned = self.weights or None, self.weights_sha256
        if weights and is_file_name(weights):
            weights = absolute(weights)
        if weights and not pinned:
            pinned = known_digest(weights, self.model)
        return replace(
            self, method=spelled(compose(self.method)), data=data, data_options=options,
            weights=weights, weights_sha256=pinned, task=self.task if self.adapted else None,
            diagnostics=",".join(diagnostics(self.diagnostics)) or None,
        )  # fmt: skip

    @property
    def adapted(self) -> bool:
        return adapted(self.task or "dg")

    @property
    def key(self) -> str:
        """Names the run's folder: the same configuration, the same folder."""
        full = self.resolved()
        digest = blake2b(full.to_toml().encode(), digest_size=4).hexdigest()
        links = [piece.partition("(")[0].strip() for piece in split(full.method)]
        where = "+".join(self.targets) or "all-sites"
        return f"{plain('+'.join(links))}_{plain(where)}_seed{self.seed}_{digest}"

    @property
    def label(self) -> str:
        """For progress: what is trained, and on whom it is judged."""
        what = self.method
        if self.pooled or self.oracle:
            what += " (pooled)" if self.pooled else " (oracle)"
        elif self.sources:
            what += f" ({'+'.join(self.sources)})"
        return f"{what}→{'+'.join(self.targets) or 'all sites'}"

    @property
    def roles(self) -> Roles:
        return Roles(
            data=self.data, options=tuple(sorted(self.data_options.items())),
            targets=self.targets, sources=self.sources, validation=self.validation,
            pooled=self.pooled, oracle=self.oracle, share=self.share, seed=self.seed,
            allow_missing_classes=self.allow_missing_classes, adapted=self.adapted,
        )  # fmt: skip

    def prepared(self, compute: Compute = ON_CPU) -> "Prepared":
        """The data read, the network built, everything checked; nothing is written yet."""
        fed, splits = federated(self.roles)
        architecture = architecture_for(self, fed.collection)
        model = build(
            architecture.model, self.seed, weights=self.weights, sha256=self.weights_sha256,
            **architecture.options,
        )  # fmt: skip
        run = Run(
            compose(self.method), model, fed, self.recipe, self.rounds, self.seed,
            self.participation, self.min_sites,
        )  # fmt: skip
        rule(self.selection).check(run.judged)
        return Prepared(compute.placed(run), architecture, splits)

    def prepared_run(self) -> tuple[Run, Architecture]:
        found = self.prepared()
        return found.run, found.architecture

    def to_toml(self) -> str:
        return config.to_toml(asdict(self))


@dataclass(frozen=True, eq=False)
class Prepared:
    """All that a run needs. `splits`: which rows each site holds out for validation."""

    run: Run
    architecture: Architecture
    splits: Splits


def from_toml(path: Path) -> Experiment:
    return config.made(Experiment, config.read_toml(path), str(path))


def absolute(path: str) -> str:
    return str(Path(path).expanduser().resolve())


def plain(text: str) -> str:
    """Fit for the name of a folder."""
    kept = [c if c.isalnum() or c in "+-." else "-" for c in text]
    return "".join(kept).strip("-.")[:60]


def architecture_for(experiment: Experiment, collection: Collection) -> Architecture:
    """The named network and the sizes that it asks for."""
    name = experiment.model if experiment.model != "auto" else suited(collection)
    shape = collection.domains[0].examples.shape
    sizes = {
        "outputs": collection.task.outputs, "channels": shape[0], "inputs": shape.numel(),
        "size": shape[-1],
    }  # fmt: skip
    asked = inspect.signature(builder(name)).parameters
    options = {k: v for k, v in sizes.items() if k in asked} | dict(experiment.model_options)
    return Architecture(name, options)


def suited(collection: Collection) -> str:
    """A network for data that names none: dense for tables, convolutions for images."""
    shape = collection.domains[0].examples.shape
    return "mlp" if len(shape) == 1 else "small-cnn"
