"""Small networks: the papers' for digits, one for images of any size, one for tables."""

from collections.abc import Sequence
from itertools import pairwise

from torch import Tensor, nn

from feddg.models.anatomy import Anatomy


def block(before: int, after: int, kernel: int) -> nn.Sequential:
    """Convolution, pool, ReLU: conv-ReLU-pool at less work, for max and ReLU commute."""
    return nn.Sequential(nn.Conv2d(before, after, kernel), nn.MaxPool2d(2), nn.ReLU())


class RotatedMnistCNN(nn.Module):
    """CSAC's network for Rotated MNIST: two 5x5 convolutions and two dense layers."""

    anatomy = Anatomy(head="head", taps=("block1", "block2"))

    def __init__(self, outputs: int = 10, channels: int = 1):
        super().__init__()
        self.block1 = block(channels, 32, 5)
        self.block2 = block(32, 48, 5)
        self.dense = nn.Sequential(nn.Flatten(), nn.Linear(768, 100), nn.ReLU())
        self.head = nn.Linear(100, outputs)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.head(self.dense(self.block2(self.block1(x))))
        return y


class SmallCNN(nn.Module):
    """Three convolutions with batch norm and a mean over what is left: images of any size."""

    anatomy = Anatomy(head="head", taps=("blocks.0", "blocks.1", "blocks.2"))

    def __init__(self, outputs: int, channels: int = 3, width: int = 32):
        super().__init__()
        widths = (channels, width, 2 * width, 4 * width)
        self.blocks = nn.Sequential(*(self.stage(a, b) for a, b in pairwise(widths)))
        self.pool = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.head = nn.Linear(widths[-1], outputs)

    @staticmethod
    def stage(before: int, after: int) -> nn.Sequential:
        conv = nn.Conv2d(before, after, 3, stride=2, padding=1, bias=False)
        return nn.Sequential(conv, nn.BatchNorm2d(after), nn.ReLU())

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.head(self.pool(self.blocks(x)))
        return y


class MLP(nn.Module):
    """Dense layers with ReLU, for tables of named features."""

    def __init__(self, inputs: int, outputs: int, hidden: Sequence[int] = (16,)):
        super().__init__()
        pairs = list(pairwise((inputs, *hidden)))
        self.layers = nn.Sequential(*(nn.Sequential(nn.Linear(a, b), nn.ReLU()) for a, b in pairs))
        self.head = nn.Linear((inputs, *hidden)[-1], outputs)
        self.anatomy = Anatomy("head", tuple(f"layers.{i}" for i in range(len(pairs))))

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.head(self.layers(x.flatten(1)))
        return y
