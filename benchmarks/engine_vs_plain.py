"""The in-process engine beside a plain hand-written PyTorch loop over the same sites.

FedAvg on Rotated MNIST, five sites, CSAC's network, batch 32, two epochs a round. The plain
loop is what one would write without a library: a module per site, torch.optim.SGD, shuffled
batches of tensors, the mean of the state dicts. One thread for everybody; `plain, torch's
threads` lets torch use all cores. Turns are interleaved and the median is taken, so that other
load on the machine hits everybody alike. Prints ratios; writes JSON where --out says.
"""

import argparse
import copy
import json
import os
import statistics
import time
from pathlib import Path

import torch
import torch.nn.functional as F

from feddg.benchmark.protocols import experiment
from feddg.engines import open_engine
from feddg.engines.loop import Run, first_state, rounds

EPOCHS, BATCH = 2, 32


def plain(run: Run, state: dict, threads: int, channels_last: bool = False) -> float:
    torch.set_num_threads(threads)
    data = [(s.train.x.float() / 255, s.train.y) for s in run.sites]
    form = torch.channels_last if channels_last else torch.contiguous_format
    data = [(x.contiguous(memory_format=form), y) for x, y in data]
    began = time.perf_counter()
    replies = []
    for x, y in data:
        model = copy.deepcopy(run.model)
        model.load_state_dict(state)
        model.train()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.5)
        for _ in range(EPOCHS):
            for rows in torch.randperm(len(y)).split(BATCH)[: len(y) // BATCH]:
                optimizer.zero_grad()
                F.cross_entropy(model(x[rows]), y[rows]).backward()
                optimizer.step()
        replies.append(model.state_dict())
    for key in state:
        state[key] = torch.stack([r[key] for r in replies]).mean(0)
    return time.perf_counter() - began


def ours(run: Run, engine: object) -> float:
    began = time.perf_counter()
    for _ in rounds([run], engine, [(run.rounds - 1, first_state(run))]):
        pass
    return time.perf_counter() - began


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--turns", type=int, default=7)
    options.add_argument("--out", type=Path)
    chosen = options.parse_args()
    recipe = {"epochs": EPOCHS, "batch_size": BATCH}
    run, _ = experiment("rotated-mnist", targets=("m75",), recipe=recipe, rounds=2).prepared_run()
    cores = len(os.sched_getaffinity(0))
    state = {k: v.clone() for k, v in run.model.state_dict().items()}
    names = ["plain", "plain, channels last", "plain, torch's threads", "one worker", "two workers"]
    took: dict[str, list[float]] = {n: [] for n in names}
    with open_engine([run], 1) as one, open_engine([run], 2) as two:
        for turn in range(chosen.turns + 1):
            now = {
                "plain": plain(run, state, 1),
                "plain, channels last": plain(run, state, 1, channels_last=True),
                "plain, torch's threads": plain(run, state, cores),
                "one worker": (torch.set_num_threads(1), ours(run, one))[1],
                "two workers": ours(run, two),
            }
            if turn:  # the first warms up
                for name, seconds in now.items():
                    took[name].append(seconds)
    median = {k: statistics.median(v) for k, v in took.items()}
    images = EPOCHS * sum(len(s.train) // BATCH * BATCH for s in run.sites)
    print(f"{'':24}{'s/round':>9}{'images/s':>10}{'against plain':>15}")
    for name, seconds in median.items():
        ratio = median["plain"] / seconds
        print(f"{name:24}{seconds:9.3f}{images / seconds:10.0f}{ratio:14.2f}x")
    if chosen.out:
        chosen.out.write_text(json.dumps(median))


if __name__ == "__main__":
    main()
