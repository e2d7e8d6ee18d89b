"""Input validation: convert the caller's values to arrays, or raise InvalidInput for the first bad value."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence, Sized
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import InvalidInput

# Integers beyond this are not exact as floats, and no cluster has them.
LARGEST_INTEGER = 2**53


def _as_numbers(name: str, values: ArrayLike, shape: tuple[int, ...] | None, ndim: int) -> NDArray[Any]:
    if isinstance(values, str | bytes):
        raise InvalidInput(name, values, "must be a sequence of numbers, not text")
    if hasattr(values, "tocsr"):
        raise InvalidInput(name, type(values).__name__, "must be a dense array here")
    if isinstance(values, np.ma.MaskedArray) and (masked := np.ma.getmaskarray(values)).any():
        # numpy would read the values under the mask.
        raise InvalidInput(name, "masked", "must be a number", index=tuple(int(i) for i in np.argwhere(masked)[0]))
    _refuse_other_types(name, values, ndim)
    try:
        array = np.asarray(values)
    except ValueError:
        raise _ragged(name, values) from None
    if array.size and (array.dtype.kind not in "iuf"):
        if array.dtype.kind == "b":
            index = (0,) * array.ndim or None
            raise InvalidInput(name, array.flat[0], "must be a number, not a truth value", index=index)
        if array.ndim == 0 and ndim:
            raise InvalidInput(name, values, "must be a sequence of numbers")
        for index, value in np.ndenumerate(array.astype(object)):
            _refuse_other_type(name, value, index or None)
        try:
            array = array.astype(np.float64)
        except OverflowError:
            raise InvalidInput(name, max(array.flat, key=abs), "too large") from None
    if array.ndim != ndim:
        raise InvalidInput(name, f"array of shape {array.shape}", f"must have {ndim} dimension(s)")
    if shape is not None and array.shape != shape:
        raise InvalidInput(name, f"array of shape {array.shape}", f"must have shape {shape}")
    return array


def _ragged(name: str, values: Any) -> InvalidInput:
    """Return the error for ragged nested lists; it names the first row that is longer or shorter than row 0."""
    lengths = [len(row) if isinstance(row, Sized) else 0 for row in values]
    index = next((i for i, length in enumerate(lengths) if length != lengths[0]), None)
    if index is None:  # a deeper level is ragged
        return InvalidInput(name, type(values).__name__, "must be an array of one shape")
    why = f"must be an array of one shape, and {name}[0] has {lengths[0]}"
    value = f"{lengths[index]} values" if isinstance(values[index], Sized) else values[index]
    return InvalidInput(name, value, why, index=index)


def _refuse_other_types(name: str, values: Any, ndim: int, place: tuple[int, ...] = ()) -> None:
    """Check each entry of (nested) lists, because numpy converts True to 1 and numbers beside a string to strings."""
    if not isinstance(values, list | tuple):
        return
    if ndim > 1:
        for index, row in enumerate(values):
            _refuse_other_types(name, row, ndim - 1, (*place, index))
    elif not {type(value) for value in values} <= {int, float, np.float64, np.int64}:
        for index, value in enumerate(values):
            _refuse_other_type(name, value, (*place, index))


def _refuse_other_type(name: str, value: Any, index: tuple[int, ...] | None) -> None:
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        raise InvalidInput(name, value, "must be a number", index=index)


def refuse(name: str, bad: NDArray[np.bool_] | np.bool_, values: NDArray[Any], why: str) -> None:
    """Raise InvalidInput for the first bad entry, if any, with its index and value."""
    if bad.any():
        index = tuple(int(i) for i in np.argwhere(bad)[0])
        raise InvalidInput(name, values[index].tolist(), why, index=index)


def as_reals(
    name: str,
    values: ArrayLike,
    *,
    minimum: float | None = None,
    above: float | None = None,
    maximum: float | None = None,
    shape: tuple[int, ...] | None = None,
    ndim: int = 1,
    empty: bool = False,
) -> NDArray[np.float64]:
    """Return `values` as a read-only array of finite floats within [minimum, maximum] and strictly above `above`.

    InvalidInput names the field, the first offending index, and its value.
    """
    array = _as_numbers(name, values, shape, ndim)
    if array.size == 0 and not empty:
        raise InvalidInput(name, "[]", "must not be empty")
    reals = np.array(array, dtype=np.float64)
    refuse(name, ~np.isfinite(reals), reals, "must be finite")
    if minimum is not None:
        refuse(name, reals < minimum, reals, f"at least {minimum:g}")
    if above is not None:
        refuse(name, reals <= above, reals, f"must be greater than {above:g}")
    if maximum is not None:
        refuse(name, reals > maximum, reals, f"at most {maximum:g}")
    reals.setflags(write=False)
    return reals


def as_integers(
    name: str,
    values: ArrayLike,
    *,
    minimum: int | None = None,
    maximum: int | None = None,
    shape: tuple[int, ...] | None = None,
    ndim: int = 1,
    empty: bool = False,
) -> NDArray[np.int64]:
    """Return `values` as a read-only array of integers within [minimum, maximum]; 2.0 is an integer, 2.5 is not.

    InvalidInput names the field, the first offending index, and its value.
    """
    array = _as_numbers(name, values, shape, ndim)
    if array.size == 0 and not empty:
        raise InvalidInput(name, "[]", "must not be empty")
    if array.dtype.kind == "f":
        refuse(name, ~np.isfinite(array), array, "must be finite")
        refuse(name, array != np.rint(array), array, "must be a whole number")
    refuse(name, np.abs(array.astype(np.float64)) > LARGEST_INTEGER, array, f"at most {LARGEST_INTEGER}")
    integers = np.array(array, dtype=np.int64)
    if minimum is not None:
        refuse(name, integers < minimum, integers, f"at least {minimum}")
    if maximum is not None:
        refuse(name, integers > maximum, integers, f"at most {maximum}")
    integers.setflags(write=False)
    return integers


def as_real(
    name: str, value: Any, *, minimum: float | None = None, above: float | None = None, maximum: float | None = None
) -> float:
    """Return one finite float within the given range, or raise InvalidInput."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InvalidInput(name, value, "must be a number")
    try:
        number = float(value)
    except OverflowError:
        raise InvalidInput(name, value, "must be finite") from None
    if not math.isfinite(number):
        raise InvalidInput(name, number, "must be finite")
    if minimum is not None and number < minimum:
        raise InvalidInput(name, value, f"at least {minimum:g}")
    if above is not None and number <= above:
        raise InvalidInput(name, value, f"must be greater than {above:g}")
    if maximum is not None and number > maximum:
        raise InvalidInput(name, value, f"at most {maximum:g}")
    return number


