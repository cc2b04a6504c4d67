"""Who does the same federated work how quickly, in turns on this machine.

FedAvg on Rotated MNIST: five sites of 1,000 digits, the CNN, batches of 32. Evaluation and records
are left out everywhere. A contender's time is the median of its rounds but the first of every turn,
and over the turns the median of these; start-up is apart.
"""

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib.resources import files
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch

from feddg.benchmark.protocols import experiment
from feddg.benchmark.speed.environments import PEERS, Peer, called, interpreter, own, version
from feddg.benchmark.speed.peers.shared_work import Work
from feddg.engines import cores, one_thread, open_engine
from feddg.engines.loop import Run, first_state, rounds
from feddg.errors import FeddgError

LIMIT = 900.0  # seconds of one contender's turn
QUIET = {"FLWR_TELEMETRY_ENABLED": "0", "RAY_USAGE_STATS_ENABLED": "0"}
OURS, ONE = "feddg", "feddg, one process"
PLAIN, DEFAULT = "plain loop, one thread", "plain loop, torch's threads"
BESIDE = "two plain loops side by side"
TARGETS = {
    BESIDE: 0.9, DEFAULT: 1.6, "Flower's simulation": 2.0, "NVFlare's simulator": 10.0,
    "Apple's pfl": 1.0,
}  # fmt: skip


@dataclass(eq=False)
class Contender:
    """`rounds` holds every turn's seconds per round, the first round included."""

    name: str
    version: str = ""
    rounds: list[list[float]] = field(default_factory=list)
    startup: list[float] = field(default_factory=list)
    trouble: str = ""

    @property
    def seconds(self) -> float | None:
        return median(median(r[1:]) for r in self.rounds) if self.rounds else None

    def told(self) -> dict[str, Any]:
        first = median(r[0] for r in self.rounds) if self.rounds else None
        start = median(self.startup) if self.startup else None
        return {**asdict(self), "seconds": self.seconds, "first_round": first, "start": start}


@dataclass(frozen=True)
class Plan:
    epochs: int = 1
    rounds: int = 8  # of each turn; the first warms up
    turns: int = 3
    only: tuple[str, ...] = ()
    envs: Path = Path()

    def takes(self, name: str) -> bool:
        return not self.only or any(o in name.lower() for o in self.only)


def the_run(plan: Plan) -> Run:
    recipe = {"epochs": plan.epochs, "batch_size": 32}
    made = experiment("rotated-mnist", targets=("m75",), recipe=recipe, rounds=10**6)
    return made.prepared_run()[0]


def measured(plan: Plan, say: Callable[[str], None]) -> dict[str, Any]:
    """All contenders in turns; what the machine can do, and what else it had to do."""
    run, load = the_run(plan), [os.getloadavg()[0]]
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        scripts(place)
        data = place / "digits.npz"
        x, y = ([getattr(s.train, k).numpy() for s in run.sites] for k in "xy")
        np.savez(data, x=np.stack(x), y=np.stack(y))
        work = Work(str(data), plan.epochs, 32, 0.01, 0.5, plan.rounds, 0, "")
        contenders = entries(plan, run, place, work, say)
        for turn in range(plan.turns):
            for contender, go in contenders:
                if not contender.trouble:
                    say(f"turn {turn + 1} of {plan.turns}: {contender.name}")
                    attempted(contender, go)
            load.append(os.getloadavg()[0])
    images = plan.epochs * sum(len(s.train) // 32 * 32 for s in run.sites)
    found = [c for c, _ in contenders]
    made = {k: getattr(plan, k) for k in ("epochs", "rounds", "turns")}
    return {
        "work": {**made, "images": images},
        "contenders": [c.told() for c in found], "ceiling": ceiling(), "load": load,
    }  # fmt: skip


Turn = tuple[list[list[float]], float]  # rounds' seconds of each process, start-up


def attempted(contender: Contender, go: Callable[[], Turn]) -> None:
    """Processes side by side do a round each in the time that is shared by them."""
    try:
        side_by_side, startup = go()
    except FeddgError as error:
        contender.trouble = str(error)
        return
    many = len(side_by_side)
    contender.rounds.append([sum(r) / many**2 for r in zip(*side_by_side, strict=True)])
    contender.startup.append(startup)


def entries(
    plan: Plan, run: Run, place: Path, work: Work, say: Callable[[str], None]
) -> list[tuple[Contender, Callable[[], Turn]]]:
    found: list[tuple[Contender, Callable[[], Turn]]] = []

    def add(name: str, go: Callable[[], Turn]) -> None:
        found.append((Contender(name, torch.__version__), go))

    if plan.takes("plain"):
        add(PLAIN, lambda: plain(place, work, 1, 1))
        add(DEFAULT, lambda: plain(place, work, 0, 1))
        add(BESIDE, lambda: plain(place, work, 1, 2))
    if plan.takes("feddg"):
        add(ONE, lambda: ours(run, plan.rounds, 1))
        add(OURS, lambda: ours(run, plan.rounds, None))
    for peer in PEERS:
        if plan.takes(peer.name.lower()):
            contender = Contender(peer.name)
            python = installed(peer, plan, contender, say)
            found.append((contender, partial(theirs, place, work, peer.script, python)))
    return found


def installed(peer: Peer, plan: Plan, contender: Contender, say: Callable[[str], None]) -> Path:
    say(f"{peer.name}: {peer.requirement} in {plan.envs / peer.package}")
    try:
        python = interpreter(peer, plan.envs)
        contender.version = version(peer, python)
    except (FeddgError, OSError, subprocess.SubprocessError) as error:
        contender.trouble = f"not installed: {error}"
        return Path()
    return python


def ours(run: Run, count: int, workers: int | None) -> Turn:
    """The engine's rounds: guard, merge and trace included."""
    began, took = time.perf_counter(), []
    with open_engine([run], workers) as engine:
        ready = last = time.perf_counter()
        for _ in rounds([run], engine, [(run.rounds - count, first_state(run))]):
            took.append(time.perf_counter() - last)
            last = time.perf_counter()
    return [took], ready - began


def scripts(place: Path) -> None:
    """A folder of their own: our site-packages are not for the peers to see."""
    for file in files("feddg.benchmark.speed.peers").iterdir():
        if file.name.endswith(".py") and file.name != "__init__.py":
            (place / file.name).write_text(file.read_text("utf-8"), "utf-8")


def prepared(place: Path, work: Work, name: str, **changes: Any) -> tuple[dict[str, str], Path]:
    """The environment of a process that is told its work, and where it answers."""
    folder = Path(tempfile.mkdtemp(prefix=name, dir=place))
    out = folder / "out.json"
    told = {**asdict(work), **changes, "out": str(out), "began": time.time()}
    (folder / "work.json").write_text(json.dumps(told), "utf-8")
    around = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "OMP_", "MKL_"))}
    around |= {"FEDDG_WORK": str(folder / "work.json"), "PYTHONPATH": str(place), **QUIET}
    return around, out


