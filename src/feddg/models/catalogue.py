"""Networks by name. A name with a colon, `package.module:factory`, is the user's own."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import torch
from torch import nn

from feddg.errors import ConfigError, unknown
from feddg.seeds import seed_for

Builder = Callable[..., nn.Module]
BUILDERS: Mapping[str, str] = {
    "rotated-mnist-cnn": "feddg.models.small:RotatedMnistCNN",
    "mlp": "feddg.models.small:MLP",
    "small-cnn": "feddg.models.small:SmallCNN",
}


def known_models() -> list[str]:
    return sorted(BUILDERS)


def builder(name: str) -> Builder:
    """What makes the network: a class or function."""
    path = BUILDERS.get(name, name)
    if ":" not in path:
        raise unknown("model", name, BUILDERS)
    module, _, attribute = path.partition(":")
    try:
        found: Builder = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"model {name!r} cannot be imported: {error}") from error
    return found


def build(name: str, seed: int = 0, **options: Any) -> nn.Module:
    """A network with seeded initial weights; the global stream is left as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed_for(seed, "init"))  # noqa: TID251
        try:
            return builder(name)(**options)
        except TypeError as error:
            raise ConfigError(f"model {name!r} refuses its options {options}: {error}") from error
