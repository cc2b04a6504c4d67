"""What goes wrong for a reason that the user can mend: one clear sentence, exit code 2."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any, Literal, get_args, get_origin, get_type_hints


class FeddgError(Exception):
    """A sentence that names the culprit (file, key, site) and the way out."""


class DataError(FeddgError):
    """Something is wrong with the data that was given."""


class ConfigError(FeddgError):
    """Something is wrong with a name, an option or a configuration file."""


class SiteFailure(FeddgError):
    """A site could not do its work, or too few sites did theirs."""


def unknown(kind: str, name: str, known: Iterable[str]) -> ConfigError:
    """`unknown("method", "fedporx", …)`: names what was meant, or all that there is."""
    known = sorted(known)
    near = get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"
    return ConfigError(f"unknown {kind} {name!r}; {hint}")


def check_choices(kind: str, thing: Any) -> None:
    """Every field that is annotated with a Literal holds one of its values."""
    for name, hint in get_type_hints(type(thing)).items():
        if get_origin(hint) is Literal and getattr(thing, name) not in get_args(hint):
            raise unknown(f"{name} of {kind}", str(getattr(thing, name)), get_args(hint))
