"""How long an item would take here, from a few measured training steps."""

import time
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch

from feddg.benchmark.papers import Item
from feddg.engines import one_thread
from feddg.engines.compute import Compute
from feddg.models import build
from feddg.tasks import Classification

# Images in all, domains, and the shape of one: the published counts.
SETS = {
    "rotated-mnist": (6_000, 6, (1, 28, 28)),
    "pacs": (9_991, 4, (3, 224, 224)),
    "vlcs": (10_729, 4, (3, 224, 224)),
    "office-home": (15_588, 4, (3, 224, 224)),
    "office-caltech-home": (7_000, 7, (3, 224, 224)),
    "office-caltech10": (2_533, 4, (3, 224, 224)),
    "terra-incognita": (24_788, 4, (3, 224, 224)),
    "domainnet": (20_000, 6, (3, 224, 224)),
    "digits-dg": (24_000, 4, (3, 32, 32)),
    "digit-five": (125_000, 5, (3, 32, 32)),
    "camelyon17": (302_436, 5, (3, 96, 96)),
    "poverty": (9_797, 46, (8, 224, 224)),
    "fmow": (76_863, 11, (3, 224, 224)),
}
DOMAINBED_DIGITS = 70_000
OFFICIAL = ("camelyon17", "poverty", "fmow")  # whose count above is of the training images alone
# Multiplications per image of 224×224, in units of 10^9: what a step's time goes with.
BILLIONS = {"alexnet": 0.7, "resnet18": 1.8, "resnet50": 4.1, "resnet101": 7.8, "densenet121": 2.9}
SIZED = ("lenet", "digits-dg-cnn", "digit-five-cnn")  # that ask for the images' side
PATIENCE = 0.3  # seconds of steps at least; more tell nothing more
BATCH = {True: 32, False: 4}  # of what is measured: small networks, others
SAID = (
    "Estimates are of training alone, at the paper's schedule and seeds, one run after the other;"
    " from steps of each small network and of ResNet-18 measured just now on {device}; other"
    " networks in proportion to their multiplications. Every method counts as FedAvg; one that"
    " passes its data twice takes about twice as long."
)


@dataclass(eq=False)
class Estimator:
    how: Compute
    measured: dict[tuple[str, tuple[int, ...]], float] = field(default_factory=dict)

    @property
    def said(self) -> str:
        return SAID.format(device="the GPU" if self.how.on_gpu else "one core here")

    def runs(self, item: Item) -> int:
        """Cells and seeds, before those that are the same run are put together."""
        cells = sum(len(r.targets or item.targets) if not item.official else 1 for r in item.rows)
        return cells * item.seeds

    def seconds(self, item: Item) -> float:
        per_image = self.per_image(item.model, SETS[item.data][2])
        return sum(self.images(item, k) for k in range(len(item.rows))) * per_image * item.seeds

    def images(self, item: Item, k: int) -> float:
        """That one row's runs train on, over all rounds, targets and sites."""
        row, recipe = item.rows[k], item.recipe
        images, domains, _ = SETS[item.data]
        if item.data_options.get("protocol") == "domainbed":
            images = DOMAINBED_DIGITS
        if item.official:
            seen, runs = float(images), 1
        else:
            sources = len(row.sources) or domains - 1
            seen, runs = images * sources / domains, len(row.targets or item.targets)
        share = item.participation
        asked = share if isinstance(share, float) else min(1.0, share / domains)
        first = recipe.first_epochs or recipe.epochs
        epochs = first + (item.rounds - 1) * recipe.epochs
        return seen * (1 - item.share) * asked * epochs * runs

    def per_image(self, model: str, shape: tuple[int, ...]) -> float:
        """Seconds of training."""
        if model not in BILLIONS:
            return self.step(model, shape)
        area = shape[1] * shape[2] / 224**2
        return self.photographs * BILLIONS[model] / BILLIONS["resnet18"] * area

    @cached_property
    def photographs(self) -> float:
        return self.step("resnet18", (3, 224, 224))

    def step(self, model: str, shape: tuple[int, ...]) -> float:
        """Measured: the fastest of some steps, for others may be at work here, too."""
        if (model, shape) not in self.measured:
            small, device = model not in BILLIONS, self.how.target
            options: dict[str, Any] = {"channels": shape[0], "outputs": 10}
            if model in SIZED:
                options["size"] = shape[-1]
            network = build(model, **options).to(device)
            x = torch.zeros(BATCH[small], *shape, device=device)
            y = torch.zeros(BATCH[small], dtype=torch.long, device=device)
            task, times = Classification(tuple("0123456789")), list[float]()
            with one_thread():  # as in training
                while len(times) < 3 or sum(times) < PATIENCE:
                    began = time.perf_counter()
                    torch.autograd.grad(task.loss(network(x), y), list(network.parameters()))
                    if self.how.on_gpu:
                        torch.cuda.synchronize()
                    times.append(time.perf_counter() - began)
            self.measured[model, shape] = min(times) / len(x)
        return self.measured[model, shape]


def clock(seconds: float) -> str:
    """In the unit that says most."""
    for unit, size in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 1.5 * size:
            return (
                f"{seconds / size:.0f} {unit}"
                if seconds >= 10 * size
                else f"{seconds / size:.1f} {unit}"
            )
    return f"{seconds:.0f} s"
