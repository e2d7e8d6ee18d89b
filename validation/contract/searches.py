"""Cases of the contract for searches: fronts known in closed form, limits, workers, warm starts and failures."""

from __future__ import annotations

import itertools
import math
import os
import time
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from ...formulations.arrays import Floats
from ...formulations.errors import InvalidInput, UnsupportedProblem
from ...formulations.search.front import ParetoFront
from ...formulations.search.problem import SearchProblem
from ...solvers.result import Limit, Reason, Result
from ...solvers.solve import solve
from .check import Check, Failure, Skip, noted, same_numbers
from .fronts import KnownFront, easy_fronts, hard_fronts, problem_of, schaffer, schaffer_problem

#: The kind of these cases.
SEARCH = "SearchProblem"
# Share of the greatest hypervolume that every search reaches on an easy front, and an evolutionary one on a hard front.
EASY_SHARE, EASY_EVALUATIONS = 0.75, 700
HARD_SHARE, HARD_EVALUATIONS = 0.7, 1400
# Evaluations of the other cases, three populations.
FEW = 210


class Counted:
    """An evaluator that keeps the vectors that it was given."""

    def __init__(self) -> None:
        self.vectors: list[bytes] = []

    def __call__(self, x: Floats) -> Floats:
        """Return Schaffer's scores."""
        self.vectors.extend(vector.tobytes() for vector in x)
        return schaffer(x)


def needs_joblib() -> None:
    """Skip the case if there can be no worker processes."""
    if find_spec("joblib") is None:
        raise Skip("joblib is not installed: pip install 'equipoise[distributed]'")


def easy(check: Check, kind: str) -> None:
    """Fronts of one or two variables: the most part of the greatest hypervolume, and never more than it."""
    for known in easy_fronts():
        _hold_front(check, known, EASY_EVALUATIONS, EASY_SHARE)


def hard(check: Check, kind: str) -> None:
    """Fronts of many variables, for searches that have a population."""
    if "population" not in (check.backend.known_options or ()):
        raise Skip("it has no population: hard fronts are asked of evolutionary searches")
    for known in hard_fronts():
        _hold_front(check, known, HARD_EVALUATIONS, HARD_SHARE)


def same_seed(check: Check, kind: str) -> None:
    """The same call gives the same front, bit by bit."""
    for known in easy_fronts()[1:3]:
        _same_fronts(*(_search(check, known.problem, seed=3) for _ in range(2)))


def same_workers(check: Check, kind: str) -> None:
    """One worker and two give the same front, bit by bit."""
    needs_joblib()
    for known in easy_fronts()[1:3]:
        _same_fronts(*(_search(check, known.problem, threads=threads) for threads in (1, 2)))


def warm_start(check: Check, kind: str) -> None:
    """A search with a front to start from ends with one at least as good, and says what became of it."""
    check.needs_warm_start()
    for known in easy_fronts()[1:3]:
        start = solve(
            check.suited(known.problem), "random", seed=99, backend_options={"random": {"evaluations": 500}}
        ).require_plan()
        result = _search(check, known.problem, warm_start=start)
        noted(result)
        if (result.objective or 0.0) < start.hypervolume:
            raise Failure(f"hypervolume {result.objective} from a warm start of {start.hypervolume}")
        _same_fronts(result, _search(check, known.problem, warm_start=start))


def no_time_at_all(check: Check, kind: str) -> None:
    """time_limit=0: nothing is scored, and no plan is claimed."""
    termination = _search(check, schaffer_problem(), time_limit=0.0).termination
    if (termination.reason, termination.limit) != (Reason.NO_SOLUTION_FOUND, Limit.TIME):
        raise Failure(f"{termination} at time_limit=0")


def time_limit(check: Check, kind: str) -> None:
    """A time limit ends the search in the middle of a batch, with time for the final check of the front."""
    limit, seconds = 0.6, 0.02
    result = check.solve(problem_of(partial(_slowly, seconds), reference=(1.0, 4.0)), time_limit=limit)
    termination = result.termination
    if (termination.reason, termination.limit) != (Reason.FEASIBLE, Limit.TIME):
        raise Failure(f"{termination} at time_limit={limit:g}")
    if result.wall_time > limit + 0.5:
        raise Failure(f"it took {result.wall_time:.2f} s at time_limit={limit:g}, at {seconds:g} s an evaluation")


