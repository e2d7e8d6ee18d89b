"""Cases of the contract: jobs that share GPUs, solved by their programs, against brute force over the delay."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from ...formulations.gpu_sharing.group import GroupSharing
from ...formulations.gpu_sharing.pair import PairSharing
from ...formulations.program.data import ProblemClass
from ...solvers.result import Limit, Reason, Result
from ..instances.sharing import random_group, random_pair
from ..oracles.sharing import simulated_ends
from .check import Check, Failure

# Two objectives of one pair agree within this, relative.
AGREEMENT = 1e-9
# Delays of the brute force: the whole range in equal steps.
DELAYS = 12
# The gap asked for: the answers of solvers are snapped to candidates, which leaves nothing of it.
GAP = 1e-9


def pairs(check: Check, wanted: ProblemClass) -> None:
    """The objective of a pair's plan is the least over all delays; the delay is 0 or the running job's time."""
    for rng in check.draws(5, 25):
        problem = random_pair(rng)
        trouble = pair_trouble(problem, check.solve(problem, rel_gap=GAP))
        if trouble:
            raise Failure(f"{trouble} of {problem!r}")


def groups(check: Check, wanted: ProblemClass) -> None:
    """The same of a new job over several running ones; the delay is an end of a linear piece."""
    for rng in check.draws(3, 15):
        problem = random_group(rng)
        points = problem.breakpoints()
        best = min(simulated_objective(problem, delay) for delay in [*points, *_steps(max(points))])
        found = check.solve(problem, rel_gap=GAP)
        trouble = _trouble(found, float(best), [float(each) for each in points])
        if trouble:
            raise Failure(f"{trouble} of {problem!r}")


def pair_trouble(problem: PairSharing, result: Result[Any]) -> str:
    """Return what is wrong with the result of a pair, given by brute force over the delay; empty if nothing is.

    A backend whose method cannot close the last part of a gap may call its plan FEASIBLE; the plan is held to the same
    optimum.
    """
    best = min(simulated_objective(problem, delay) for delay in _steps(Fraction(problem.running_s)))
    return _trouble(result, float(best), [0.0, problem.running_s])


def simulated_objective(problem: PairSharing | GroupSharing, delay: Fraction) -> Fraction:
    """Return the objective of a delay, by an exact simulation."""
    if isinstance(problem, PairSharing):
        arrays = [[problem.running_s], [problem.running_ratio], [problem.waiting_ratio]]
    else:
        arrays = [each.tolist() for each in (problem.running_s, problem.running_ratios, problem.waiting_ratios)]
    a, x, y = ([Fraction(each) for each in array] for array in arrays)
    ends = simulated_ends(a, Fraction(problem.waiting_s), x, y, delay)
    if problem.objective == "makespan":
        return max(ends)
    weights = [Fraction(1)] * len(ends) if problem.weights is None else list(map(Fraction, problem.weights.tolist()))
    return sum((w * end for w, end in zip(weights, ends, strict=True)), Fraction(0)) / sum(weights)


def _steps(last: Fraction) -> list[Fraction]:
    return [last * step / DELAYS for step in range(DELAYS + 1)]


def _trouble(result: Result[Any], best: float, candidates: list[float]) -> str:
    reason = result.termination.reason
    at_grid = reason is Reason.FEASIBLE and result.termination.limit is Limit.METHOD
    if result.plan is None or result.objective is None or not (reason is Reason.OPTIMAL or at_grid):
        return f"{result.termination}"
    if abs(result.objective - best) > AGREEMENT * best:
        return f"objective {result.objective:.12g} instead of {best:.12g}"
    if result.bound > best * (1 + AGREEMENT):
        return f"bound {result.bound:.12g} above the optimum {best:.12g}"
    if result.plan.delay_s not in candidates:
        return f"delay {result.plan.delay_s:.12g}, which is no candidate"
    return ""
