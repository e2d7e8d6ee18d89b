"""Conventions between a program and the solver packages: tolerance, note on the warm start, reduced costs, rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...formulations.arrays import Floats
from ...formulations.program.data import Csr
from ...formulations.program.model import Program
from ..options import Options

# A solver sums rows in its own order: it gets a tenth of our tolerance, which leaves a margin for our sums.
TOLERANCE_SHARE = 0.1


def inner_tolerance(options: Options, smallest: float = 1e-10) -> float:
    """Return the feasibility tolerance to ask of a solver that takes none below `smallest`."""
    return max(smallest, TOLERANCE_SHARE * options.feasibility_tol)


def warm_start_note(program: Program, start: Floats, options: Options, solver: str, use_of_part: str = "") -> str:
    """Return the note on a warm start by column; `use_of_part` is what the solver does with an incomplete one."""
    given = int(np.isfinite(start).sum())
    if given < program.num_columns:
        rest = use_of_part or f"{solver} completes the rest"
        return f"warm start: {given} of {program.num_columns} columns given, {rest}"
    worst = program.residuals_at(start).worst
    if worst <= options.feasibility_tol:
        return f"warm start accepted, objective {program.objective_at(start):.12g}"
    return f"warm start violates the program by {worst:.3g}: {solver} may repair or drop it"


def by_column(matrix: Csr, multipliers: Floats, columns: int) -> Floats:
    """Return the rows' sum by column, each row times its multiplier, shape (columns,)."""
    terms = matrix.values * multipliers[matrix.row_of_entry()]
    return np.bincount(matrix.columns, weights=terms, minlength=columns)[:columns].astype(np.float64)


def reduced_costs(program: Program, duals: Floats) -> Floats:
    """Return the reduced costs of the linear part at duals by row, shape (columns,)."""
    return program.objective - by_column(program.matrix, duals, program.num_columns)


def sides(lower: Floats, upper: Floats) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which rows have equal sides, and of the others which have an upper side and which a lower side."""
    equal: NDArray[np.bool_] = lower == upper
    return equal, ~equal & np.isfinite(upper), ~equal & np.isfinite(lower)
