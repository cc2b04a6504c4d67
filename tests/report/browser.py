"""A real browser for tests and screenshots: chromedriver spoken to over HTTP, nothing installed."""

import base64
import json
import os
import re
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.error import HTTPError

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--hide-scrollbars",
)  # fmt: skip
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # by the W3C's WebDriver
KEYS = {"right": "\ue014", "left": "\ue012", "enter": "\ue007", "tab": "\ue004", "escape": "\ue00c"}


def wanted() -> None:
    """A module of tests without a browser is passed over with a reason; in CI it fails."""
    reason = "the page is tested in a browser: apt-get install chromium chromium-driver"
    if CHROMIUM and DRIVER:
        return
    if os.environ.get("CI"):
        raise RuntimeError(reason)
    pytest.skip(reason, allow_module_level=True)


@dataclass
class Browser:
    session: str  # its address

    def send(self, path: str, body: dict[str, Any] | None = None) -> Any:
        return called(f"{self.session}/{path}", body)

    def open(self, page: Path) -> None:
        self.send("url", {"url": page.as_uri()})

    def run(self, script: str, *arguments: Any) -> Any:
        """A function's body; what it returns, also when that is a promise."""
        whole = f"return (async (...arguments) => {{ {script} }})(...arguments)"
        return self.send("execute/sync", {"script": whole, "args": list(arguments)})

    def until(self, script: str, *arguments: Any, patience: float = 5.0) -> Any:
        """The script's value as soon as it is true: some events come when they please."""
        end = time.monotonic() + patience
        while not (found := self.run(script, *arguments)):
            if time.monotonic() > end:
                raise RuntimeError(f"not within {patience} seconds: {script}")
            time.sleep(0.02)
        return found

    def find(self, css: str) -> str:
        found: dict[str, str] = self.send("element", {"using": "css selector", "value": css})
        return found[ELEMENT]

    def click(self, css: str) -> None:
        self.send(f"element/{self.find(css)}/click", {})

    def type(self, css: str, text: str) -> None:
        self.send(f"element/{self.find(css)}/value", {"text": text})

    def point(self, css: str, right: int = 0, down: int = 0) -> None:
        """Move the pointer so far from an element's middle."""
        move = {
            "type": "pointerMove", "duration": 0, "x": right, "y": down,
            "origin": {ELEMENT: self.find(css)},
        }  # fmt: skip
        self.send("actions", {"actions": [{"type": "pointer", "id": "mouse", "actions": [move]}]})

    def size(self, width: int, height: int) -> None:
        """Of the page itself, which a window without a frame may not be narrowed to."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.devtools("Emulation.setDeviceMetricsOverride", **metrics)

    def prefers(self, scheme: str) -> None:
        """And no motion, which a test would have to wait for."""
        wanted = {"prefers-color-scheme": scheme, "prefers-reduced-motion": "reduce"}
        features = [{"name": k, "value": v} for k, v in wanted.items()]
        self.devtools("Emulation.setEmulatedMedia", features=features)

    def devtools(self, command: str, **parameters: Any) -> Any:
        return self.send("goog/cdp/execute", {"cmd": command, "params": parameters})

    def log(self, kind: str) -> list[dict[str, Any]]:
        """What came since it was asked last: "browser" is the console, "performance" the wire."""
        found: list[dict[str, Any]] = self.send("se/log", {"type": kind})
        return found

    def picture(self) -> bytes:
        return base64.b64decode(self.send("screenshot"))


def called(address: str, body: dict[str, Any] | None = None, method: str | None = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(
        address, data, {"Content-Type": "application/json"}, method=method
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:
            return json.load(reply)["value"]
    except HTTPError as error:
        with error:
            raise RuntimeError(json.load(error)["value"]["message"]) from None


@contextmanager
def browsing() -> Iterator[Browser]:
    """A fresh profile, gone at the end with the browser."""
    assert CHROMIUM
    assert DRIVER
    with TemporaryDirectory(prefix="feddg-browser-", ignore_cleanup_errors=True) as profile:
        log = open(Path(profile) / "driver.log", "w+")  # noqa: SIM115 (closed below)
        driver = subprocess.Popen([DRIVER, "--port=0"], stdout=log, stderr=subprocess.STDOUT)
        try:
            address = f"http://127.0.0.1:{port(Path(log.name))}"
            options = {"binary": CHROMIUM, "args": [*FLAGS, f"--user-data-dir={profile}/data"]}
            wanted = {
                "goog:chromeOptions": options,
                "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
            }
            begun = called(f"{address}/session", {"capabilities": {"alwaysMatch": wanted}})
            session = f"{address}/session/{begun['sessionId']}"
            try:
                yield Browser(session)
            finally:
                called(session, method="DELETE")
        finally:
            driver.terminate()
            driver.wait()
            log.close()


def port(log: Path, patience: float = 20.0) -> int:
    """The free one that the driver says it took."""
    until = time.monotonic() + patience
    while time.monotonic() < until:
        if begun := re.search(r"started successfully on port (\d+)", log.read_text()):
            return int(begun[1])
        time.sleep(0.05)
    raise RuntimeError(f"chromedriver did not begin: {log.read_text()}")
