"""README.md of a model's folder: the card, from model.json and the method's own words."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from inspect import cleandoc
from typing import Any

from feddg.data.scaling import PROTOCOLS
from feddg.deploy.manifest import MANIFEST, WEIGHTS, Manifest
from feddg.method import SEES, Method, chain, title
from feddg.tasks import Classification

SEEN = {
    "sums": "sums of the sites' updates only",
    "numbers": "sums of the updates, and single numbers of each site",
    "gram": "inner products of the sites' updates",
    "everything": "each site's update in the clear",
}
assert set(SEEN) == set(SEES)


def card(manifest: Manifest, method: Method) -> str:
    sections = [
        (f"{manifest.data}: {manifest.method}", _what(manifest)),
        ("How to use", _use(manifest)),
        ("Data", _data(manifest)),
        ("Scores", _scores(manifest.about)),
        ("Method", _method(manifest, method)),
        ("What left the sites", _left(manifest, method)),
        ("Intended use and limits", _limits(manifest)),
        ("Made with", _versions(manifest)),
    ]
    parts = []
    for k, (heading, lines) in enumerate(sections):
        parts.append("\n".join([f"{'##' if k else '#'} {heading}", "", *lines]))
    return "\n\n".join(parts) + "\n"


def _what(m: Manifest) -> Iterator[str]:
    task = m.task
    sites, targets = m.training["sites"], m.training["targets"]
    if isinstance(task, Classification):
        yield f"Tells {task.outputs} classes apart: {', '.join(task.classes)}."
    else:
        yield f"Predicts {', '.join(getattr(task, 'names', ('a value',)))}."
    one = f"One model trained across {len(sites)} sites that kept their data"
    if "unlabelled" in m.training:
        yield (
            f"{one} and adapted at the server to {m.training['unlabelled']} examples of"
            f" {', '.join(targets)} without their labels. Held out: the rest of that domain."
        )
        return
    yield f"{one}, for sites that nobody has seen. Held out: {', '.join(targets) or 'none'}."


def _use(m: Manifest) -> Iterator[str]:
    yield from ("```sh", "feddg predict FOLDER DATA", "feddg evaluate FOLDER DATA", "```", "")
    yield f"FOLDER is this folder; it takes {m.takes}. In Python:"
    brings = ", model=..." if m.architecture.own else ""
    yield from (
        "",
        "```python",
        "from feddg.deploy import load_model, predict, read_inputs",
        "",
        f"model = load_model(FOLDER{brings})",
        "predictions = predict(model, read_inputs(DATA, model))",
        "```",
    )
    if m.architecture.own:
        yield f"\nThe network is the user's own, `{m.architecture.model}`; pass one as `model=`."
    if m.own_method:
        yield f"\nThe method is the user's own, `{m.method}`; pass it as `method=`."
    yield (
        f"\n`{WEIGHTS}` has the weights by their names in the network's state_dict, `{MANIFEST}`"
        " all else that a program needs."
    )


def _data(m: Manifest) -> Iterator[str]:
    yield f"{m.data}" + (f" ({m.protocol})." if m.protocol else ".")
    if m.about.get("sources"):
        yield str(m.about["sources"])
    yield ""
    sites = m.training["sites"].items()
    yield from table(["site", "training examples"], [[name, str(n)] for name, n in sites])
    yield f"\n- held-out targets: {', '.join(m.training['targets']) or 'none'}"
    if m.training["validation"]:
        yield f"- domains for validation: {', '.join(m.training['validation'])}"
    yield f"- input: {m.takes}" + (
        "; gaps are allowed and marked by indicators" if m.indicators else ""
    )
    yield "- preprocessing: " + ("; ".join(_transform(t) for t in m.prepare) or "none")


def _transform(described: Mapping[str, Any]) -> str:
    rest = ", ".join(
        f"{k} {'per column' if isinstance(v, list) and len(v) > 4 else v}"
        for k, v in described.items()
        if k != "kind"
    )
    return f"{described['kind']} ({rest})" if rest else str(described["kind"])


def _scores(about: Mapping[str, Any]) -> Iterator[str]:
    scores: Mapping[str, Mapping[str, Any]] = about.get("scores") or {}
    if about.get("selection"):
        yield f"Selection: {about['selection']}"
        yield ""
    if not scores:
        yield "None were recorded. Measure with `feddg evaluate` before use."
        return
    metrics = list(dict.fromkeys(k for row in scores.values() for k in row))
    rows = [[part, *(number(row.get(k)) for k in metrics)] for part, row in scores.items()]
    yield from table(["data", *metrics], rows)
    yield (
        "\n`val/` is held out at a training site; `validation/` and `test/` are domains that no"
        " site has, the former for selection."
    )


def _method(m: Manifest, method: Method) -> Iterator[str]:
    yield f"`{m.method}`"
    yield ""
    for link in chain(method):
        yield f"- {title(link)}: {' '.join(citation(link))}"
    at, of = m.about.get("round"), m.training["rounds"]
    yield f"- rounds: {of}" + (f", this is the model after round {at}" if at is not None else "")
    yield f"- seed: {m.training['seed']}; sites asked per round: {m.training['participation']}"
    recipe = ", ".join(f"{k}={v}" for k, v in m.training["recipe"].items())
    yield f"- recipe: {recipe}"
    if m.about.get("start"):
        yield f"- start: pretrained weights, {m.about['start']}"
    options = ", ".join(f"{k}={v!r}" for k, v in m.architecture.options.items())
    size = sum(m.layout.parameters().sizes)
    yield f"- network: `{m.architecture.model}({options})`, {size:,} trained parameters"


def citation(link: Any) -> Iterator[str]:
    """Ours have the paper in the module's first line or the class's; both are worth reading."""
    cls = type(link)
    ours = cls.__module__.startswith("feddg.")
    for text in (sys.modules[cls.__module__].__doc__ if ours else "", cls.__doc__):
        if text:
            yield cleandoc(text).partition("\n\n")[0].replace("\n", " ").rstrip(".") + "."


def _left(m: Manifest, method: Method) -> Iterator[str]:
    reveals = method.reveals
    yield "- weights, the number of training examples, steps and losses of every site"
    if m.columns and m.prepare and m.protocol != PROTOCOLS["site"]:
        yield "- for the scaling: of every column the count, the sum and the sum of squares"
    for note, words in reveals.notes.items():
        yield f"- {note}: {words}"
    yield f"- the server must see {SEEN[reveals.server_sees]}"


def _limits(m: Manifest) -> Iterator[str]:
    if m.about.get("limits"):
        yield f"{m.about['limits']}\n"
    yield (
        "For data of the kind above, from a site that was not among those that trained it. The"
        " scores hold for the domains that they were measured on; elsewhere, measure first:"
        " `feddg evaluate` shows what the model gets wrong and whether its probabilities can be"
        " believed."
    )
    if isinstance(m.task, Classification):
        yield "It always answers with one of its classes, also for an input that is none of them."
    yield "No decision about a person should rest on it alone."


def _versions(m: Manifest) -> Iterator[str]:
    yield ", ".join(f"{k} {v}" for k, v in m.versions.items())


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(header)} |"
    yield f"|{'---|' * len(header)}"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', '/') for cell in row)} |"


def number(value: Any) -> str:
    return f"{value:.4f}" if isinstance(value, int | float) and value == value else "–"
