"""The pictures of docs/report.md: the page of real runs at two widths, light and dark.

    feddg bench rotated-mnist --schedule demo --methods fedavg,ga,csac,ppdg --targets m0,m75 --seeds 2
    python scripts/screenshots.py runs

Needs chromium and chromium-driver (Debian's packages of that name) and writes to docs/pictures/.
"""  # noqa: E501

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.report.browser import Browser, browsing  # noqa: E402

from feddg.benchmark.stored import stored_runs  # noqa: E402
from feddg.report.page import page  # noqa: E402

WIDE, NARROW = (1280, 960), (390, 844)
MOST = 300_000  # bytes of a picture
TOP = "window.scrollTo(0, 0)"
CURVES = (
    "const part = document.querySelector('.part');"
    "window.scrollTo(0, part.getBoundingClientRect().top + window.scrollY - 70)"
)
TABLE = (
    "const tools = document.querySelector('.tools');"
    "window.scrollTo(0, tools.getBoundingClientRect().top + window.scrollY - 70)"
)
BEHIND = "document.querySelector('.sortable .number').click()"
SHOTS = (
    ("wide-light", WIDE, "light", TOP, None),
    ("wide-dark", WIDE, "dark", CURVES, ".part .canvas"),
    ("narrow-light", NARROW, "light", TABLE, None),
    ("narrow-dark", NARROW, "dark", CURVES, ".part .canvas"),
    ("behind", WIDE, "light", BEHIND, None),
)


def shoot(browser: Browser, file: Path, folder: Path) -> None:
    for name, size, scheme, script, pointed in SHOTS:
        browser.size(*size)
        browser.prefers(scheme)
        browser.open(file)
        browser.until("return document.querySelector('.canvas svg') !== null")
        browser.run(script)
        if pointed:
            browser.point(pointed, right=60)
        browser.run("return new Promise((done) => setTimeout(done, 300))")
        data = browser.picture()
        assert len(data) < MOST, f"{name} has {len(data)} bytes"
        (folder / f"report-{name}.png").write_bytes(data)
        print(folder / f"report-{name}.png", len(data), "bytes")


def main() -> None:
    folder = ROOT / "docs" / "pictures"
    folder.mkdir(exist_ok=True)
    places = [Path(p) for p in sys.argv[1:]] or [Path("runs")]
    file = ROOT / "build" / "report.html"
    file.parent.mkdir(exist_ok=True)
    file.write_text(page(stored_runs(places), title="Rotated MNIST, two angles unseen"), "utf-8")
    with browsing() as browser:
        shoot(browser, file, folder)


if __name__ == "__main__":
    main()
