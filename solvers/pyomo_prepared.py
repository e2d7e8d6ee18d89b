"""What is done to a program before a solver behind Pyomo gets it, so that fewer of their faults show."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ..formulations.program import NO_ROWS, Program


def whole_bounds(program: Program) -> Program:
    """Return the program with the bounds of integer columns moved inwards to whole numbers.

    GLPK takes no others, and HiGHS calls some programs with others infeasible.
    """
    lower, upper = program.whole_bounds
    return replace(program, lower=lower, upper=upper)


def raised_objective(program: Program) -> tuple[Program, float]:
    """Return the program with a small objective raised to a largest coefficient of 1 to 2, and the factor.

    Solvers compare objectives by absolute tolerances (CBC's is 1e-5) and call optimal what differs by less.
    """
    largest = float(np.abs(np.concatenate([program.objective, program.log_weights])).max(initial=0.0))
    if not 1e-300 < largest < 1.0:
        return program, 1.0
    factor = 2.0 ** -math.floor(math.log2(largest))  # a power of two changes no digit
    raised = replace(
        program,
        objective=program.objective * factor,
        offset=program.offset * factor,
        log_weights=program.log_weights * factor,
        gap_unit=None if program.gap_unit is None else program.gap_unit * factor,
    )
    return raised, factor


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
