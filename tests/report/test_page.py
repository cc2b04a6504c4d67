"""The page's text: whole, quiet, proof against names from outside, legible."""

import json
import re
from html.parser import HTMLParser
from itertools import product

import pytest

from feddg.benchmark.stored import StoredRun, stored_runs
from feddg.report.page import LIMIT, SCRIPTS, as_data, digest, packed, page
from tests.report.folders import bench, rounds, written
from tests.report.stored import record, stored

HOSTILE = "</script><img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return bench(tmp_path_factory.mktemp("runs"))


class Elements(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.found: list[tuple[str, dict]] = [("", {})]
        self.texts: dict[str, str] = {}
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data):
        if self.found[-1][0] in ("script", "style", "title"):
            tag, attrs = self.found[-1]
            self.texts.setdefault(attrs.get("id", attrs.get("type", tag)), data)


def test_it_asks_for_nothing_from_anywhere(runs):
    text = page(runs)
    found = Elements(text).found
    assert not [t for t, _ in found if t in ("img", "iframe", "object", "embed")]
    assert [a["href"] for t, a in found if t == "link"] == ["data:,"]
    assert not [a for t, a in found if t == "script" and "src" in a]
    code = "".join(map(packed, (*SCRIPTS, "page.css")))
    places = re.findall(r"https?://[^\s\"')]+", code)
    assert places == ["http://www.w3.org/2000/svg"]  # a name, not a place
    assert not re.findall(r"\b(fetch|XMLHttpRequest|WebSocket|import|innerHTML|eval)\b", code)


def test_only_its_own_script_and_style_may_run(runs):
    """The policy names their digests, and allows no other source."""
    found = Elements(page(runs))
    [policy] = [a["content"] for t, a in found.found if a.get("http-equiv")]
    assert "default-src 'none'" in policy
    assert f"script-src '{digest(found.texts['module'])}'" in policy
    assert f"style-src '{digest(found.texts['style'])}'" in policy


def test_a_name_from_outside_ends_no_element(tmp_path):
    run = stored("fedavg", HOSTILE, records=rounds(HOSTILE, 0.9, {"weights": {HOSTILE: 1.0}}))
    written(stored("fedavg", HOSTILE, records=run.records, folder=tmp_path), {HOSTILE: HOSTILE})
    text = page(stored_runs([tmp_path]), title=HOSTILE)
    found = Elements(text)
    assert "img" not in [t for t, _ in found.found]
    assert found.texts["title"] == HOSTILE
    data = json.loads(found.texts["data"])
    assert data["title"] == HOSTILE
    assert data["groups"][0]["columns"] == [HOSTILE]


def test_data_are_the_same_json_however_they_are_written():
    value = {"a": "<!-- & \u2028 é ]]>", "b": [1.5, None]}
    assert json.loads(as_data(value)) == value
    assert not set("<>&\u2028") & set(as_data(value))
    with pytest.raises(ValueError, match="JSON"):
        as_data(float("nan"))


def test_a_whole_benchmark_stays_well_below_three_megabytes(tmp_path):
    """Forty methods, six targets, three seeds, forty rounds: 720 runs."""
    names = [f"m{k}" for k in range(0, 90, 15)]
    runs = []
    for k, target, seed in product(range(40), names, range(3)):
        say = [{"weights": dict.fromkeys(names, 0.123456789 * (i + k))} for i in range(40)]
        records = tuple(record(target, 1 / (i + k + 1), i, trace=t) for i, t in enumerate(say))
        run = stored(f"fedprox(mu={k + 1}.5)", target, seed, records=records)
        folder = tmp_path / run.key
        folder.mkdir()
        (folder / "config.toml").write_text(run.experiment.to_toml())
        runs.append(StoredRun(folder, run.experiment, records, {"cores": "2"}, False))
    assert len(page(runs).encode()) < 0.8 * LIMIT


def colours(theme: str) -> dict[str, str]:
    block = packed("page.css").split(theme, 1)[1].split("}", 1)[0]
    return dict(re.findall(r"--([\w]+): (#[0-9a-f]{6})", block))


def luminance(colour: str) -> float:
    """Of WCAG 2: linear light of each channel, weighted as the eye does."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def contrast(a: str, b: str) -> float:
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_contrast_by_its_extremes():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#777777") == 1


@pytest.mark.parametrize("theme", [":root {", ':root[data-theme="dark"] {'])
def test_text_and_lines_stand_out_from_their_ground(theme):
    """WCAG AA: 4.5 for text, 3 for what is drawn."""
    found = colours(theme)
    for ground in ("paper", "sheet"):
        for text in ("ink", "muted", "accent", "caution"):
            assert contrast(found[text], found[ground]) >= 4.5, (text, ground)
        for k in range(8):
            assert contrast(found[f"c{k}"], found[ground]) >= 3, (k, ground)
    assert contrast(found["ink"], found["wash"]) >= 4.5


def test_dark_by_the_system_is_dark_by_the_switch():
    by_system = colours(':root:not([data-theme="light"]) {')
    assert by_system == colours(':root[data-theme="dark"] {')