def as_integer(name: str, value: Any, *, minimum: int | None = None, maximum: int | None = None) -> int:
    """Return one integer within the given range, or raise InvalidInput; 2.0 is an integer, 2.5 is not."""
    number = as_real(name, value)
    if not isinstance(value, Integral) and number != int(number):
        raise InvalidInput(name, value, "must be a whole number")
    if minimum is not None and number < minimum:
        raise InvalidInput(name, value, f"at least {minimum}")
    if maximum is not None and number > maximum:
        raise InvalidInput(name, value, f"at most {maximum}")
    return int(value)


def as_flag(name: str, value: Any) -> bool:
    """Return a truth value, or raise InvalidInput: 0 and "no" are not truth values."""
    if not isinstance(value, bool | np.bool_):
        raise InvalidInput(name, value, "must be True or False")
    return bool(value)


def as_ids(name: str, values: Sequence[Any]) -> tuple[str | int, ...]:
    """Return unique ids, each text or a whole number."""
    if isinstance(values, str | bytes):
        raise InvalidInput(name, values, "must be a sequence of ids, not text")
    if not isinstance(values, Iterable):
        raise InvalidInput(name, values, "must be a sequence of ids")
    ids = tuple(value.item() if isinstance(value, np.generic) else value for value in values)
    first: dict[Any, int] = {}
    for index, value in enumerate(ids):
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise InvalidInput(name, value, "an id must be text or a whole number", index=index)
        if value == "":
            raise InvalidInput(name, value, "an id must not be empty", index=index)
        if first.setdefault(value, index) != index:
            raise InvalidInput(name, value, f"the same id as {name}[{first[value]}]; ids must be unique", index=index)
    return ids


def as_generator(rng: Any) -> np.random.Generator:
    """Return a generator of random numbers; InvalidInput names the field `rng` if it is none."""
    if not isinstance(rng, np.random.Generator):
        raise InvalidInput("rng", rng, "must be a numpy.random.Generator")
    return rng


def same_length(**arrays: NDArray[Any] | Sequence[Any]) -> None:
    """Check that all named arrays have the length of the last one; raise InvalidInput otherwise."""
    *rest, (reference, last) = arrays.items()
    for name, array in rest:
        if len(array) != len(last):
            why = f"{name} has length {len(array)}, {reference} has length {len(last)}"
            raise InvalidInput(name, f"{len(array)} values", why)


def store_checked(owner: object, check: Callable[..., Any], *names: str, **limits: Any) -> None:
    """Check fields of an object, frozen or not, with one of the functions above, and store what it returns."""
    for name in names:
        object.__setattr__(owner, name, check(name, getattr(owner, name), **limits))
