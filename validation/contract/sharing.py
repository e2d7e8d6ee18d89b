"""Case of the contract: pairs of jobs, solved by their programs, against brute force over the delay."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from ...formulations.gpu_sharing.pair import PairSharing
from ...formulations.program.data import ProblemClass
from ...solvers.result import Limit, Reason, Result
from ..instances.sharing import random_pair
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


def pair_trouble(problem: PairSharing, result: Result[Any]) -> str:
    """Return what is wrong with the result of a pair, given by brute force; empty if nothing is.

    A backend whose method cannot close the last part of a gap may call its plan FEASIBLE; the plan is held to the same
    optimum. The bound is held to the optimum within the gap that the result itself claims.
    """
    reason = result.termination.reason
    at_grid = reason is Reason.FEASIBLE and result.termination.limit is Limit.METHOD
    if result.plan is None or result.objective is None or not (reason is Reason.OPTIMAL or at_grid):
        return f"{result.termination}"
    best = float(least_objective(problem))
    if abs(result.objective - best) > AGREEMENT * best:
        return f"objective {result.objective:.12g} instead of {best:.12g}"
    if result.bound > best * (1 + AGREEMENT):
        return f"bound {result.bound:.12g} above the optimum {best:.12g}"
    if result.plan.delay_s not in (0.0, problem.running_s):
        return f"delay {result.plan.delay_s:.12g}, which is no candidate"
    return ""


def least_objective(problem: PairSharing) -> Fraction:
    """Return the least objective over equal steps of the delay, by an exact simulation of both jobs."""
    a, b, x, y = map(
        Fraction, (problem.running_s, problem.waiting_s, problem.running_ratio, problem.waiting_ratio)
    )  # fmt: skip
    weights = [Fraction(1), Fraction(1)] if problem.weights is None else list(map(Fraction, problem.weights.tolist()))
    values = []
    for step in range(DELAYS + 1):
        ends = simulated_ends([a], b, [x], [y], a * step / DELAYS)
        mean = sum((w * end for w, end in zip(weights, ends, strict=True)), Fraction(0)) / sum(weights)
        values.append(max(ends) if problem.objective == "makespan" else mean)
    return min(values)
