"""DenseNet-121 (Huang et al., CVPR 2017), by torchvision's names."""

from collections import OrderedDict

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from feddg.models.anatomy import Anatomy
from feddg.models.initial import kaiming

BLOCKS = (6, 12, 24, 16)


class DenseLayer(nn.Module):
    """Adds `growth` channels to those that it is given: 1x1 convolution, then 3x3."""

    def __init__(self, before: int, growth: int):
        super().__init__()
        inside = 4 * growth
        self.norm1 = nn.BatchNorm2d(before)
        self.relu1 = nn.ReLU()
        self.conv1 = nn.Conv2d(before, inside, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(inside)
        self.relu2 = nn.ReLU()
        self.conv2 = nn.Conv2d(inside, growth, 3, padding=1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        y = self.conv1(self.relu1(self.norm1(x)))
        return torch.cat([x, self.conv2(self.relu2(self.norm2(y)))], 1)


class DenseNet121(nn.Module):
    """7,978,856 parameters for 1000 classes. `growth`: 32 as published, less for tests."""

    anatomy = Anatomy(
        head="classifier",
        taps=("features.denseblock2", "features.denseblock3", "features.denseblock4"),
    )

    def __init__(self, outputs: int = 1000, channels: int = 3, growth: int = 32):
        super().__init__()
        width = 2 * growth
        parts: OrderedDict[str, nn.Module] = OrderedDict(
            conv0=nn.Conv2d(channels, width, 7, 2, 3, bias=False),
            norm0=nn.BatchNorm2d(width),
            relu0=nn.ReLU(),
            pool0=nn.MaxPool2d(3, 2, 1),
        )
        for i, count in enumerate(BLOCKS, 1):
            parts[f"denseblock{i}"] = dense_block(width, growth, count)
            width += count * growth
            if i < len(BLOCKS):
                parts[f"transition{i}"] = transition(width)
                width //= 2
        parts["norm5"] = nn.BatchNorm2d(width)
        self.features = nn.Sequential(parts)
        self.classifier = nn.Linear(width, outputs)
        nn.init.zeros_(self.classifier.bias)
        kaiming(self, "fan_in")

    def forward(self, x: Tensor) -> Tensor:
        pooled = F.adaptive_avg_pool2d(F.relu(self.features(x)), 1)
        y: Tensor = self.classifier(pooled.flatten(1))
        return y


def dense_block(width: int, growth: int, count: int) -> nn.Sequential:
    layers = [(f"denselayer{k + 1}", DenseLayer(width + k * growth, growth)) for k in range(count)]
    return nn.Sequential(OrderedDict(layers))


def transition(width: int) -> nn.Sequential:
    """Half the channels, half the size."""
    parts: OrderedDict[str, nn.Module] = OrderedDict(
        norm=nn.BatchNorm2d(width),
        relu=nn.ReLU(),
        conv=nn.Conv2d(width, width // 2, 1, bias=False),
        pool=nn.AvgPool2d(2),
    )
    return nn.Sequential(parts)
