"""Values from text, by the types that they must have."""

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import pytest

from feddg.benchmark.config import conform, made, read_toml, settings, to_toml, value_of
from feddg.benchmark.experiment import from_toml
from feddg.errors import ConfigError
from feddg.recipe import Recipe


@dataclass(frozen=True)
class Inner:
    depth: int = 1


@dataclass(frozen=True)
class Outer:
    name: str
    rate: float = 0.1
    kind: Literal["a", "b"] = "a"
    sites: tuple[str, ...] = ()
    limit: int | None = None
    share: float | int = 1.0
    inner: Inner = Inner()
    options: Mapping[str, str] = field(default_factory=dict)


def test_what_was_written_is_read_back():
    one = Outer("x", 0.5, "b", ("p", "q"), 3, 2, Inner(4), {"size": "64"})
    assert made(Outer, tomllib.loads(to_toml(asdict(one))), "f") == one


def test_none_is_left_out_and_comes_back_as_the_default():
    assert "limit" not in to_toml(asdict(Outer("x")))
    assert made(Outer, tomllib.loads(to_toml(asdict(Outer("x")))), "f") == Outer("x")


def test_a_recipe_of_defaults_and_of_none_survives():
    recipe = Recipe(steps=4, decay_at=(0.5, 0.9), schedule="step")
    assert made(Recipe, tomllib.loads(to_toml(asdict(recipe))), "f") == recipe


@pytest.mark.parametrize(
    ("value", "hint", "wanted"),
    [
        (2, float, 2.0), (2, int, 2), (True, bool, True), ("a", str, "a"), (None, int | None, None),
        (2, float | None, 2.0), (2, float | int, 2), (2.0, float | int, 2.0),
        ([1, 2], tuple[float, ...], (1.0, 2.0)), ({"a": 1}, Mapping[str, Any], {"a": 1}),
    ],
)  # fmt: skip
def test_conforms(value, hint, wanted):
    found = conform(value, hint, "f: x")
    assert found == wanted
    assert type(found) is type(wanted)


@pytest.mark.parametrize(
    ("value", "hint", "words"),
    [
        (True, int, "a whole number"), (1.5, int, "a whole number"), ("1", float, "a number"),
        (1, bool, "true or false"), (1, str, "text"), ("a", tuple[str, ...], "a list"),
        ([1], tuple[str, ...], "text"), ("x", float | int, "a number or a whole number"),
        ("x", int | None, "a whole number"), (3, Literal["a", "b"], "one of a, b"),
        (3, Inner, "a table"), ({"a": 1}, Mapping[str, str], "text"),
    ],
)  # fmt: skip
def test_does_not_conform(value, hint, words):
    with pytest.raises(ConfigError, match=f"^f: x.* must be {words}"):
        conform(value, hint, "f: x")


def test_keys_inside_a_table_are_checked_and_named():
    with pytest.raises(ConfigError, match=r"key in f \[inner\]: 'dept'; did you mean 'depth'"):
        made(Outer, {"name": "x", "inner": {"dept": 1}}, "f")
    with pytest.raises(ConfigError, match="f lacks the key 'name'"):
        made(Outer, {}, "f")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("3", 3), ("1e-3", 1e-3), ("true", True), ("False", False), ("none", None),
        ("adam", "adam"),
        ("(0.5,0.9)", (0.5, 0.9)), ("__import__('os')", "__import__('os')"), ("(" * 300, "(" * 300),
    ],
)  # fmt: skip
def test_values_from_text(text, wanted):
    assert value_of(text) == wanted


def test_settings_of_a_recipe():
    assert settings(Recipe, {"lr": "1", "steps": "none"}, "--set") == {"lr": 1.0, "steps": None}
    with pytest.raises(ConfigError, match="--set: steps must be a whole number, not 'two'"):
        settings(Recipe, {"steps": "two"}, "--set")


def test_a_value_that_cannot_be_names_its_file(tmp_path):
    """Among a hundred runs of a report one has to be found."""
    (tmp_path / "config.toml").write_text('data = "pacs"\nmethod = "<b>"\ntargets = ["photo"]')
    with pytest.raises(ConfigError, match=r"config\.toml: .*'<b>' is not a method"):
        from_toml(tmp_path / "config.toml")


def test_a_file_that_is_no_text(tmp_path):
    (tmp_path / "x.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="is not TOML"):
        read_toml(tmp_path / "x.toml")
