"""Cases of the contract for backends that read a problem of shares, matchings or schedules, against its own program."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ...formulations.assignment.allox import AlloxMatching
from ...formulations.assignment.goodput import GoodputAllocation
from ...formulations.makespan.gang.problem import GangMakespan
from ...formulations.makespan.open_shop.problem import OpenShop
from ...formulations.shares.finish_time.problem import FinishTimeFairness
from ...formulations.shares.hierarchical_fairness import HierarchicalFairness
from ...formulations.shares.max_min_fairness import MaxMinFairness
from ...formulations.shares.max_sum_throughput import MaxSumThroughput
from ...formulations.shares.min_total_duration import MinTotalDuration
from ...solvers.result import Limit, Reason, Result
from ...solvers.solve import solve
from ..instances.sharing import random_group, random_pair
from .check import REL_GAP, Check, Failure, same_numbers

# What is asked for, from tight to loose; and what the program of the problem is solved to, by the default solver.
GAPS = (1e-6, 1e-3, 0.1)
REFERENCE, REFERENCE_GAP = "highs", 1e-9


def _rates(rng: np.random.Generator) -> dict[str, Any]:
    """Up to eight jobs on up to three GPU types; some cannot run on some."""
    jobs, types = int(rng.integers(1, 9)), int(rng.integers(1, 4))
    rates = rng.integers(0, 9, (jobs, types)).astype(np.float64)
    rates[:, 0] += 1.0
    return {"rates": rates, "gang_gpus": rng.integers(1, 4, jobs), "gpus": rng.integers(3, 9, types)}


def _durations(rng: np.random.Generator) -> MinTotalDuration:
    data = _rates(rng)
    return MinTotalDuration(**data, steps=rng.integers(1, 99, len(data["gang_gpus"])).astype(np.float64))


def _hierarchy(rng: np.random.Generator) -> HierarchicalFairness:
    data = _rates(rng)
    queue = rng.integers(0, 3, len(data["gang_gpus"]))
    return HierarchicalFairness(**data, queue=queue, weights=rng.integers(1, 5, (3, len(data["gpus"]))).astype(float))


def _finish_time(rng: np.random.Generator) -> FinishTimeFairness:
    data = _rates(rng)
    jobs = len(data["gang_gpus"])
    return FinishTimeFairness(
        **data,
        steps=rng.integers(1, 99, jobs).astype(np.float64),
        elapsed_s=rng.integers(0, 20, jobs).astype(np.float64),
        isolated_elapsed_s=rng.integers(0, 20, jobs).astype(np.float64),
        isolated_rates=data["rates"].max(axis=1) * 0.5,
    )


def _matching(rng: np.random.Generator) -> AlloxMatching:
    data = _rates(rng)
    jobs = len(data["gang_gpus"])
    return AlloxMatching(
        steps=rng.integers(1, 99, jobs).astype(np.float64),
        rates=data["rates"],
        waited_s=rng.integers(0, 20, jobs).astype(np.float64),
        workers_of_type=np.minimum(data["gpus"], 4),
    )


def _goodput(rng: np.random.Generator) -> GoodputAllocation:
    jobs, gpus = int(rng.integers(1, 6)), int(rng.integers(1, 7))
    grown = np.cumsum(rng.random((jobs, gpus)) + 0.05, axis=1)
    return GoodputAllocation(
        goodputs=np.concatenate([np.zeros((jobs, 1)), grown], axis=1), gpus=np.array([gpus]), power=-1.0
    )


def _gangs(rng: np.random.Generator, *, preemptive: bool) -> GangMakespan:
    gpus, jobs = int(rng.integers(1, 6)), int(rng.integers(1, 6))
    widths = rng.integers(1, gpus + 1, jobs)
    return GangMakespan(rounds=rng.integers(1, 5, jobs), gang_gpus=widths, gpus=gpus, preemptive=preemptive)


def _shop(rng: np.random.Generator, *, preemptive: bool) -> OpenShop:
    times = rng.integers(0, 9, (int(rng.integers(1, 4)), int(rng.integers(1, 4)))).astype(np.float64)
    times[0, 0] += 1.0
    return OpenShop(times, preemptive=preemptive)


DRAWS: dict[str, Callable[[np.random.Generator], Any]] = {
    "MaxMinFairness": lambda rng: MaxMinFairness(**_rates(rng)),
    "MaxMinFairness:water_filling": lambda rng: MaxMinFairness(**_rates(rng), water_filling=True),
    "HierarchicalFairness": _hierarchy,
    "MaxSumThroughput": lambda rng: MaxSumThroughput(**_rates(rng)),
    "MinTotalDuration": _durations,
    "FinishTimeFairness": _finish_time,
    "AlloxMatching": _matching,
    "GoodputAllocation": _goodput,
    "PairSharing": random_pair,
    "GroupSharing": random_group,
    "OpenShop": lambda rng: _shop(rng, preemptive=False),
    "PreemptiveOpenShop": lambda rng: _shop(rng, preemptive=True),
    "GangMakespan": lambda rng: _gangs(rng, preemptive=False),
    "PreemptiveGangMakespan": lambda rng: _gangs(rng, preemptive=True),
}
#: The formulations by name.
FORMULATIONS = tuple(DRAWS)


def optimal(check: Check, kind: str) -> None:
    """Called OPTIMAL, and no further from the optimum of the problem's own program than the gap asked for."""
    for rng in check.draws(5, 40):
        problem = DRAWS[kind](rng)
        result = check.solve(problem)
        if result.termination.reason is not Reason.OPTIMAL:
            raise Failure(f"{result.termination} with gap {result.gap:.2g} of {problem!r}")
        _hold(result, problem)


