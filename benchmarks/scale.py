"""What a site costs as there come to be a thousand: seconds, and memory of the main process.

The CNN for digits (117 thousand weights), every site with digits of its own turn to read, but in
one shared store; two rounds each in a process of its own, of which the second counts. FedAvg is a
merge of sums, PPDG needs the Gram matrix. Beyond 128 MiB here (--budget) replies and updates lie
in files. Memory is what the system cannot drop (RssAnon), its peak above what it was at first.
Processor time is that of the main process and its workers; other load on the machine moves it less.

    python benchmarks/scale.py --out scale.json
"""

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import torch

from feddg import shelf
from feddg.benchmark.protocols import experiment
from feddg.catalogue import compose
from feddg.data.domain import Site
from feddg.engines import open_engine
from feddg.engines.loop import first_state, rounds

EXAMPLES = 320


def anonymous() -> float:
    """MiB."""
    text = Path("/proc/self/status").read_text()
    return float(text.split("RssAnon:")[1].split()[0]) / 1024


def processor_time() -> float:
    """Seconds that this process and its living children have used."""
    me = f"/proc/{os.getpid()}"
    workers = Path(f"{me}/task/{os.getpid()}/children").read_text().split()
    ticks = 0
    for pid in [str(os.getpid()), *workers]:
        used = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(used[11]) + int(used[12])  # of the user's code and of the system's for it
    return ticks / os.sysconf("SC_CLK_TCK")


def one(method: str, sites: int, budget: int) -> dict[str, float]:
    shelf.BUDGET = budget << 20
    recipe = {"epochs": 1, "batch_size": 32}
    made = experiment("rotated-mnist", targets=("m75",), recipe=recipe, rounds=3)
    run, _ = made.prepared_run()
    of = [s.train for s in run.sites]
    data = [of[i % 5].take((torch.arange(EXAMPLES) + 7 * i) % 1000) for i in range(sites)]
    many = tuple(Site(f"site{i}", d) for i, d in enumerate(data))
    run = replace(run, method=compose(method), federation=replace(run.federation, sites=many))
    peak, on = [0.0], True

    def watch() -> None:
        while on:
            peak[0] = max(peak[0], anonymous())
            time.sleep(0.01)

    with open_engine([run]) as engine:
        before = anonymous()
        watcher = threading.Thread(target=watch)
        watcher.start()
        last, took, before_it, used = time.perf_counter(), [], processor_time(), 0.0
        for _ in rounds([run], engine, [(1, first_state(run))]):
            took.append(time.perf_counter() - last)
            used, before_it = processor_time() - before_it, processor_time()
            last = time.perf_counter()
        on = False
        watcher.join()
    return {
        "seconds": took[-1],
        "per_site": took[-1] / sites,
        "processor_per_site": used / sites,
        "grown": peak[0] - before,
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sites", type=int, nargs="*", default=[10, 100, 1000])
    options.add_argument("--methods", nargs="*", default=["fedavg", "ppdg"])
    options.add_argument("--budget", type=int, default=128, help="MiB")
    options.add_argument("--turns", type=int, default=3)
    options.add_argument("--one", nargs=2)
    options.add_argument("--out", type=Path)
    asked = options.parse_args()
    if asked.one:
        method, sites = asked.one
        print(json.dumps(one(method, int(sites), asked.budget)))
        return
    found = []
    print(
        f"{'method':8}{'sites':>6}{'s/round':>9}{'ms/site':>9}{'to 10':>7}"
        f"{'cpu ms/site':>13}{'grown, MiB':>12}"
    )
    for method in asked.methods:
        first = None
        for sites in asked.sites:
            turns = []
            for _ in range(asked.turns if sites < 1000 else 1):
                command = [sys.executable, __file__, "--one", method, str(sites)]
                command += ["--budget", str(asked.budget)]
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                turns.append(json.loads(done.stdout.splitlines()[-1]))
            best = min(turns, key=lambda t: t["per_site"])
            first = first or best["per_site"]
            row = {"method": method, "sites": sites, **best, "load": os.getloadavg()[0]}
            found.append(row)
            print(
                f"{method:8}{sites:>6}{best['seconds']:>9.2f}{1e3 * best['per_site']:>9.1f}"
                f"{best['per_site'] / first:>7.2f}{1e3 * best['processor_per_site']:>13.1f}"
                f"{best['grown']:>12.0f}",
                flush=True,
            )
    if asked.out:
        asked.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
