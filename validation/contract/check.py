"""`Check`, the argument of every contract case: a backend behind `solve`, and comparisons with known answers."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np

from ...formulations.errors import InvalidInput, LicenseLimit, UnsupportedProblem
from ...formulations.program.model import Program
from ...formulations.search.problem import SearchProblem
from ...solvers.backend import Answer, Backend, Task
from ...solvers.isolation.run import Isolation, run_isolated
from ...solvers.options import Options
from ...solvers.reductions.run import run_backend
from ...solvers.result import CLOSED_GAP, Limit, Reason, Result
from ...solvers.solve import solve
from .fronts import mean_problem
from .programs import Known

# Seconds after which a case of many drawn programs draws no more, once it has drawn the least number of them.
ENOUGH_S = 0.1
# The gap that is asked for where nothing else is said.
REL_GAP = 1e-6
# Solvers write infinity as a bound of at least this size.
SOLVERS_INFINITY = 1e19


class Failure(Exception):  # noqa: N818 - a case's verdict
    """The backend breaks its contract; the message gives the violation."""


class Skip(Exception):  # noqa: N818
    """The case does not apply to this backend, for the reason given."""


@dataclass(frozen=True)
class Report:
    """One report of a backend on the way: objective and bound as it said them, and the incumbent itself."""

    objective: float | None
    bound: float
    incumbent: Any


class Check:
    """One case's view of the backend under test.

    `time_limit` is the seconds given to every solve that sets no limit of its own, and `solves` counts the solves.
    """

    def __init__(self, backend: Backend, *, case: str, seed: int = 0, time_limit: float = 20.0) -> None:
        self.backend, self.time_limit, self.solves = backend, time_limit, 0
        self._entropy = [seed, crc32(case.encode())]

    def rng(self, *which: int) -> np.random.Generator:
        """Return a generator that depends on the seed, the case, and the numbers given."""
        return np.random.default_rng([*self._entropy, *which])

    def draws(self, least: int, most: int = 100) -> Iterator[np.random.Generator]:
        """Yield generators, one for each program to draw: `most`, or fewer (but `least`) if the backend is slow."""
        started = time.perf_counter()
        for k in range(most):
            if k >= least and time.perf_counter() - started > ENOUGH_S:
                return
            yield self.rng(k)

    def needs_warm_start(self) -> None:
        """Skip the case if the backend takes no warm start."""
        if "warm_start" not in self.backend.supported_options:
            raise Skip("it takes no warm start, and says so")

    def seeds(self) -> list[dict[str, Any]]:
        """Return the options of solves with the default seed, and with another where the backend takes one."""
        return [{}] + ([{"seed": 12345}] if "seed" in self.backend.supported_options else [])

    def suited(self, problem: Any) -> Any:
        """Return the problem, or for a backend of one objective the search for the least mean of the objectives."""
        single = getattr(self.backend, "most_objectives", None) == 1
        if single and isinstance(problem, SearchProblem) and len(problem.objectives) > 1:
            return mean_problem(problem)
        return problem

    def solve(self, problem: Any, *, may_refuse: bool = False, **options: Any) -> Result[Any]:
        """Solve as a user would, and hold the result to what is true of every result; see `suited`.

        A refusal (UnsupportedProblem) of a program with bounded columns is a failure, unless it `may_refuse`.
        """
        problem = self.suited(problem)
        given = {"time_limit": self.time_limit, "rel_gap": REL_GAP, **options}
        if isinstance(problem, SearchProblem) and "time_limit" not in options:
            # With a time limit alone a search takes all of the time.
            given.setdefault("backend_options", {self.backend.name: {"evaluations": 210}})
        self.solves += 1
        try:
            result = solve(problem, self.backend, **given)
        except LicenseLimit as error:
            raise Skip(str(error)) from error
        except UnsupportedProblem as error:
            if may_refuse or (isinstance(problem, Program) and not _bounded(problem)):
                raise Skip(str(error)) from error  # a method may need bounded columns by its nature
            raise Failure(f"it refuses {problem!r}, of a class that it reads: {error}") from error
        chosen = Options(**{name: value for name, value in given.items() if name in Options.__dataclass_fields__})
        _hold_result(result, problem, chosen)
        return result

    def optimum(self, known: Known, **options: Any) -> Result[Any]:
        """Solve a program whose optimum is known, and hold the result to it."""
        result = self.solve(known.program, **options)
        self.hold(result, known, **options)
        return result

    def hold(self, result: Result[Any], known: Known, **options: Any) -> None:
        """Hold a finished result to the known optimum, within the gap asked for and the tolerance of feasibility."""
        program, best = known.program, known.optimum
        if best is None:
            self.infeasible(result, program)
            return
        objective, termination, sign = result.objective, result.termination, program.sign
        said = f"{termination} instead of OPTIMAL {best:.9g} (gap {result.gap:.2g}) of {program!r}"
        if objective is None:
            raise Failure(said)
        self.hold_bound(result, known, **options)
        slack = _tolerance(options) * known.rate + CLOSED_GAP * max(1.0, abs(best))
        if sign * (objective - best) > slack:
            raise Failure(f"objective {objective:.12g} is better than the optimum {best:.12g} of {program!r}")
        if termination.reason is not Reason.OPTIMAL:
            limit = options.get("time_limit", self.time_limit)
            if termination.limit is Limit.TIME and math.isfinite(result.gap) and result.wall_time > 0.9 * limit:
                raise Skip(f"too slow to tell: {said}")  # what it claims is true as far as it goes
            raise Failure(said)
        gap = max(options.get("rel_gap", REL_GAP), CLOSED_GAP) * program.gap_scale(objective)
        gap = max(gap, options.get("abs_gap", 0.0))
        if sign * (best - objective) > gap + slack:
            raise Failure(f"objective {objective:.12g} is {abs(best - objective):.3g} off the optimum {best:.12g}")

    def hold_bound(self, result: Result[Any], known: Known, **options: Any) -> None:
        """Hold the bound to the right side of the known optimum."""
        best = known.optimum
        assert best is not None
        slack = _tolerance(options) * (known.rate + max(1.0, abs(best)))
        if known.program.sign * (best - result.bound) > slack:
            raise Failure(f"bound {result.bound:.12g} is on the wrong side of the optimum {best:.12g}")

    def infeasible(self, result: Result[Any], program: Program) -> None:
        """Hold the result to INFEASIBLE; where columns have no bounds, INFEASIBLE_OR_UNBOUNDED will do."""
        reason = result.termination.reason
        if reason is Reason.INFEASIBLE or (reason is Reason.INFEASIBLE_OR_UNBOUNDED and not _bounded(program)):
            return
        raise Failure(f"{result.termination} instead of INFEASIBLE for {program!r}")

    def refused(self, problem: Any, what: str, **options: Any) -> None:
        """Hold `solve` to raising InvalidInput for these options."""
        try:
            self.solves += 1
            solve(self.suited(problem), self.backend, **{"time_limit": self.time_limit, **options})
        except InvalidInput:
            return
        raise Failure(f"it accepts {what}: InvalidInput was due")

    def reports(self, problem: Any, **options: Any) -> tuple[Answer, list[Report]]:
        """Run the backend without `solve`; return its unverified answer and its reports of progress.

        The problem is a program, or a formulation that the backend reads directly, whose plans are kept unchanged.
        """
        program = problem if isinstance(problem, Program) else None
        reports: list[Report] = []

        def listen(objective: float | None, bound: float, incumbent: Any = None, measures: object = None) -> None:
            if incumbent is not None:
                incumbent = deepcopy(incumbent) if program is None else np.array(incumbent, dtype=float)
            reports.append(Report(objective, bound, incumbent))

        self.solves += 1
        chosen = Options(**{"time_limit": self.time_limit, "rel_gap": REL_GAP, **options})
        task = Task(problem=problem, form="special" if program is None else "matrix", program=program)
        if self.backend.isolated:
            return run_isolated(self.backend, task, chosen, listen, Isolation()), reports
        return run_backend(self.backend, task, chosen, listen), reports


def noted(result: Result[Any], what: str = "the warm start") -> None:
    """Hold a result to a note on its warm start."""
    if not any("warm start" in note for note in result.notes):
        raise Failure(f"no note says what became of {what}: {result.notes}")


def same_numbers(first: Result[Any], second: Result[Any]) -> None:
    """Hold two results of one call to the same objective and bound, bit by bit."""
    if (first.objective, first.bound) != (second.objective, second.bound):
        raise Failure(f"two results of one call differ: {first!r}, {second!r}")


def _tolerance(options: dict[str, Any]) -> float:
    return float(options.get("feasibility_tol", Options().feasibility_tol))


def _hold_result(result: Result[Any], problem: Any, options: Options) -> None:
    reason, bound, objective = result.termination.reason, result.bound, result.objective
    if reason is Reason.NUMERICAL:
        raise Failure(f"{result.termination} for {problem!r}")
    if math.isnan(bound) or (math.isfinite(bound) and abs(bound) >= SOLVERS_INFINITY):
        raise Failure(f"bound {bound:g} is no bound: without one it is infinite")
    if (result.plan is not None) != (reason in (Reason.OPTIMAL, Reason.FEASIBLE)):
        raise Failure(f"{result.termination} with{'' if result.plan is not None else 'out'} a plan")
    if result.termination.limit is Limit.METHOD and reason is Reason.NO_SOLUTION_FOUND:
        raise Failure(f"{result.termination}: it gave up within its limits")
    if objective is None:
        return
    sign = problem.sign
    slack = 10 * options.feasibility_tol * max(1.0, abs(objective))
    for point in result.history:
        if point.objective is not None and sign * (point.objective - bound) > slack:
            raise Failure(f"it reported an incumbent of {point.objective:.12g}, better than its bound {bound:.12g}")
        if sign * (objective - point.bound) > slack:
            raise Failure(f"it reported a bound of {point.bound:.12g}, on the wrong side of {objective:.12g}")


def _bounded(program: Program) -> bool:
    return bool(np.isfinite(program.lower).all() and np.isfinite(program.upper).all())
