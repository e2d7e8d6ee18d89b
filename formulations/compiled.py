"""Decorator of the compiled loops: it caches them on disk if a folder is writable, else each process compiles them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pickle import UnpicklingError
from typing import Any, TypeVar, cast

from numba import config, njit
from numba.core.caching import FunctionCache

Function = TypeVar("Function", bound=Callable[..., Any])

# Errors of a full disk, a read-only folder, or a cache file that a crash left incomplete.
UNUSABLE = (OSError, EOFError, UnpicklingError)


class OptionalCache(FunctionCache):  # type: ignore[misc]  # numba has no types
    """Numba's cache of one function on disk, which ignores files that cannot be read or written.

    Its construction raises RuntimeError if none of ``NUMBA_CACHE_DIR``, ``__pycache__`` beside the module and the
    user's cache folder is writable. A saved result is valid while neither the function's file nor those of the
    compiled functions that it calls by name have changed: numba alone checks the first only.
    """

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        names = function.__code__.co_names
        called = [getattr(function.__globals__.get(name), "_cache", None) for name in names]
        stamps = [cache._cache_file._source_stamp for cache in called if isinstance(cache, OptionalCache)]
        self._cache_file._source_stamp = self._cache_file._source_stamp, *stamps

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the saved result of compiling for a signature; None if no readable one exists."""
        with suppress(*UNUSABLE):
            return super().load_overload(sig, target_context)
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save the result of compiling for a signature, if the disk allows it."""
        with suppress(*UNUSABLE):
            super().save_overload(sig, data)


def compiled(**options: Any) -> Callable[[Function], Function]:
    """Compile a function with numba when it is first called, and cache the result on disk if a folder is writable.

    Numba's own ``cache=True`` raises at import if no folder is writable, for instance in a container whose user has no
    home folder, and at the first call if the disk is full. The options are those of ``numba.njit`` other than
    ``cache``; the compiled function has the plain Python function as ``py_func``.

    Examples
    --------
    >>> from equipoise.formulations.compiled import compiled
    >>> @compiled(fastmath=True)
    ... def half(x: float) -> float:
    ...     return x / 2.0
    >>> half(3.0), half.py_func(3.0)
    (1.5, 1.5)
    """

    def compile_function(function: Function) -> Function:
        kernel: Any = njit(**options)(function)
        if not config.DISABLE_JIT:
            with suppress(RuntimeError):  # no folder is writable
                kernel._cache = OptionalCache(function)
        return cast(Function, kernel)

    return compile_function


@compiled()
def copy_into(target: Any, source: Any) -> None:
    """Copy an array entry by entry: in a kernel, ``target[:] = source`` takes four seconds to compile."""
    for i in range(len(source)):
        target[i] = source[i]
