"""How many threads dense linear algebra takes, where numpy and scipy bring OpenBLAS along."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from itertools import product
from pathlib import Path
from threading import Lock
from typing import Any

# The names that the wheels of numpy and scipy give OpenBLAS's functions; older ones leave out "scipy_".
PREFIXES, SUFFIXES = ("scipy_openblas", "openblas"), ("64_", "")


@contextmanager
def blas_threads(count: int) -> Iterator[None]:
    """Let OpenBLAS take so many threads within the block; where it is not OpenBLAS, its own setting stays.

    Left alone, OpenBLAS takes every core for matrices of a few hundred rows, which on a busy machine makes them slower
    by an order of magnitude. The number is one for the process: of blocks that overlap in time, the last to begin
    decides, and the last to end restores what was before the first.
    """
    _Blocks.enter(count)
    try:
        yield
    finally:
        _Blocks.leave()


class _Blocks:
    """The blocks under way: how many, and the numbers of threads before the first."""

    lock = Lock()
    open = 0
    before: tuple[int, ...] = ()

    @classmethod
    def enter(cls, count: int) -> None:
        with cls.lock:
            if not cls.open:
                cls.before = tuple(get() for get, _ in _libraries())
            cls.open += 1
            for _, put in _libraries():
                put(count)

    @classmethod
    def leave(cls) -> None:
        with cls.lock:
            cls.open -= 1
            if not cls.open:
                for (_, put), count in zip(_libraries(), cls.before, strict=True):
                    put(count)


@cache
def _libraries() -> tuple[tuple[Any, Any], ...]:
    """Return how to read and to set the number of threads of each OpenBLAS that numpy and scipy have loaded."""
    import numpy
    import scipy.linalg

    found = []
    for package in (numpy, scipy):
        home = Path(str(package.__file__)).parent
        for folder in (home.parent / f"{package.__name__}.libs", home / ".dylibs"):
            for path in sorted(folder.glob("*openblas*")):
                with suppress(OSError):
                    found += _functions(ctypes.CDLL(str(path)))
    return tuple(found)


def _functions(library: ctypes.CDLL) -> list[tuple[Any, Any]]:
    for prefix, suffix in product(PREFIXES, SUFFIXES):
        get = getattr(library, f"{prefix}_get_num_threads{suffix}", None)
        put = getattr(library, f"{prefix}_set_num_threads{suffix}", None)
        if get is not None and put is not None:
            return [(get, put)]
    return []
