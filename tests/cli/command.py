"""The command line in this process, and small data sets to give it."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from feddg.seeds import generator
from tests.forked import called


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str


def feddg(capsys: Any, *argv: object) -> Said:
    before = sys.argv
    capsys.readouterr()
    try:
        code = called([str(a) for a in argv])
    finally:
        sys.argv = before
    said = capsys.readouterr()
    return Said(code, said.out, said.err)


def sites(root: Path, names: tuple[str, ...] = ("a", "b", "c"), rows: int = 40) -> Path:
    """CSVs of two features and a class that the sum of both decides; shifted by site."""
    root.mkdir(parents=True, exist_ok=True)
    for k, name in enumerate(names):
        x = torch.randn(rows, 2, generator=generator("csv", k)) + 0.2 * k
        y = (x.sum(1) > 0.4 * k).tolist()
        lines = [
            f"{a:.4f},{b:.4f},{'ill' if c else 'well'}"
            for (a, b), c in zip(x.tolist(), y, strict=True)
        ]
        (root / f"{name}.csv").write_text("\n".join(["u,v,label", *lines]) + "\n")
    return root


def images(root: Path, domains: tuple[str, ...] = ("day", "night"), classes: str = "xo") -> Path:
    """Pictures 8×8, of which a class has six in a domain: bright above, or below."""
    from PIL import Image

    for k, domain in enumerate(domains):
        for c, name in enumerate(classes):
            folder = root / domain / name
            folder.mkdir(parents=True)
            for i in range(6):
                picture = Image.new("L", (8, 8), 20 + 40 * k)
                picture.paste(200 + i, (0, 4 * c, 8, 4 * c + 4))
                picture.save(folder / f"{i}.png")
    return root
