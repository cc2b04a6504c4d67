"""What a GPU trains per second, through the ordinary bench and the ordinary methods.

Rotated MNIST: every method on 6 targets × 3 seeds × 5 sites at batch 32; a round counts whole,
aggregation, guard, the target judged and the record among it. ResNet-18: three sites of images at
224², augmented on the device. Beside both a plain eager PyTorch loop over the same sites, and the
machine's ceilings, in the same run. Start-up is everything before the first round's steady rate.

    PYTHONPATH=src python benchmarks/speed_gpu.py --out speed.json
"""

import time

BEGAN = time.time()

import argparse  # noqa: E402
import copy  # noqa: E402
import json  # noqa: E402
import statistics  # noqa: E402
import tempfile  # noqa: E402
from itertools import groupby, pairwise  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402

import feddg  # noqa: E402
from feddg.benchmark.bench import Bench, run  # noqa: E402
from feddg.data.transforms import IMAGENET  # noqa: E402
from feddg.engines.compute import Compute  # noqa: E402
from feddg.models import build  # noqa: E402

GA = "crop=0.7,flip,jitter=0.4,grayscale=0.1"
EPOCHS, FIRST, BATCH, SITES, DIGITS = 5, 30, 32, 5, 1000
PHOTO_EPOCHS = 3  # a round; GA's papers have 5


