"""Images a second of the input pipeline, with GA's augmentation at 224².

CPU: two processes of one thread each, as feddg trains on two cores, draw batches from the cache
(gather, augment, prepare), beside torchvision's ImageFolder and DataLoader(num_workers=2) with
the same augmentation. Turns are interleaved and the median of their ratios is taken, so that other
load on the machine hits both alike; processor time an image (start-up included) is told as well.
Before it all images are decoded once into an empty cache and opened from it.
GPU: what the same feeding costs of a ResNet-18's training step, both as CUDA graphs.

    PYTHONPATH=src python benchmarks/input_pipeline.py --data /path/to/PACS --out results/x.json
    PYTHONPATH=src python benchmarks/input_pipeline.py --device cuda --synthetic

Without --data the images are synthetic ones, 227² JPEG files in a temporary folder.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from feddg.data.augment import augmentation
from feddg.data.domain import Collection
from feddg.data.folders import from_images, scan
from feddg.data.transforms import IMAGENET
from feddg.seeds import generator

GA = "crop=0.7,flip,jitter=0.4,grayscale=0.1"
SIZE, WORKERS, WARM = 224, 2, 3
PLAN = augmentation(GA)


def synthetic(root: Path, n: int = 400) -> None:
    """Smooth noise in two domains of two classes, as large as PACS' files."""
    from PIL import Image

    rng = generator("pictures")
    for i in range(n):
        coarse = torch.randint(256, (24, 24, 3), dtype=torch.uint8, generator=rng)
        path = root / f"domain{i % 2}" / f"class{i // 2 % 2}" / f"{i}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(coarse.numpy()).resize((227, 227), Image.Resampling.BICUBIC).save(path)


def opened(root: Path) -> Collection:
    return from_images(root, SIZE, normalise="imagenet", augment=GA)


def start_up(root: Path) -> dict[str, float]:
    """Seconds: decoding into the empty cache, opening from it, and that in a process of its own."""
    began = time.perf_counter()
    opened(root)
    decoded = time.perf_counter() - began
    began = time.perf_counter()
    opened(root)
    mapped = time.perf_counter() - began
    line = f"from feddg.data.folders import from_images; from_images({str(root)!r}, {SIZE})"
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", line], check=True)
    return {
        "decoded_s": decoded, "opened_s": mapped,
        "opened_with_imports_s": time.perf_counter() - began,
    }  # fmt: skip


def fed(data: Collection, batch: int, seed: int) -> Iterator[Tensor]:
    """Batches as a training step sees them, without end."""
    rng = generator("bench", seed)
    parts = [d.examples for d in data.domains]
    while True:
        part = parts[int(torch.randint(len(parts), (), generator=rng))]
        x = part.inputs(torch.randint(len(part), (batch,), generator=rng))
        for transform in PLAN:
            x = transform.apply(x, transform.draw(rng, batch))
        yield IMAGENET.apply(x, {})


def rate(batches: Iterator[Any], count: int) -> float:
    """Batches a second, after the first few."""
    for _ in range(WARM):
        next(batches)
    began = time.perf_counter()
    for _ in range(count):
        next(batches)
    return count / (time.perf_counter() - began)


