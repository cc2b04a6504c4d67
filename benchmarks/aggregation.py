"""PPDG's merge beside the plain mean `weights @ X` and beside its literal pairwise algorithm.

All in one run, in turns; the best turn of each is taken, since other load on the machine only adds
(threads wait for each other: on a busy machine, --threads 1 says more). The updates are random: at
first half of all pairs conflict; as rows are drawn together it is a quarter of the meetings, and
three quarters of the literal algorithm are inner products.

literal  Algorithm 1 as its listing says it, in plain torch: for each of K (K - 1) meetings, in
         random order and in place, an inner product of P numbers and maybe g_i - 2 lam (g_i - g_j)
in place the same by one fused call, `lerp_`, without a temporary: the quickest literal one we know
always   the literal one without the test (Table 6), where every meeting updates

Prints ratios: the first columns in means, the literal ones in times of ours. Writes JSON (--out).
"""

import argparse
import json
import platform
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from feddg.merges import combined
from feddg.merges.geometry import drawn_together, gram, meetings
from feddg.seeds import generator

CASES = ((10, 11_200_000), (100, 1_000_000), (1000, 100_000))
LITERAL = 100  # more rows would take it minutes
FLOORS = {(10, 11_200_000): 4.0, (100, 1_000_000): 16.0}  # at most so many means
LAM = 0.1


def literal(x: Tensor, test_conflicts: bool = True, fused: bool = False) -> Tensor:
    """Algorithm 1 on the updates themselves."""
    rows = list(x)
    for i, others in meetings(len(rows), generator("bench")):
        for j in others:
            if not test_conflicts or torch.dot(rows[i], rows[j]) < 0:
                if fused:
                    rows[i].lerp_(rows[j], 2 * LAM)
                else:
                    rows[i] = rows[i] - 2 * LAM * (rows[i] - rows[j])
    return torch.stack(rows).mean(0)


def ours(x: Tensor, test_conflicts: bool = True) -> Tensor:
    order = meetings(len(x), generator("bench"))
    mixed = drawn_together(gram(x).numpy(), LAM, order, test_conflicts)
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
        "ppdg_always": lambda: ours(x, test_conflicts=False),
        "gram": lambda: gram(x),
        "meetings": lambda: drawn_together(products, LAM, meetings(k, generator("bench"))),
    }
    for stage in stages.values():
        stage()
    taken: dict[str, list[float]] = {name: [] for name in stages}
    for _ in range(turns):
        for name, stage in stages.items():
            taken[name].append(timed(stage))
    found = {name: min(times) for name, times in taken.items()}
    mixed = drawn_together(products, LAM, meetings(k, generator("bench")))
    found["conflicts"] = sum(mixed.times) / (k * (k - 1))
    if k <= LITERAL:
        found["literal"] = min(timed(lambda: literal(x)) for _ in range(2))
        found["literal_always"] = timed(lambda: literal(x, test_conflicts=False))
        copies = [x.clone() for _ in range(2)]
        found["literal_in_place"] = min(timed(lambda c=c: literal(c, fused=True)) for c in copies)
    exact, near = literal(x[:, :20_000].double()), ours(x[:, :20_000])
    found["error"] = float((near - exact).norm() / exact.norm())
    return found


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--threads", type=int, default=torch.get_num_threads())
    options.add_argument("--turns", type=int, default=15)
    options.add_argument("--out", type=Path)
    asked = options.parse_args()
    torch.set_num_threads(asked.threads)
    print(f"{platform.processor() or platform.machine()}, {asked.threads} threads, torch"
          f" {torch.__version__}, numpy {np.__version__}")  # fmt: skip
    print(f"{'sites':>5} {'weights':>9} {'mean, ms':>8}  gram  meet  ppdg (at most)   literal"
          f"  in place    always  {'conflicts':>9} {'error':>6}")  # fmt: skip
    table = []
    for k, p in CASES:
        t = measure(k, p, asked.turns)
        table.append({"sites": k, "weights": p, "threads": asked.threads, **t})
        ratio = {name: seconds / t["mean"] for name, seconds in t.items()}
        pairs = (
            ("literal", "ppdg"),
            ("literal_in_place", "ppdg"),
            ("literal_always", "ppdg_always"),
        )
        times = (f"{t[a] / t[b]:.0f} x" if a in t else "" for a, b in pairs)
        print(f"{k:>5} {p:>9} {1e3 * t['mean']:>8.1f} {ratio['gram']:>5.1f}"
              f" {ratio['meetings']:>5.1f} {ratio['ppdg']:>5.1f} {FLOORS.get((k, p), ''):>9} "
              + "".join(f"{v:>10}" for v in times)
              + f"  {t['conflicts']:>9.0%} {t['error']:>6.0e}", flush=True)  # fmt: skip
    if asked.out:
        asked.out.write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    main()