def gaps(check: Check, kind: str) -> None:
    """A gap asked for is closed, relative or absolute, and OPTIMAL is not said of a wider one."""
    for rng in check.draws(2, 10):
        problem = DRAWS[kind](rng)
        for rel_gap in GAPS:
            result = check.solve(problem, rel_gap=rel_gap)
            _hold(result, problem)
            if result.termination.reason is Reason.OPTIMAL and not result.gap <= max(rel_gap, 1e-9):
                raise Failure(f"OPTIMAL with gap {result.gap:.3g}, where {rel_gap:g} was asked for")


def no_time_at_all(check: Check, kind: str) -> None:
    """time_limit=0: no plan, or a sound one with a true bound."""
    for rng in check.draws(3, 10):
        problem = DRAWS[kind](rng)
        result = check.solve(problem, time_limit=0.0)
        termination = result.termination
        if result.plan is None and (termination.reason, termination.limit) != (Reason.NO_SOLUTION_FOUND, Limit.TIME):
            raise Failure(f"{termination} at time_limit=0, of a problem that has a plan")
        _hold(result, problem)


def same_seed(check: Check, kind: str) -> None:
    """The same call gives the same objective, bound and plan, bit by bit."""
    for rng in check.draws(3, 10):
        problem = DRAWS[kind](rng)
        first, second = (check.solve(problem) for _ in range(2))
        same_numbers(first, second)
        one, other = (each.require_plan().to_frame() for each in (first, second))
        if not one.equals(other):
            raise Failure(f"two plans of one call differ for {problem!r}")


def _hold(result: Result[Any], problem: Any) -> None:
    """Hold objective and bound to what is proved of the problem without the backend."""
    least, most = _optimum(problem)
    sign = problem.sign
    best, worst = (most, least) if sign > 0 else (least, most)
    slack = REL_GAP * problem.gap_scale(worst)
    if result.objective is not None:
        if sign * (result.objective - best) > slack:
            raise Failure(f"objective {result.objective:.12g} is better than {best:.12g}, which is proved, {problem!r}")
        asked = max(result.gap, 1e-9) * problem.gap_scale(result.objective)
        if result.termination.reason is Reason.OPTIMAL and sign * (worst - result.objective) > asked + slack:
            raise Failure(f"objective {result.objective:.12g} is called OPTIMAL; {worst:.12g} is known, {problem!r}")
    if sign * (worst - result.bound) > slack:
        raise Failure(f"bound {result.bound:.12g} is on the wrong side of {worst:.12g}, which is reached, {problem!r}")


def _optimum(problem: Any) -> tuple[float, float]:
    """Return numbers between which the optimum is proved to lie."""
    if isinstance(problem, OpenShop) and problem.preemptive:
        longest = float(max(problem.times.sum(axis=0).max(), problem.times.sum(axis=1).max()))
        return longest, longest
    if isinstance(problem, MaxMinFairness) and problem.water_filling:
        problem = replace(problem, water_filling=False)  # its first level
    if isinstance(problem, HierarchicalFairness):
        problem = _first_level(problem)
    found = solve(problem, REFERENCE, rel_gap=REFERENCE_GAP, time_limit=20.0)
    objective = found.objective if found.objective is not None else -problem.sign * math.inf
    return min(objective, found.bound), max(objective, found.bound)


def _first_level(problem: HierarchicalFairness) -> MaxMinFairness:
    """Return the problem of the least level alone: max-min fairness of the first job of each queue."""
    first = np.unique(problem.queue, return_index=True)[1]
    data: dict[str, Any] = {"rates": problem.rates[first], "gang_gpus": problem.gang_gpus[first], "gpus": problem.gpus}
    weights = MaxMinFairness(**data).highest / problem.highest[first]
    return MaxMinFairness(**data, weights=weights)
