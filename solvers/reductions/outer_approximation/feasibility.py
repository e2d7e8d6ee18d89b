"""Linear programs that decide feasibility and boundedness of a program with log terms."""

from __future__ import annotations

import numpy as np

from ....formulations.arrays import Floats
from ....formulations.program.data import Csr
from ....formulations.program.model import Program
from .points import Terms
from .relaxation import side_by_side, stacked

# Tolerance of a log argument, as a share of its greatest value or of 1: a solver's zeros are no more accurate.
LOG_ARGUMENT_TOLERANCE = 1e-9
# Least objective of an unbounded direction of unit size, in costs and log terms of unit size.
WORTH = 1e-7
#: Message where the search for a first point decides nothing.
UNDECIDED = "no first point was found, and infeasibility was not proved"


def log_argument_tolerance(upper: Floats) -> Floats:
    """Return the tolerance of each log argument; `upper`, shape (K,), bounds the arguments."""
    return LOG_ARGUMENT_TOLERANCE * np.where(upper > 0, np.minimum(upper, 1.0), 1.0)


def interior_program(program: Program, terms: Terms, upper: Floats) -> Program:
    """Return the program that maximises the least log argument: columns as `program`, and one for that depth.

    The depth is at most 1: the least log argument, each in the unit of its upper end or of 1, whichever is less. An
    optimum of at most `LOG_ARGUMENT_TOLERANCE` means that no point has every logarithm defined. A continuous program of
    these is infeasible only if the rows and bounds of `program` are.
    """
    n, K = program.num_columns, len(terms.index)
    unit = log_argument_tolerance(upper) / LOG_ARGUMENT_TOLERANCE
    log_arguments = side_by_side(
        Csr(terms.matrix.starts, terms.matrix.columns, terms.matrix.values / unit[terms.matrix.row_of_entry()]),
        Csr(np.arange(K + 1), np.full(K, n), np.full(K, -1.0)),
    )
    return Program(
        sense="max",
        objective=np.append(np.zeros(n), 1.0),
        lower=np.append(program.lower, 0.0 if program.integer.any() else -np.inf),
        upper=np.append(program.upper, 1.0),
        integer=np.append(program.integer, False),
        matrix=stacked(program.matrix, log_arguments),
        row_lower=np.concatenate((program.row_lower, -terms.offsets / unit)),
        row_upper=np.concatenate((program.row_upper, np.full(K, np.inf))),
        columns={"original": np.arange(n), "depth": np.array([n])},
        rows={"original": np.arange(program.num_rows), "inside": program.num_rows + np.arange(K)},
    )


def recession_program(program: Program, terms: Terms) -> Program:
    """Return the program of a direction in which the objective of `program` is unbounded.

    There is one exactly if the optimum is above 0: along a direction d that keeps rows and bounds, with costs c and log
    arguments a_k, the objective rises without bound if c d > 0, or if c d = 0 and some a_k d > 0; no a_k d may be below
    0.
    """
    m, K = program.num_rows, len(terms.index)
    cost = program.objective / (float(np.abs(program.objective).max(initial=0.0)) or 1.0)
    size = np.zeros(K)
    np.maximum.at(size, terms.matrix.row_of_entry(), np.abs(terms.matrix.values))
    values = terms.matrix.values / np.where(size > 0, size, 1.0)[terms.matrix.row_of_entry()]
    gain = cost + np.bincount(terms.matrix.columns, weights=values, minlength=len(cost))[: len(cost)]
    priced = np.flatnonzero(cost)
    log_arguments = Csr(
        np.append(terms.matrix.starts, terms.matrix.starts[-1] + len(priced)),
        np.concatenate((terms.matrix.columns, priced)),
        np.concatenate((values, cost[priced])),
    )
    return Program(
        sense="max",
        objective=gain,
        lower=np.where(np.isfinite(program.lower), 0.0, -1.0),
        upper=np.where(np.isfinite(program.upper), 0.0, 1.0),
        integer=np.zeros(len(cost), dtype=bool),
        matrix=stacked(program.matrix, log_arguments),
        row_lower=np.concatenate((np.where(np.isfinite(program.row_lower), 0.0, -np.inf), np.zeros(K + 1))),
        row_upper=np.concatenate((np.where(np.isfinite(program.row_upper), 0.0, np.inf), np.full(K + 1, np.inf))),
        columns={"direction": np.arange(len(cost))},
        rows={"original": np.arange(m), "inside": m + np.arange(K), "cost": np.array([m + K])},
    )