def evaluations(check: Check, kind: str) -> None:
    """The number of evaluations is kept exactly, none is repeated, and every point of the front is checked anew."""
    for most in (1, 7, 100):
        counted = Counted()
        problem = problem_of(counted, bounds=(-1.0, 3.0), reference=(4.0, 4.0), starts={"middle": [1.0]})
        result = _search(check, problem, evaluations=most)
        front = result.require_plan()
        searched = len(counted.vectors) - len(front)
        if searched > most or (searched < most and result.termination.limit is not Limit.METHOD):
            raise Failure(f"{searched} evaluations where {most} were asked for: {result.termination}")
        if result.termination.limit not in (Limit.ITERATIONS, Limit.METHOD):
            raise Failure(f"{result.termination} with evaluations={most}")
        if len(set(counted.vectors[:searched])) < searched:
            raise Failure("a vector was scored twice on the way")
        if set(counted.vectors[searched:]) != {vector.tobytes() for vector in front.vectors}:
            raise Failure("the final check has not scored each point of the front once")
        if counted.vectors[0] != np.array([1.0]).tobytes():
            raise Failure("the problem's start was not scored first")


def progress(check: Check, kind: str) -> None:
    """Reports have hypervolumes that do not fall, the bound 1, and the evaluations and best scores so far."""
    problem = check.suited(easy_fronts()[1].problem)
    result = _search(check, problem)
    reports = result.history[:-1]
    if not reports:
        raise Failure("it reports no progress")
    for before, after in itertools.pairwise(reports):
        if (after.objective or 0.0) < (before.objective or 0.0) or after.bound != 1.0:
            raise Failure(f"hypervolume {after.objective} of bound {after.bound} after {before.objective}")
        if after.measures["evaluations"] <= before.measures["evaluations"]:
            raise Failure("a report without a new evaluation")
        if any(after.measures[str(each)] > before.measures[str(each)] for each in problem.objectives):
            raise Failure("the best of an objective has grown")
    if reports[-1].objective != result.objective:
        raise Failure(f"the last report is {reports[-1].objective}, the answer {result.objective}")


def never_optimal(check: Check, kind: str) -> None:
    """A front that fills the box ends the search, and is not called OPTIMAL: the box is the caller's."""
    best = problem_of(_square, ideal=(0.0,), reference=(1.0,), starts={"best": [0.0]})
    result = _search(check, best)
    if (result.termination.reason, result.gap) != (Reason.FEASIBLE, 0.0):
        raise Failure(f"{result.termination} with gap {result.gap}")
    aimed = _search(check, schaffer_problem(), hypervolume=0.5)
    if aimed.termination.limit is not Limit.METHOD or (aimed.objective or 0.0) < 0.5:
        raise Failure(f"{aimed.termination} with objective {aimed.objective}, where hypervolume=0.5 was to end it")
    stalled = _search(check, best, stall=1, hypervolume=1.0)
    if stalled.termination.limit is not Limit.METHOD:
        raise Failure(f"{stalled.termination} with stall=1")


def infeasible(check: Check, kind: str) -> None:
    """Scores of nan everywhere: no solution found, which proves nothing."""
    own = {check.backend.name: {"evaluations": FEW}}
    check.solves += 1
    nowhere = check.suited(problem_of(partial(np.full_like, fill_value=np.nan), variables=2))
    result = solve(nowhere, check.backend, backend_options=own)
    if result.termination.reason is not Reason.NO_SOLUTION_FOUND or result.plan is not None:
        raise Failure(f"{result.termination} of a problem whose vectors are all infeasible")


