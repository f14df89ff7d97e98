"""A real browser for testing pages: headless Chromium, driven through its debugging pipe."""

import json
import os
import shutil
import subprocess
import time
from pathlib import Path

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)


class Browser:
    """One page of a headless Chromium.

    It speaks the DevTools protocol, JSON messages that end in NUL, over two pipes.
    """

    def __init__(self, profile: Path):
        commands, self._commands = os.pipe()
        self._answers, answers = os.pipe()
        settings = (
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--remote-debugging-pipe",
            "--no-first-run",
        )
        self._process = subprocess.Popen(
            [
                "bash",
                "-c",
                f'exec "$0" "$@" 3<&{commands} 4>&{answers}',
                CHROMIUM,
                *settings,
                f"--user-data-dir={profile}",
            ],
            pass_fds=(commands, answers),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(commands)
        os.close(answers)
        self._number, self._unread, self._session = 0, b"", {}
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = {
            "sessionId": self.call("Target.attachToTarget", targetId=target, flatten=True)[
                "sessionId"
            ]
        }
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=1200,
            height=1600,
            deviceScaleFactor=1,
            mobile=False,
        )

    def call(self, method: str, **parameters) -> dict:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters} | self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = json.loads(self._read())
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]

    def open(self, address: str) -> None:
        self.call("Page.navigate", url=address)
        self.until(f"location.href === {address!r} && document.readyState === 'complete'", True)

    def evaluate(self, expression: str):
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def until(self, expression: str, value, seconds: float = 60) -> None:
        """Wait until the expression has this value; it must not raise an error meanwhile."""
        end = time.monotonic() + seconds
        while (current := self.evaluate(expression)) != value:
            assert time.monotonic() < end, (expression, current)
            time.sleep(0.05)

    def hover(self, selector: str) -> None:
        self._mouse("mouseMoved", selector)

    def click(self, selector: str) -> None:
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self._mouse(kind, selector)

    def type(self, text: str) -> None:
        self.call("Input.insertText", text=text)

    def press(self, key: str, code: int, modifiers: int = 0) -> None:
        for kind in ("rawKeyDown", "keyUp"):
            event = {
                "type": kind,
                "key": key,
                "code": key,
                "windowsVirtualKeyCode": code,
                "modifiers": modifiers,
            }
            self.call("Input.dispatchKeyEvent", **event)

    def close(self) -> None:
        self.call("Browser.close")
        self._process.wait(20)
        os.close(self._commands)
        os.close(self._answers)

    def _mouse(self, kind: str, selector: str) -> None:
        box = self.evaluate(
            f"JSON.stringify(document.querySelector({selector!r}).getBoundingClientRect())"
        )
        x, y, width, height = (json.loads(box)[key] for key in ("x", "y", "width", "height"))
        button = {} if kind == "mouseMoved" else {"button": "left", "clickCount": 1}
        self.call(
            "Input.dispatchMouseEvent", type=kind, x=x + width / 2, y=y + height / 2, **button
        )

    def _read(self) -> bytes:
        while b"\0" not in self._unread:
            received = os.read(self._answers, 1 << 16)
            assert received, "Chromium has exited"
            self._unread += received
        message, _, self._unread = self._unread.partition(b"\0")
        return message
