"""The number of threads of dense linear algebra: one number per process, which overlapping solves share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any


@contextmanager
def blas_threads(count: int) -> Iterator[None]:
    """Let BLAS use this number of threads within the block.

    By default OpenBLAS uses every core for matrices of a few hundred rows, which makes them slower by an order of
    magnitude on a busy machine. The number applies to the process: of blocks that overlap in time, the last to begin
    sets it, and the last to end restores the number before the first. threadpoolctl alone would leave the number of the
    second of two blocks behind.
    """
    libraries = _libraries()
    libraries.enter(count)
    try:
        yield
    finally:
        libraries.leave()


class _Libraries:
    """The BLAS libraries of the process; they are searched for once, as that takes milliseconds."""

    def __init__(self) -> None:
        import scipy.linalg  # noqa: F401  it brings a BLAS of its own, which is found only once it is loaded
        from threadpoolctl import ThreadpoolController

        self.found: Any = ThreadpoolController().select(user_api="blas")
        self._lock, self._open = Lock(), 0
        self._first: Any = None

    def enter(self, count: int) -> None:
        with self._lock:
            self._let_any_thread_set()
            limiter = self.found.limit(limits=count)
            self._first = self._first if self._open else limiter
            self._open += 1

    def leave(self) -> None:
        with self._lock:
            self._open -= 1
            if not self._open:
                self._let_any_thread_set()
                self._first.restore_original_limits()
                self._let_any_thread_set()

    def _let_any_thread_set(self) -> None:
        """Allow this thread to set the number: newer versions of threadpoolctl obey only the first that has."""
        for library in self.found.lib_controllers:
            if hasattr(library, "clear_controlling_thread"):
                library.clear_controlling_thread(force=True)


_libraries = cache(_Libraries)
