"""The page's charts in a real Chromium: switched, hovered over, read by keys and as tables."""

import pytest

from tests.report import browser
from tests.report.folders import HOSTILE

browser.wanted()


def lines(seen):
    return seen.run(
        "return document.querySelector('.part').querySelectorAll('.line polyline').length"
    )


def test_a_legend_switches_a_method_off_in_every_chart_and_on_again(seen):
    """Four rows on two targets, of which the bound has but one: seven lines."""
    assert lines(seen) == 7
    seen.click(".part .legend .key:nth-child(1)")
    pressed = "return document.querySelector('.part .legend .key').getAttribute('aria-pressed')"
    assert seen.run(pressed) == "false"
    assert lines(seen) == 5
    seen.type(".part .legend .key:nth-child(1)", browser.KEYS["enter"])
    assert seen.run(pressed) == "true"
    assert lines(seen) == 7


TIP = "return document.querySelector(arguments[0] + ' .tip:not([hidden])')?.innerText ?? ''"


def test_hovering_over_a_line_shows_its_values(seen):
    """Far to the right is the last of three rounds: ga has 70 ± 0 on m0, fedavg 81 ± 1."""
    chart = ".part .charts .chart:first-child"
    seen.run("document.querySelector(arguments[0]).scrollIntoView({block: 'center'})", chart)
    seen.point(f"{chart} .canvas", right=200)
    shown = seen.run(TIP, chart).split("\n")
    assert shown[0] == "round 3"
    assert shown[1:3] == ["fedavg", "81.00 ± 1.00"]
    assert "70.00 ± 0.00" in shown


def test_arrow_keys_read_values_aloud(seen):
    canvas = ".part .charts .canvas"
    seen.type(canvas, browser.KEYS["right"])
    assert seen.run(TIP, ".part").startswith("round 1\n")
    seen.type(canvas, browser.KEYS["right"])
    said = seen.run("return document.getElementById('said').textContent")
    assert said.startswith("round 2: fedavg 71.00 ± 1.00,")
    seen.type(canvas, browser.KEYS["escape"])
    assert seen.run(TIP, ".part") == ""


@pytest.mark.parametrize(
    ("kind", "keys", "wanted"),
    [
        ("surface", ["right", "right"], "1, 0\nloss\n2"),
        ("bar", ["right"], f"a\n{HOSTILE}\n1.000 ± 0.500"),
        ("scatter", ["left"], "s\ns\n2, 4"),
    ],
)
def test_every_kind_of_figure_can_be_read(seen, kind, keys, wanted):
    for key in keys:
        seen.type(f"[data-kind={kind}] .canvas", browser.KEYS[key])
    assert seen.run(TIP, f"[data-kind={kind}]") == wanted


def test_long_names_beside_points_stay_in_their_picture(seen):
    outside = seen.run(
        "return [...document.querySelectorAll('.line text')].filter((t) => {"
        "  const [own, all] = [t, t.closest('.canvas')].map((n) => n.getBoundingClientRect());"
        "  return own.left < all.left - 1 || own.right > all.right + 1;"
        "}).map((t) => t.textContent)"
    )
    assert seen.run("return document.querySelectorAll('.line text').length") >= 3
    assert outside == []


def test_a_heat_map_is_dark_where_it_is_low(seen):
    fills = seen.run(
        "return [...document.querySelectorAll('.heat rect')].map((r) => r.getAttribute('fill'))"
    )
    assert fills[0] == "rgb(18,33,74)"
    assert fills[3] == "rgb(253,236,120)"
    assert len(set(fills)) == 4


def test_a_charts_numbers_as_a_table(seen):
    seen.click("[data-kind=surface] .values summary")
    shown = seen.until(
        "return document.querySelector('[data-kind=surface] .values table')?.innerText"
    )
    assert shown.split("\n")[-2].split() == ["loss", "1", "1", "4.5"]
