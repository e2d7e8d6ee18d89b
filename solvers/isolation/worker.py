"""The process in which an isolated backend runs: ``python -m equipoise.solvers.isolation.worker``."""

from __future__ import annotations

import ctypes
import os
import resource
import socket
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from ...formulations.errors import EquipoiseError, InvalidInput
from ..answers import error_text
from ..backend import Backend
from ..reductions.run import run_backend
from ..registry import find_backend
from .messages import HEADER, MessageKind, ProcessContext, Request, framed, unframed

Reply = tuple[MessageKind, Any]


class Channel:
    """The worker's connection: requests come in, replies go out."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end

    def outputs(self) -> list[int] | None:
        """Wait for the next request; return the caller's standard output and error, None if the caller has ended."""
        try:
            greeting, descriptors, _, _ = socket.recv_fds(self._end, 1, 2)
        except OSError:
            return None
        return list(descriptors) if greeting else None

    def receive(self) -> bytearray:
        """Return one message as bytes."""
        return self._exactly(HEADER.unpack(self._exactly(HEADER.size))[0])

    def send(self, frame: bytes) -> None:
        """Send one message; end the worker if that fails, as its caller has ended."""
        try:
            self._end.sendall(frame)
        except OSError:
            os._exit(0)

    def _exactly(self, count: int) -> bytearray:
        data = bytearray(count)
        view = memoryview(data)
        while view:
            received = self._end.recv_into(view)
            if not received:
                os._exit(0)
            view = view[received:]
        return data


class Reports:
    """The `on_progress` of the backend here: sends each report to the caller while the request runs."""

    def __init__(self, channel: Channel, problem: Any) -> None:
        self._channel, self._problem = channel, problem
        self._lock = threading.Lock()
        self._wanted = True

    def __call__(
        self, objective: float | None, bound: float, incumbent: Any = None, measures: Mapping[str, float] | None = None
    ) -> None:
        """Send one report, unless it cannot be pickled."""
        with suppress(Exception):
            frame = framed((MessageKind.PROGRESS, (objective, bound, incumbent, measures)), self._problem)
            with self._lock:
                if self._wanted:
                    self._channel.send(frame)

    def close(self) -> None:
        """Stop sending: a thread that the solver has left running must not send into the next request."""
        with self._lock:
            self._wanted = False


def main() -> None:
    """Serve requests until the caller closes its end."""
    channel = Channel(socket.socket(fileno=os.dup(0)))
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True, errors="backslashreplace")  # type: ignore[union-attr]
    own = os.environ["TMPDIR"]
    while (outputs := channel.outputs()) is not None:
        for target, source in zip((1, 2), outputs, strict=False):
            os.dup2(source, target)
            os.close(source)
        reply = _served(channel, own)
        for stream in (sys.stdout, sys.stderr):
            with suppress(Exception):
                stream.flush()
        ctypes.CDLL(None).fflush(None)  # output that the solver has printed from C
        # Not held between requests: a reader of the caller's output waits until the last holder has closed it.
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        channel.send(reply)


def _served(channel: Channel, temporary: str) -> bytes:
    """Run one request and return the reply in its sendable form."""
    frames = [channel.receive() for _ in range(3)]
    problem: Any = None
    reply: Reply
    try:
        reply, problem = _run(channel, frames, temporary)
    except EquipoiseError as error:
        reply = MessageKind.RAISED, error
    except BaseException as error:  # sys.exit() of a backend ends its request only
        reply = (MessageKind.MEMORY, None) if _is_of_memory(error) else (MessageKind.FAILED, error_text(error))
    _allow(None)
    return _sendable(reply, problem)


def _run(channel: Channel, frames: list[bytearray], temporary: str) -> tuple[Reply, Any]:
    _apply_context(unframed(frames[0]), temporary)
    loading = "backend"
    try:
        given = unframed(frames[1])
        loading = "problem"
        request: Request = unframed(frames[2])
    except Exception as error:
        if _is_of_memory(error) or isinstance(error, EquipoiseError):
            raise
        return (MessageKind.UNLOADABLE, (loading, error_text(error))), None
    frames.clear()  # the problem is large, and one copy of it is enough
    backend: Backend = find_backend(given) if isinstance(given, str) else given
    task, options = request.task, request.options
    if options.time_limit is not None:
        options = options.with_time(max(0.0, options.time_limit - (time.monotonic() - request.handed_over)))
    reports = Reports(channel, task.problem)
    try:
        return (MessageKind.ANSWER, run_backend(backend, task, options, reports)), task.problem
    finally:
        reports.close()


def _apply_context(around: ProcessContext, temporary: str) -> None:
    """Apply the context of the caller's process to this process."""
    sys.path[:] = around.path
    if around.folder is not None:
        with suppress(OSError):
            os.chdir(around.folder)
    wanted = {**around.environment, "TMPDIR": temporary}
    if dict(os.environ) != wanted:
        os.environ.clear()
        os.environ.update(wanted)
    _allow(around.memory)


def _allow(memory: int | None) -> None:
    """Limit the bytes of data that this process may hold, or lift the limit; allocations beyond it fail."""
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    most = resource.RLIM_INFINITY if memory is None else memory
    if hard != resource.RLIM_INFINITY:
        most = hard if most == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (most, hard))


def _is_of_memory(error: BaseException) -> bool:
    """Whether an exception means a lack of memory: a failed load of a library shows it in its text only."""
    words = error_text(error).lower()
    reported_in_text = "cannot allocate memory" in words or "failed to map segment" in words
    return isinstance(error, MemoryError) or (isinstance(error, OSError | ImportError) and reported_in_text)


def _sendable(reply: Reply, problem: Any) -> bytes:
    """Return the reply as a frame; a reply that cannot be pickled is replaced by an error text."""
    kind, content = reply
    try:
        frame = framed(reply, problem)
        if kind is MessageKind.RAISED:
            unframed(frame[HEADER.size :], problem)  # an error with arguments of its own may not be unpicklable
        return frame
    except Exception as error:
        if kind is not MessageKind.RAISED:
            return framed((MessageKind.FAILED, f"its answer cannot be sent: {error_text(error)}"))
    if isinstance(content, InvalidInput):
        return framed((MessageKind.RAISED, InvalidInput(content.field, str(content.value), content.why, content.index)))
    return framed((MessageKind.RAISED, EquipoiseError(str(content))))


if __name__ == "__main__":
    main()
