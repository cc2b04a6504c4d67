"""AlexNet (Krizhevsky, 2014): torchvision's, by its names, and FedBN's with batch norm."""

from torch import Tensor, nn

from feddg.models.anatomy import Anatomy


class AlexNet(nn.Module):
    """torchvision's names and sizes; 61,100,840 parameters for 1000 classes. From 63x63 on.

    Taps are the outputs of the last three convolutions, the last one after its pool.
    """

    anatomy = Anatomy(head="classifier.6", taps=("features.7", "features.9", "features.12"))

    def __init__(
        self,
        outputs: int = 1000,
        channels: int = 3,
        width: int = 64,
        hidden: int = 4096,
        dropout: float = 0.5,
    ):
        super().__init__()
        w = width
        self.features = nn.Sequential(
            nn.Conv2d(channels, w, 11, 4, 2), nn.ReLU(), nn.MaxPool2d(3, 2),
            nn.Conv2d(w, 3 * w, 5, padding=2), nn.ReLU(), nn.MaxPool2d(3, 2),
            nn.Conv2d(3 * w, 6 * w, 3, padding=1), nn.ReLU(),
            nn.Conv2d(6 * w, 4 * w, 3, padding=1), nn.ReLU(),
            nn.Conv2d(4 * w, 4 * w, 3, padding=1), nn.ReLU(), nn.MaxPool2d(3, 2),
        )  # fmt: skip
        self.avgpool = nn.AdaptiveAvgPool2d(6)
        self.classifier = nn.Sequential(
            nn.Dropout(dropout), nn.Linear(36 * 4 * w, hidden), nn.ReLU(),
            nn.Dropout(dropout), nn.Linear(hidden, hidden), nn.ReLU(),
            nn.Linear(hidden, outputs),
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.classifier(self.avgpool(self.features(x)).flatten(1))
        return y


class AlexNetBN(nn.Module):
    """FedBN's for DomainNet (Li et al., ICLR 2021), as GA used it: batch norm, and no dropout."""

    anatomy = Anatomy(head="head", taps=("blocks.2", "blocks.3", "blocks.4"))

    def __init__(self, outputs: int = 10, channels: int = 3, width: int = 64, hidden: int = 4096):
        super().__init__()
        w = width
        self.blocks = nn.Sequential(
            self.block(nn.Conv2d(channels, w, 11, 4, 2), nn.MaxPool2d(3, 2)),
            self.block(nn.Conv2d(w, 3 * w, 5, padding=2), nn.MaxPool2d(3, 2)),
            self.block(nn.Conv2d(3 * w, 6 * w, 3, padding=1)),
            self.block(nn.Conv2d(6 * w, 4 * w, 3, padding=1)),
            self.block(nn.Conv2d(4 * w, 4 * w, 3, padding=1), nn.MaxPool2d(3, 2)),
        )
        self.pool = nn.Sequential(nn.AdaptiveAvgPool2d(6), nn.Flatten())
        self.dense = nn.Sequential(
            nn.Linear(36 * 4 * w, hidden), nn.BatchNorm1d(hidden), nn.ReLU(),
            nn.Linear(hidden, hidden), nn.BatchNorm1d(hidden), nn.ReLU(),
        )  # fmt: skip
        self.head = nn.Linear(hidden, outputs)

    @staticmethod
    def block(conv: nn.Conv2d, *pool: nn.Module) -> nn.Sequential:
        return nn.Sequential(conv, nn.BatchNorm2d(conv.out_channels), nn.ReLU(), *pool)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.head(self.dense(self.pool(self.blocks(x))))
        return y