def answer(out: Path) -> Mapping[str, Any]:
    if not out.exists():
        raise FeddgError("it ended without an answer")
    found: Mapping[str, Any] = json.loads(out.read_text("utf-8"))
    return found


def theirs(place: Path, work: Work, script: str, python: Path) -> Turn:
    around, out = prepared(place, work, python.parts[-3])
    called([str(python), str(place / script)], LIMIT, around, out.parent)
    found = answer(out)
    if len(found["rounds"]) != work.rounds:
        raise FeddgError(f"it made {len(found['rounds'])} rounds of {work.rounds}")
    return [found["rounds"]], found["startup"]


def plain(place: Path, work: Work, threads: int, processes: int) -> Turn:
    """All are ready before the first begins."""
    outs, running = [], []
    for _ in range(processes):
        around, out = prepared(place, work, "plain", threads=threads)
        pipe = subprocess.PIPE
        command = [str(own()), str(place / "plain_loop.py")]
        running.append(subprocess.Popen(command, env=around, stdin=pipe, stdout=pipe, text=True))
        outs.append(out)
    try:
        for process in running:
            assert process.stdout is not None
            process.stdout.readline()
        for process in running:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        for process in running:
            process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        raise FeddgError(f"it took more than {LIMIT:.0f} s") from None
    finally:
        for process in running:
            process.kill()
            process.communicate()
    found = [answer(out) for out in outs]
    return [f["rounds"] for f in found], max(f["startup"] for f in found)


def ceiling() -> dict[str, float]:
    """Float32: a product of 1024² matrices in GFLOP/s, a copy of 64 MiB in GB/s both ways."""
    a, big = torch.ones(1024, 1024), torch.ones(1 << 24)
    other = torch.empty_like(big)

    def best(what: Callable[[], Any], times: int) -> float:
        took = []
        for _ in range(times):
            t = time.perf_counter()
            what()
            took.append(time.perf_counter() - t)
        return min(took)

    all_threads = {
        "product_gflops": 2 * 1024**3 / best(lambda: a @ a, 20) / 1e9,
        "copy_gbps": 2 * big.nbytes / best(lambda: other.copy_(big), 20) / 1e9,
    }
    with one_thread():
        one = 2 * 1024**3 / best(lambda: a @ a, 20) / 1e9
        copied = 2 * big.nbytes / best(lambda: other.copy_(big), 20) / 1e9
    return {
        **all_threads, "product_gflops_one_thread": one, "copy_gbps_one_thread": copied,
        "cores": float(cores()),
    }  # fmt: skip


def lines(found: Mapping[str, Any]) -> list[Sequence[str]]:
    """The table: a row for every contender, those that failed among them."""
    seconds = {c["name"]: c["seconds"] for c in found["contenders"]}
    mine = seconds.get(OURS)
    head = (
        "",
        "version",
        "s/round",
        "images/s",
        "feddg is",
        "at least",
        "start-up, s",
        "round 1, s",
    )
    rows: list[Sequence[str]] = [head]
    for c in found["contenders"]:
        took = c["seconds"]
        if took is None:
            rows.append((c["name"], c["version"], c["trouble"], *[""] * 5))
            continue
        ratio = f"{took / mine:.2f}×" if mine else ""
        least = TARGETS.get(c["name"])
        rows.append((
            c["name"], c["version"], f"{took:.3f}", f"{found['work']['images'] / took:,.0f}", ratio,
            f"{least:g}×" if least else "", f"{c['start']:.1f}", f"{c['first_round']:.2f}",
        ))  # fmt: skip
    return rows
