"""The scipy backend: scipy.optimize.milp, used by name only (its HiGHS fails on some small programs)."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from ...formulations.errors import InvalidInput
from ...formulations.program.data import ProblemClass
from ...formulations.program.model import Program
from ..backend import Answer, Backend, Claim, Progress, Task
from ..options import Options
from ..result import Limit
from .conventions import sides

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
        program, own = task.stated_program, self.backend_options(options)
        settings: dict[str, Any] = {"disp": options.log, **own}
        if options.time_limit is not None:
            settings["time_limit"] = options.time_limit
        if program.problem_class is not ProblemClass.LP:
            return _integer(program, options, settings)
        if "node_limit" in own:
            raise InvalidInput("backend_options['scipy']", "node_limit", "an LP has no nodes")
        return _linear(program, settings)


def _integer(program: Program, options: Options, settings: Any) -> Answer:
    from scipy.optimize import Bounds, LinearConstraint, milp

    # scipy has a relative gap only, and no offset: where ours differs, solve to optimality and test the gap afterwards.
    settings["mip_rel_gap"] = options.rel_gap if program.gap_unit is None and program.offset == 0 else 0.0
    lower, upper = program.whole_bounds  # HiGHS misses optima between fractional bounds of integers
    if (lower > upper).any():
        lower, upper = program.lower, program.upper
    matrix = program.to_scipy()
    matrix.indices, matrix.indptr = matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32)  # for scipy < 1.13
    found = milp(
        c=-program.sign * program.objective,
        integrality=program.integer.astype(int),
        bounds=Bounds(lower, upper),
        constraints=LinearConstraint(matrix, program.row_lower, program.row_upper) if program.num_rows else None,
        options=settings,
    )
    bound = getattr(found, "mip_dual_bound", None)
    proved = None if bound is None or not math.isfinite(bound) else -program.sign * bound + program.offset
    return replace(_end(found), values=None if found.x is None else np.asarray(found.x), bound=proved)


def _linear(program: Program, settings: Any) -> Answer:
    from scipy.optimize import linprog
    from scipy.sparse import vstack

    rows, low, high = program.to_scipy(), program.row_lower, program.row_upper
    equal, above, below = sides(low, high)
    some, exact = bool((above | below).any()), bool(equal.any())
    solve: Any = linprog  # its overloads know no dict of options
    found = solve(
        c=-program.sign * program.objective,
        A_ub=vstack([rows[above], -rows[below]]).tocsr() if some else None,
        b_ub=np.concatenate([high[above], -low[below]]) if some else None,
        A_eq=rows[equal] if exact else None,
        b_eq=low[equal] if exact else None,
        bounds=np.column_stack([program.lower, program.upper]),
        method="highs",
        options=settings,
    )
    if found.status != 0:
        return _end(found)
    duals = np.zeros(program.num_rows)
    if exact:
        duals[equal] = found.eqlin.marginals
    if some:
        marginals = np.asarray(found.ineqlin.marginals)
        duals[above] += marginals[: above.sum()]
        duals[below] -= marginals[above.sum() :]
    reduced = -program.sign * (np.asarray(found.lower.marginals) + np.asarray(found.upper.marginals))
    return replace(_end(found), values=np.asarray(found.x), duals=-program.sign * duals, reduced_costs=reduced)


def _end(found: Any) -> Answer:
    """Return the claim, limit and message of a solve; scipy reports some of HiGHS's limits in its message only."""
    own = re.search(r"HiGHS Status (\d+)", found.message)
    claim, limit = FROM_SCIPY.get(found.status, (Claim.FAILED, None))
    if own:
        claim, limit = FROM_HIGHS.get(int(own[1]), (claim, limit))
    return Answer(claim=claim, limit=limit, message="" if found.status == 0 else f"scipy: {found.message}")


BACKEND = ScipyMilp()
