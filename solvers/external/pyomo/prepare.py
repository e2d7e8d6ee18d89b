"""What is done to a program before a solver behind Pyomo gets it, so that fewer of their faults show."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ....formulations.program.data import NO_ROWS
from ....formulations.program.model import Program


def whole_bounds(program: Program) -> Program:
    """Return the program with the bounds of integer columns moved inwards to whole numbers.

    GLPK takes no others, and HiGHS calls some programs with others infeasible.
    """
    lower, upper = program.whole_bounds
    return replace(program, lower=lower, upper=upper)


def rows_alone(program: Program) -> Program:
    """Return the program with the constant 0 for an objective."""
    none = np.zeros(0)
    return replace(
        program,
        objective=np.zeros(program.num_columns),
        offset=0.0,
        log_weights=none,
        log_matrix=NO_ROWS,
        log_offsets=none,
    )
