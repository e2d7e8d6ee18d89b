"""A page in headless Chromium, driven over a pipe: clicks, keys, downloads, and everything that the page reports."""

import itertools
import json
import os
import select
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --window-size=1400,1000 --remote-debugging-pipe"
)
# Chromium reads commands from descriptor 3 and answers on 4.
START = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
for end, number in zip(ends, (3, 4)):
    os.dup2(end, number)
os.execv(sys.argv[3], sys.argv[3:])
"""
# Modifier of input events: Shift.
SHIFT = 8
KEYS = {"Enter": 13, "Tab": 9, "Escape": 27, "ArrowDown": 40, "ArrowRight": 39, "ArrowUp": 38, "End": 35}


@contextmanager
def opened(file, folder):
    """Open a page, and yield it once its script is ready; skip where no browser can run."""
    binary = next((path for name in NAMES if (path := shutil.which(name))), None)
    if binary is None:
        pytest.skip("no Chromium on this machine")
    ours, theirs = os.pipe(), os.pipe()  # what we write and Chromium reads, and the reverse
    command = [sys.executable, "-c", START, str(ours[0]), str(theirs[1]), binary, *FLAGS.split()]
    command += [f"--user-data-dir={folder / 'profile'}", "about:blank"]
    process = subprocess.Popen(
        command, pass_fds=(ours[0], theirs[1]), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    os.close(ours[0])
    os.close(theirs[1])
    try:
        with os.fdopen(ours[1], "wb", buffering=0) as writes, os.fdopen(theirs[0], "rb", buffering=0) as reads:
            try:
                page = Page(writes, reads, folder)
            except (OSError, TimeoutError) as error:
                pytest.skip(f"Chromium cannot open an empty page here: {error}")
            page.open(file)
            yield page
            page.call("Browser.close", session=False)
    finally:
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class Page:
    """One tab: `requests` are the addresses that it asked for, `reports` the errors and messages of its console."""

    def __init__(self, writes, reads, folder):
        self._writes, self._reads, self._folder = writes, reads, folder
        self._numbers, self._left, self._session = itertools.count(1), b"", None
        self.requests, self.reports, self._downloads = [], [], []
        target = self.call("Target.createTarget", session=False, url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", session=False, targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call(
            "Browser.setDownloadBehavior",
            session=False,
            behavior="allow",
            downloadPath=str(folder),
            eventsEnabled=True,
        )

    def open(self, file):
        """Open a file and wait for its script."""
        self.call("Page.navigate", url=file.as_uri())
        self.wait("document.body && document.body.dataset.ready")

    def call(self, method, session=True, **parameters):
        """Send a command and return its result."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = self._session
        self._writes.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == number:
                assert "error" not in answer, answer
                return answer["result"]

    def _next(self, seconds=30.0):
        """Return the next message; keep what it reports."""
        deadline = time.monotonic() + seconds
        while b"\0" not in self._left:
            ready, _, _ = select.select([self._reads], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError(f"no message for {seconds:g} s")
            piece = os.read(self._reads.fileno(), 1 << 16)
            if not piece:
                raise OSError("it has ended")
            self._left += piece
        line, _, self._left = self._left.partition(b"\0")
        message = json.loads(line)
        method, parameters = message.get("method", ""), message.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif method in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"):
            self.reports.append(parameters)
        elif method == "Browser.downloadWillBegin":
            self._downloads.append(parameters["suggestedFilename"])
        return message

    def get(self, script):
        """Return the value of an expression."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def wait(self, script):
        """Wait until an expression is true."""
        deadline = time.monotonic() + 30.0
        while not self.get(script):
            assert time.monotonic() < deadline, script
            time.sleep(0.02)

    def point(self, selector, kind="mouseMoved", **more):
        """Move the mouse to the middle of an element."""
        x, y = self.get(
            f"(function (e) {{ e.scrollIntoView({{block: 'center'}}); var b = e.getBoundingClientRect();"
            f"return [b.left + b.width / 2, b.top + b.height / 2]; }})(document.querySelector({json.dumps(selector)}))"
        )
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, selector, modifiers=0):
        """Click the middle of an element with the mouse."""
        self.point(selector)
        for kind in ("mousePressed", "mouseReleased"):
            self.point(selector, kind, button="left", clickCount=1, modifiers=modifiers)

    def choose(self, select, value):
        """Choose a value of the select element of this id."""
        element = f"document.getElementById({json.dumps(select)})"
        self.get(f"{element}.value = '{value}'; {element}.dispatchEvent(new Event('change'))")

    def press(self, key, modifiers=0):
        """Press a key."""
        for kind in ("rawKeyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code=key,
                windowsVirtualKeyCode=KEYS[key],
                modifiers=modifiers,
            )

    def download(self, selector):
        """Click a link, and return the name and the content of the file that it downloads."""
        self.click(selector)
        deadline = time.monotonic() + 30.0
        while time.monotonic() < deadline:
            self.get("0")
            files = [self._folder / name for name in self._downloads]
            if files and files[-1].exists():
                return self._downloads[-1], files[-1].read_text(encoding="utf-8")
            time.sleep(0.02)
        raise TimeoutError("no file was downloaded")
