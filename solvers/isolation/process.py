"""One worker process of an isolated backend, from the caller's side: start, communication, end."""

from __future__ import annotations

import fcntl
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, TextIO

from ..answers import error_text
from .messages import HEADER, MessageKind, unframed

# Bytes sent or read at a time; received messages are passed on between two checks of the clock.
CHUNK = 1 << 16
# Seconds between checks of a silent worker: a process that it has forked may hold its socket open.
LOOK_S = 0.2
# Seconds after a kill to read the worker's last messages and to await its end.
DRAIN_S, END_S = 0.3, 0.3
# The watchdog waits for the end of this process by any cause, then kills the worker with all its children and removes
# its directory. It is a process because a thread of the worker could not run: a solver may hold Python's lock for
# hours.
WATCHDOG = 'read -r end; kill -s KILL -- "-$1"; rm -rf -- "$2"'
NO_SIGNAL = getattr(socket, "MSG_NOSIGNAL", 0)


class Worker:
    """One worker process, in a session of its own so that Ctrl-C and signals to our group do not reach it.

    Attributes
    ----------
    name : str
        Name of its backend.
    folder : str
        Its directory for temporary files.
    expired : bool
        Whether it was killed at a deadline.
    exit_code : int or None
        Exit code once it has ended, negative for a signal. None: another part of this program has reaped it.
    peak : int
        Largest size in bytes once it has ended; 0 if unknown.
    last_stderr_line : str
        Last line of its standard error before its first request, once it has ended.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.expired = False
        self.exit_code: int | None = None
        self.peak = 0
        self.last_stderr_line = ""
        with ExitStack() as undo:
            self.folder = tempfile.mkdtemp(prefix="equipoise-")
            undo.callback(shutil.rmtree, self.folder, ignore_errors=True)
            ours, theirs = socket.socketpair()
            self._channel = socket.socket(fileno=_clear_of_standard(ours.detach()))
            undo.callback(self._channel.close)
            self._channel.setblocking(False)
            with theirs, open(self._errors, "wb") as errors:
                self.process = subprocess.Popen(
                    [sys.executable, "-P", "-m", f"{__package__}.worker", name],
                    stdin=theirs.fileno(),
                    stdout=subprocess.DEVNULL,
                    stderr=errors,
                    start_new_session=True,
                    env={**os.environ, "PYTHONPATH": os.pathsep.join(module_path()), "TMPDIR": self.folder},
                )
            undo.callback(self._reap, END_S)
            undo.callback(self.kill)
            reading, lifeline = os.pipe()
            self._lifeline: int | None = _clear_of_standard(lifeline)
            undo.callback(os.close, self._lifeline)
            watch = ["/bin/sh", "-c", WATCHDOG, "equipoise-guard", str(self.process.pid), self.folder]
            quiet = subprocess.DEVNULL
            try:
                self._guard = subprocess.Popen(watch, stdin=reading, stdout=quiet, stderr=quiet, start_new_session=True)
            finally:
                os.close(reading)
            undo.pop_all()

    @property
    def _errors(self) -> Path:
        return Path(self.folder, "stderr")

    def replies(self, request: bytes, deadline: float | None, shared: Any) -> Iterator[tuple[MessageKind, Any]]:
        """Send a request and yield the replies until the process ends; kill it at the deadline.

        Messages sent by then are still read. `deadline` is in seconds of `time.monotonic`; `shared` is the problem.
        """
        self._hand_over_outputs()
        pending, buffer = memoryview(request), bytearray()
        while True:
            left = LOOK_S if deadline is None else deadline - time.monotonic()
            if left <= 0 and deadline is not None:
                if self.expired:
                    return
                self.expired = True
                self.kill()
                deadline += DRAIN_S
                continue
            poll = select.poll()
            poll.register(self._channel, select.POLLIN | (select.POLLOUT if pending else 0))
            events = dict(poll.poll(1e3 * min(left, LOOK_S))).get(self._channel.fileno(), 0)
            if not events and self.has_ended():
                return
            if events & select.POLLOUT:
                with suppress(OSError):  # if the worker does not read, its earlier messages remain to be read
                    pending = pending[self._channel.send(pending[:CHUNK], NO_SIGNAL) :]
            if events & ~select.POLLOUT:
                try:
                    received = self._channel.recv(CHUNK)
                except BlockingIOError:
                    continue
                except OSError:
                    return
                if not received:
                    return
                buffer += received
                yield from _messages(buffer, shared)

    def _hand_over_outputs(self) -> None:
        """Pass the worker our current standard output and error, which may have changed since it started."""
        with ExitStack() as opened:
            outputs = []
            for stream in (sys.__stdout__, sys.__stderr__):
                number = _descriptor(stream)
                if number is None:
                    number = os.open(os.devnull, os.O_WRONLY)
                    opened.callback(os.close, number)
                outputs.append(number)
            with suppress(OSError):  # it has just ended: there will be no replies
                try:
                    socket.send_fds(self._channel, [b"\0"], outputs, NO_SIGNAL)
                except OSError:  # descriptors cannot be passed: printed output is lost
                    self._channel.send(b"\0", NO_SIGNAL)

    def is_fit(self) -> bool:
        """Whether an idle worker is running and silent, as it should be."""
        poll = select.poll()
        poll.register(self._channel, select.POLLIN)
        return not poll.poll(0) and not self.has_ended()

    def has_ended(self) -> bool:
        """Whether the process has ended, without reaping it: its number must stay reserved until `end`."""
        if not hasattr(os, "waitid"):
            return False
        try:
            return os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:
            return True

    def kill(self) -> None:
        """Kill the process and all its children."""
        if self.process.returncode is None:  # after reaping, the number may belong to another process
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)

    def leave(self) -> None:
        """Let an idle worker end by itself."""
        self._channel.close()

    def end(self, patience: float = END_S) -> bool:
        """End it in any state, and remove its directory; False if it has not ended within `patience` seconds."""
        self._guard.kill()
        self._guard.wait()
        self.kill()
        with suppress(OSError):
            lines = self._errors.read_text(errors="replace").strip().splitlines()
            self.last_stderr_line = lines[-1][:200] if lines else ""
        ended = self._reap(patience)
        self._close()
        shutil.rmtree(self.folder, ignore_errors=True)
        return ended

    def abandon(self) -> None:
        """Detach in a forked copy of this process: the worker belongs to the original."""
        self._close()
        self.process.returncode = self._guard.returncode = 0  # only the parent may wait for it

    def _close(self) -> None:
        self._channel.close()
        if self._lifeline is not None:
            os.close(self._lifeline)
        self._lifeline = None

    def _reap(self, patience: float) -> bool:
        """Reap the ended process, waiting up to `patience` seconds; `Popen` does not report its size."""
        until, pause = time.monotonic() + patience, 0.0005
        while self.process.returncode is None:
            try:
                pid, status, usage = os.wait4(self.process.pid, os.WNOHANG)
            except ChildProcessError:
                self.process.returncode = 0
                return True
            if pid:
                self.exit_code = self.process.returncode = os.waitstatus_to_exitcode(status)
                self.peak = usage.ru_maxrss * 1024 if sys.platform == "linux" else 0
            elif time.monotonic() >= until:
                return False
            else:
                time.sleep(pause)
                pause = min(2 * pause, 0.02)
        return True


def module_path() -> list[str]:
    """Return the folders of modules of this process, for another one."""
    here = [os.getcwd()] if "" in sys.path else []
    return [*here, *(entry for entry in sys.path if isinstance(entry, str) and entry)]


def _messages(buffer: bytearray, shared: Any) -> Iterator[tuple[MessageKind, Any]]:
    """Take the complete messages off the front of the buffer."""
    while len(buffer) >= HEADER.size:
        end = HEADER.size + HEADER.unpack_from(buffer)[0]
        if len(buffer) < end:
            return
        body = bytes(memoryview(buffer)[HEADER.size : end])
        del buffer[:end]
        try:
            message: tuple[MessageKind, Any] = unframed(body, shared)
        except Exception as error:
            message = (MessageKind.UNREADABLE, error_text(error))
        yield message


def _clear_of_standard(number: int) -> int:
    """Return the descriptor under a number above those of the standard streams, which a program may have closed."""
    moved = fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, 3)
    os.close(number)
    return moved


def _descriptor(stream: TextIO | None) -> int | None:
    """Return the number under which a standard stream is open, None if it is closed."""
    try:
        if stream is None:
            return None
        number = stream.fileno()
        os.fstat(number)
    except (OSError, ValueError):
        return None
    return number
