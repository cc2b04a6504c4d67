"""What CSAC costs beside FedAvg: on Rotated MNIST, with L^h's features cached and without.

CSAC's schedule, 30 epochs of acquisition, then 40 rounds of 5, at batch 32. Acquisition is the
same work for both, and every round of calibration is like another, so a few rounds are timed and
the whole run is composed from them (--rounds 40 times all). Rounds of the methods are interleaved
in one process on one thread, processor time is counted and medians are taken, so that other load
on the machine hits all alike.
"""

import argparse
import json
import statistics
import time
from dataclasses import replace
from pathlib import Path

import torch

from feddg.catalogue import compose
from feddg.data.domain import Site, leave_one_domain_out
from feddg.data.rotated_mnist import load
from feddg.engines.inprocess import InProcess
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
FIRST, ROUNDS, EPOCHS = 30, 40, 5


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=8, help="calibration rounds to time")
    options.add_argument("--sites", type=int, default=5)
    options.add_argument("--out", type=Path)
    chosen = options.parse_args()
    torch.set_num_threads(1)
    calibration.FEATURES = Remembered()
    fed = leave_one_domain_out(load(), "m75")
    sites: tuple[Site, ...] = fed.sites[: chosen.sites]
    whole = chosen.rounds >= ROUNDS
    first = FIRST if whole else 3
    recipe = Recipe(lr=0.01, momentum=0.5, batch_size=32, epochs=EPOCHS, first_epochs=first)
    going = {}
    took: dict[str, list[float]] = {name: [] for name in SPECS}
    for name, spec in SPECS.items():
        model = build("rotated-mnist-cnn", seed=0)
        run = Run(compose(spec), model, replace(fed, sites=sites), recipe, chosen.rounds + 1)
        going[name] = rounds([run], InProcess())
    for turn in range(chosen.rounds + 1):
        names = list(SPECS)[turn % 3 :] + list(SPECS)[: turn % 3]
        for name in names:
            began = time.process_time()
            next(going[name])
            took[name].append(time.process_time() - began)
    # Acquisition is the same work for all three: one number, that of the run's length.
    acquisition = statistics.median(t[0] for t in took.values()) * FIRST / first
    once = took["csac, cached"][1] - statistics.median(took["csac, cached"][1:])
    result = {}
    for name, seconds in took.items():
        usual = statistics.median(seconds[1:])
        extra = max(once, 0.0) if name == "csac, cached" else 0.0
        result[name] = {"round": usual, "run": acquisition + ROUNDS * usual + extra}
    base = result["fedavg"]
    for name, own in result.items():
        own |= {"ratio_round": own["round"] / base["round"], "ratio_run": own["run"] / base["run"]}
        print(
            f"{name:15} {own['round']:7.3f} s a round ({own['ratio_round']:.2f}),"
            f" {own['run']:7.1f} s a run ({own['ratio_run']:.2f})"
        )
    if chosen.out:
        chosen.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
