"""Each peer in an environment of its own, made once: their dependencies do not go together."""

import os
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

from feddg.checkpoint import write_whole
from feddg.errors import FeddgError

TORCH = "torch==2.13.0"
SECONDS = 1800  # for an installation
STAMP = "feddg-installed"


@dataclass(frozen=True)
class Peer:
    """What to install, and which of our scripts has it do the work."""

    name: str
    requirement: str
    script: str
    package: str


PEERS = (
    Peer("Flower's simulation", "flwr[simulation]==1.41.*", "flower_simulation.py", "flwr"),
    Peer("NVFlare's simulator", "nvflare==2.9.*", "nvflare_simulator.py", "nvflare"),
    Peer("Apple's pfl", "pfl==0.6.0", "pfl_simulation.py", "pfl"),
)


def cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "feddg" / "peers"


def interpreter(peer: Peer, envs: Path) -> Path:
    """Its environment's Python, installed where that was not done yet; torch first."""
    home = envs / peer.package
    python, stamp = home / "bin" / "python", home / STAMP
    wanted = f"{TORCH} {peer.requirement}"
    if stamp.exists() and stamp.read_text("utf-8") == wanted:
        return python
    venv.create(home, with_pip=True, clear=True)
    for what in (TORCH, peer.requirement):
        called([str(python), "-m", "pip", "install", "--quiet", what], SECONDS, dict(os.environ))
    write_whole(stamp, wanted.encode())
    return python


def version(peer: Peer, python: Path) -> str:
    told = f"from importlib.metadata import version; print(version({peer.package!r}))"
    return called([str(python), "-c", told], 60, dict(os.environ)).strip()


def called(
    command: list[str], seconds: float, around: dict[str, str], cwd: Path | None = None
) -> str:
    """What it printed; a failure by its last line of complaint."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=seconds, env=around, cwd=cwd,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise FeddgError(f"{command[-1]} took more than {seconds:.0f} s") from None
    if done.returncode:
        said = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
        raise FeddgError(f"{command[-1]} failed: {said[-1].strip() if said else 'no word'}")
    return done.stdout


def own() -> Path:
    return Path(sys.executable)
