"""Controls a Chromium browser that shows the web page of a broker. The browser opens no window.

Two programs use this module: the tests of the web page, and the benchmark `ui`.

A program controls Chromium with the DevTools protocol, described at
https://chromedevtools.github.io/devtools-protocol/. Chromium reads commands from file descriptor 3 and writes answers
and events to file descriptor 4 (`--remote-debugging-pipe`). Each message is a JSON object, and a zero byte ends it. For
example, the command `{"id": 1, "method": "Page.navigate", "params": {"url": "..."}}` gets the answer `{"id": 1,
"result": {...}}`.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..errors import PeerFailed, PeerUnavailable

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PATIENCE = 20.0  # seconds
OPTIONS = (
    *("--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
    *("--no-first-run", "--disable-extensions", "--disable-background-networking", "--hide-scrollbars"),
)


class ChromiumTab:
    """One tab of a headless Chromium."""

    def __init__(self, commands: int, answers: int) -> None:
        self._commands, self._answers = commands, answers
        self._buffer = b""
        self._number = 0
        self.events: list[dict[str, Any]] = []
        target = self._send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command to the tab, and return its result."""
        return self._send(method, self._session, **params)

    def _send(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        message |= {} if session is None else {"sessionId": session}
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + PATIENCE
        while True:
            answer = self._read(deadline)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise PeerFailed(f"Chromium refuses {method}: {answer['error']}")
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    def _read(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            if not select.select([self._answers], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise PeerFailed(f"Chromium has not answered for {PATIENCE:g} s")
            data = os.read(self._answers, 1 << 20)
            if not data:
                raise PeerFailed("Chromium has ended")
            self._buffer += data
        message, _, self._buffer = self._buffer.partition(b"\0")
        decoded: dict[str, Any] = json.loads(message)
        return decoded

    def run(self, expression: str) -> Any:
        """Run JavaScript in the page, and return its value. If the value is a promise, wait for its result."""
        result = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise PeerFailed(f"the page raised an exception: {result['exceptionDetails']}")
        return result["result"].get("value")

    def until(self, expression: str, what: str = "") -> Any:
        """Run JavaScript again and again until its value is true, and return this value."""
        deadline = time.monotonic() + PATIENCE
        while not (value := self.run(expression)):
            if time.monotonic() > deadline:
                raise PeerFailed(f"the page does not show: {what or expression}; it shows: {self.text()}")
            time.sleep(0.05)
        return value

    def open(self, url: str) -> None:
        self.send("Page.navigate", url=url)
        self.until("document.readyState === 'complete'")

    def go(self, route: str) -> None:
        """Show one view of the page, for example `topics`, and wait until the browser has drawn it."""
        self.run(f"location.hash = {json.dumps('#/' + route)}")
        self.until(f"location.hash === {json.dumps('#/' + route)} && document.querySelector('#view h1') !== null")
        self.run("new Promise((done) => setTimeout(done, 150))")

    def text(self, selector: str = "body") -> str:
        """Return the visible text of an element."""
        return str(self.run(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''"))

    def rows(self, caption: str) -> list[list[str]]:
        """Return the cells of each row of the table whose caption begins with `caption`."""
        found: list[list[str]] = self.run(
            f"""[...document.querySelectorAll("table")]
            .filter((table) => table.caption.textContent.startsWith({json.dumps(caption)}))
            .flatMap((table) => [...table.tBodies[0].rows])
            .map((row) => [...row.cells].map((cell) => cell.textContent))"""
        )
        return found

    def press(self, key: str, code: str = "", number: int = 0) -> None:
        """Press a key. For keys such as Enter, `number` must be the key's code on Windows."""
        code, text = code or key, key if len(key) == 1 else {"Enter": "\r"}.get(key)
        for kind in ("keyDown", "keyUp"):
            extra = {"text": text} if text and kind == "keyDown" else {}
            self.send("Input.dispatchKeyEvent", type=kind, key=key, code=code, windowsVirtualKeyCode=number, **extra)

    def look(self, *, dark: bool = False, phone: bool = False) -> None:
        """Simulate a system with dark or light colours, and a screen with the size of a phone or of a computer."""
        width, height = (390, 844) if phone else (1280, 900)
        colours = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[colours])
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)

    def screenshot(self, path: Path) -> None:
        data = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=True)["data"]
        path.write_bytes(base64.b64decode(data))

    def problems(self) -> list[str]:
        """Return all problems of the page so far: script errors, violations of its security policy, and dialogs."""
        found = []
        for event in self.events:
            params = event.get("params", {})
            if event.get("method") == "Runtime.exceptionThrown":
                details = params["exceptionDetails"]
                found.append(str(details.get("exception", {}).get("description", details["text"])))
            elif event.get("method") == "Log.entryAdded" and params["entry"]["source"] in ("security", "javascript"):
                found.append(str(params["entry"]["text"]))
            elif event.get("method") == "Page.javascriptDialogOpening":
                found.append(f"a dialog: {params['message']}")
        return found


@contextmanager
def browser() -> Iterator[ChromiumTab]:
    """Run a headless Chromium during a `with` block. Raises PeerUnavailable if Chromium is not installed."""
    if CHROMIUM is None:
        raise PeerUnavailable("no Chromium is installed; on Debian: apt install chromium")
    reads_commands, commands = os.pipe()
    answers, writes_answers = os.pipe()
    with tempfile.TemporaryDirectory(prefix="hmb-chromium-", ignore_cleanup_errors=True) as profile:
        # Chromium reads its commands from descriptor 3, and writes its answers to descriptor 4. Python passes the two
        # pipes under other numbers, so the shell copies them.
        script = f'exec "$@" 3<&{reads_commands} 4>&{writes_answers}'
        arguments = ["bash", "-c", script, "chromium", CHROMIUM, *OPTIONS, f"--user-data-dir={profile}"]
        process = subprocess.Popen(
            arguments, pass_fds=(reads_commands, writes_answers), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(reads_commands)
        os.close(writes_answers)
        try:
            yield ChromiumTab(commands, answers)
        finally:
            os.close(commands)  # Chromium ends when its pipe closes.
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            os.close(answers)
