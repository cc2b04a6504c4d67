"""Settings as text: TOML files and `--set name=value`, read by the types that they must have."""

import ast
import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import tomli_w

from feddg.errors import ConfigError, unknown

T = TypeVar("T")
WORDS: dict[Any, str] = {
    int: "a whole number",
    float: "a number",
    str: "text",
    bool: "true or false",
    tuple: "a list",
    Mapping: "a table",
}


def read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"there is no configuration file {path}") from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not TOML: {error}") from None


def to_toml(tree: Mapping[str, Any]) -> str:
    return tomli_w.dumps(cleaned(tree))


def cleaned(tree: Mapping[str, Any]) -> dict[str, Any]:
    """TOML has no null: what is None is left out."""
    return {
        k: cleaned(v) if isinstance(v, Mapping) else list(v) if isinstance(v, tuple) else v
        for k, v in tree.items()
        if v is not None
    }


def made(cls: type[T], values: Mapping[str, Any], where: str) -> T:
    """A dataclass of values that a file gives, every one of a known name and the right type."""
    assert is_dataclass(cls)
    found = typed(cls, values, where)
    for f in fields(cls):
        if f.name not in found and f.default is MISSING and f.default_factory is MISSING:
            raise ConfigError(f"{where} lacks the key {f.name!r}")
    try:
        return cls(**found)
    except ConfigError as why:  # a value of the right type that cannot be
        raise ConfigError(f"{where}: {why}") from None


def typed(cls: type[Any], values: Mapping[str, Any], where: str) -> dict[str, Any]:
    hints = get_type_hints(cls)
    known = {f.name: hints[f.name] for f in fields(cls)}
    for key in values:
        if key not in known:
            raise unknown(f"key in {where}:", key, known)
    return {k: conform(v, known[k], f"{where}: {k}") for k, v in values.items()}


def conform(value: Any, hint: Any, where: str) -> Any:
    """The value as `hint` has it: whole numbers serve as real ones, lists as tuples."""
    kind, of = get_origin(hint) or hint, get_args(hint)
    if kind is Any or (kind in (bool, int, str, float) and type(value) is kind):
        return value
    if kind is float and type(value) is int:
        return float(value)
    if kind is Literal and isinstance(value, str):
        if value not in of:
            raise unknown(where, value, of)
        return value
    if kind in (Union, UnionType):
        return either(value, of, where)
    if kind is tuple and isinstance(value, list | tuple):
        return tuple(conform(v, of[0], where) for v in value)
    if isinstance(value, Mapping):
        if is_dataclass(hint) and isinstance(hint, type):
            return made(hint, value, where.replace(": ", " [", 1) + "]")
        if kind is Mapping:
            return {k: conform(v, of[1], f"{where}.{k}") for k, v in value.items()}
    raise ConfigError(f"{where} must be {worded(hint)}, not {value!r}")


def either(value: Any, hints: tuple[Any, ...], where: str) -> Any:
    if type(value) in hints or (value is None and NoneType in hints):
        return value
    wanted = [h for h in hints if h is not NoneType]
    if len(wanted) > 1:
        raise ConfigError(f"{where} must be {' or '.join(map(worded, wanted))}, not {value!r}")
    return conform(value, wanted[0], where)


def worded(hint: Any) -> str:
    kind, of = get_origin(hint) or hint, get_args(hint)
    if kind is Literal:
        return "one of " + ", ".join(of)
    if kind is tuple:
        return "a list, every item " + worded(of[0])
    return WORDS.get(kind, "a table")


def settings(cls: type[Any], texts: Mapping[str, str], where: str) -> dict[str, Any]:
    """Fields of `cls` from text: "0.05" is a number, "none" nothing, "adam" text."""
    return typed(cls, {k: value_of(v) for k, v in texts.items()}, where)


def value_of(text: str) -> Any:
    """A literal of Python or TOML; a bare word is a string."""
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text
