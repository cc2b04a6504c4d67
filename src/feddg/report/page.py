"""One self-contained page: HTML, style, code and data in one file that asks for nothing else."""

import json
from base64 import b64encode
from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import sha256
from html import escape
from importlib import resources
from string import Template
from typing import Any

from feddg import __version__
from feddg.benchmark.stored import StoredRun
from feddg.report.charts import Chart
from feddg.report.content import content

LIMIT = 3_000_000  # bytes
SCRIPTS = (
    "dom.js", "copy.js", "scales.js", "chart.js", "kinds.js", "details.js", "board.js",
    "sections.js", "page.js",
)  # fmt: skip


def page(
    runs: Sequence[StoredRun],
    figures: Sequence[Chart] = (),
    title: str = "feddg report",
    asked: Sequence[str] = (),
) -> str:
    """The page's text. Names come from outside: in it they are data, never code."""
    made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    found = {"title": title, "feddg": __version__, "made": made, **content(runs, figures, asked)}
    style, code = packed("page.css"), "\n".join(map(packed, SCRIPTS))
    return Template(packed("page.html")).substitute(
        title=escape(title), style=style, code=code, data=as_data(found),
        style_hash=digest(style), code_hash=digest(code),
    )  # fmt: skip


def as_data(value: Any) -> str:
    """JSON in which nothing can end the element that it stands in."""
    text = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    for mark in "<>&\u2028\u2029":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return text


def digest(text: str) -> str:
    """For the page's own security policy, by which nothing else may run or be fetched."""
    return "sha256-" + b64encode(sha256(text.encode()).digest()).decode()


def packed(name: str) -> str:
    return (resources.files("feddg.report") / "files" / name).read_text("utf-8")
