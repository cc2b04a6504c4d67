"""PPDG's merge beside the plain mean `weights @ X` and beside its literal pairwise algorithm.

All in one run, in turns, so that other load on the machine hits everybody alike; the median of
the turns is taken. The updates are random: at first about half of all pairs conflict. The literal
algorithm is what the paper's listing says, an inner product and perhaps an update of P numbers for
each of K (K - 1) meetings, and runs once. Prints ratios to the mean; writes JSON where --out says.
"""

import argparse
import json
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from feddg.geometry import drawn_together, gram, meetings
from feddg.merges import combined
from feddg.seeds import generator

CASES = ((10, 11_200_000), (100, 1_000_000))
FLOORS = {(10, 11_200_000): 4.0, (100, 1_000_000): 16.0}  # at most so many means
LAM = 0.1


def literal(x: Tensor, lam: float = LAM) -> Tensor:
    """Algorithm 1 on the updates themselves."""
    rows = list(x)
    for i, others in meetings(len(rows), generator("bench")):
        for j in others:
            if torch.dot(rows[i], rows[j]) < 0:
                rows[i] = rows[i] - 2 * lam * (rows[i] - rows[j])
    return torch.stack(rows).mean(0)


def ours(x: Tensor, lam: float = LAM) -> Tensor:
    mixed = drawn_together(gram(x).numpy(), lam, meetings(len(x), generator("bench")))
    return combined(mixed.combined(torch.full((len(x),), 1 / len(x), dtype=torch.float64)), x)


def timed(what: Callable[[], object]) -> float:
    began = time.perf_counter()
    what()
    return time.perf_counter() - began


def measure(k: int, p: int, turns: int) -> dict[str, float]:
    x = torch.randn(k, p, generator=generator("bench", k, p))
    mean = torch.full((k,), 1 / k)
    products = gram(x).numpy()
    stages: dict[str, Callable[[], object]] = {
        "mean": lambda: mean @ x,
        "ppdg": lambda: ours(x),
        "gram": lambda: gram(x),
        "meetings": lambda: drawn_together(products, LAM, meetings(k, generator("bench"))),
    }
    for stage in stages.values():
        stage()
    taken: dict[str, list[float]] = {name: [] for name in stages}
    for _ in range(turns):
        for name, stage in stages.items():
            taken[name].append(timed(stage))
    found = {name: statistics.median(times) for name, times in taken.items()}
    found["literal"] = timed(lambda: literal(x))
    exact, near = literal(x[:, :20_000].double()), ours(x[:, :20_000])
    found["error"] = float((near - exact).norm() / exact.norm())
    return found


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--threads", type=int, default=torch.get_num_threads())
    options.add_argument("--turns", type=int, default=9)
    options.add_argument("--out", type=Path)
    asked = options.parse_args()
    torch.set_num_threads(asked.threads)
    print(f"{platform.processor() or platform.machine()}, {asked.threads} threads, torch"
          f" {torch.__version__}, numpy {np.__version__}")  # fmt: skip
    print(f"{'sites':>5} {'weights':>10} {'mean, ms':>9} {'gram/mean':>9} {'meetings/mean':>13}"
          f" {'ppdg/mean':>9} {'at most':>8} {'literal/ppdg':>12} {'error':>8}")  # fmt: skip
    table = []
    for k, p in CASES:
        t = measure(k, p, asked.turns)
        table.append({"sites": k, "weights": p, "threads": asked.threads, **t})
        ratio = {name: seconds / t["mean"] for name, seconds in t.items()}
        print(f"{k:>5} {p:>10} {1e3 * t['mean']:>9.1f} {ratio['gram']:>9.2f}"
              f" {ratio['meetings']:>13.2f} {ratio['ppdg']:>9.2f} {FLOORS[k, p]:>8.0f}"
              f" {t['literal'] / t['ppdg']:>12.1f} {t['error']:>8.0e}")  # fmt: skip
    if asked.out:
        asked.out.write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    main()
