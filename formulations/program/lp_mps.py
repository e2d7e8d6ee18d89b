"""LP and MPS files of programs."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping

import numpy as np

from ..arrays import Indices
from ..errors import UnsupportedProblem
from .data import ProgramData

# Names that readers of the formats misinterpret: numbers, keywords, and the name of the objective row.
_RESERVED = re.compile(
    r"(?i)e[\d_]*|inf.*|nan.*|objective|max(imi[sz]e|imum)?|min(imi[sz]e|imum)?|st|subject|such|bounds?|free|gen|generals?|"
    r"integers?|bin|binary|binaries|semi.*|sos\d?|end|name|objsense|rows|columns|rhs|ranges?|marker|endata"
)


def lp_text(program: ProgramData) -> str:
    """Return the program in CPLEX LP format. A row with two finite, different sides becomes two rows."""
    _refuse_logs(program)
    names, row_names = _names(program.columns, program.num_columns, "x"), _names(program.rows, program.num_rows, "r")
    lines = ["Maximize" if program.sense == "max" else "Minimize", " objective:"]
    used = np.flatnonzero(program.objective)
    lines += _expression(program.objective[used], (names[i] for i in used))
    if program.offset:
        lines.append(f"  {program.offset:+.17g}")
    lines.append("Subject To")
    matrix = program.matrix
    for i, name in enumerate(row_names):
        entries = slice(matrix.starts[i], matrix.starts[i + 1])
        low, high = program.row_lower[i], program.row_upper[i]
        sides = [("=", low, "")] if low == high else [(">=", low, ".low"), ("<=", high, ".high")]
        columns = [names[j] for j in matrix.columns[entries]]
        body = _expression(matrix.values[entries], columns) or [f"  0 {names[0]}"]
        for sign, side, suffix in sides:
            if math.isfinite(side):
                lines += [f" {name}{suffix}:", *body, f"  {sign} {side:.17g}"]
    lines.append("Bounds")
    for name, low, high in zip(names, program.lower.tolist(), program.upper.tolist(), strict=True):
        low_text = "-inf" if low == -math.inf else f"{low:.17g}"
        lines.append(f" {low_text} <= {name} <= " + ("+inf" if high == math.inf else f"{high:.17g}"))
    if program.integer.any():
        lines += ["General", *(f" {names[i]}" for i in np.flatnonzero(program.integer))]
    return "\n".join([*lines, "End", ""])


def mps_text(program: ProgramData) -> str:
    """Return the program in free MPS format, with OBJSENSE, RANGES and integer markers."""
    _refuse_logs(program)
    names, row_names = _names(program.columns, program.num_columns, "x"), _names(program.rows, program.num_rows, "r")
    lines = ["NAME equipoise", "OBJSENSE", "  MAX" if program.sense == "max" else "  MIN", "ROWS", " N objective"]
    right, ranges = [f"    RHS objective {-program.offset:.17g}"] if program.offset else [], []
    for name, low, high in zip(row_names, program.row_lower.tolist(), program.row_upper.tolist(), strict=True):
        kind, side = ("E", low) if low == high else ("L", high) if math.isfinite(high) else ("G", low)
        if not math.isfinite(side):
            kind, side = "N", 0.0
        lines.append(f" {kind} {name}")
        if side:
            right.append(f"    RHS {name} {side:.17g}")
        if kind == "L" and math.isfinite(low):
            ranges.append(f"    RANGE {name} {high - low:.17g}")
    lines.append("COLUMNS")
    by_column = program.to_scipy().tocsc()
    whole = False
    for j, name in enumerate(names):
        if bool(program.integer[j]) != whole:
            whole = not whole
            lines.append(f"    MARKER 'MARKER' '{'INTORG' if whole else 'INTEND'}'")
        entries = slice(by_column.indptr[j], by_column.indptr[j + 1])
        lines.append(f"    {name} objective {program.objective[j]:.17g}")
        for i, value in zip(by_column.indices[entries], by_column.data[entries].tolist(), strict=True):
            lines.append(f"    {name} {row_names[i]} {value:.17g}")
    if whole:
        lines.append("    MARKER 'MARKER' 'INTEND'")
    lines += ["RHS", *right, *(["RANGES", *ranges] if ranges else []), "BOUNDS"]
    for name, low, high in zip(names, program.lower.tolist(), program.upper.tolist(), strict=True):
        lines.append(f" MI BOUND {name}" if low == -math.inf else f" LO BOUND {name} {low:.17g}")
        lines.append(f" PL BOUND {name}" if high == math.inf else f" UP BOUND {name} {high:.17g}")
    return "\n".join([*lines, "ENDATA", ""])


def _refuse_logs(program: ProgramData) -> None:
    if len(program.log_weights):
        raise UnsupportedProblem("LP and MPS files cannot contain log terms; solve the program with a backend instead")


def _names(blocks: Mapping[str, Indices], count: int, letter: str) -> list[str]:
    names = [f"{letter}{i}" for i in range(count)]
    for block, index in blocks.items():
        # The point separates names, because no block's name contains one.
        safe = f"block.{block}" if _RESERVED.fullmatch(block) else block
        for place, i in np.ndenumerate(index):
            names[i] = ".".join([safe, *map(str, place)])
    return names


def _expression(values: Iterable[float], names: Iterable[str]) -> list[str]:
    return [f"  {value:+.17g} {name}" for value, name in zip(values, names, strict=True)]
