"""ResNets (He et al., CVPR 2016), by torchvision's names, so that its weights load as they are."""

from collections.abc import Sequence

from torch import Tensor, nn

from feddg.models.anatomy import Anatomy
from feddg.models.initial import kaiming

DEPTHS = (1, 2, 4, 8)  # width of the stages, in multiples of the first


class BasicBlock(nn.Module):
    """Two 3x3 convolutions and a shortcut."""

    expansion = 1

    def __init__(self, before: int, width: int, stride: int):
        super().__init__()
        self.conv1 = nn.Conv2d(before, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU()
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = shortcut(before, width, stride)

    def forward(self, x: Tensor) -> Tensor:
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        z: Tensor = self.relu(y + (self.downsample(x) if self.downsample else x))
        return z


class Bottleneck(nn.Module):
    """1x1, 3x3 and 1x1 convolutions and a shortcut; the stride is in the middle one."""

    expansion = 4

    def __init__(self, before: int, width: int, stride: int):
        super().__init__()
        self.conv1 = nn.Conv2d(before, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, 4 * width, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * width)
        self.relu = nn.ReLU()
        self.downsample = shortcut(before, 4 * width, stride)

    def forward(self, x: Tensor) -> Tensor:
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.bn3(self.conv3(self.relu(self.bn2(self.conv2(y)))))
        z: Tensor = self.relu(y + (self.downsample(x) if self.downsample else x))
        return z


def shortcut(before: int, after: int, stride: int) -> nn.Sequential | None:
    """None where the block changes neither width nor size."""
    if stride == 1 and before == after:
        return None
    conv = nn.Conv2d(before, after, 1, stride, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(after))


class ResNet(nn.Module):
    """`blocks` per stage. `width` of the first stage: 64 as published, less for tests."""

    anatomy = Anatomy(head="fc", taps=("layer2", "layer3", "layer4"))

    def __init__(
        self,
        kind: type[BasicBlock] | type[Bottleneck],
        blocks: Sequence[int],
        outputs: int = 1000,
        channels: int = 3,
        width: int = 64,
    ):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU()
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        before = width
        for i, (times, count) in enumerate(zip(DEPTHS, blocks, strict=True)):
            stage = []
            for k in range(count):
                stage.append(kind(before, times * width, 2 if i and not k else 1))
                before = times * width * kind.expansion
            self.add_module(f"layer{i + 1}", nn.Sequential(*stage))
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(before, outputs)
        kaiming(self, "fan_out")

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        for i in range(1, 5):
            x = self.get_submodule(f"layer{i}")(x)
        y: Tensor = self.fc(self.avgpool(x).flatten(1))
        return y


def resnet18(outputs: int = 1000, channels: int = 3, width: int = 64) -> ResNet:
    """11,689,512 parameters for 1000 classes."""
    return ResNet(BasicBlock, (2, 2, 2, 2), outputs, channels, width)


def resnet34(outputs: int = 1000, channels: int = 3, width: int = 64) -> ResNet:
    """21,797,672 parameters for 1000 classes."""
    return ResNet(BasicBlock, (3, 4, 6, 3), outputs, channels, width)


def resnet50(outputs: int = 1000, channels: int = 3, width: int = 64) -> ResNet:
    """25,557,032 parameters for 1000 classes."""
    return ResNet(Bottleneck, (3, 4, 6, 3), outputs, channels, width)


def resnet101(outputs: int = 1000, channels: int = 3, width: int = 64) -> ResNet:
    """44,549,160 parameters for 1000 classes."""
    return ResNet(Bottleneck, (3, 4, 23, 3), outputs, channels, width)
