"""Clarabel backend: an interior-point method for linear programs and concave logarithms (exponential cones)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ....formulations.arrays import Floats, Indices
from ....formulations.program.data import ProblemClass
from ....formulations.program.model import Program
from ...backend import Answer, Backend, Claim, Progress, Task, gaps
from ...deadline import Deadline
from ...options import Options
from ...result import CLOSED_GAP, Limit
from ..conventions import by_column, reduced_costs, sides
from .run import SHARE, SOLVED, TOLERANCE, ConeProgram, limit_of, solved, stopped

# Number of solves of one program, each around the point of the one before, and of scaling passes over rows and columns.
MOST_ATTEMPTS, SCALINGS = 4, 4
NO_PRIMAL = ("PrimalInfeasible", "AlmostPrimalInfeasible")
NO_DUAL = ("DualInfeasible", "AlmostDualInfeasible")


class Clarabel(Backend):
    """Clarabel through its own Python interface, given sparse matrices."""

    name = "clarabel"
    licence = "Apache-2.0"
    requires = ("clarabel",)
    extra = "clarabel"
    classes = frozenset({ProblemClass.LP, ProblemClass.LOG})
    formulations = frozenset({"VolatileFisherMarket:ces", "VolatileFisherMarket:cobb-douglas"})
    supported_options = frozenset({"threads", "seed", "log"})  # nothing is drawn: every seed gives the same result
    covered_options: ClassVar = {
        "time_limit": "time_limit",
        "tol_gap_abs": "rel_gap",
        "tol_gap_rel": "rel_gap",
        "tol_feas": "feasibility_tol",
        "max_threads": "threads",
        "verbose": "log",
    }
    known_options = None  # the solver refuses unknown options

    def solve(self, task: Task, options: Options, on_progress: Progress) -> Answer:
        """State the program or the market in cones; return its point and the duals, which prove the bound."""
        deadline = Deadline.of(options)
        own = self.backend_options(options)
        program = task.program
        if program is None:
            from .markets import solve_market

            return solve_market(task.problem, deadline, own, on_progress)
        best: Answer | None = None
        around = np.clip(np.zeros(program.num_columns), program.lower, program.upper)
        for attempt in range(MOST_ATTEMPTS):
            cones = Cones.of(program, around, scaled=best is not None or attempt % 2 == 0)
            tolerance = TOLERANCE
            if best is not None:
                tolerance = min(TOLERANCE, SHARE * _wanted(program, best, options) / cones.scale)
            solution = solved(cones, tolerance, deadline, own)
            if solution is None:
                return best or Answer(claim=Claim.STOPPED, limit=Limit.TIME)
            status = str(solution.status)
            if status in NO_DUAL and best is None:  # no finite bound: unbounded if the program is feasible
                return _without_bound(program, cones, deadline, own)
            answer = _answer(program, cones, solution, own, options)
            if answer.claim is Claim.INFEASIBLE and best is None:
                return answer
            if answer.values is not None and (best is None or _gap(program, answer) < _gap(program, best)):
                best = answer
            closed = best is not None and _gap(program, best) <= _wanted(program, best, options)
            if closed or stopped(status, own):
                break
            x = np.clip(cones.values(np.asarray(solution.x)), program.lower, program.upper)
            around = x if np.isfinite(x).all() else around
        return best or answer


def _without_bound(program: Program, cones: Cones, deadline: Deadline, own: dict[str, Any]) -> Answer:
    found = solved(replace(cones, cost=np.zeros_like(cones.cost)), TOLERANCE, deadline, own)
    status = "MaxTime" if found is None else str(found.status)
    if status in SOLVED:
        return Answer(claim=Claim.UNBOUNDED, message="Clarabel: DualInfeasible")
    if status in NO_PRIMAL and found is not None:
        return _answer(program, cones, found, own, deadline.given)
    return Answer(claim=Claim.INFEASIBLE_OR_UNBOUNDED, message="Clarabel: DualInfeasible")


def _gap(program: Program, answer: Answer) -> float:
    """Return the absolute gap that the answer's own duals prove."""
    assert answer.values is not None
    assert answer.duals is not None
    objective, bound = program.objective_at(answer.values), program.linear_bound(answer.duals, answer.slopes)
    gap = abs(bound - objective)
    return np.inf if np.isnan(gap) else gap