def failing(check: Check, kind: str) -> None:
    """An evaluator that raises: an error of this library goes to the caller, any other ends the search as failed."""
    for error in (UnsupportedProblem, InvalidInput):
        try:
            _solve(check, problem_of(partial(_raise, error), starts={"good": [0.5]}))
        except error:
            continue
        raise Failure(f"the evaluator's {error.__name__} is not raised")
    result = _solve(check, problem_of(partial(_raise, ZeroDivisionError), starts={"good": [0.5]}))
    if result.termination.reason is not Reason.NUMERICAL or "ZeroDivisionError" not in result.termination.message:
        raise Failure(f"{result.termination} of an evaluator that raises ZeroDivisionError")
    if result.plan is None or result.plan.vectors.tolist() != [[0.5]]:
        raise Failure(f"the plan is {result.plan}, and not the front before the error")


def lost_worker(check: Check, kind: str) -> None:
    """A vector that ends its worker process counts as infeasible; nothing else is lost."""
    needs_joblib()
    where: dict[str, Any] = {"bounds": (-1.0, 3.0), "reference": (4.0, 4.0), "starts": {"deadly": [2.5], "good": [1.0]}}
    result = _search(check, problem_of(partial(_end_worker, os.getpid()), **where), threads=2, evaluations=80)
    if not any("ended its worker" in note for note in result.notes):
        raise Failure(f"no note on the lost worker: {result.notes}")
    _same_fronts(result, _search(check, problem_of(_all_but_deadly, **where), evaluations=80))


def _search(check: Check, problem: SearchProblem, **options: Any) -> Result[ParetoFront]:
    """Search with the options of `solve` and the own options of searches."""
    own = {"evaluations": FEW}
    own |= {name: options.pop(name) for name in ("evaluations", "hypervolume", "stall") if name in options}
    return check.solve(problem, backend_options={check.backend.name: own}, **options)


def _solve(check: Check, problem: SearchProblem) -> Result[ParetoFront]:
    """Search without the checks that a failed result does not pass."""
    check.solves += 1
    own = {check.backend.name: {"evaluations": FEW}}
    return solve(check.suited(problem), check.backend, backend_options=own)


def _hold_front(check: Check, known: KnownFront, most: int, share: float) -> None:
    known = known.of(getattr(check.backend, "most_objectives", None))
    result = _search(check, known.problem, evaluations=most)
    found = -math.inf if result.objective is None else result.objective
    if not share * known.hypervolume <= found <= known.hypervolume * (1.0 + 1e-9):
        raise Failure(f"hypervolume {found:.6g} of {known.name}, {known.hypervolume:.6g} at most, {share:.0%} are due")
    if result.termination.reason is not Reason.FEASIBLE:
        raise Failure(f"{result.termination} of {known.name}")
    front = result.require_plan()
    if len(np.unique(front.vectors, axis=0)) < len(front):
        raise Failure(f"two points of the front of {known.name} have the same vector")


def _same_fronts(first: Result[ParetoFront], second: Result[ParetoFront]) -> None:
    same_numbers(first, second)
    one, two = first.require_plan(), second.require_plan()
    if one.vectors.tolist() != two.vectors.tolist() or one.scores.tolist() != two.scores.tolist():
        raise Failure(f"two fronts of one search differ: {one!r}, {two!r}")


def _square(x: Floats) -> Floats:
    return x**2


def _slowly(seconds: float, x: Floats) -> Floats:
    time.sleep(seconds)
    return schaffer(x)


def _raise(error: type[Exception], x: Floats) -> Floats:
    """Score the vector 1/2, and raise for any other."""
    if x[0, 0] == 0.5:
        return np.array([[0.5, 0.5]])
    raise error("evaluate_many", 0, "fails") if error is InvalidInput else error("fails")


def _all_but_deadly(x: Floats) -> Floats:
    return np.asarray(np.where(x == 2.5, np.nan, schaffer(x)))


def _end_worker(caller: int, x: Floats) -> Floats:
    """End the process at the vector 2.5, unless it is the caller's."""
    if x[0, 0] == 2.5 and os.getpid() != caller:
        time.sleep(0.05)
        os._exit(1)
    return schaffer(x)
