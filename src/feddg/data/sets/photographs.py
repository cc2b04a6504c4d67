"""An entry of the catalogue for a benchmark of images by domain and class."""

from collections.abc import Callable, Mapping
from typing import Any

from feddg.data.layouts import Benchmark
from feddg.data.listed import Found, image_options, opener
from feddg.data.spec import DataSpec, Parser

TREE = "<domain>/<class>/<image>"


def spec(
    benchmark: Benchmark,
    survey: Callable[..., Found] | None = None,
    options: Mapping[str, Parser] | None = None,
    defaults: Mapping[str, Any] | None = None,
    **texts: Any,
) -> DataSpec:
    """`defaults`: how images are read unless the user says otherwise; `texts`: as in DataSpec."""
    looks = survey or benchmark.survey
    return DataSpec(
        name=benchmark.name,
        protocols=("official split", "seeded split"),
        embedded=False,
        open=opener(benchmark.name, looks, **(defaults or {})),
        options={**image_options(), **(options or {})},
        counts=benchmark.counts,
        survey=looks,
        likeness=benchmark.likeness,
        **texts,
    )
