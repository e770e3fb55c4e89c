"""A real browser without a window, driven over the pipe that Chromium offers: no driver, no network."""

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from patience import PATIENCE

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def program() -> str:
    """The browser: OPTIMIST_CHROMIUM, or one on the path."""
    found = os.environ.get("OPTIMIST_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    assert found, (
        f"a page is tested in a browser: install one of {', '.join(NAMES)}, or set OPTIMIST_CHROMIUM"
    )
    return found


class Browser:
    """One page of a browser; what it complains of is kept in `complaints`."""

    def __init__(self) -> None:
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        hears, self._mouth = os.pipe()
        self._ear, speaks = os.pipe()
        moved = f'exec 3<&{hears} 4>&{speaks}; exec "$0" "$@"'  # Chromium reads from 3 and writes to 4
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe"]
        options += ["--disable-dev-shm-usage", f"--user-data-dir={self._profile.name}", "about:blank"]
        self._process = subprocess.Popen(
            ["/bin/bash", "-c", moved, program(), *options],
            pass_fds=(hears, speaks),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(hears)
        os.close(speaks)
        self._heard, self._asked, self._session = b"", 0, ""
        self.complaints: list[str] = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **parameters: Any) -> dict:
        """The answer to one call of the DevTools protocol."""
        self._asked += 1
        message = {"id": self._asked, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._mouth, json.dumps(message).encode() + b"\0")
        while (heard := self._next()).get("id") != self._asked:
            self._notice(heard)
        assert "error" not in heard, heard["error"]
        return heard["result"]

    def open(self, page: Path, *, width: int, height: int = 900, dark: bool = False) -> None:
        """Show a file at a width, as a phone of that width would, and wait until it is there."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.ask("Emulation.setDeviceMetricsOverride", **size)
        theme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.ask("Emulation.setEmulatedMedia", features=theme)
        self.complaints.clear()
        self.ask("Page.navigate", url=page.resolve().as_uri())
        end = time.monotonic() + PATIENCE
        there = "document.readyState === 'complete' && location.href !== 'about:blank'"
        while not self.value(there):
            assert time.monotonic() < end, f"{page} does not load"

    def value(self, expression: str) -> Any:
        """What a line of JavaScript gives."""
        answer = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def picture(self) -> bytes:
        """The whole page as PNG."""
        answer = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        return base64.b64decode(answer["data"])

    def close(self) -> None:
        os.close(self._mouth)  # its end of the pipe is gone: it leaves
        os.close(self._ear)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._profile.cleanup()

    def _next(self) -> dict:
        while b"\0" not in self._heard:
            more = os.read(self._ear, 1 << 16)
            assert more, "the browser is gone"
            self._heard += more
        message, _, self._heard = self._heard.partition(b"\0")
        return json.loads(message)

    def _notice(self, event: dict) -> None:
        said, method = event.get("params", {}), event.get("method")
        if method == "Runtime.exceptionThrown":
            self.complaints.append(str(said["exceptionDetails"]))
        elif method == "Log.entryAdded" and said["entry"]["level"] in ("error", "warning"):
            self.complaints.append(said["entry"]["text"])
        elif method == "Runtime.consoleAPICalled" and said["type"] in ("error", "warning", "assert"):
            self.complaints.append(str(said["args"]))
        elif method == "Network.requestWillBeSent" and said["request"]["url"].startswith("http"):
            self.complaints.append(f"it asks the network for {said['request']['url']}")
