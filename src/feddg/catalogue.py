"""Methods by name, and compositions such as `ga+fedprox(mu=0.01)`.

A method is one line here, or an entry point `feddg.methods` of another package.
"""

import ast
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from feddg.errors import ConfigError, unknown
from feddg.method import Method, Wrapper, chain


@dataclass(frozen=True)
class Entry:
    """`path` is module:Class; `line` says what the method is, in a line."""

    name: str
    path: str
    family: str
    line: str

    def load(self) -> type[Any]:
        module, _, attribute = self.path.partition(":")
        try:
            found: type[Any] = getattr(import_module(module), attribute)
        except (ImportError, AttributeError) as error:
            raise ConfigError(f"method {self.name!r} cannot be imported: {error}") from error
        if not is_dataclass(found):
            raise ConfigError(f"method {self.name!r}: {self.path} is no dataclass with the verbs")
        return found


OPTIMISATION = "federated optimisation"
AGGREGATION = "aggregation"
GENERALISATION = "federated domain generalisation"
LOCAL = "local domain generalisation"
BOUND = "reference bounds"
ADAPTATION = "decentralised adaptation (--task uda)"

ENTRIES = (
    Entry("fedavg", "feddg.methods.fedavg:FedAvg", OPTIMISATION, "the mean of the sites' models"),
    Entry("fedprox", "feddg.methods.fedprox:FedProx", OPTIMISATION, "stays near the model sent"),
    Entry("fednova", "feddg.methods.fednova:FedNova", OPTIMISATION, "updates per unit of work"),
    Entry("scaffold", "feddg.methods.scaffold:Scaffold", OPTIMISATION, "takes the drift out"),
    Entry("fedsam", "feddg.methods.fedsam:FedSAM", OPTIMISATION, "sites look for flat minima"),
    Entry("harmofl", "feddg.methods.harmofl:HarmoFL", OPTIMISATION, "one brightness, flat minima"),
    Entry("arfl", "feddg.methods.arfl:ARFL", AGGREGATION, "sites of high loss have less say"),
    Entry("fedcsa", "feddg.methods.fedcsa:FedCSA", AGGREGATION, "the classifier class by class"),
    Entry("sequential", "feddg.methods.sequential:Sequential", BOUND, "one site after the other"),
    Entry("fedmedian", "feddg.methods.median:FedMedian", AGGREGATION, "coordinate-wise median"),
    Entry("csac", "feddg.methods.csac:CSAC", GENERALISATION, "fuse by layer, calibrate features"),
    Entry("ppdg", "feddg.methods.ppdg:PPDG", GENERALISATION, "draws conflicting updates together"),
    Entry("ga", "feddg.methods.ga:GA", GENERALISATION, "sites that merging hurts have more say"),
    Entry("agrsum", "feddg.methods.surgery:AgrSum", AGGREGATION, "unanimous entries only"),
    Entry("agrrand", "feddg.methods.surgery:AgrRand", AGGREGATION, "noise where signs disagree"),
    Entry("pcgrad", "feddg.methods.surgery:PCGrad", AGGREGATION, "projects conflicts away"),
    Entry("fedgma", "feddg.methods.surgery:FedGMA", AGGREGATION, "damps what signs disagree on"),
    Entry("copa", "feddg.methods.copa:COPA", GENERALISATION, "one extractor, a head per site"),
    Entry("copa-uda", "feddg.methods.copa_uda:COPAUDA", ADAPTATION, "COPA with pseudo-labels"),
    Entry("kd3a", "feddg.methods.kd3a:KD3A", ADAPTATION, "teaches what the sites agree on"),
    Entry("shot", "feddg.methods.shot:SHOT", ADAPTATION, "sure and diverse, source by source"),
    Entry("fada", "feddg.methods.fada:FADA", ADAPTATION, "features that no judge tells apart"),
    Entry("ind-average", "feddg.methods.independent:IndependentAverage", BOUND, "averaged once"),
    Entry("ind-ensemble", "feddg.methods.independent:IndependentEnsemble", BOUND, "mean logits"),
    Entry("am", "feddg.methods.am:AM", LOCAL, "mixes the amplitude spectra of a site's images"),
    Entry("rsc", "feddg.methods.rsc:RSC", LOCAL, "mutes the features that help most"),
    Entry("mixstyle", "feddg.methods.mixstyle:MixStyle", LOCAL, "mixes feature statistics"),
    Entry("consistency", "feddg.methods.consistency:Consistency", LOCAL, "two views, one answer"),
    Entry("jigen", "feddg.methods.jigen:JiGen", LOCAL, "solves jigsaw puzzles besides"),
    Entry("elcfs", "feddg.methods.elcfs:ELCFS", GENERALISATION, "episodes in other sites' styles"),
    Entry("fedsr", "feddg.methods.fedsr:FedSR", GENERALISATION, "a short and plain Gaussian code"),
    Entry("fedl2r", "feddg.methods.fedsr:FedL2R", GENERALISATION, "FedSR's short features alone"),
    Entry("fedcmi", "feddg.methods.fedsr:FedCMI", GENERALISATION, "FedSR's plain code alone"),
    Entry("fediir", "feddg.methods.fediir:FedIIR", GENERALISATION, "one gradient of the head"),
    Entry("fedadg", "feddg.methods.fedadg:FedADG", GENERALISATION, "features like a generator's"),
)