def processor() -> float:
    """Seconds of this process and of its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


def ours(data: Collection, batch: int, count: int) -> tuple[float, float]:
    """Images a second of all workers at once, and milliseconds of processor time for one."""
    began = processor()
    fork = get_context("fork")
    told = fork.SimpleQueue()
    start = fork.Barrier(WORKERS)

    def work(seed: int) -> None:
        torch.set_num_threads(1)
        batches = fed(data, batch, seed)
        next(batches)
        start.wait()
        told.put(batch * rate(batches, count // WORKERS))

    children = [fork.Process(target=work, args=(i,)) for i in range(WORKERS)]
    for child in children:
        child.start()
    found = sum(told.get() for _ in children)
    for child in children:
        child.join()
    images = batch * WORKERS * (1 + WARM + count // WORKERS)
    return found, (processor() - began) * 1e3 / images


def theirs(root: Path, batch: int, count: int) -> tuple[float, float]:
    """The same of what arrives from the loader."""
    from feddg._torchvision import torchvision

    torchvision()
    from torchvision import datasets
    from torchvision import transforms as tv

    steps = [
        tv.RandomResizedCrop(SIZE, scale=(0.7, 1.0)), tv.RandomHorizontalFlip(),
        tv.ColorJitter(0.4, 0.4, 0.4, 0.4), tv.RandomGrayscale(0.1), tv.ToTensor(),
        tv.Normalize(IMAGENET.mean, IMAGENET.std),
    ]  # fmt: skip
    domains = [root / name for name in scan(root).images]
    sets = [datasets.ImageFolder(str(d), tv.Compose(steps), allow_empty=True) for d in domains]
    data = torch.utils.data.ConcatDataset(sets)
    images = batch * (count + WARM)
    rows = torch.randint(len(data), (images,), generator=generator("loader"))
    loader = torch.utils.data.DataLoader(
        torch.utils.data.Subset(data, rows.tolist()), batch, num_workers=WORKERS, drop_last=True
    )
    began, batches = processor(), iter(loader)
    found = batch * rate(batches, count)
    del batches  # and with it the workers
    return found, (processor() - began) * 1e3 / images


def on_cpu(root: Path, turns: int, batch: int, count: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="feddg-cache-") as folder:
        os.environ["FEDDG_CACHE"] = folder
        found |= start_up(root)
        data = opened(root)
        found["images"] = sum(len(d.examples) for d in data.domains)
        turns_of: dict[str, list[tuple[float, float]]] = {"feddg": [], "torchvision": []}
        for _ in range(turns):
            turns_of["torchvision"].append(theirs(root, batch, count))
            turns_of["feddg"].append(ours(data, batch, 3 * count))
    for at, what in enumerate(("images_per_s", "processor_ms_per_image")):
        mine, other = ([turn[at] for turn in done] for done in turns_of.values())
        pairs = [(a / b) ** (1 - 2 * at) for a, b in zip(mine, other, strict=True)]
        found[what] = {
            "feddg": statistics.median(mine), "torchvision": statistics.median(other),
            "ratio": statistics.median(pairs), "ratios": pairs,
        }  # fmt: skip
    return found


def graphed(work: Callable[[], Any]) -> torch.cuda.CUDAGraph:
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            work()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph


def milliseconds(work: Callable[[], Any], times: int = 60) -> float:
    took = []
    for i in range(times + 10):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        work()
        end.record()
        torch.cuda.synchronize()
        if i >= 10:
            took.append(start.elapsed_time(end))
    return statistics.median(took)


def on_gpu(store: Tensor, batch: int) -> dict[str, float]:
    """Milliseconds of feeding, of the step, of both in one graph, by the GPU's clock.

    The step is the engine's: bf16 autocast, channels-last, its own batch norm, SGD with momentum.
    """
    from feddg.engines.fast_norms import fast_norms
    from feddg.models import build

    rng = generator("bench")
    rows = torch.randint(len(store), (batch,), generator=rng).cuda()
    draws = [{k: v.cuda() for k, v in t.draw(rng, batch).items()} for t in PLAN]
    y = torch.randint(7, (batch,), generator=rng).cuda()
    model = build("resnet18", seed=0, outputs=7).cuda().train()
    model = model.to(memory_format=torch.channels_last)
    sgd = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, foreach=True)

    def feed(augmented: bool = True) -> Tensor:
        x = store[rows]
        for transform, draw in zip(PLAN, draws, strict=True) if augmented else ():
            x = transform.apply(x, draw)
        return IMAGENET.apply(x, {})

    def step(x: Tensor) -> None:
        with torch.autocast("cuda", torch.bfloat16, cache_enabled=False), fast_norms():
            loss = F.cross_entropy(model(x), y)
        loss.backward()
        sgd.step()
        sgd.zero_grad(set_to_none=False)

    ready = feed()
    graphs = {
        "feed": graphed(feed), "gather_and_prepare": graphed(lambda: feed(False)),
        "step": graphed(lambda: step(ready)), "both": graphed(lambda: step(feed())),
    }  # fmt: skip
    for t, draw in zip(PLAN, draws, strict=True):
        graphs[type(t).__name__.lower()] = graphed(lambda t=t, d=draw: t.apply(store[rows], d))
    graphs["gather"] = graphed(lambda: store[rows])
    found = {f"{name}_ms": milliseconds(graph.replay) for name, graph in graphs.items()}
    found["feed_of_step"] = found["feed_ms"] / found["step_ms"]
    found["added_of_step"] = (found["both_ms"] - found["step_ms"]) / found["step_ms"]
    began = time.perf_counter()
    for _ in range(50):
        for t in PLAN:
            t.draw(rng, batch)
    return found | {"drawing_on_host_ms": (time.perf_counter() - began) * 20}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--data", type=Path, help="a folder DOMAIN/CLASS/IMAGE")
    options.add_argument("--synthetic", action="store_true", help="made-up images, the default")
    options.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    options.add_argument("--turns", type=int, default=3)
    options.add_argument("--batch", type=int, default=32)
    options.add_argument("--batches", type=int, default=20, help="of torchvision in a turn")
    options.add_argument("--out", type=Path)
    chosen = options.parse_args()
    found: dict[str, Any] = {"torch": torch.__version__, "augment": GA}
    if chosen.device == "cuda":
        found["device"] = torch.cuda.get_device_name()
        store = torch.randint(256, (2000, 3, SIZE, SIZE), dtype=torch.uint8, device="cuda")
        found |= {f"batch {n}": on_gpu(store, n) for n in (16, 64)}
    else:
        torch.set_num_threads(WORKERS)
        with tempfile.TemporaryDirectory(prefix="feddg-pictures-") as folder:
            root = chosen.data if chosen.data and not chosen.synthetic else Path(folder)
            if root == Path(folder):
                synthetic(root)
            found["data"] = "synthetic" if root == Path(folder) else root.name
            found |= on_cpu(root, chosen.turns, chosen.batch, chosen.batches)
    print(json.dumps(found, indent=1))
    if chosen.out:
        chosen.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