def _wanted(program: Program, answer: Answer, options: Options) -> float:
    """Return the requested gap as an absolute gap."""
    relative, absolute = gaps(program, options)
    assert answer.values is not None
    scale = program.gap_scale(program.objective_at(answer.values))
    return max(absolute, max(relative, CLOSED_GAP) * scale)


@dataclass(frozen=True, kw_only=True)
class Cones(ConeProgram):
    """A program in cones, over columns (d, t).

    x is ``around + columns * d``. For each log term there is one more column, ``t <= w log(s / inside)``: then (t, w,
    w s / inside) is in the exponential cone. Around a good point the objective is near 0, and little is lost to
    rounding.

    Attributes
    ----------
    equal, above, below : ndarray of int
        Rows that are equations, that have an upper side, that have a lower side. The cone rows begin with these and
        the columns' bounds, in the order: equations, fixed columns, upper sides, lower sides, upper bounds, lower
        bounds.
    logs : ndarray of int
        Log terms of positive weight; each has three rows at the end.
    rows, columns, inside : ndarray of float
        Scale factors of the cone rows, the columns and the log arguments.
    weights : ndarray of float
        Weights of the log terms, in the scaled unit of the objective.
    scale : float
        Divisor of the objective.
    """

    around: Floats
    equal: Indices
    above: Indices
    below: Indices
    fixed: Indices
    logs: Indices
    bounds: int
    rows: Floats
    columns: Floats
    inside: Floats
    weights: Floats
    scale: float

    @classmethod
    def of(cls, program: Program, around: Floats, *, scaled: bool) -> Cones:
        """State the program in cones, around a point within the columns' bounds."""
        from scipy.sparse import csc_array, csr_array, eye_array, vstack

        n, logs = program.num_columns, np.flatnonzero(program.log_weights > 0)
        equal, above, below = map(np.flatnonzero, sides(program.row_lower, program.row_upper))
        fixed, most, least = map(np.flatnonzero, sides(program.lower, program.upper))
        rows, unit = program.to_scipy(), eye_array(n, format="csr")
        activity = program.matrix.times(around)
        plain = vstack([rows[equal], unit[fixed], rows[above], -rows[below], unit[most], -unit[least]], format="csr")
        right = np.concatenate([
            (program.row_upper - activity)[equal], (program.upper - around)[fixed],
            (program.row_upper - activity)[above], (activity - program.row_lower)[below],
            (program.upper - around)[most], (around - program.lower)[least],
        ])  # fmt: skip
        shape = (len(program.log_weights), n)
        of_log: Any = csr_array(
            (program.log_matrix.values, program.log_matrix.columns, program.log_matrix.starts), shape=shape
        )
        of_log, now = of_log[logs], (program.log_matrix.times(around) + program.log_offsets)[logs]
        by_row, by_col, by_log = _scaling(plain, of_log, now, SCALINGS if scaled else 0)
        plain = plain.multiply(by_row[:, None]).multiply(by_col).tocsr()
        plain.resize((plain.shape[0], n + len(logs)))
        entries = of_log.multiply(by_col).multiply(1 / by_log[:, None]).tocoo()

        count = len(logs)
        # In a program of logarithms alone, such as a market, the weights are scaled to near 1 as well.
        unit_of_weights = float(program.log_weights[logs].mean()) if count and not program.objective.any() else 1.0
        weight = program.log_weights[logs] / unit_of_weights
        t = np.arange(count)
        value = np.concatenate([-np.ones(count), -weight[entries.row] * entries.data])
        place = np.concatenate([3 * t, 3 * entries.row + 2]), np.concatenate([n + t, entries.col])
        cone = csr_array((value, place), shape=(3 * count, n + count))
        of_cone = np.zeros(3 * count)
        of_cone[1::3], of_cone[2::3] = weight, weight * now / by_log
        costs = -program.sign * program.objective / unit_of_weights * by_col
        cost = np.concatenate([costs, -np.ones(count)])
        scale = float(np.abs(cost).max(initial=0.0)) or 1.0
        return cls(
            cost=cost / scale, matrix=csc_array(vstack([plain, cone])),
            right=np.concatenate([right * by_row, of_cone]), around=around,
            equal=equal, above=above, below=below, fixed=fixed, logs=logs, bounds=len(most) + len(least),
            rows=by_row, columns=by_col, inside=by_log, weights=weight, scale=scale * unit_of_weights,
        )  # fmt: skip

    def values(self, x: Floats) -> Floats:
        """Return the program's values at a point of the cones."""
        return self.around + self.columns * x[: len(self.columns)]

    def slopes(self, z: Floats, count: int) -> Floats:
        """Return the slopes of the `count` log terms from the multipliers of the cones."""
        slopes = np.zeros(count)
        slopes[self.logs] = self.scale * self.weights * z[len(self.rows) + 2 :: 3] / self.inside
        return slopes

    def kinds(self) -> list[Any]:
        """Return the cones as objects of Clarabel."""
        import clarabel

        equal = len(self.equal) + len(self.fixed)
        sides = len(self.above) + len(self.below) + self.bounds
        first = [clarabel.ZeroConeT(equal)] if equal else []
        second = [clarabel.NonnegativeConeT(sides)] if sides else []
        return [*first, *second, *[clarabel.ExponentialConeT()] * len(self.logs)]

    def duals(self, z: Floats, count: int) -> Floats:
        """Return the multipliers of the program's rows, as a maximisation, from those of the cones."""
        z, y = self.scale * self.rows * z[: len(self.rows)], np.zeros(count)
        y[self.equal] = z[: len(self.equal)]
        at = len(self.equal) + len(self.fixed)
        y[self.above] += z[at : at + len(self.above)]
        at += len(self.above)
        y[self.below] -= z[at : at + len(self.below)]
        return y