@cache
def methods() -> dict[str, Entry]:
    """Ours, then those of other packages, which cannot take our names."""
    found = {e.name: e for e in ENTRIES}
    for point in entry_points(group="feddg.methods"):
        line = f"from {point.dist.name}" if point.dist else "from another package"
        name = point.name.lower()
        found.setdefault(name, Entry(name, point.value, "other packages", line))
    return found


PIECE = re.compile(r"^(?P<name>[\w-]+)(:(?P<preset>[\w-]+))?(\((?P<options>.*)\))?$", re.DOTALL)


def compose(spec: str) -> Method:
    """`a+b` wraps b in a; `a(x=1)` sets a parameter, `a:official` takes a preset."""
    pieces = [piece.strip() for piece in split(spec)]
    made = [parse(p) for p in pieces]
    leaves = [m for m in made if not isinstance(m, Wrapper)]
    if len(leaves) > 1 or (leaves and made[-1] is not leaves[0]):
        raise ConfigError(f"{spec!r}: fedavg is the innermost method and comes last")
    whole = made[-1]
    for outer in reversed(made[:-1]):
        whole = rewrapped(outer, whole)
    return whole


def rewrapped(outer: Any, inner: Method) -> Method:
    """`outer` around `inner`; a leaf that `inner` brings stays, else `outer`'s own is planted."""
    wrapped: Method = replace(outer, inner=inner)
    return wrapped


def split(spec: str) -> Iterator[str]:
    """At every + outside of brackets."""
    depth, start = 0, 0
    for i, c in enumerate(spec):
        depth += (c == "(") - (c == ")")
        if c == "+" and not depth:
            yield spec[start:i]
            start = i + 1
    yield spec[start:]


def parse(piece: str) -> Any:
    match = PIECE.match(piece)
    if not match:
        raise ConfigError(f"{piece!r} is not a method; write name, name:preset or name(option=1)")
    name = match["name"].lower()
    if name not in methods():
        raise unknown("method", name, methods())
    cls = methods()[name].load()
    options: dict[str, Any] = {}
    if match["preset"]:
        presets = {"paper": {}, **getattr(cls, "presets", {})}
        if match["preset"] not in presets:
            raise unknown(f"preset of {name}", match["preset"], presets)
        options |= presets[match["preset"]]
    return cls(**options | arguments(cls, name, match["options"] or ""))


def arguments(cls: type[Any], name: str, text: str) -> dict[str, Any]:
    """Keyword arguments as literals, checked against the method's parameters."""
    known = parameters(cls)
    found: dict[str, Any] = {}
    for item in (v.strip() for v in top_level(text) if v.strip()):
        key, equals, value = item.partition("=")
        key = key.strip()
        if not equals:
            raise ConfigError(f"{name}({text}): write option=value, not {item!r}")
        if key not in known:
            raise unknown(f"option of {name}", key, known)
        found[key] = literal(value.strip(), known[key], f"{name}({item})")
    return found


def top_level(text: str) -> Iterator[str]:
    """At every comma outside of brackets."""
    depth, start = 0, 0
    for i, c in enumerate(text):
        depth += (c in "([") - (c in ")]")
        if c == "," and not depth:
            yield text[start:i]
            start = i + 1
    yield text[start:]


def literal(text: str, default: Any, where: str) -> Any:
    """A Python literal of the default's type; a bare word is a string."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        value = {"true": True, "false": False, "none": None}.get(text.lower(), text)
    if isinstance(default, float) and type(value) is int:
        value = float(value)
    if isinstance(default, tuple) and isinstance(value, list):
        value = tuple(value)
    if default is not None and value is not None and type(value) is not type(default):
        kind = type(default).__name__
        raise ConfigError(f"{where}: must be a {kind}, like its default {default!r}")
    return value


def parameters(cls: type[Any]) -> dict[str, Any]:
    """A method's plain parameters and their defaults."""
    assert is_dataclass(cls)
    plain = (int, float, str, bool, tuple, type(None))
    found = {}
    for f in fields(cls):
        if f.name != "inner" and f.default is not MISSING and isinstance(f.default, plain):
            found[f.name] = f.default
    return found


def spelled(method: Method) -> str:
    """The composition in full: every link with every plain parameter. `compose` reads it back."""
    links = []
    for link in chain(method):
        name = listed(type(link))
        if name is None:
            return repr(method)
        values = {k: getattr(link, k) for k in parameters(type(link))}
        inside = ", ".join(f"{k}={v!r}" for k, v in values.items())
        links.append(f"{name}({inside})" if inside else name)
    *wrappers, leaf = chain(method)
    implied = leaf == type(leaf)() or any(w.leaf is not None for w in wrappers)
    return "+".join(links[:-1] if wrappers and implied else links)


def listed(cls: type[Any]) -> str | None:
    """The name of a class in the catalogue. Other packages are imported only if they must be."""
    path = f"{cls.__module__}:{cls.__qualname__}"
    for entry in methods().values():
        if entry.path == path:
            return entry.name
    for entry in methods().values():
        with suppress(ConfigError):
            if entry not in ENTRIES and entry.load() is cls:
                return entry.name
    return None
