"""The worker processes of isolated backends: kept for the next call, and none forgotten."""

from __future__ import annotations

import atexit
import os
import threading
import time

from .process import END_S, Worker

# At exit, for the idle workers to leave by themselves.
LEAVE_S = 0.5


class WorkerPool:
    """Idle workers, at most one for each backend, and all that live: the one thing this package keeps in its process.

    It must outlive a call, or every call would start a process anew; and be one, so that none is forgotten at the end
    of this process or after a fork. A worker never changes its backend: some solvers cannot share a process.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: dict[str, Worker] = {}
        self._living: set[Worker] = set()
        self._ending: list[Worker] = []
        self._closes_at_exit = False

    def take(self, name: str) -> Worker:
        """Return a worker for this backend that nobody else has."""
        with self._lock:
            worker = self._idle.pop(name, None)
            if not self._closes_at_exit:
                atexit.register(self.close)
                self._closes_at_exit = True
        if worker is not None and not worker.is_fit():
            self.discard(worker)
            worker = None
        if worker is None:
            worker = Worker(name)
            with self._lock:
                self._living.add(worker)
        return worker

    def give_back(self, worker: Worker) -> None:
        """Keep a worker that has done its work for the next call; end it if another one waits already."""
        with self._lock:
            kept = self._idle.setdefault(worker.name, worker)
        if kept is not worker:
            self.discard(worker)

    def discard(self, worker: Worker) -> None:
        """End a worker, and any that took too long to end before: memory takes its time to be given back."""
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
        """End all workers: the idle ones are given the time to leave by themselves."""
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
        """In a forked copy of this process: leave the workers to the original."""
        for worker in self._living:
            worker.abandon()
        self._lock = threading.Lock()
        self._idle.clear()
        self._living.clear()
        self._ending.clear()


WORKERS = WorkerPool()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=WORKERS.forget)
