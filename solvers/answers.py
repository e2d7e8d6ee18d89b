"""Validate a backend's answer: arrays of the right types and shapes, or a message on what is wrong with it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from ..formulations.arrays import Floats
from .backend import Answer, Claim, Task
from .result import Limit


def well_formed(answer: Any, task: Task, name: str) -> Answer:
    """Return the backend's answer with its arrays as floats; an unreadable array is dropped and the claim is FAILED."""
    if not isinstance(answer, Answer):
        return Answer(claim=Claim.FAILED, message=f"{name} returned a {type(answer).__name__} and not an Answer")
    program = task.program
    lengths: dict[str, int | None] = dict.fromkeys(("values", "duals", "reduced_costs", "slopes", "ray"))
    if program is not None:
        rows, columns, terms = program.num_rows, program.num_columns, len(program.log_weights)
        lengths = {"values": columns, "duals": rows, "reduced_costs": columns, "slopes": terms, "ray": rows}
    read: dict[str, Any] = {}
    wrong: dict[str, str] = {}
    for field, count in lengths.items():
        given = getattr(answer, field)
        read[field] = None if given is None else as_floats(given)
        if given is not None and read[field] is None:
            wrong[field] = "not numbers"
        elif given is not None and count is not None and read[field].shape != (count,):
            wrong[field], read[field] = f"of shape {read[field].shape} and not ({count},)", None
    bound = None if answer.bound is None else as_number(answer.bound)
    if answer.bound is not None and bound is None:
        wrong["bound"] = "not a number"
    read["bound"] = None if bound is None or math.isnan(bound) else bound
    kinds: dict[str, tuple[type, ...]] = {"claim": (Claim,), "limit": (Limit, type(None)), "message": (str,)}
    for field, kind in kinds.items():
        if not isinstance(getattr(answer, field), kind):
            wrong[field] = f"a {type(getattr(answer, field)).__name__}"
    try:
        read["notes"] = tuple(str(note) for note in answer.notes)
    except Exception:
        read["notes"], wrong["notes"] = (), "no texts"
    if wrong:
        read["bound"] = None
        faults = ", ".join(f"its {field} is {what}" for field, what in wrong.items())
        read.update(claim=Claim.FAILED, limit=None, message=f"{name} gave an answer that cannot be read: {faults}")
    return replace(answer, **read)


def as_floats(given: Any) -> Floats | None:
    """Return an array of numbers as floats; None if it is not an array of numbers."""
    try:
        array = np.asarray(given)
        return array.astype(np.float64, copy=False) if array.dtype.kind in "biuf" else None
    except Exception:
        return None


def as_number(given: Any) -> float | None:
    """Return a number as a float, which may be nan or infinite; None if it is not a number."""
    if isinstance(given, bool | str | bytes):
        return None
    try:
        return float(given)
    except Exception:
        return None


def error_text(error: BaseException) -> str:
    """Return the type and the text of an exception."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:
        return type(error).__name__
