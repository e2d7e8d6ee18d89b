"""The worker processes of isolated backends: idle ones are kept for the next call, and all are ended at exit."""

from __future__ import annotations

import atexit
import os
import threading
import time

from .process import END_S, Worker

# Seconds at exit for the idle workers to end by themselves.
LEAVE_S = 0.5


class WorkerPool:
    """Idle workers, at most one for each backend, and all live ones: the only global state of this package.

    It outlives a call, as every call would otherwise start a process; and there is one pool, so that every worker is
    ended at the end of this process and detached after a fork. A worker never changes its backend: some solvers cannot
    share a process.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: dict[str, Worker] = {}
        self._living: set[Worker] = set()
        self._ending: list[Worker] = []

    def take(self, name: str) -> Worker:
        """Return a worker for this backend that no other call uses."""
        with self._lock:
            worker = self._idle.pop(name, None)
        if worker is not None and not worker.is_fit():
            self.discard(worker)
            worker = None
        if worker is None:
            worker = Worker(name)
            with self._lock:
                self._living.add(worker)
        return worker

    def give_back(self, worker: Worker) -> None:
        """Keep an idle worker for the next call; end it if another one is kept already."""
        with self._lock:
            kept = self._idle.setdefault(worker.name, worker)
        if kept is not worker:
            self.discard(worker)

    def discard(self, worker: Worker) -> None:
        """End a worker, and any that took too long to end before: the release of memory takes time."""
        with self._lock:
            ending, self._ending = [*self._ending, worker], []
        for each in ending:
            ended = each.end(END_S if each is worker else 0.0)
            with self._lock:
                if ended:
                    self._living.discard(each)
                else:
                    self._ending.append(each)

    def close(self) -> None:
        """End all workers: the idle ones get time to end by themselves."""
        with self._lock:
            idle, living = list(self._idle.values()), set(self._living)
            self._idle.clear()
            self._living.clear()
            self._ending.clear()
        for worker in idle:
            worker.leave()
        until = time.monotonic() + LEAVE_S
        while time.monotonic() < until and not all(worker.has_ended() for worker in idle):
            time.sleep(0.005)
        for worker in living:
            worker.end()

    def forget(self) -> None:
        """Detach from the workers in a forked copy of this process; they belong to the original."""
        for worker in self._living:
            worker.abandon()
        self._lock = threading.Lock()
        self._idle.clear()
        self._living.clear()
        self._ending.clear()


WORKERS = WorkerPool()
atexit.register(WORKERS.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=WORKERS.forget)
