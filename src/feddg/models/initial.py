"""First values of a network that starts from nothing, as torchvision draws them."""

from typing import Literal

from torch import nn


def kaiming(network: nn.Module, mode: Literal["fan_in", "fan_out"]) -> None:
    """Convolutions after He et al. (2015); what torch itself draws for all else stays."""
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode=mode, nonlinearity="relu")