def _scaling(plain: Any, of_log: Any, now: Floats, passes: int) -> tuple[Floats, Floats, Floats]:
    """Return factors for rows and columns and divisors for log arguments that bring all entries near 1."""
    rows, columns = np.ones(plain.shape[0]), np.ones(plain.shape[1])
    inside = np.where(now > 0, now, 1.0)
    known = bool((now > 0).all())
    plain, of_log = abs(plain), abs(of_log)
    for _ in range(passes):
        rows = _near_one(rows, plain.multiply(columns).max(axis=1).toarray().ravel() * rows)
        if not known:
            inside = 1 / _near_one(1 / inside, of_log.multiply(columns).max(axis=1).toarray().ravel() / inside)
        largest = np.zeros(len(columns))
        for matrix, factor in ((plain, rows), (of_log, 1 / inside)):
            if matrix.shape[0]:
                largest = np.maximum(largest, matrix.multiply(factor[:, None]).max(axis=0).toarray().ravel() * columns)
        columns = _near_one(columns, largest)
    return rows, columns, inside


def _near_one(factor: Floats, largest: Floats) -> Floats:
    return factor / np.sqrt(np.where(largest > 0, largest, 1.0))


def _answer(program: Program, cones: Cones, solution: Any, own: dict[str, Any], options: Options) -> Answer:
    status = str(solution.status)
    limit = None if status in SOLVED else limit_of(status, own)
    message = "" if status == "Solved" else f"Clarabel: {status}"
    z = np.asarray(solution.z, dtype=np.float64)
    duals = cones.duals(z, program.num_rows)
    if status in NO_PRIMAL:
        return Answer(claim=Claim.INFEASIBLE, message=message, ray=duals)
    values = cones.values(np.asarray(solution.x, dtype=np.float64))
    clipped = np.clip(values, program.lower, program.upper)
    feasible = bool(np.isfinite(values).all()) and program.residuals_at(clipped).worst <= options.feasibility_tol
    if not feasible and status not in SOLVED:
        return Answer(claim=Claim.STOPPED if limit else Claim.FAILED, limit=limit, message=message)
    slopes, duals = cones.slopes(z, len(program.log_weights)), program.sign * duals
    return Answer.ended(
        None if status in SOLVED else limit or Limit.METHOD,
        message=message,
        values=clipped if feasible else values,
        duals=duals,
        reduced_costs=reduced_costs(program, duals) + by_column(program.log_matrix, slopes, program.num_columns),
        slopes=slopes,
    )


BACKEND = Clarabel()
