"""Networks of torchvision (`torchvision:NAME`) and timm (`timm:NAME`), imported when asked for."""

from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

from torch import nn

from feddg._torchvision import torchvision
from feddg.errors import ConfigError, unknown
from feddg.models.anatomy import Anatomy, anatomy

STAGES = ("layer2", "layer3", "layer4")  # of whatever is built like a ResNet
ONE_OUTPUT = ("googlenet", "inception_v3")  # in training they would answer with three


def torchvision_builder(name: str) -> Callable[..., nn.Module]:
    """Of those that classify images."""
    models = torchvision().models
    known = models.list_models(module=models)
    if name not in known:
        raise unknown("model of torchvision", name, known)

    def make(outputs: int = 1000, channels: int = 3, **options: Any) -> nn.Module:
        if name in ONE_OUTPUT:
            options = {"aux_logits": False, "init_weights": True, **options}
        model = models.get_model(name, weights=None, num_classes=outputs, **options)
        widen(model, channels)
        if not hasattr(model, "anatomy") and all(hasattr(model, s) for s in STAGES):
            model.anatomy = Anatomy(anatomy(model).head, STAGES)
        return calm(model)

    return make


def timm_builder(name: str) -> Callable[..., nn.Module]:
    timm = imported_timm()
    if not timm.is_model(name):
        raise unknown("model of timm", name, timm.list_models())

    def make(outputs: int = 1000, channels: int = 3, **options: Any) -> nn.Module:
        model = timm.create_model(
            name, pretrained=False, num_classes=outputs, in_chans=channels, **options
        )
        stages = tuple(stage["module"] for stage in model.feature_info)
        if isinstance(head := model.get_classifier(), nn.Linear):
            where = next(k for k, m in model.named_modules() if m is head)
            model.anatomy = Anatomy(where, stages[-3:])
        return calm(model)

    return make


def imported_timm() -> ModuleType:
    torchvision()  # which timm imports by itself
    try:
        return import_module("timm")
    except ModuleNotFoundError as error:
        if error.name != "timm":
            raise
        raise ConfigError(
            "timm is not installed; install it with: pip install 'feddg[timm]'"
        ) from None


def widen(model: nn.Module, channels: int) -> None:
    """The first convolution made anew for another number of channels."""
    name, old = first_convolution(model)
    if old.in_channels == channels:
        return
    same = ("out_channels", "kernel_size", "stride", "padding", "dilation", "groups")
    options: dict[str, Any] = {k: getattr(old, k) for k in same}
    options |= {"bias": old.bias is not None, "padding_mode": old.padding_mode}
    fresh = nn.Conv2d(channels, **options)
    model.set_submodule(name, fresh)


def first_convolution(model: nn.Module) -> tuple[str, nn.Conv2d]:
    for name, module in model.named_modules():
        if isinstance(module, nn.Conv2d):
            return name, module
    raise ConfigError(f"{type(model).__name__} has no 2-d convolution")


def calm(model: nn.Module) -> nn.Module:
    """Nothing in place, where a tap may look later; and a head that can be named."""
    for module in model.modules():
        if hasattr(module, "inplace"):
            setattr(module, "inplace", False)  # noqa: B010 (a Module's attributes have no types)
    anatomy(model)
    return model
