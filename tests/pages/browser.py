# SPDX-License-Identifier: BSD-3-Clause
"""Drives Debian's Chromium without a window, through its own protocol (DevTools) over a pipe: no driver, no network."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

KEYS = {"Enter": 13, "Escape": 27, "Tab": 9, "Home": 36, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}


class Page:
    """An open page; `errors` has the complaints of its console."""

    def __init__(self, send: int, receive: int) -> None:
        self._send, self._receive = send, receive
        self._unread = b""
        self._asked = 0
        self._session: str | None = None
        self.errors: list[str] = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.ask(f"{domain}.enable")

    def open(self, file: Path, *, dark: bool = False, width: int = 1280, height: int = 900) -> None:
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.ask("Emulation.setEmulatedMedia", features=features)
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.ask("Emulation.setDeviceMetricsOverride", **metrics)
        self.ask("Page.navigate", url=file.as_uri())
        self.wait("document.readyState === 'complete' && performance.getEntriesByName('first-contentful-paint').length")

    def value(self, expression: str) -> Any:
        found = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wrapped_figures(self) -> list[str]:
        """Returns the cells of tables whose figures, or whose texts of one line, take more than a line."""
        cells = "[...document.querySelectorAll('td:not(.text), td .line')].filter(cell => cell.getClientRects().length)"
        assert self.value(f"{cells}.length") > 5, "the page has no figures"
        height = (
            "(cell => { const range = document.createRange(); range.selectNodeContents(cell);"
            " return range.getBoundingClientRect().height; })"
        )
        found: list[str] = self.value(f"{cells}.filter(cell => {height}(cell) > 30).map(cell => cell.textContent)")
        return found

    def wait(self, expression: str, seconds: float = 60) -> None:
        end = time.monotonic() + seconds
        while not self.value(expression):
            assert time.monotonic() < end, f"not so after {seconds} s: {expression}"
            time.sleep(0.05)

    def press(self, *keys: str) -> None:
        for key in keys:
            code = KEYS.get(key, ord(key[0]))
            text = {"text": "\r"} if key == "Enter" else {"text": key} if len(key) == 1 else {}
            for kind in ("keyDown", "keyUp"):
                self.ask("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **(text if kind == "keyDown" else {}))

    def click(self, x: float, y: float) -> None:
        for kind in ("mousePressed", "mouseReleased"):
            self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def screenshot(self, file: Path) -> None:
        shown = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        file.write_bytes(base64.b64decode(shown["data"]))

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._asked += 1
        message = {"id": self._asked, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._send, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._asked:
                assert "error" not in answer, (method, answer["error"])
                result: dict[str, Any] = answer["result"]
                return result
            self._note(answer)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._unread:
            ready, _, _ = select.select([self._receive], [], [], 120)
            assert ready, "the browser says nothing"
            read = os.read(self._receive, 1 << 20)
            assert read, "the browser ended"
            self._unread += read
        message, _, self._unread = self._unread.partition(b"\0")
        parsed: dict[str, Any] = json.loads(message)
        return parsed

    def _note(self, event: dict[str, Any]) -> None:
        told = event.get("params", {})
        if event.get("method") == "Runtime.exceptionThrown":
            self.errors.append(str(told["exceptionDetails"]))
        elif event.get("method") == "Runtime.consoleAPICalled" and told["type"] in ("error", "warning"):
            self.errors.append(str(told["args"]))
        elif event.get("method") == "Log.entryAdded":
            self.errors.append(str(told["entry"]))


def find_browser() -> str | None:
    return shutil.which("chromium")


@contextlib.contextmanager
def browser() -> Iterator[Page]:
    """Yields a page of the browser that find_browser() found."""
    program = find_browser()
    assert program is not None
    to_browser, send = os.pipe()
    receive, from_browser = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        # The browser reads from descriptor 3 and writes to 4.
        options = "--headless --no-sandbox --disable-gpu --hide-scrollbars --remote-debugging-pipe"
        script = f'exec "$0" {options} --user-data-dir="$1" 3<&{to_browser} 4>&{from_browser}'
        process = subprocess.Popen(
            ["bash", "-c", script, program, folder],
            env={**os.environ, "TMPDIR": folder},
            pass_fds=[to_browser, from_browser],
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        try:
            yield Page(send, receive)
        finally:
            process.terminate()
            process.wait(60)
            os.close(send)
            os.close(receive)
