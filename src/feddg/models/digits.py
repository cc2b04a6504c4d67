"""The papers' networks for digits: small square images of one or three channels."""

from itertools import pairwise

from torch import Tensor, nn

from feddg.errors import within
from feddg.models.anatomy import Anatomy


class LeNet(nn.Module):
    """LeNet-5 as it is trained today, with ReLU and max pooling; 61,706 parameters at 28x28."""

    anatomy = Anatomy(head="head", taps=("block1", "block2"))

    def __init__(self, outputs: int = 10, channels: int = 1, size: int = 28):
        super().__init__()
        within("size of images for lenet", size, 12)
        left = (size // 2 - 4) // 2
        self.block1 = nn.Sequential(
            nn.Conv2d(channels, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)
        )
        self.block2 = nn.Sequential(nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2))
        self.dense = nn.Sequential(
            nn.Flatten(), nn.Linear(16 * left * left, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU()
        )
        self.head = nn.Linear(84, outputs)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.head(self.dense(self.block2(self.block1(x))))
        return y


class DigitsDgCNN(nn.Module):
    """Digits-DG (Zhou et al., 2020): four 3x3 convolutions of 64, with ReLU and 2x2 pooling."""

    anatomy = Anatomy(head="head", taps=("blocks.1", "blocks.2", "blocks.3"))

    def __init__(self, outputs: int = 10, channels: int = 3, size: int = 32, width: int = 64):
        super().__init__()
        within("size of images for digits-dg-cnn", size, 16)
        widths = (channels, width, width, width, width)
        self.blocks = nn.Sequential(*(self.block(a, b) for a, b in pairwise(widths)))
        self.flat = nn.Flatten()
        self.head = nn.Linear(width * (size // 16) ** 2, outputs)

    @staticmethod
    def block(before: int, after: int) -> nn.Sequential:
        conv = nn.Conv2d(before, after, 3, padding=1)
        nn.init.kaiming_normal_(conv.weight)
        nn.init.zeros_(conv.bias)  # type: ignore[arg-type] # there is one
        return nn.Sequential(conv, nn.ReLU(), nn.MaxPool2d(2))

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.head(self.flat(self.blocks(x)))
        return y


class DigitFiveCNN(nn.Module):
    """Digit-Five (Peng et al., 2019; COPA): three 5x5 convolutions, two dense layers, batch norm.

    Without the dropout of the former's code, of which COPA does not speak.
    """

    anatomy = Anatomy(head="head", taps=("conv1", "conv2", "conv3"))

    def __init__(self, outputs: int = 10, channels: int = 3, size: int = 32, width: int = 64):
        super().__init__()
        within("size of images for digit-five-cnn", size, 4)
        left = (size + 3) // 4  # halved twice, rounded up
        self.conv1 = nn.Sequential(*self.stage(channels, width), nn.MaxPool2d(3, 2, 1))
        self.conv2 = nn.Sequential(*self.stage(width, width), nn.MaxPool2d(3, 2, 1))
        self.conv3 = nn.Sequential(*self.stage(width, 2 * width))
        inputs, wide, narrow = 2 * width * left * left, 48 * width, 32 * width
        self.dense = nn.Sequential(
            nn.Flatten(),
            nn.Linear(inputs, wide), nn.BatchNorm1d(wide), nn.ReLU(),
            nn.Linear(wide, narrow), nn.BatchNorm1d(narrow), nn.ReLU(),
        )  # fmt: skip
        self.head = nn.Linear(narrow, outputs)

    @staticmethod
    def stage(before: int, after: int) -> tuple[nn.Module, ...]:
        return nn.Conv2d(before, after, 5, padding=2), nn.BatchNorm2d(after), nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.head(self.dense(self.conv3(self.conv2(self.conv1(x)))))
        return y


class DomainBedMnist(nn.Module):
    """DomainBed's network for Rotated MNIST: four convolutions with group norm, then their mean."""

    anatomy = Anatomy(head="head", taps=("blocks.1", "blocks.2", "blocks.3"))

    def __init__(self, outputs: int = 10, channels: int = 1, width: int = 64):
        super().__init__()
        widths = (channels, width, 2 * width, 2 * width, 2 * width)
        strides = (1, 2, 1, 1)
        self.blocks = nn.Sequential(
            *(self.block(a, b, s) for (a, b), s in zip(pairwise(widths), strides, strict=True))
        )
        self.pool = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.head = nn.Linear(2 * width, outputs)

    @staticmethod
    def block(before: int, after: int, stride: int) -> nn.Sequential:
        conv = nn.Conv2d(before, after, 3, stride, padding=1)
        return nn.Sequential(conv, nn.ReLU(), nn.GroupNorm(8, after))

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.head(self.pool(self.blocks(x)))
        return y
