"""Any backend in a separate process, which is ended when it hangs and may crash without harm to the caller."""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ...formulations.checks import as_real
from ...formulations.errors import BackendUnavailable, InvalidInput
from ..answers import error_text
from ..backend import Answer, Backend, Claim, Progress, Task
from ..options import Options
from ..result import Limit
from .messages import MessageKind, ProcessContext, Request, framed

if TYPE_CHECKING:
    from .process import Worker

#: Part of the message of a solve that its process ended past the time limit and the grace.
NOT_STOPPED = "did not stop at the time limit"


@dataclass(frozen=True, kw_only=True)
class Isolation:
    """Limits of an isolated backend.

    Attributes
    ----------
    grace_s : float
        Seconds past the time limit after which its process is killed; the start of the process counts as well.
    memory_gb : float or None
        GB (1e9 bytes) that its process, and each that it starts, may hold. None: 80% of what is available when the
        solve begins. Enforced on Linux.

    Raises
    ------
    InvalidInput
        If a value is out of range.
    """

    grace_s: float = 1.0
    memory_gb: float | None = None

    def __post_init__(self) -> None:
        as_real("grace_s", self.grace_s, minimum=0.0)
        if self.memory_gb is not None:
            as_real("memory_gb", self.memory_gb, above=0.0, maximum=1e6)


def run_isolated(backend: Backend, task: Task, options: Options, on_progress: Progress, how: Isolation) -> Answer:
    """Run the backend in a worker process and return its answer, or an answer that describes its failure.

    Parameters
    ----------
    backend : Backend
        A registered backend, or an object whose class is defined in a module that can be imported.
    task : Task
        A general backend is given the program only: there, `task.problem` is the program itself.
    on_progress : Progress
        Called in this process with the backend's reports; if it raises, the process is ended and the error raised.

    Returns
    -------
    Answer
        The backend's own answer; STOPPED if it was ended at the deadline or exceeded its memory, FAILED if it failed
        or its process ended unexpectedly.

    Raises
    ------
    EquipoiseError
        Any EquipoiseError of the backend; InvalidInput if it, its problem or its options cannot be pickled.
    """
    if os.name != "posix":
        raise BackendUnavailable(f"{backend.name} cannot be isolated here: isolation needs a POSIX system")
    from .memory import allowed_bytes
    from .pool import WORKERS

    handed_over = time.monotonic()
    limit = options.time_limit
    memory = allowed_bytes(how.memory_gb)
    request = _request(backend, task, options, handed_over, memory)
    if options.log and sys.stdout is not None:
        with suppress(OSError, ValueError):
            sys.stdout.flush()  # earlier output must precede the log of the solve
    worker = WORKERS.take(backend.name)
    kind: MessageKind | None
    content: Any
    try:
        deadline = None if limit is None else handed_over + limit + how.grace_s
        for kind, content in worker.replies(request, deadline, task.problem):
            if kind is not MessageKind.PROGRESS:
                break
            on_progress(*content)
        else:  # no reply ended the request
            kind = content = None
    except BaseException:
        WORKERS.discard(worker)
        raise
    if kind in (MessageKind.ANSWER, MessageKind.RAISED) and not worker.expired:
        WORKERS.give_back(worker)
    else:
        WORKERS.discard(worker)
    if kind is MessageKind.UNLOADABLE:
        field, why = content
        raise _cannot_travel(field, backend if field == "backend" else task.problem, why)
    return _answer(backend.name, worker, kind, content, limit, memory)


def _request(backend: Backend, task: Task, options: Options, handed_over: float, memory: int | None) -> bytes:
    """Return the whole request; InvalidInput if another process cannot load a part of it."""
    from .process import module_path

    folder = None
    with suppress(OSError):
        folder = os.getcwd()
    around = ProcessContext(path=module_path(), folder=folder, environment=dict(os.environ), memory=memory)
    ours = type(backend).__module__.startswith(f"{__package__.rpartition('.')[0]}.")
    options = replace(options, backend_options={name: dict(own) for name, own in options.backend_options.items()})
    if task.program is not None:
        task, options = replace(task, problem=task.program), replace(options, warm_start=None)  # it is in task.start
    work = Request(task=task, options=options, handed_over=handed_over)
    parts = {
        "backend": backend.name if ours else backend,
        "problem": task.problem,
        "warm_start": options.warm_start,
        "backend_options": options.backend_options,
    }
    for field, part in parts.items():
        if type(part).__module__ == "__main__":
            raise _cannot_travel(field, part, "it is defined in the script itself")
    try:
        return framed(around) + framed(parts["backend"]) + framed(work)
    except Exception as error:
        for field, part in parts.items():
            try:
                framed(part)
            except Exception as reason:
                raise _cannot_travel(field, part, error_text(reason)) from None
        raise _cannot_travel("problem", task.problem, error_text(error)) from None


def _cannot_travel(field: str, part: Any, why: str) -> InvalidInput:
    shown = part if isinstance(part, dict) else getattr(part, "name", type(part).__name__)
    advice = "define it in a module that can be imported, or leave out isolate="
    return InvalidInput(field, shown, f"cannot be passed to a separate process ({why}): {advice}")


def _answer(
    name: str, worker: Worker, kind: MessageKind | None, content: Any, limit: float | None, memory: int | None
) -> Answer:
    from .memory import ended_by_limit

    match kind:
        case MessageKind.ANSWER:
            answer: Answer = content
            return answer
        case MessageKind.RAISED:
            raise content
        case MessageKind.FAILED:
            return Answer(claim=Claim.FAILED, message=f"{name} failed: {content}")
        case MessageKind.UNREADABLE:
            return Answer(claim=Claim.FAILED, message=f"{name}'s answer cannot be read: {content}")
    if worker.expired and limit is not None:
        late = f"{name} {NOT_STOPPED} of {round(limit, 1):g} s and was ended"
        return Answer(claim=Claim.STOPPED, limit=Limit.TIME, message=late)
    if kind is MessageKind.MEMORY or ended_by_limit(memory, worker.peak):
        of = "" if memory is None else f" of {memory / 1e9:.2g} GB"
        short = f"{name} exceeded its memory limit{of}"
        return Answer(claim=Claim.STOPPED, limit=Limit.MEMORY, message=short)
    return Answer(claim=Claim.FAILED, message=f"{name}'s process ended unexpectedly: {_exit_description(worker)}")


def _exit_description(worker: Worker) -> str:
    code, words = worker.exit_code, worker.last_stderr_line
    if code is None:
        return "exit status unknown"
    if code >= 0:
        return f"exit code {code}" + (f": {words}" if words else "")
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
