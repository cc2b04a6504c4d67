"""What CSAC costs beside FedAvg, with L^h's features cached and without.

The digits' network at batch 32 by CSAC's schedule (30 epochs of acquisition, then 40 rounds of 5),
or ResNet-18 on random pictures (30, then 40 rounds of 10; CSAC's Table 6 has 4.61 against 4.04
hours on PACS, 1.14 times). Acquisition is the same work for all, and every round of calibration is
like another, so a few rounds are timed and the whole run is composed from them. Rounds of the
methods are interleaved in one process and medians are taken, so that other load on the machine
hits all alike: processor time of one thread on a CPU, wall time on a GPU.

    PYTHONPATH=src python benchmarks/csac_cost.py
    PYTHONPATH=src python benchmarks/csac_cost.py --network resnet18 --device cuda --rounds 4
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

import feddg
from feddg.catalogue import compose
from feddg.data.domain import Federation, leave_one_domain_out
from feddg.data.transforms import IMAGENET
from feddg.engines import open_engine
from feddg.engines.compute import Compute
from feddg.engines.loop import Run, rounds
from feddg.models import build
from feddg.parts import calibration
from feddg.parts.features import Remembered
from feddg.recipe import Recipe

SPECS = {
    "fedavg": "fedavg(weights='uniform')",
    "csac, cached": "csac(cache_features='on')",
    "csac, uncached": "csac(cache_features='off')",
}
FIRST, ROUNDS = 30, 40
EPOCHS = {"rotated-mnist-cnn": 5, "resnet18": 10}
PAPER = {"resnet18": 4.61 / 4.04}
MOST_TIMED = {"rotated-mnist-cnn": 5, "resnet18": 1}  # epochs of a round that are timed


def digits(sites: int) -> Federation:
    fed = leave_one_domain_out(feddg.open_collection("rotated-mnist"), "m75")
    return replace(fed, sites=fed.sites[:sites])


def photos(sites: int, images: int, augment: str) -> Federation:
    """Random pictures: what is in them costs no time."""
    rng = torch.Generator().manual_seed(0)
    tensors = {
        f"site{i}": (
            torch.randint(0, 256, (images, 3, 224, 224), dtype=torch.uint8, generator=rng),
            torch.arange(images) % 7,
        )
        for i in range(sites)
    }
    tensors["target"] = tuple(v[:64] for v in tensors["site0"])  # type: ignore[assignment]
    classes = [str(c) for c in range(7)]
    data = feddg.from_tensors(tensors, classes, prepare=(IMAGENET,), augment=augment)
    return leave_one_domain_out(data, "target", share=0.0)


def clock(compute: Compute) -> Callable[[], float]:
    if not compute.on_gpu:
        return time.process_time

    def now() -> float:
        torch.cuda.synchronize()
        return time.perf_counter()

    return now


def timed(
    fed: Federation, network: str, specs: dict[str, str], turns: int, batch: int, compute: Compute
) -> dict[str, list[float]]:
    """Seconds of every round of every method: acquisition, cut short, then calibration."""
    now, few = clock(compute), MOST_TIMED[network]
    recipe = Recipe(lr=0.01, momentum=0.5, batch_size=batch, epochs=few, first_epochs=few)
    options = {"outputs": 7} if network == "resnet18" else {}
    took: dict[str, list[float]] = {name: [] for name in specs}
    with ExitStack() as stack:
        going = {}
        for name, spec in specs.items():
            model = build(network, seed=0, **options)
            run = compute.placed(Run(compose(spec), model, fed, recipe, turns + 1))
            going[name] = rounds([run], stack.enter_context(open_engine([run], compute)))
        for turn in range(turns + 1):
            names = list(specs)
            for name in names[turn % len(names) :] + names[: turn % len(names)]:
                began = now()
                next(going[name])
                took[name].append(now() - began)
    return took


def whole(network: str, took: dict[str, list[float]]) -> dict[str, dict[str, float]]:
    """Of the paper's schedule: what all share, what is done once, and the usual round 40 times."""
    few, epochs = MOST_TIMED[network], EPOCHS[network]
    acquisition = statistics.median(t[0] for t in took.values()) * FIRST / few
    found: dict[str, dict[str, float]] = {}
    for name, seconds in took.items():
        later = seconds[2:] or seconds[1:]
        usual = statistics.median(later)
        once = max(seconds[1] - usual, 0.0) if name == "csac, cached" else 0.0
        found[name] = {
            "round": usual * epochs / few,
            "run": acquisition + ROUNDS * usual * epochs / few + once,
        }
    base = found["fedavg"]
    return {
        name: own | {f"ratio_{k}": own[k] / base[k] for k in ("round", "run")}
        for name, own in found.items()
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--network", choices=EPOCHS, default="rotated-mnist-cnn")
    options.add_argument("--rounds", type=int, default=8, help="calibration rounds to time")
    options.add_argument("--sites", type=int, help="5 of digits, 3 of pictures")
    options.add_argument("--images", type=int, default=512, help="pictures of a site")
    options.add_argument("--batch", type=int, default=32)
    options.add_argument("--augment", default="", help="of pictures: crop=0.8,flip,jitter=0.4")
    options.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    options.add_argument("--precision", default="auto", choices=("auto", "fp32", "tf32", "bf16"))
    options.add_argument("--out", type=Path)
    chosen = options.parse_args()
    torch.set_num_threads(1)
    calibration.FEATURES = Remembered()
    # One process and one thread on a CPU; a stack or streams on a GPU.
    gpu = chosen.device == "cuda"
    compute = Compute(
        device=chosen.device, precision=chosen.precision, workers=1,
        execution="auto" if gpu else "one-by-one",
    )  # fmt: skip
    if chosen.network == "resnet18":
        fed = photos(chosen.sites or 3, chosen.images, chosen.augment)
    else:
        fed = digits(chosen.sites or 5)
    # Augmented pictures have other features every time, which nobody can keep.
    specs = {k: v for k, v in SPECS.items() if not (chosen.augment and k == "csac, cached")}
    took = timed(fed, chosen.network, specs, chosen.rounds, chosen.batch, compute)
    found: dict[str, Any] = whole(chosen.network, took)
    for name, own in found.items():
        print(
            f"{name:15} {own['round']:7.3f} s a round ({own['ratio_round']:.2f}),"
            f" {own['run']:7.1f} s a run ({own['ratio_run']:.2f})"
        )
    if chosen.network in PAPER:
        print(f"the paper's     {PAPER[chosen.network]:.2f} (CSAC's Table 6, PACS, ResNet-18)")
    if chosen.out:
        chosen.out.write_text(json.dumps({**compute.told(), **found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
