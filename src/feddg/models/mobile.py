"""MobileNetV2 (Sandler et al., CVPR 2018) and EfficientNet-Lite0: inverted residuals, ReLU6."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor, nn

from feddg.models.anatomy import Anatomy
from feddg.models.initial import kaiming


class SameConv(nn.Conv2d):
    """Padded as TensorFlow does: ceil(size / stride) pixels out, an odd one at the far side."""

    def forward(self, x: Tensor) -> Tensor:
        low, high = zip(*(self.edges(n, i) for i, n in enumerate(x.shape[-2:])), strict=True)
        return super().forward(F.pad(x, (low[1], high[1], low[0], high[0])))

    def edges(self, size: int, i: int) -> tuple[int, int]:
        stride = self.stride[i]
        total = max((-(-size // stride) - 1) * stride + self.kernel_size[i] - size, 0)
        return total // 2, total - total // 2


@dataclass(frozen=True)
class Style:
    """What the two networks do differently in every layer."""

    same: bool = False  # TensorFlow's padding
    eps: float = 1e-5
    momentum: float = 0.1

    def conv(
        self, before: int, after: int, kernel: int = 1, stride: int = 1, groups: int = 1
    ) -> nn.Conv2d:
        if self.same:
            return SameConv(before, after, kernel, stride, groups=groups, bias=False)
        return nn.Conv2d(before, after, kernel, stride, kernel // 2, groups=groups, bias=False)

    def norm(self, width: int) -> nn.BatchNorm2d:
        return nn.BatchNorm2d(width, self.eps, self.momentum)

    def unit(self, conv: nn.Conv2d) -> nn.Sequential:
        return nn.Sequential(conv, self.norm(conv.out_channels), nn.ReLU6())


class InvertedResidual(nn.Module):
    """1x1 convolution to `expand` times the channels, one per channel, 1x1 back; no ReLU after."""

    def __init__(
        self, style: Style, before: int, after: int, expand: int, kernel: int, stride: int
    ):
        super().__init__()
        inside = before * expand
        wider = [style.unit(style.conv(before, inside))] if expand > 1 else []
        self.conv = nn.Sequential(
            *wider,
            style.unit(style.conv(inside, inside, kernel, stride, inside)),
            style.conv(inside, after),
            style.norm(after),
        )
        self.adds = stride == 1 and before == after

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.conv(x)
        return x + y if self.adds else y


@dataclass(frozen=True)
class Stage:
    expand: int
    width: int
    count: int
    stride: int
    kernel: int = 3


class Mobile(nn.Module):
    """Stem, stages of inverted residuals, one more convolution, mean, dropout, dense layer.

    Dropout (0.2 where ImageNet was learnt) is off unless asked for: the residual networks of the
    papers have none, and a network with chance of its own is not recorded (ADR 0004).
    Taps are the last blocks of 1/8, 1/16 and 1/32 of the image's size.
    """

    def __init__(
        self,
        stages: Sequence[Stage],
        style: Style,
        outputs: int,
        channels: int,
        width: float,
        dropout: float,
    ):
        super().__init__()
        before, last = eights(32 * width), eights(1280 * max(1.0, width))
        parts: list[nn.Module] = [style.unit(style.conv(channels, before, 3, 2))]
        taps, halved = [], 1
        for s in stages:
            if s.stride == 2 and halved >= 3:
                taps.append(f"features.{len(parts) - 1}")
            halved += s.stride == 2
            after = eights(s.width * width)
            for k in range(s.count):
                stride = 1 if k else s.stride
                parts.append(InvertedResidual(style, before, after, s.expand, s.kernel, stride))
                before = after
        self.anatomy = Anatomy("classifier.1", (*taps, f"features.{len(parts) - 1}"))
        self.features = nn.Sequential(*parts, style.unit(style.conv(before, last)))
        head = nn.Linear(last, outputs)
        self.classifier = nn.Sequential(nn.Dropout(dropout), head)
        kaiming(self, "fan_out")
        nn.init.normal_(head.weight, 0.0, 0.01)
        nn.init.zeros_(head.bias)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.classifier(self.features(x).mean((2, 3)))
        return y


def eights(width: float) -> int:
    """The nearest multiple of 8, but not below 90% of the width."""
    near = max(8, int(width + 4) // 8 * 8)
    return near + 8 if near < 0.9 * width else near


def mobilenetv2(
    outputs: int = 1000, channels: int = 3, width: float = 1.0, dropout: float = 0.0
) -> Mobile:
    """torchvision's names; 3,504,872 parameters for 1000 classes."""
    stages = (
        Stage(1, 16, 1, 1), Stage(6, 24, 2, 2), Stage(6, 32, 3, 2), Stage(6, 64, 4, 2),
        Stage(6, 96, 3, 1), Stage(6, 160, 3, 2), Stage(6, 320, 1, 1),
    )  # fmt: skip
    return Mobile(stages, Style(), outputs, channels, width, dropout)


def efficientnet_lite0(
    outputs: int = 1000, channels: int = 3, width: float = 1.0, dropout: float = 0.0
) -> Mobile:
    """Google's (2020): no squeeze-and-excitation; 4,652,008 parameters for 1000 classes."""
    stages = (
        Stage(1, 16, 1, 1), Stage(6, 24, 2, 2), Stage(6, 40, 2, 2, 5), Stage(6, 80, 3, 2),
        Stage(6, 112, 3, 1, 5), Stage(6, 192, 4, 2, 5), Stage(6, 320, 1, 1),
    )  # fmt: skip
    return Mobile(stages, Style(True, 1e-3, 0.01), outputs, channels, width, dropout)
