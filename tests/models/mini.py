"""Every backbone in small: all of its structure, few channels, the smallest images it takes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from feddg.data.domain import Collection, Domain, Examples, Federation, leave_one_domain_out
from feddg.models import build
from feddg.seeds import generator
from feddg.tasks import Classification


@dataclass(frozen=True)
class Mini:
    channels: int = 3
    size: int = 32
    options: Mapping[str, Any] = field(default_factory=dict)

    def images(self, n: int, domain: int = 0) -> Tensor:
        rng = generator("mini", domain)
        return torch.rand(n, self.channels, self.size, self.size, generator=rng) + 0.2 * domain


MINIS = {
    "rotated-mnist-cnn": Mini(1, 28),
    "small-cnn": Mini(3, 12, {"width": 4}),
    "lenet": Mini(1, 12, {"size": 12}),
    "digits-dg-cnn": Mini(3, 16, {"size": 16, "width": 8}),
    "digit-five-cnn": Mini(3, 8, {"size": 8, "width": 4}),
    "domainbed-mnist": Mini(1, 12, {"width": 16}),  # its groups of one channel undo a scale
    "alexnet": Mini(3, 63, {"width": 4, "hidden": 16}),
    "alexnet-bn": Mini(3, 63, {"width": 4, "hidden": 16}),
    "resnet18": Mini(options={"width": 4}),
    "resnet34": Mini(options={"width": 4}),
    "resnet50": Mini(options={"width": 4}),
    "resnet101": Mini(options={"width": 4}),
    "densenet121": Mini(options={"growth": 4}),
    "mobilenetv2": Mini(options={"width": 0.1}),
    "efficientnet-lite0": Mini(options={"width": 0.1}),
    "torchvision:mobilenet_v3_small": Mini(options={"width_mult": 0.1}),
}


def mini(name: str, seed: int = 0) -> nn.Module:
    of = MINIS[name]
    return build(name, seed, outputs=3, channels=of.channels, **of.options)


def federation(name: str, n: int = 4) -> Federation:
    """Two sites and a target."""
    y = torch.arange(n) % 3
    domains = [Domain(k, Examples(MINIS[name].images(n, i), y)) for i, k in enumerate("abc")]
    collection = Collection("mini", tuple(domains), Classification(("x", "y", "z")))
    return leave_one_domain_out(collection, "c", share=0.0)
