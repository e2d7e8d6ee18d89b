"""Benchmark of heuristics against the optimum: jobs that share GPUs in slots, by SJF-BSBF, SJF-FFS and the MILP."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...formulations.checks import as_integer, as_real
from ...formulations.gpu_sharing.slot_lists import first_partners, gaining_partners, list_schedule, shortest_first
from ...solvers.registry import find_backend
from ...solvers.result import Reason
from ...solvers.solve import solve
from ..instances.clusters import random_cluster

#: The rules by which the heuristics share GPUs; both take the shortest job first.
RULES = {"sjf-bsbf": gaining_partners, "sjf-ffs": first_partners}
BACKEND = "highs"


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Sums of completion times on one instance, in slots.

    Attributes
    ----------
    heuristics : dict of float
        By the name of the policy.
    objective, bound : float
        Best schedule found, and the solver's proved bound.
    proved : bool
        Whether the schedule is proved optimal, with a gap of 0.
    wall_s : float
        Seconds of the solve.
    """

    heuristics: dict[str, float]
    objective: float
    bound: float
    proved: bool
    wall_s: float


def measured(
    index: int, *, seed: int = 0, backend: str = BACKEND, time_limit: float = 100.0, jobs: int = 6, gpus: int = 4
) -> Measured:
    """Schedule one instance by each policy and to the optimum; the solver starts from the best list schedule.

    One thread, and a gap of 0. An instance depends on `seed`, `index`, `jobs` and `gpus` alone.
    """
    problem = random_cluster(np.random.default_rng([seed, index]), jobs=jobs, gpus=gpus)
    order = shortest_first(problem)
    plans = {name: list_schedule(problem, order, rule) for name, rule in RULES.items()}
    starts = "warm_start" in find_backend(backend).supported_options
    began = time.perf_counter()
    result = solve(
        problem,
        backend,
        rel_gap=0.0,
        threads=1,
        time_limit=time_limit,
        warm_start=problem.list_plan if starts else None,
    )
    wall_s = time.perf_counter() - began
    best = problem.list_plan if result.plan is None else result.plan
    return Measured(
        heuristics={name: problem.total_time(plan.end) for name, plan in plans.items()},
        objective=min(problem.total_time(best.end), problem.total_time(problem.list_plan.end)),
        bound=max(result.bound, problem.lower_bound),
        proved=result.termination.reason is Reason.OPTIMAL and result.gap <= 1e-9,
        wall_s=wall_s,
    )


def optimality_rows(
    *,
    count: int = 200,
    jobs: int = 6,
    gpus: int = 4,
    seed: int = 0,
    backend: str = BACKEND,
    time_limit: float = 100.0,
    on_solve: Callable[[int, int], None] = lambda done, total: None,
) -> Iterator[dict[str, Any]]:
    """Measure `count` instances; yield one row for each policy.

    Yields
    ------
    dict
        See `rows_of`.

    Raises
    ------
    InvalidInput, BackendNotFound
        Before anything runs.
    """
    as_integer("count", count, minimum=1)
    as_integer("jobs", jobs, minimum=1)
    as_integer("gpus", gpus, minimum=1)
    as_integer("seed", seed, minimum=0)
    as_real("time_limit", time_limit, above=0.0)
    find_backend(backend)
    found = []
    for index in range(count):
        found.append(measured(index, seed=seed, backend=backend, time_limit=time_limit, jobs=jobs, gpus=gpus))
        on_solve(index + 1, count)
    yield from rows_of(found)


def rows_of(found: list[Measured]) -> Iterator[dict[str, Any]]:
    """Summarise measured instances, a row for each policy.

    Yields
    ------
    dict
        policy, instances, proved (those with a proved optimum), mean_ratio and worst_ratio (sum of completion times by
        the best schedule found), optimal (instances with a proved ratio of 1), mean_to_bound and worst_to_bound (by the
        proved bound, no less than the ratios to the optimum), median_s and slowest_s (seconds of a solve).
    """
    seconds = [each.wall_s for each in found]
    for name in RULES:
        ratios = np.array([each.heuristics[name] / each.objective for each in found])
        to_bound = np.array([each.heuristics[name] / each.bound for each in found])
        yield {
            "policy": name,
            "instances": len(found),
            "proved": sum(each.proved for each in found),
            "mean_ratio": float(ratios.mean()),
            "worst_ratio": float(ratios.max()),
            "optimal": sum(each.proved and each.heuristics[name] == each.objective for each in found),
            "mean_to_bound": float(to_bound.mean()),
            "worst_to_bound": float(to_bound.max()),
            "median_s": float(np.median(seconds)),
            "slowest_s": max(seconds),
        }
