"""Changes to a program that avoid known faults of the solvers behind Pyomo."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ....formulations.program.data import NO_ROWS
from ....formulations.program.model import Program


def whole_bounds(program: Program) -> Program:
    """Return the program with the bounds of integer columns moved inwards to whole numbers.

    GLPK accepts no fractional ones, and HiGHS calls some programs with fractional ones infeasible.
    """
    lower, upper = program.whole_bounds
    return replace(program, lower=lower, upper=upper)


def rows_alone(program: Program) -> Program:
    """Return the program with the constant 0 as its objective."""
    none = np.zeros(0)
    return replace(
        program,
        objective=np.zeros(program.num_columns),
        offset=0.0,
        log_weights=none,
        log_matrix=NO_ROWS,
        log_offsets=none,
    )
