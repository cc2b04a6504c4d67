"""The page in a real Chromium: what a reader does with it, and what it must never do."""

import json
from time import sleep

import pytest

from feddg.report.page import page
from tests.report import browser
from tests.report.folders import HOSTILE, written
from tests.report.stored import stored

browser.wanted()


def names(seen):
    css = ".sortable tbody .name"
    return seen.run(
        "return [...document.querySelector('.sortable').querySelectorAll(arguments[0])]"
        ".map((e) => e.textContent)", css,
    )  # fmt: skip


BY_AVERAGE = ["ga", "fedprox(mu=0.01)", "fedavg", "m15 alone"]


def test_it_fetches_nothing(seen, file):
    """The browser's own account of what it asked for, from before the page to after it."""
    seen.log("performance")
    seen.open(file)
    sent = [json.loads(e["message"])["message"] for e in seen.log("performance")]
    asked = [m["params"]["request"] for m in sent if m["method"] == "Network.requestWillBeSent"]
    assert {r["url"] for r in asked} - {"data:,"} == {file.as_uri()}


def test_names_from_outside_are_text(seen):
    assert seen.run("return document.title") == HOSTILE
    assert seen.run("return document.querySelector('h1').textContent") == HOSTILE
    assert seen.run("return document.images.length") == 0


def test_columns_sort_both_ways_by_mouse_and_by_key(seen):
    assert names(seen) == BY_AVERAGE
    head = "th[data-key='at m0']"
    seen.click(f"{head} button")
    assert names(seen) == ["fedavg", "fedprox(mu=0.01)", "ga", "m15 alone"]
    assert seen.run("return document.querySelector(arguments[0]).ariaSort", head) == "descending"
    seen.type(f"{head} button", browser.KEYS["enter"])
    assert names(seen) == ["m15 alone", "ga", "fedprox(mu=0.01)", "fedavg"]
    assert seen.run("return document.querySelectorAll('.sortable [aria-sort]').length") == 2
    said = seen.run("return document.getElementById('said').textContent")
    assert said == "Sorted by m0, ascending"


def test_what_is_unknown_stands_last_whichever_way(seen):
    head = "th[data-key='average'] button"
    seen.click(head)
    assert names(seen) == [*reversed(BY_AVERAGE[:3]), "m15 alone"]


def test_rows_are_filtered_by_name_and_by_what_they_are(seen):
    seen.type("input[type=search]", "fedp")
    assert names(seen) == ["fedprox(mu=0.01)"]
    assert seen.run("return document.querySelector('.count').textContent") == "1 of 4"
    seen.run("document.querySelector('input[type=search]').value = ''")
    seen.type("input[type=search]", "merging hurts")
    assert names(seen) == ["ga"]


def test_dark_by_the_system_by_the_switch_and_remembered(seen, file):
    ground = "return getComputedStyle(document.body).backgroundColor"
    light = seen.run(ground)
    seen.click("#theme")
    dark = seen.run(ground)
    assert (light, dark) == ("rgb(251, 250, 247)", "rgb(21, 23, 27)")
    assert reopened(seen, file, ground, dark) == dark
    seen.click("#theme")
    assert seen.run(ground) == light
    seen.run("localStorage.clear()")
    seen.prefers("dark")
    assert reopened(seen, file, ground, dark) == dark


def reopened(seen, file, script, wanted):
    """What the page says when it is opened anew: Chromium stores what it keeps in its own time."""
    for _ in range(50):
        seen.open(file)
        if seen.run(script) == wanted:
            break
        sleep(0.1)
    return seen.run(script)


def test_behind_a_number_stand_its_runs(seen, runs):
    """The second column of ga's row is m0; its first seed is open."""
    seen.run("document.querySelector('.sortable .number').focus()")
    seen.type(".sortable .number", browser.KEYS["enter"])
    shown = seen.run("return document.querySelector('dialog').innerText")
    run = next(r for r in runs if r.experiment.method.startswith("ga") and "m0_seed0" in r.key)
    assert shown.startswith("ga, m0 held out")
    for wanted in (run.key, "70.00", "1.5 s", "3.0 MB up", f"feddg run --config {run.folder}"):
        assert wanted in shown
    configuration = seen.run("return document.querySelectorAll('dialog pre')[1].textContent")
    assert configuration + "\n" == (run.folder / "config.toml").read_text()
    seen.type("dialog button", browser.KEYS["escape"])
    seen.until("return document.querySelector('dialog') === null")
    assert seen.run("return document.activeElement.className") == "number"


STUB = """
    window.taken = null;
    const clipboard = { writeText: async (text) => { window.taken = text; } };
    Object.defineProperty(navigator, 'clipboard', { value: arguments[0] ? clipboard : undefined });
    document.execCommand = () => false;
"""


