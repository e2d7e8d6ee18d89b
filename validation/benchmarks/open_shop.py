"""Benchmark of open shop: Taillard's instances by CP-SAT and HiGHS, and random ones with preemption."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any

import numpy as np

from ...formulations.checks import as_integer
from ...formulations.errors import InvalidInput
from ...formulations.makespan.open_shop.problem import OpenShop
from ...solvers.registry import find_backend
from ...solvers.solve import solve
from ..instances.taillard import SEEDS, taillard_instances

BACKENDS = ("cp_sat_schedule", "highs")
#: Seconds for each instance.
TIME_LIMIT = 10.0


def open_shop_rows(
    *,
    sizes: Sequence[int] = tuple(SEEDS),
    names: Sequence[str] | None = None,
    time_limit: float = TIME_LIMIT,
    on_solve: Callable[[int, int], None] = lambda done, total: None,
) -> Iterator[dict[str, Any]]:
    """Solve Taillard's instances of these sizes by each backend; yield one row for each size and backend.

    Every instance is solved to the last unit, or to the limit in seconds, from the greedy list where the backend takes
    a start. A first, small solve that is not counted starts the backend's process and compiles what there is to
    compile. Sizes are of 4, 5, 7, 10, 15 and 20; `on_solve` is called with the number of solves done and their total.

    Yields
    ------
    dict
        size, backend, optimal (instances proven), right (their makespans are the known optima), wall_s (of all ten),
        slowest_s, gap_pct (the mean distance of the schedules found from the known optima).
    """
    for size in sizes:
        if size not in SEEDS:
            raise InvalidInput("sizes", size, f"must be of {', '.join(map(str, SEEDS))}")
    for name in names or BACKENDS:
        find_backend(name)
    total, done = len(names or BACKENDS) * sum(len(SEEDS[size]) for size in sizes), count(1)
    for name in names or BACKENDS:
        solve(OpenShop(np.arange(1.0, 10.0).reshape(3, 3)), name)
        for size in sizes:
            yield _row(size, name, time_limit, lambda: on_solve(next(done), total))


def _row(size: int, name: str, time_limit: float, on_solve: Callable[[], None]) -> dict[str, Any]:
    seconds, optimal, right, gaps = [], 0, 0, []
    for instance in taillard_instances((size,)):
        shop = instance.shop()
        began = time.perf_counter()
        start = shop.list_plan if "warm_start" in find_backend(name).supported_options else None
        result = solve(shop, name, rel_gap=0.0, time_limit=time_limit, warm_start=start)
        seconds.append(time.perf_counter() - began)
        proven = result.termination.reason.name == "OPTIMAL"
        optimal += proven
        right += proven and result.objective == instance.optimum
        if result.objective is not None:
            gaps.append(100 * (result.objective / instance.optimum - 1))
        on_solve()
    return {
        "size": f"{size}x{size}",
        "backend": name,
        "optimal": optimal,
        "right": right,
        "wall_s": sum(seconds),
        "slowest_s": max(seconds),
        "gap_pct": float(np.mean(gaps)) if gaps else None,
    }


def preemptive_rows(*, sizes: Sequence[int] = (10, 30, 100, 200), seed: int = 0) -> Iterator[dict[str, Any]]:
    """Schedule random square shops with preemption; yield one row for each size.

    Yields
    ------
    dict
        size, backend, wall_s, makespan, bound, preemptions, fault (see `worst_fault`).
    """
    for size in sizes:
        as_integer("sizes", size, minimum=1)
    rng = np.random.default_rng(seed)
    solve(OpenShop(np.ones((1, 2)), preemptive=True))
    for size in sizes:
        shop = OpenShop(rng.integers(0, 100, (size, size)).astype(np.float64), preemptive=True)
        began = time.perf_counter()
        result = solve(shop, "birkhoff")
        wall = time.perf_counter() - began
        plan = result.require_optimal()
        yield {
            "size": f"{size}x{size}",
            "backend": "birkhoff",
            "wall_s": wall,
            "makespan": plan.makespan,
            "bound": result.bound,
            "preemptions": plan.preemptions,
            "fault": result.residuals.row if result.residuals else None,
        }
