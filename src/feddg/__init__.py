"""Federated domain generalisation: train across private sites, work at one nobody has seen."""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# Public names and their modules, imported when first used: `import feddg` takes milliseconds.
PUBLIC = {
    "train": "feddg.api",
    "Result": "feddg.api",
    "Recipe": "feddg.recipe",
    "build_model": "feddg.models:build",
    "compose": "feddg.catalogue",
    "Collection": "feddg.data.domain",
    "Domain": "feddg.data.domain",
    "Examples": "feddg.data.domain",
    "Federation": "feddg.data.domain",
    "Site": "feddg.data.domain",
    "federation": "feddg.data.domain",
    "leave_one_domain_out": "feddg.data.domain",
    "nested_sources": "feddg.data.domain",
    "official_splits": "feddg.data.domain",
    "open_collection": "feddg.data.catalogue",
    "from_tensors": "feddg.data.folders",
    "from_datasets": "feddg.data.folders",
    "load_model": "feddg.deploy",
    "Classification": "feddg.tasks",
    "Regression": "feddg.tasks",
    "Anatomy": "feddg.models",
    "FeddgError": "feddg.errors",
}
__all__ = ["__version__", *PUBLIC]


def __getattr__(name: str) -> Any:
    if name not in PUBLIC:
        raise AttributeError(f"module 'feddg' has no attribute {name!r}")
    module, _, attribute = PUBLIC[name].partition(":")
    return getattr(import_module(module), attribute or name)


def __dir__() -> list[str]:
    return sorted(__all__)
