"""The page of six made-up numbers in a browser that is opened once."""

import pytest

from feddg.report.charts import Chart, Series
from feddg.report.page import page
from tests.report import browser
from tests.report.folders import HOSTILE, bench

FIGURES = (
    Chart(
        "surface", HOSTILE, "surface", "first", "second",
        (
            Series("loss", (0.0, 1.0), (0.0, 1.0), z=((1.0, 2.0), (3.0, 4.5))),
            Series("models", (0.5,), (0.5,), text=("merged",)),
        ),
    ),
    Chart("bar", "bars", "bar", "", "", (Series(HOSTILE, ("a", "b"), (1.0, None), (0.5, None)),)),
    Chart(
        "ranks", "ranks", "line", "rank", "",
        tuple(
            Series(f"csac(position=False, channel=False, lam={k})", (k,), (k,), text=(f"{k}",))
            for k in (1.0, 2.0, 3.0)
        ),
    ),
    Chart("scatter", "cloud", "scatter", "", "", (Series("s", (1.0, 2.0), (3.0, 4.0)),)),
)  # fmt: skip


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return bench(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def file(runs, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(page(runs, FIGURES, title=HOSTILE), "utf-8")
    return path


@pytest.fixture(scope="module")
def chromium():
    with browser.browsing() as found:
        yield found


@pytest.fixture
def seen(chromium, file):
    """The page anew, light and wide; at the end it has complained of nothing."""
    chromium.prefers("light")
    chromium.size(1280, 900)
    chromium.log("browser")
    chromium.open(file)
    chromium.run("localStorage.clear()")
    chromium.open(file)
    yield chromium
    assert [e["message"] for e in chromium.log("browser")] == []
