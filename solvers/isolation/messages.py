"""Messages between a solve and its worker process: length-prefixed pickles on a pair of connected sockets."""

from __future__ import annotations

import io
import pickle
import struct
from dataclasses import dataclass
from enum import Enum
from typing import Any

from ..backend import Task
from ..options import Options

HEADER = struct.Struct("!Q")
# The problem, which both sides hold, is named in a message and not sent again with every plan that refers to it.
SHARED = "problem"


@dataclass(frozen=True, kw_only=True)
class ProcessContext:
    """The process context of the caller, which the worker adopts before each request.

    Attributes
    ----------
    path : list of str
        Folders of modules (sys.path).
    folder : str or None
        The working directory; None if it has been removed.
    memory : int or None
        Bytes that the worker may hold; None: no limit.
    """

    path: list[str]
    folder: str | None
    environment: dict[str, str]
    memory: int | None


@dataclass(frozen=True, kw_only=True)
class Request:
    """One task for the backend; `handed_over` is the start of the time limit on the machine's monotonic clock."""

    task: Task
    options: Options
    handed_over: float


class MessageKind(Enum):
    """The kind of a worker's message; all but PROGRESS end the request."""

    PROGRESS = "progress"  #: (objective, bound, incumbent, measures)
    ANSWER = "answer"  #: the Answer
    RAISED = "raised"  #: an EquipoiseError, meant for the caller
    FAILED = "failed"  #: an EquipoiseError for the caller
    MEMORY = "memory"  #: None: the memory limit was exceeded
    UNLOADABLE = "unloadable"  #: (part of the request, cause): nothing has run
    UNREADABLE = "unreadable"  #: cause: set by the receiver for a message that it cannot unpickle


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO, shared: Any) -> None:
        super().__init__(file, protocol=5)
        self._shared = shared

    def persistent_id(self, thing: Any) -> str | None:
        return SHARED if thing is self._shared else None


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, shared: Any) -> None:
        super().__init__(file)
        self._shared = shared

    def persistent_load(self, name: str) -> Any:
        return self._shared


def framed(message: Any, shared: Any = None) -> bytes:
    """Return the message as its length and its pickle, with the `shared` object by name."""
    if shared is None:
        body = pickle.dumps(message, protocol=5)
    else:
        file = io.BytesIO()
        _Pickler(file, shared).dump(message)
        body = file.getvalue()
    return HEADER.pack(len(body)) + body


def unframed(body: bytes | bytearray, shared: Any = None) -> Any:
    """Return the message whose pickle this is."""
    return pickle.loads(body) if shared is None else _Unpickler(io.BytesIO(body), shared).load()
