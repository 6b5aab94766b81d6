"""A real Chromium, driven over its debugging pipe: enough for tests of a page and for pictures of it."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
WAIT_SECONDS = 60.0
NO_CHROMIUM = "no Chromium is there: apt-get install chromium, or set PENSTOCK_CHROMIUM"


def find_chromium() -> str | None:
    """The program, from PENSTOCK_CHROMIUM or the PATH; None without one."""
    named = os.environ.get("PENSTOCK_CHROMIUM")
    return named or next((found for name in NAMES if (found := shutil.which(name))), None)


class BrowserError(RuntimeError):
    """What the page did is not what was asked for."""


class Browser:
    """One page in one headless browser. What the page logs as an error is kept in `errors`."""

    def __init__(self, width: int = 1400, height: int = 900, scale: float = 1.0):
        program = find_chromium()
        if program is None:
            raise BrowserError(NO_CHROMIUM)
        self.errors: list[str] = []
        self._number = 0
        self._rest = b""
        self._folder = tempfile.TemporaryDirectory(prefix="penstock-browser-", ignore_cleanup_errors=True)
        self._start(program)
        target = self.ask("Target.createTarget", session="", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", session="", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Log"):
            self.ask(f"{domain}.enable")
        self.resize(width, height, scale)

    def _start(self, program: str) -> None:
        here_reads, there_writes = os.pipe()
        there_reads, here_writes = os.pipe()
        settings = [
            "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--no-first-run",
            "--disable-dev-shm-usage", "--hide-scrollbars", "--disable-extensions", "--mute-audio",
            f"--user-data-dir={self._folder.name}",
        ]  # fmt: skip
        # The pipe must be descriptors 3 and 4 of the browser.
        pipes = f'exec "$0" "$@" 3<&{there_reads} 4>&{there_writes}'
        self._process = subprocess.Popen(
            ["bash", "-c", pipes, program, *settings],
            pass_fds=(there_reads, there_writes),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(there_reads)
        os.close(there_writes)
        self._reads, self._writes = here_reads, here_writes

    def ask(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Calls a method of the browser's protocol and waits for its result."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        chosen = self._session if session is None else session
        if chosen:
            message["sessionId"] = chosen
        os.write(self._writes, json.dumps(message).encode() + b"\0")
        limit = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < limit:
            answer = self._receive(limit - time.monotonic())
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error'].get('message')}")
                result: dict[str, Any] = answer["result"]
                return result
        raise BrowserError(f"{method} must be answered within {WAIT_SECONDS:g} s")

    def _receive(self, seconds: float) -> dict[str, Any]:
        while b"\0" not in self._rest:
            if not select.select([self._reads], [], [], max(seconds, 0.0))[0]:
                return {}
            got = os.read(self._reads, 1 << 20)
            if not got:
                raise BrowserError("the browser has gone")
            self._rest += got
        text, self._rest = self._rest.split(b"\0", 1)
        message: dict[str, Any] = json.loads(text)
        self._note(message)
        return message

    def _note(self, message: dict[str, Any]) -> None:
        told = message.get("params", {})
        if message.get("method") == "Runtime.exceptionThrown":
            details = told["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details["text"])
        elif message.get("method") == "Log.entryAdded" and told["entry"]["level"] == "error":
            self.errors.append(f"{told['entry']['text']} {told['entry'].get('url', '')}")

    def resize(self, width: int, height: int, scale: float = 1.0) -> None:
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=False,
        )

    def prefer(self, scheme: str) -> None:
        """`light` or `dark`, as a system tells its browser."""
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def open(self, address: str) -> None:
        self.ask("Page.navigate", url=address)

    def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        got = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in got:
            raise BrowserError(got["exceptionDetails"].get("exception", {}).get("description", "it raised"))
        return got["result"].get("value")

    def wait_for(self, script: str, seconds: float = 30.0) -> None:
        """Returns as soon as an expression is true in the page."""
        limit = time.monotonic() + seconds
        while not self.run(f"Boolean({script})"):
            if time.monotonic() > limit:
                raise BrowserError(f"not so within {seconds:g} s: {script}; errors: {self.errors}")
            time.sleep(0.05)

    def press(self, key: str, text: str = "") -> None:
        """A key of the keyboard: `Tab`, `Enter`, `Escape`, `ArrowRight`, a letter."""
        codes = {
            "Tab": 9,
            "Enter": 13,
            "Escape": 27,
            "End": 35,
            "Home": 36,
            "ArrowLeft": 37,
            "ArrowUp": 38,
            "ArrowRight": 39,
            "ArrowDown": 40,
        }
        number = codes.get(key, ord(key[0].upper()))
        typed = {"Enter": "\r"}.get(key, key if len(key) == 1 else text)
        more = {"text": typed} if typed else {}
        both = {"key": key, "code": key, "windowsVirtualKeyCode": number}
        self.ask("Input.dispatchKeyEvent", type="keyDown", **both, **more)
        self.ask("Input.dispatchKeyEvent", type="keyUp", **both)

    def type(self, text: str) -> None:
        self.ask("Input.insertText", text=text)

    def picture(self, path: Path, *, whole: bool = False) -> Path:
        """A PNG of what is seen, or of the whole page."""
        got = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(got["data"]))
        return path

    def close(self) -> None:
        try:
            self.ask("Browser.close", session="")
        except (BrowserError, OSError):
            self._process.kill()
        self._process.wait(20)
        os.close(self._reads)
        os.close(self._writes)
        self._folder.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
