"""Write entries of the manifest of splits, src/feddg/data/files/splits.json, from data at hand.

    python scripts/build_splits_manifest.py                      # what is in the package
    python scripts/build_splits_manifest.py pacs=data/pacs
    python scripts/build_splits_manifest.py 'rotated-mnist=data/mnist;protocol=domainbed'

Each argument is a data set's name, its folder after "=", and options after semicolons. Entries of
other protocols stay; those of the same protocol are replaced. Known images are listed, not decoded.
"""

import json
import sys
from pathlib import Path

import feddg.data
from feddg.checkpoint import write_whole
from feddg.data import splits
from feddg.data.catalogue import open_collection, resolve
from feddg.tasks import Classification

EMBEDDED = (
    ("rotated-mnist", {}),
    ("rotated-mnist", {"direction": "counter-clockwise"}),
    ("heart-disease", {}),
    ("heart-disease", {"scaling": "site"}),
    ("heart-disease", {"scaling": "none"}),
)
PLACE = Path(feddg.data.__file__).parent / "files" / splits.MANIFEST


def main(arguments):
    found = json.loads(PLACE.read_text("utf-8")) if PLACE.exists() else {}
    for name, options in [parsed(a) for a in arguments] or EMBEDDED:
        for protocol, task, domains in at_hand(name, options):
            entries = {d.name: splits.entry(d, task) for d in domains}
            put(found.setdefault(name, []), protocol, entries)
            print(f"{name}, {protocol}: {sum(e['examples'] for e in entries.values()):,}")
    write_whole(PLACE, written(found).encode())


def at_hand(name, options):
    """Protocol, task and domains; of known images both protocols, where they come with a split."""
    spec, values = resolve(name, options)
    if spec.survey is None:
        opened = open_collection(name, **options)
        return [(splits.kind(opened.protocol), opened.task, opened.domains)]
    found = spec.survey(**values)
    task = Classification(found.classes)
    ways = [False, True] if any(d.splits for d in found.domains.values()) else [False]
    return [
        (splits.of_listings(official, values), task, splits.undecoded(found.domains, official))
        for official in ways
    ]


def parsed(argument):
    name, _, rest = argument.partition("=")
    root, *options = rest.split(";")
    return name, {"root": root, **dict(option.split("=", 1) for option in options)}


def put(variants, protocol, domains):
    """Beside the protocols with the same splits, if there are any."""
    for variant in variants:
        variant["protocols"] = [p for p in variant["protocols"] if p != protocol]
    variants[:] = [v for v in variants if v["protocols"]]
    for variant in variants:
        if variant["domains"] == domains:
            variant["protocols"].append(protocol)
            return
    variants.append({"protocols": [protocol], "domains": domains})


def written(found):
    """A line per domain, so that a change shows which it is."""
    sets = []
    for name, variants in sorted(found.items()):
        texts = []
        for variant in variants:
            domains = ",\n".join(
                f"   {json.dumps(key)}: {json.dumps(value)}"
                for key, value in variant["domains"].items()
            )
            protocols = json.dumps(variant["protocols"])
            texts.append(f'  {{"protocols": {protocols}, "domains": {{\n{domains}\n  }}}}')
        sets.append(f" {json.dumps(name)}: [\n" + ",\n".join(texts) + "\n ]")
    return "{\n" + ",\n".join(sets) + "\n}\n"


if __name__ == "__main__":
    main(sys.argv[1:])
