"""What goes wrong for a reason that the user can mend: one clear sentence, exit code 2."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from math import inf
from typing import Any, Literal, get_args, get_origin, get_type_hints


class FeddgError(Exception):
    """A sentence that names the culprit (file, key, site) and the way out."""


class DataError(FeddgError):
    """Something is wrong with the data that was given."""


class ConfigError(FeddgError):
    """Something is wrong with a name, an option or a configuration file."""


class SiteFailure(FeddgError):
    """A site could not do its work, or too few sites did theirs."""


class RunsFailed(SiteFailure):
    """Some of the runs that were tried together; the others came to their end."""

    def __init__(self, reasons: Mapping[str, str], tried: int):
        """`reasons` by the run's key; where but one was `tried`, it need not be named."""
        self.reasons = dict(reasons)
        super().__init__(said_once(reasons.items()) if tried > 1 else "; ".join(reasons.values()))


def explained(error: Exception) -> str:
    return str(error) if isinstance(error, FeddgError) else f"{type(error).__name__}: {error}"


def said_once(reasons: Iterable[tuple[str, str]]) -> str:
    """(who, why) in words: those with the same reason share it."""
    by_reason: dict[str, list[str]] = {}
    for who, why in reasons:
        by_reason.setdefault(why, []).append(who)
    return "; ".join(f"{', '.join(names)}: {why}" for why, names in by_reason.items())


def unknown(kind: str, name: str, known: Iterable[str]) -> ConfigError:
    """`unknown("method", "fedporx", …)`: names what was meant, or all that there is."""
    known = sorted(known)
    near = get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"
    return ConfigError(f"unknown {kind} {name!r}; {hint}")


def within(
    name: str, value: float, low: float = 0.0, high: float = inf, above: bool = False
) -> None:
    """Refuse a number that is out of its range; `above`: `low` itself is, too."""
    if (low < value if above else low <= value) and value <= high:
        return
    least = f"be above {low:g}" if above else f"be at least {low:g}"
    if high == inf:
        bounds = least
    else:
        bounds = f"{least} and at most {high:g}" if above else f"lie between {low:g} and {high:g}"
    raise ConfigError(f"{name} must {bounds}, not {value:g}")


def check_choices(kind: str, thing: Any) -> None:
    """Every field that is annotated with a Literal holds one of its values."""
    for name, hint in get_type_hints(type(thing)).items():
        if get_origin(hint) is Literal and getattr(thing, name) not in get_args(hint):
            raise unknown(f"{name} of {kind}", str(getattr(thing, name)), get_args(hint))