def test_the_table_as_it_stands_is_copied_as_markdown_and_latex(seen):
    """Filtered to fedavg: 81 ± 1 and 62 ± 2, by seed 70 and 73, so 71.5 ± 1.5."""
    seen.run(STUB, True)
    seen.type("input[type=search]", "fedavg")
    seen.click(".copies button:nth-of-type(1)")
    head, rule, row = seen.run("return window.taken").strip().split("\n")[2:]
    assert head == "| method | m0 | m15 | average | p |"
    assert rule == "| --- | ---: | ---: | ---: | ---: |"
    assert row == "| fedavg | 81.00 ± 1.00 | 62.00 ± 2.00 | 71.50 ± 1.50 | – |"
    seen.click(".copies button:nth-of-type(2)")
    tex = seen.run("return window.taken")
    assert r"  fedavg & 81.00 $\pm$ 1.00 & 62.00 $\pm$ 2.00 & 71.50 $\pm$ 1.50 & -- \\" in tex
    assert r"\caption{rotated-mnist: accuracy (\%)" in tex
    assert seen.run("return document.getElementById('said').textContent") == "Table copied"


def test_without_a_clipboard_the_text_can_be_copied_by_hand(seen):
    seen.run(STUB, False)
    seen.click(".copies button:nth-of-type(1)")
    shown = seen.run("return document.querySelector('dialog textarea').value")
    assert "| ga | 70.00 ± 0.00 |" in shown
    assert seen.run("return document.activeElement.tagName") == "TEXTAREA"


def test_p_values_follow_the_baseline(seen):
    """Without correction it is as likely either way round."""
    column = (
        "return [...document.querySelector('.sortable').tBodies[0].rows].map((row) =>"
        " row.children[3].textContent)"
    )
    choose = (
        "const select = document.querySelectorAll('.choices select')[arguments[0]];"
        "select.value = arguments[1]; select.dispatchEvent(new Event('change'))"
    )
    seen.run(choose, 1, "t-test")
    before = seen.run(column)
    assert before[2] == "baseline"
    assert float(before[0]) > 0
    seen.run(choose, 0, "0")
    after = seen.run(column)
    assert (after[0], after[2]) == ("baseline", before[0])


@pytest.mark.parametrize("width", [320, 360, 390, 768, 1280])
def test_nothing_is_wider_than_the_screen(seen, file, width):
    seen.size(width, 800)
    seen.open(file)
    wide = "return [document.documentElement.scrollWidth, window.innerWidth]"
    assert seen.run(wide) == [width, width]
    seen.click(".sortable .number")
    assert seen.run(wide) == [width, width]
    box = seen.run("return document.querySelector('dialog').getBoundingClientRect().toJSON()")
    assert box["left"] >= 0
    assert box["right"] <= width


def test_on_paper_it_is_light_and_without_controls(seen):
    seen.click("#theme")
    seen.devtools("Emulation.setEmulatedMedia", media="print")
    try:
        shown = seen.run(
            "const style = (css) => getComputedStyle(document.querySelector(css));"
            "const bar = document.querySelector('g.bar rect').getBoundingClientRect();"
            "return [style('body').backgroundColor, style('.head').display,"
            " style('.tools').display, bar.height > 0]"
        )
    finally:
        seen.devtools("Emulation.setEmulatedMedia", media="")
    assert shown == ["rgb(255, 255, 255)", "none", "none", True]


def test_keys_alone_reach_everything(seen):
    """From the top: the way to the results, then every control in its turn, and the focus shows."""
    reached = []
    for _ in range(14):
        seen.devtools("Input.dispatchKeyEvent", type="keyDown", key="Tab", code="Tab",
                      windowsVirtualKeyCode=9)  # fmt: skip
        reached.append(seen.run(
            "const e = document.activeElement;"
            "return [e.className || e.type || e.id, getComputedStyle(e).outlineStyle]"
        ))  # fmt: skip
    assert reached[0][0] == "skip"
    kinds = [kind for kind, _ in reached]
    assert {"quiet", "search", "select-one", "quiet copy", "scroll"} <= set(kinds)
    assert all(style != "none" for _, style in reached)


def test_a_papers_numbers_stand_beside_ours_of_its_protocol(chromium, tmp_path):
    """CSAC's Table 3: FedAvg 92.65 on the average; ours, made up, is 90 everywhere: −2.65."""
    runs = [
        stored("fedavg", f"m{k}", accuracies=(0.9,) * 41, rounds=41, folder=tmp_path)
        for k in range(0, 90, 15)
    ]
    for run in runs:
        written(run)
    file = tmp_path / "report.html"
    file.write_text(page(runs), "utf-8")
    chromium.open(file)
    row = chromium.run("return document.querySelector('.sortable').innerText.split('\\n')")
    text = " ".join(row)
    assert "paper" in text
    assert "90.00" in text
    assert "92.65" in text
    assert "−2.65" in text
    assert chromium.run("return document.querySelectorAll('td .theirs').length") >= 6
