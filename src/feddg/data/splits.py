"""The manifest of splits: which examples are in which part, so that two people train on the same.

`files/splits.json` holds digests, not lists: of every domain, of its official parts, and of what
the seeds 0 to 4 hold out. An example is known as `<domain>/<class>/<file name>`, or by its row
where it comes from no file of its own. `scripts/build_splits_manifest.py` writes the entries.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from hashlib import blake2b
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import Any, Protocol

import torch
from torch import Tensor

from feddg.data.domain import Domain, Examples
from feddg.errors import DataError
from feddg.tasks import Classification, Task

MANIFEST = "splits.json"
SEEDS = tuple(range(5))
SHARES = (0.1, 0.2)  # PPDG's and GA's, and the default
Entry = dict[str, Any]  # of a domain: examples, digest, parts, held
Variant = dict[str, Any]  # protocols, domains


@cache
def manifest() -> Mapping[str, Sequence[Variant]]:
    """By data set: its variants, each with the protocols that share these splits."""
    found: Mapping[str, Sequence[Variant]] = json.loads(
        (files("feddg.data") / "files" / MANIFEST).read_text("utf-8")
    )
    return found


def known(name: str, protocol: str) -> Mapping[str, Entry] | None:
    """A data set's domains under a protocol, if the manifest has them."""
    for variant in manifest().get(name, ()):
        if kind(protocol) in variant["protocols"]:
            domains: Mapping[str, Entry] = variant["domains"]
            return domains
    return None


def kind(protocol: str) -> str:
    """Without what stands after a semicolon: how the same images lay on disk."""
    return protocol.partition(";")[0]


def of_listings(official: bool, options: Mapping[str, Any]) -> str:
    """The protocol of images that are listed, with the options that choose among them."""
    chosen = "".join(f", {k}={v}" for k, v in sorted(options.items()) if k != "root")
    return f"{'official' if official else 'seeded'} split{chosen}"


class Listing(Protocol):
    """A domain's image files in order, undecoded."""

    @property
    def paths(self) -> Sequence[Path]: ...
    @property
    def labels(self) -> Sequence[int]: ...
    @property
    def splits(self) -> Mapping[str, Sequence[int]]: ...


def undecoded(listings: Mapping[str, Listing], official: bool) -> tuple[Domain, ...]:
    """Domains of image files for the manifest alone, with their official splits or without."""
    found = []
    for name, listing in listings.items():
        y = torch.tensor(listing.labels, dtype=torch.int64)
        parts = listing.splits if official else {}
        rows = {k: torch.tensor(at, dtype=torch.int64) for k, at in parts.items() if len(at)}
        examples = Examples(torch.empty(len(y), 0), y)
        found.append(Domain(name, examples, rows, tuple(map(str, listing.paths))))
    return tuple(found)


def entry(domain: Domain, task: Task) -> Entry:
    """What the manifest says of a domain."""
    names = identities(domain, task)
    found: Entry = {"examples": len(names), "digest": digest(names)}
    if domain.splits:
        parts = sorted(domain.splits.items())
        found["parts"] = {part: [len(at), digest(picked(names, at))] for part, at in parts}
    if "val" not in domain.splits and len(domain.trainable):
        found["held"] = {f"{share:g}": drawn(domain, names, share) for share in SHARES}
    return found


def drawn(domain: Domain, names: Sequence[str], share: float) -> list[str]:
    """Of what each seed holds out; "" where the domain is too small for the share."""
    found = []
    for seed in SEEDS:
        try:
            held = domain.split(share, seed).splits["val"]
            found.append(digest(picked(names, held)))
        except DataError:
            found.append("")
    return found


def identities(domain: Domain, task: Task) -> list[str]:
    count = len(domain.examples)
    names = [PurePosixPath(file).name for file in domain.files] or [str(k) for k in range(count)]
    if isinstance(task, Classification):
        classes = (task.classes[k] for k in domain.examples.y.tolist())
        names = [f"{cls}/{name}" for cls, name in zip(classes, names, strict=True)]
    return [f"{domain.name}/{name}" for name in names]


def picked(names: Sequence[str], rows: Tensor) -> list[str]:
    return [names[k] for k in rows.tolist()]


def digest(names: Iterable[str]) -> str:
    text = "\n".join(sorted(names)).encode(errors="surrogateescape")
    return blake2b(text, digest_size=8).hexdigest()


def differences(
    domains: Sequence[Domain], task: Task, wanted: Mapping[str, Entry]
) -> tuple[str, ...]:
    """Domain by domain, where what is here is not what the manifest has; of those in both."""
    found = []
    for domain in domains:
        due = wanted.get(domain.name)
        if due and (why := difference(entry(domain, task), due)):
            found.append(f"domain {domain.name!r} is not as in the manifest: {why}")
    return tuple(found)


def difference(mine: Entry, wanted: Entry) -> str:
    """The first that there is, from the coarse to the fine."""
    if mine["examples"] != wanted["examples"]:
        return f"{mine['examples']:,} examples where {wanted['examples']:,} are expected"
    if mine["digest"] != wanted["digest"]:
        return "as many examples, but other ones (by class and file name)"
    parts, others = mine.get("parts", {}), wanted.get("parts", {})
    for part in sorted(parts.keys() | others.keys()):
        if parts.get(part) != others.get(part):
            count, expected = (p.get(part, [0])[0] for p in (parts, others))
            return f"its part {part!r} has {count:,} examples, others than the {expected:,} there"
    held, due = mine.get("held", {}), wanted.get("held", {})
    for share in sorted(held.keys() | due.keys()):
        for seed, (a, b) in enumerate(zip(held.get(share, ()), due.get(share, ()), strict=False)):
            if a != b:
                return f"seed {seed} holds out other examples at share {share}: another order"
    return ""
