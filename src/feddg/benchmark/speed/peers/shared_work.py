"""The federated work that every contender does, in plain PyTorch and without feddg.

It and the scripts beside it run in the peers' own environments, which have torch and numpy.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True)
class Work:
    """Told by the file that FEDDG_WORK names."""

    data: str
    epochs: int
    batch: int
    lr: float
    momentum: float
    rounds: int
    threads: int  # 0: as many as torch takes by itself
    out: str
    began: float = 0.0  # when the process was asked for

    @staticmethod
    def read() -> "Work":
        return Work(**json.loads(Path(os.environ["FEDDG_WORK"]).read_text("utf-8")))

    def sites(self) -> list[tuple[Tensor, Tensor]]:
        """Images as floats in 0…1, and labels; a site each."""
        with np.load(self.data, allow_pickle=False) as stored:
            x, y = torch.from_numpy(stored["x"]), torch.from_numpy(stored["y"])
        return [(images.float() / 255, labels) for images, labels in zip(x, y, strict=True)]

    def threaded(self) -> None:
        if self.threads:
            torch.set_num_threads(self.threads)

    def tell(self, rounds: Sequence[float], first: float, **more: Any) -> None:
        """Seconds of every round, the first one included; when that one began."""
        found = {"rounds": list(rounds), "startup": first - self.began, **more}
        Path(self.out).write_text(json.dumps(found), "utf-8")


class Net(nn.Module):
    """The network of `rotated-mnist-cnn`, as anybody would write it."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 32, 5), nn.Conv2d(32, 48, 5)
        self.dense, self.head = nn.Linear(768, 100), nn.Linear(100, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(F.max_pool2d(self.conv1(x), 2))
        x = F.relu(F.max_pool2d(self.conv2(x), 2))
        found: Tensor = self.head(F.relu(self.dense(x.flatten(1))))
        return found


def train(model: nn.Module, site: tuple[Tensor, Tensor], work: Work) -> int:
    """One site's round: shuffled whole batches, SGD; the number of its steps."""
    x, y = site
    model.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=work.lr, momentum=work.momentum)
    steps = 0
    for _ in range(work.epochs):
        for rows in torch.randperm(len(y)).split(work.batch)[: len(y) // work.batch]:
            optimizer.zero_grad()
            F.cross_entropy(model(x[rows]), y[rows]).backward()
            optimizer.step()
            steps += 1
    return steps


@cache
def held() -> list[tuple[Tensor, Tensor]]:
    """Read once a process."""
    return Work.read().sites()


def differences(marks: Sequence[float]) -> list[float]:
    return [b - a for a, b in pairwise(marks)]
