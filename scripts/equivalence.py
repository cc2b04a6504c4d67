"""Every method by every way of execution that this machine has, beside one site after the other.

The toy task of the tests, unequal sites. In float64 after two rounds the weights must agree to
1e-9, in float32 after one to 1e-4 of the largest weight. On a GPU the reference runs on the CPU.
Signs of updates that are 0 but for rounding decide in agrrand, whose noise may then differ.

    PYTHONPATH=src:. python scripts/equivalence.py --out results/equivalence.json
"""

import argparse
import json
import time
import traceback
import warnings
from dataclasses import replace
from pathlib import Path

import torch
from tests import toy
from tests.battery import METHODS

from feddg.catalogue import compose
from feddg.engines import open_engine
from feddg.engines.compute import Compute
from feddg.engines.inprocess import InProcess
from feddg.engines.loop import Run
from feddg.errors import explained

TOLERANCE = {"float64": 1e-9, "float32": 1e-4}


toy.collection()  # before the default type changes: its numbers stay float32


def prepared(spec: str, kind: torch.dtype, rounds: int = 1) -> Run:
    fed = toy.federation()
    sites = []
    for site in fed.sites:
        data = site.train
        sites.append(replace(site, train=replace(data, store=data.store.to(kind)), val=None))
    fed = replace(fed, sites=tuple(sites))
    run = toy.run(compose(spec), rounds, federation=fed)
    return replace(run, model=run.model.to(kind))


def weights(spec: str, kind: torch.dtype, compute: Compute | None) -> torch.Tensor:
    torch.set_default_dtype(kind)
    try:
        run = prepared(spec, kind, 2 if kind == torch.float64 else 1)
        if compute is None:
            *_, last = toy.history(run, InProcess())
        else:
            run = compute.placed(run)
            with open_engine([run], compute) as engine:
                *_, last = toy.history(run, engine)
        if last.failures:
            raise RuntimeError(f"{last.failures[0].site}: {last.failures[0].reason}")
        return last.state.model.vector.double().cpu()
    finally:
        torch.set_default_dtype(torch.float32)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--out", type=Path)
    options.add_argument("--methods", nargs="*", default=METHODS)
    chosen = options.parse_args()
    gpu = torch.cuda.is_available()
    device = "cuda" if gpu else "cpu"
    ways = ["stacked", "streams", *(["one-by-one"] if gpu else ["workers"])]
    began, rows, missed = time.time(), [], 0
    for spec in chosen.methods:
        row = {"method": spec}
        for kind in (torch.float64, torch.float32):
            name = str(kind).removeprefix("torch.")
            try:
                reference = weights(spec, kind, None)
            except Exception as error:
                row[f"reference {name}"] = explained(error)
                continue
            for way in ways:
                compute = Compute(device=device, execution=way, precision="fp32", workers=2)
                with warnings.catch_warnings(record=True) as said:
                    warnings.simplefilter("always")
                    try:
                        found = weights(spec, kind, compute)
                        apart = (found - reference).abs().max() / reference.abs().max()
                        value = apart.item()
                    except Exception as error:
                        value = explained(error)[:300]
                        traceback.print_exc(limit=-4)
                row[f"{way} {name}"] = value
                if isinstance(value, str) or not value <= TOLERANCE[name]:
                    missed += 1
                    print("MISSED", spec, way, name, value, flush=True)
                slow = [str(w.message) for w in said if "slower" in str(w.message)]
                if slow:
                    row[f"{way} {name} slow"] = slow[0][:300]
                    print("SLOW", spec, way, name, slow[0][:300], flush=True)
        rows.append(row)
    about = torch.cuda.get_device_name() if gpu else "cpu"
    done = {"device": about, "torch": torch.__version__, "seconds": time.time() - began}
    print(json.dumps({**done, "methods": len(rows), "ways": ways, "missed": missed}))
    if chosen.out:
        chosen.out.write_text(json.dumps({**done, "missed": missed, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