def bench(methods: str, rounds: int, compute: Compute, first: int = FIRST) -> dict[str, Any]:
    """Images a second over whole rounds, the first left out."""
    began = time.time()
    wanted = Bench(
        data="rotated-mnist", methods=tuple(methods.split("|")), seeds=3,
        changes={"rounds": rounds}, recipe={"first_epochs": first},
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        events = run(wanted, Path(folder), compute)
        marks = [(e.record["round"], time.time()) for e in events]
    ends = [max(t for _, t in group) for _, group in groupby(marks, key=lambda m: m[0])]
    took = [b - a for a, b in pairwise(ends)]
    usual = statistics.median(took)
    images = len(wanted.unique()) * SITES * EPOCHS * (DIGITS // BATCH * BATCH)
    return {
        "images_per_s": images / usual, "round_s": usual, "rounds_s": took,
        "startup_s": ends[0] - began - usual * first / EPOCHS,
    }  # fmt: skip


def plain(model: torch.nn.Module, data: list[Any], batch: int, lr: float, steps: int) -> float:
    """Images a second of a loop without a library: one site after the other, torch's defaults."""
    torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = False, True
    done, began = 0, 0.0
    for number, (x, y) in enumerate(data):
        net = copy.deepcopy(model).cuda().train()
        optimizer = torch.optim.SGD(net.parameters(), lr=lr, momentum=0.5)
        for t, rows in enumerate(torch.randperm(len(y)).split(batch)[:steps]):
            if number == 0 and t == 5:  # the first ones warm up
                torch.cuda.synchronize()
                began, done = time.time(), 0
            rows = rows.cuda()
            optimizer.zero_grad()
            F.cross_entropy(net(IMAGENET.apply(x[rows], {}) if x.shape[1] == 3
                                else x[rows].float() / 255), y[rows]).backward()  # fmt: skip
            optimizer.step()
            done += len(rows)
    torch.cuda.synchronize()
    return done / (time.time() - began)


def photos(sites: int, n: int) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    rng = torch.Generator().manual_seed(0)
    return {
        f"site{i}": (
            torch.randint(0, 256, (n, 3, 224, 224), dtype=torch.uint8, generator=rng),
            torch.arange(n) % 7,
        )
        for i in range(sites)
    }


def resnet(data: Any, method: str, batch: int, rounds: int, compute: Compute) -> dict[str, Any]:
    """Three sites train, a fourth small one is judged after every round."""
    marks = []
    recipe = feddg.Recipe(
        lr=0.001, momentum=0.9, weight_decay=5e-4, batch_size=batch, epochs=PHOTO_EPOCHS
    )
    model = build("resnet18", seed=0, outputs=7)
    result = feddg.train(
        model, data, method, target="target", share=0.0, recipe=recipe, rounds=rounds,
        compute=compute, progress=lambda e: marks.append(time.time()),
    )  # fmt: skip
    took = [b - a for a, b in pairwise(marks)]
    own = [r["seconds"] for r in result.records[1:]]
    images = PHOTO_EPOCHS * sum(len(s.train) // batch * batch for s in result.run.sites)
    return {
        "images_per_s": images / statistics.median(own),
        "with_judging": images / statistics.median(took),
        "round_s": own,
    }


def ceilings() -> dict[str, float]:
    """A large copy (bytes read and written) and a large product, best of ten."""
    a = torch.empty(1 << 30, dtype=torch.float32, device="cuda").normal_()
    b = torch.empty_like(a)

    def best(work: Any) -> float:
        took = []
        for _ in range(10):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            work()
            end.record()
            torch.cuda.synchronize()
            took.append(start.elapsed_time(end) / 1e3)
        return min(took)

    copied = 2 * a.numel() * 4 / best(lambda: b.copy_(a))
    m = a[: 8192 * 8192].view(8192, 8192).bfloat16()
    return {"copy_bytes_per_s": copied, "bf16_flop_per_s": 2 * 8192**3 / best(lambda: m @ m)}


def merging() -> dict[str, float]:
    """PPDG's merge of updates on the device: bytes a second of the two passes over them."""
    from feddg.merges import combined
    from feddg.merges.geometry import drawn_together, gram, meetings
    from feddg.seeds import generator

    found = {}
    for k, p in ((10, 11_200_000), (100, 1_000_000)):
        x = torch.randn(k, p, device="cuda")

        def merge(x: torch.Tensor = x, k: int = k) -> torch.Tensor:
            products = gram(x).cpu().numpy()
            mixed = drawn_together(products, 0.1, meetings(k, generator("bench")))
            return combined(mixed.combined(torch.full((k,), 1 / k, dtype=torch.float64)), x)

        def mean(x: torch.Tensor = x, k: int = k) -> torch.Tensor:
            return combined(torch.full((k,), 1 / k, dtype=torch.float64), x)

        def passes(x: torch.Tensor = x, k: int = k) -> None:
            gram(x)
            mean(x, k)

        exact = gram(x.double())
        found[f"{k} x {p} error"] = ((gram(x) - exact).norm() / exact.norm()).item()
        for name, work, read in (("ppdg", merge, 2), ("passes", passes, 2), ("mean", mean, 1)):
            took = []
            for _ in range(10):
                torch.cuda.synchronize()
                began = time.perf_counter()
                work()
                torch.cuda.synchronize()
                took.append(time.perf_counter() - began)
            found[f"{k} x {p} {name}, bytes/s"] = (read * k + 1) * p * 4 / min(took)
    return found


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--out", type=Path)
    options.add_argument("--rounds", type=int, default=8)
    options.add_argument("--methods", nargs="*", default=["csac", "ppdg", "copa", "ga"])
    options.add_argument("--images", type=int, default=1600, help="of each site of ResNet-18")
    options.add_argument("--augment", default=GA)
    options.add_argument("--only", choices=("digits", "resnet"))
    chosen = options.parse_args()
    started = time.time() - BEGAN
    found: dict[str, Any] = {
        "device": torch.cuda.get_device_name(), "torch": torch.__version__, "imports_s": started,
    }  # fmt: skip

    def told(name: str, value: Any) -> None:
        found[name] = value
        print(name, json.dumps(value), flush=True)
        if chosen.out:
            chosen.out.write_text(json.dumps(found, indent=1) + "\n")

    gpu = Compute(device="cuda")
    if chosen.only != "resnet":
        fed = feddg.open_collection("rotated-mnist")
        told("fedavg", bench("fedavg", chosen.rounds, gpu))
        own = [(d.examples.x.cuda(), d.examples.y.cuda()) for d in fed.domains[:SITES]]
        eager = plain(build("rotated-mnist-cnn", seed=0), own, BATCH, 0.01, 40)
        told("plain digits", {"images_per_s": eager})
        told("fedavg against plain", found["fedavg"]["images_per_s"] / eager)
        for method in chosen.methods:
            told(method, bench(method, max(4, chosen.rounds // 2), gpu, first=EPOCHS))
            told(f"{method} share of fedavg",
                 found[method]["images_per_s"] / found["fedavg"]["images_per_s"])  # fmt: skip
    if chosen.only != "digits":
        tensors = photos(3, chosen.images)
        own = [(x.cuda(), y.cuda()) for x, y in tensors.values()]
        for batch in (16, 64):
            told(f"plain resnet18, batch {batch}", {
                "images_per_s": plain(build("resnet18", seed=0, outputs=7), own, batch, 1e-3, 60)
            })  # fmt: skip
        x, y = tensors["site0"]
        tensors["target"] = (x[:64], y[:64])
        for augment in ("", chosen.augment) if chosen.augment else ("",):
            data = feddg.from_tensors(
                tensors, [str(c) for c in range(7)], prepare=(IMAGENET,), augment=augment
            )
            for batch in (16, 64):
                for precision in ("bf16",) if augment else ("bf16", "tf32"):
                    name = f"resnet18, batch {batch}, {precision}, {augment or 'as they are'}"
                    how = Compute(device="cuda", precision=precision)
                    told(name, resnet(data, "fedavg", batch, 4, how))
                    rate = found[f"plain resnet18, batch {batch}"]["images_per_s"]
                    told(f"{name}, against plain", found[name]["images_per_s"] / rate)
    told("ceilings", ceilings())
    told("merging", merging())
    for name, rate in found["merging"].items():
        if name.endswith("bytes/s"):
            told(f"{name} of the copy's", rate / found["ceilings"]["copy_bytes_per_s"])


if __name__ == "__main__":
    main()
