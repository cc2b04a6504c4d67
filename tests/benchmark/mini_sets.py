"""Every data set of the papers in miniature: its domains, its kind of labels, a few tiny images."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from feddg.data.domain import Collection, Domain, Examples
from feddg.data.spec import DataSpec
from feddg.models import Anatomy
from feddg.seeds import generator
from feddg.tasks import Classification, Regression, Task

DOMAINS = {
    "rotated-mnist": "m0 m15 m30 m45 m60 m75",
    "pacs": "art_painting cartoon photo sketch",
    "vlcs": "caltech labelme pascal sun",
    "office-home": "art clipart product real_world",
    "office-caltech-home": "amazon webcam caltech art clipart product real_world",
    "office-caltech10": "amazon caltech dslr webcam",
    "terra-incognita": "location_100 location_38 location_43 location_46",
    "domainnet": "clipart infograph painting quickdraw real sketch",
    "digits-dg": "mnist mnist_m svhn syn",
    "digit-five": "mnist mnist_m svhn syn usps",
    "camelyon17": "hospital0 hospital3 hospital4 validation test",
    "poverty": "ghana-rural ghana-urban mali-rural validation test",
    "fmow": "2002 2003 2004 validation test",
}
OFFICIAL = ("camelyon17", "poverty", "fmow")
N, CLASSES = 8, 2


class Tiny(nn.Module):
    """A ResNet's names, on images of a few pixels."""

    anatomy = Anatomy("fc", ("layer1", "layer2"))

    def __init__(self, outputs: int = CLASSES, channels: int = 3) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(channels, 4, 3, padding=1), nn.BatchNorm2d(4)
        self.layer1, self.layer2 = nn.Sequential(block(4, 4)), nn.Sequential(block(4, 6))
        self.fc = nn.Linear(6, outputs)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.layer2(self.layer1(self.bn1(self.conv1(x)).relu()))
        out: Tensor = self.fc(y.mean((2, 3)))
        return out


def block(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3), nn.BatchNorm2d(outputs), nn.ReLU())


def task(name: str) -> Task:
    return Regression(("wealth",)) if name == "poverty" else Classification(("x", "o"))


def labels(name: str, rng: torch.Generator) -> Tensor:
    if name == "poverty":
        return torch.randn(N, 1, generator=rng)
    return torch.arange(N) % CLASSES


def domain(name: str, where: str) -> Domain:
    """Unseen domains of the data's own split have no rows to train on."""
    rng = generator("mini-set", name, where)
    x = torch.rand(N, 3, 8, 8, generator=rng)
    own = {"validation": "val", "test": "test"}.get(where) if name in OFFICIAL else None
    groups = torch.arange(N) % 4 // 2 if name in OFFICIAL else None
    if own:
        return Domain(where, Examples(x, labels(name, rng), groups), {own: torch.arange(N)})
    splits = {"train": torch.arange(N)} if name in OFFICIAL else {}
    return Domain(where, Examples(x, labels(name, rng), groups), splits)


def spec(name: str) -> DataSpec:
    """What `feddg.data.catalogue.SPECS` may hold instead. Options are taken and do nothing."""

    def opening(**_: str) -> Collection:
        found: Sequence[Domain] = [domain(name, d) for d in DOMAINS[name].split()]
        return Collection(name, tuple(found), task(name))

    options = dict.fromkeys(("augment", "unseen", "protocol", "root", "classes"), str)
    return DataSpec(
        name=name, title=name, summary="", size="", licence="", source="", layout="",
        protocols=(), embedded=True, open=opening, options=options,
    )  # fmt: skip


SPECS = tuple(map(spec, DOMAINS))
