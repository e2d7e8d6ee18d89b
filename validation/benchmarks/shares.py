"""Benchmark of shares of GPU time: our own backend beside general ones on the same problems, in one run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...formulations.checks import as_integer, as_real
from ...formulations.errors import EquipoiseError, InvalidInput
from ...formulations.shares.max_min_fairness import MaxMinFairness
from ...formulations.shares.max_sum_throughput import MaxSumThroughput
from ...formulations.shares.min_total_duration import MinTotalDuration
from ...solvers.registry import find_backend
from ...solvers.solve import solve

PROBLEMS = ("max_min", "water_filling", "max_sum", "duration")
OURS = "share_prices"
# A peer's name here: its backend, and the options that make it this one.
PEERS: dict[str, tuple[str, dict[str, Any]]] = {
    OURS: (OURS, {}),
    "highs simplex": ("highs", {"solver": "simplex"}),
    "highs ipm": ("highs", {"solver": "ipm"}),
    "clarabel": ("clarabel", {}),
}
GPUS_PER_JOB = 0.6
# A solve is timed so many times, on a problem made anew, unless the first took longer than this.
REPEATS, REPEATED_S = 5, 1.0


def share_problem(name: str, *, jobs: int, types: int, distinct: int | None, seed: int) -> Any:
    """Return a random problem of sharing GPUs: jobs of 1 to 8 GPUs, newer types faster, each job by its own factors.

    The name is "max_min", "water_filling", "max_sum" or "duration". Type k + 1 is about half as fast again as type k;
    there are 0.6 GPUs per job, fewer of the newer types. Only so many `distinct` jobs are drawn, each repeated at
    random; by default all are different.
    """
    rng = np.random.default_rng(seed)
    count = jobs if distinct is None else distinct
    rates = rng.uniform(1.0, 10.0, (count, 1)) * rng.uniform(0.3, 1.0, (count, types)) * 1.5 ** np.arange(types)
    gang_gpus = rng.choice([1, 2, 4, 8], size=count, p=[0.6, 0.2, 0.15, 0.05])
    steps = rng.lognormal(10.0, 1.0, count)
    if distinct is not None:
        of_job = rng.integers(0, count, jobs)
        rates, gang_gpus, steps = rates[of_job], gang_gpus[of_job], steps[of_job]
    gpus = np.maximum(1, np.rint(GPUS_PER_JOB * jobs * np.arange(types, 0, -1) / (types * (types + 1) / 2))).astype(int)
    if name in ("max_min", "water_filling"):
        return MaxMinFairness(rates, gang_gpus, gpus, water_filling=name == "water_filling")
    if name == "max_sum":
        return MaxSumThroughput(rates, gang_gpus, gpus)
    if name == "duration":
        return MinTotalDuration(rates, steps, gang_gpus, gpus)
    raise InvalidInput("problem", name, f"must be one of {', '.join(PROBLEMS)}")


def share_rows(
    *,
    jobs: int = 100_000,
    types: int = 3,
    distinct: int | None = None,
    problems: Sequence[str] = PROBLEMS,
    peers: Sequence[str] = tuple(PEERS),
    rel_gap: float = 1e-6,
    time_limit: float = 60.0,
    seed: int = 0,
    on_solve: Callable[[int, int], None] | None = None,
) -> Iterator[dict[str, Any]]:
    """Solve the same problems with each backend, one thread each, and yield one row per problem and backend.

    Times cover `solve` with its verification, and for ours the tie-break among optima, not the making of the problem.
    What is compiled is loaded before.

    Yields
    ------
    dict
        problem, backend, wall_s and cpu_s (the least of the solves), gap (certified), state (how the solve ended, or
        the error's name), ratio (cpu_s by that of share_prices; None where it did not reach the gap).

    Raises
    ------
    InvalidInput, BackendNotFound
        Before anything runs.
    """
    as_integer("jobs", jobs, minimum=1)
    as_integer("types", types, minimum=1)
    as_integer("seed", seed, minimum=0)
    as_real("time_limit", time_limit, above=0.0)
    if distinct is not None:
        as_integer("distinct", distinct, minimum=1)
    for field, names, known in (("problems", problems, PROBLEMS), ("peers", peers, tuple(PEERS))):
        for name in names:
            if name not in known:
                raise InvalidInput(field, name, f"must be one of {', '.join(known)}")
    usable = [name for name in PEERS if name in peers and find_backend(PEERS[name][0]).probe().usable]
    runs = [(problem, peer) for problem in problems for peer in usable if problem != "water_filling" or peer == OURS]
    ours: dict[str, float] = {}
    for done, (name, peer) in enumerate(runs):
        backend, own = PEERS[peer]
        options: dict[str, Any] = {"rel_gap": rel_gap, "time_limit": time_limit}
        options["backend_options"] = {backend: own} if own else {}
        solve(share_problem(name, jobs=5, types=min(types, 2), distinct=None, seed=0), backend, **options)
        row: dict[str, Any] = {"problem": name, "backend": peer}
        size: dict[str, Any] = {"jobs": jobs, "types": types, "distinct": distinct, "seed": seed}
        row |= _measured(partial(share_problem, name, **size), backend, options)
        if peer == OURS and row["cpu_s"] is not None:
            ours[name] = row["cpu_s"]
        reached = row["gap"] is not None and row["gap"] <= rel_gap
        row["ratio"] = row["cpu_s"] / ours[name] if reached and name in ours else None
        if on_solve is not None:
            on_solve(done + 1, len(runs))
        yield row


def _measured(make: Callable[[], Any], backend: str, options: dict[str, Any]) -> dict[str, Any]:
    times: list[tuple[float, float]] = []
    while not times or (len(times) < REPEATS and times[0][0] <= REPEATED_S):
        problem = make()
        wall, cpu = time.perf_counter(), time.process_time()
        try:
            result = solve(problem, backend, **options)
        except EquipoiseError as error:  # a program too large for a licence
            return {"wall_s": None, "cpu_s": None, "gap": None, "state": type(error).__name__}
        times.append((time.perf_counter() - wall, time.process_time() - cpu))
    wall_s, cpu_s = (min(each) for each in zip(*times, strict=True))
    gap = result.gap if result.gap < float("inf") else None
    return {"wall_s": wall_s, "cpu_s": cpu_s, "gap": gap, "state": result.termination.reason.name}
