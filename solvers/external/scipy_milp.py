"""The scipy backend: scipy.optimize.milp, used by name only (its HiGHS fails on some small programs)."""

from __future__ import annotations

import math
import re
from typing import Any, ClassVar

import numpy as np

from ...formulations.errors import InvalidInput
from ...formulations.program.data import ProblemClass
from ..backend import Answer, Backend, Claim, Progress, Task
from ..options import Options
from ..result import Limit

# scipy's codes: 0 optimal, 1 iteration or time limit, 2 infeasible, 3 unbounded, 4 other.
FROM_SCIPY = {
    0: (Claim.SOLVED, None),
    1: (Claim.STOPPED, Limit.TIME),
    2: (Claim.INFEASIBLE, None),
    3: (Claim.UNBOUNDED, None),
}
# HiGHS's own codes, where scipy reports only "other" or does not separate limits; 16 is also its node limit.
FROM_HIGHS = {
    9: (Claim.INFEASIBLE_OR_UNBOUNDED, None),
    13: (Claim.STOPPED, Limit.TIME),
    14: (Claim.STOPPED, Limit.ITERATIONS),
    16: (Claim.STOPPED, Limit.NODES),
}


class ScipyMilp(Backend):
    """scipy's linear and mixed-integer solver."""

    name = "scipy"
    classes = frozenset({ProblemClass.LP, ProblemClass.MILP})
    supported_options = frozenset({"log"})
    licence = "BSD-3-Clause"
    requires = ("scipy",)
    covered_options: ClassVar = {"time_limit": "time_limit", "mip_rel_gap": "rel_gap", "disp": "log"}
    known_options = frozenset({"presolve", "node_limit"})

    def skip_reason(self, problem: Any, options: Options) -> str:
        """Return why "auto" never takes it."""
        return "used by name only: it fails on some small programs that highs solves"

    def solve(self, task: Task, options: Options, on_progress: Progress) -> Answer:
        """Solve by `scipy.optimize.milp`, or `linprog` for an LP, which also gives duals."""
        program = task.program
        assert program is not None
        own = self.backend_options(options)
        if program.problem_class is ProblemClass.LP:
            return _linear(task, options, own)
        return _integer(task, options, own)


def _integer(task: Task, options: Options, own: dict[str, Any]) -> Answer:
    from scipy.optimize import Bounds, LinearConstraint, milp

    program = task.program
    assert program is not None
    flip = -1.0 if program.sense == "max" else 1.0
    settings: Any = {"disp": options.log, **own}
    # scipy has a relative gap only, and no offset: where ours differs, solve to optimality and test the gap afterwards.
    settings["mip_rel_gap"] = options.rel_gap if program.gap_unit is None and program.offset == 0 else 0.0
    if options.time_limit is not None:
        settings["time_limit"] = options.time_limit
    lower, upper = program.whole_bounds  # HiGHS misses optima between fractional bounds of integers
    if (lower > upper).any():
        lower, upper = program.lower, program.upper
    matrix = program.to_scipy()
    matrix.indices, matrix.indptr = matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32)  # for scipy < 1.13
    found = milp(
        c=flip * program.objective,
        integrality=program.integer.astype(int),
        bounds=Bounds(lower, upper),
        constraints=LinearConstraint(matrix, program.row_lower, program.row_upper) if program.num_rows else None,
        options=settings,
    )
    claim, limit = _end(found.status, found.message)
    values = None if found.x is None else np.asarray(found.x)
    bound = getattr(found, "mip_dual_bound", None)
    return Answer(
        claim=claim,
        limit=limit,
        message="" if found.status == 0 else f"scipy: {found.message}",
        values=values,
        bound=flip * bound + program.offset if bound is not None and math.isfinite(bound) else None,
    )


def _linear(task: Task, options: Options, own: dict[str, Any]) -> Answer:
    from scipy.optimize import linprog
    from scipy.sparse import vstack

    program = task.program
    assert program is not None
    if "node_limit" in own:
        raise InvalidInput("backend_options['scipy']", "node_limit", "an LP has no nodes")
    flip = -1.0 if program.sense == "max" else 1.0
    settings: Any = {"disp": options.log, **own}
    if options.time_limit is not None:
        settings["time_limit"] = options.time_limit
    rows, low, high = program.to_scipy(), program.row_lower, program.row_upper
    equal = low == high
    above, below = ~equal & np.isfinite(high), ~equal & np.isfinite(low)
    solve: Any = linprog  # its overloads know no dict of options
    found = solve(
        c=flip * program.objective,
        A_ub=vstack([rows[above], -rows[below]]).tocsr() if (above | below).any() else None,
        b_ub=np.concatenate([high[above], -low[below]]) if (above | below).any() else None,
        A_eq=rows[equal] if equal.any() else None,
        b_eq=low[equal] if equal.any() else None,
        bounds=np.column_stack([program.lower, program.upper]),
        method="highs",
        options=settings,
    )
    claim, limit = _end(found.status, found.message)
    values = duals = reduced = None
    if found.status == 0:
        values = np.asarray(found.x)
        duals = np.zeros(program.num_rows)
        duals[equal] = found.eqlin.marginals if equal.any() else 0.0
        if (above | below).any():
            sides = np.asarray(found.ineqlin.marginals)
            duals[above] += sides[: above.sum()]
            duals[below] -= sides[above.sum() :]
        duals *= flip
        reduced = flip * (np.asarray(found.lower.marginals) + np.asarray(found.upper.marginals))
    return Answer(
        claim=claim,
        limit=limit,
        message="" if found.status == 0 else f"scipy: {found.message}",
        values=values,
        duals=duals,
        reduced_costs=reduced,
    )


def _end(status: int, message: str) -> tuple[Claim, Limit | None]:
    """Return the limit that ended a solve; scipy reports some of HiGHS's limits in its message only."""
    own = re.search(r"HiGHS Status (\d+)", message)
    if own and int(own[1]) in FROM_HIGHS:
        return FROM_HIGHS[int(own[1])]
    return FROM_SCIPY.get(status, (Claim.FAILED, None))


BACKEND = ScipyMilp()
