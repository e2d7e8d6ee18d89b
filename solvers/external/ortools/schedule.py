"""The cp_sat_schedule backend: open shops and gangs without preemption as CP-SAT intervals in time."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ....formulations.arrays import Floats, Indices
from ....formulations.makespan.gang import construction as gang_lists
from ....formulations.makespan.gang.problem import GangMakespan
from ....formulations.makespan.open_shop import construction as open_shop_lists
from ....formulations.makespan.open_shop.problem import OpenShop
from ...backend import Answer, Backend, Claim, Progress, Task
from ...deadline import Deadline
from ...options import Options
from ...result import Limit
from .backend import CpSat, set_common

# Effort to meet the bound before CP-SAT minimises the makespan: in its deterministic time, of about a second each,
# each time from another seed. A schedule at the bound needs no further proof. Most open shops have such a schedule;
# most seeds find one at once, a few do not find one for long.
EFFORTS = (0.1, 0.1, 0.2, 0.2, 0.5, 0.5, 1.0, 1.0)
# Jobs of a gang problem beyond which "auto" prefers the lists of gang_packing.
MOST_JOBS = 2_000
# Upper limit of the whole numbers in a model: their sums have to fit, too.
MOST_UNITS = 2**40
# Decimals of times that are stated exactly.
MOST_DECIMALS = 6
# Units in the makespan's bound if the times are on no decimal grid.
GRID_UNITS = 2**26


class CpSatSchedule(Backend):
    """CP-SAT with interval variables: machines and jobs that exclude overlap, or GPUs that gangs share."""

    name = "cp_sat_schedule"
    licence = "Apache-2.0"
    requires, extra = CpSat.requires, CpSat.extra
    formulations = frozenset({"OpenShop", "GangMakespan"})
    supported_options = frozenset({"threads", "seed", "warm_start", "log"})
    isolated = True  # ortools and highspy cannot be loaded into one process

    def skip_reason(self, problem: Any, options: Options) -> str:
        """Return why "auto" leaves gangs of very many jobs to gang_packing."""
        if isinstance(problem, GangMakespan) and len(problem.rounds) > MOST_JOBS:
            return f"beyond {MOST_JOBS:,} jobs gang_packing comes first"
        return ""

    def solve(self, task: Task, options: Options, on_progress: Progress) -> Answer:
        """State the problem as intervals, start from a list or the warm start, and stream improvements."""
        self.backend_options(options)
        deadline = Deadline.of(options)
        problem: OpenShop | GangMakespan = task.problem
        plan, notes = _start(problem, options)
        low = float(problem.lower_bound)
        on_progress(float(plan.makespan), low, plan)
        if options.log:
            sys.stdout.write(f"list: makespan {plan.makespan:g}  bound {low:g}\n")
        if plan.makespan - low <= max(options.rel_gap * plan.makespan, options.abs_gap):
            notes.append("the list meets the bound: CP-SAT was not called")
            return Answer(claim=Claim.SOLVED, plan=plan, bound=low, notes=tuple(notes))
        stated = shop_intervals(problem, plan) if isinstance(problem, OpenShop) else gang_intervals(problem, plan)
        if stated.note:
            notes.append(stated.note)
        return _run(stated, plan, low, deadline, on_progress, notes)


def _start(problem: OpenShop | GangMakespan, options: Options) -> tuple[Any, list[str]]:
    """Return the better of the list and the warm start, and the note on the warm start."""
    plan: Any = problem.list_plan
    if options.warm_start is None:
        return plan, []
    problem.check_plan(options.warm_start, "warm_start")
    fault = problem.evaluate(options.warm_start)[1].worst
    if fault > options.feasibility_tol:
        return plan, [f"warm start rejected: it violates the problem by {fault:.3g}"]
    if isinstance(problem, OpenShop):
        given = open_shop_lists.from_starts(problem.times, starts_of(problem, options.warm_start))
    else:
        given = options.warm_start
    kept = given if given.makespan <= plan.makespan else plan
    return kept, [f"warm start accepted, objective {given.makespan:.12g}"]


@dataclass
class _Best:
    """The best plan and bound so far, in the caller's time."""

    plan: Any
    bound: float
    on_progress: Progress

    def offer(self, plan: Any) -> None:
        if plan.makespan < self.plan.makespan:
            self.plan = plan
            self.on_progress(float(plan.makespan), self.bound, plan)

    def lift(self, bound: float) -> None:
        if bound > self.bound:
            self.bound = bound
            self.on_progress(float(self.plan.makespan), bound)


def _run(
    stated: Intervals, plan: Any, low: float, deadline: Deadline, on_progress: Progress, notes: list[str]
) -> Answer:
    """Search for a schedule as short as the bound; if none is found soon, minimise the makespan."""
    from ortools.sat.python import cp_model

    best = _Best(plan, low, on_progress)

    def timed(more: int = 0) -> Options:
        options = deadline.options()
        return replace(options, seed=(options.seed + more) % 2**31)

    least = stated.low
    for more, effort in enumerate(EFFORTS):
        status, _ = _asked(stated, (stated.low, stated.low), best, timed(more), effort)
        if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return Answer(claim=Claim.SOLVED, plan=best.plan, bound=best.bound, notes=tuple(notes))
        if status == cp_model.INFEASIBLE:
            least += 1
            best.lift(least * stated.unit - stated.lost)
            break
    status, bound = _asked(stated, (least, stated.high), best, timed(), None)
    message = "" if status == cp_model.OPTIMAL else f"CP-SAT: {status.name}"
    if status in (cp_model.INFEASIBLE, cp_model.MODEL_INVALID):  # impossible: the hint is a schedule of the model
        return Answer(claim=Claim.FAILED, message=message, plan=best.plan, notes=tuple(notes))
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        best.lift(math.ceil(bound - 1e-6) * stated.unit - stated.lost)
    limit = None
    if status != cp_model.OPTIMAL:
        limit = Limit.METHOD if deadline.given.time_limit is None else Limit.TIME
    return Answer.ended(limit, message=message, plan=best.plan, bound=best.bound, notes=tuple(notes))


def _asked(
    stated: Intervals, makespan: tuple[int, int], best: _Best, options: Options, effort: float | None
) -> tuple[Any, float]:
    """Minimise the makespan within these bounds by CP-SAT; return its status and its bound.

    `effort` is a limit in CP-SAT's own deterministic time, so that the same call gives the same answer.
    """
    from ortools.sat.python import cp_model

    model, starts = _model(stated, makespan)

    class ProgressCallback(cp_model.CpSolverSolutionCallback):  # type: ignore[misc]
        def on_solution_callback(self) -> None:
            best.offer(stated.plan_of(np.array([self.value(start) for start in starts], dtype=np.int64)))

    solver = cp_model.CpSolver()
    parameters = solver.parameters
    set_common(parameters, options)
    parameters.linearization_level = 0  # linear relaxations cost more here than they prove
    if effort is not None:
        parameters.max_deterministic_time = effort
    else:
        parameters.relative_gap_limit = options.rel_gap
        parameters.absolute_gap_limit = options.abs_gap / stated.unit
        solver.best_bound_callback = lambda bound: best.lift(math.ceil(bound - 1e-6) * stated.unit - stated.lost)
    solver.solve(model, ProgressCallback())
    return solver.response_proto.status, float(solver.best_objective_bound)


def _model(stated: Intervals, bounds: tuple[int, int]) -> tuple[Any, list[Any]]:
    """Return the model and the variables of the starts; the hint is added if the makespan allows it."""
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    low, high = bounds
    makespan = model.new_int_var(low, high, "makespan")
    starts, intervals = [], []
    for length, hint in zip(stated.lengths.tolist(), stated.hint.tolist(), strict=True):
        start = model.new_int_var(0, high - length, "")
        if high == stated.high:
            model.add_hint(start, hint)
        model.add(start + length <= makespan)
        starts.append(start)
        intervals.append(model.new_fixed_size_interval_var(start, length, ""))
    for each in stated.apart:
        model.add_no_overlap([intervals[at] for at in each.tolist()])
    if stated.widths is not None:
        model.add_cumulative(intervals, stated.widths.tolist(), stated.capacity)
    if high > low:
        model.minimize(makespan)
    return model, starts


@dataclass(frozen=True, kw_only=True)
class Intervals:
    """A scheduling problem in whole units of time.

    Attributes
    ----------
    lengths : ndarray of int, shape (A,)
        Lengths of the activities.
    apart : list of ndarray of int
        Sets of activities that exclude each other in time.
    low, high : int
        Bounds on the makespan.
    hint : ndarray of int, shape (A,)
        Starts of a schedule of makespan `high`.
    plan_of : callable
        Function from starts, shape (A,), to the problem's own plan.
    widths : ndarray of int, shape (A,), or None
        Amount of `capacity` that each activity occupies.
    unit, lost : float
        Length of one unit, and the most that rounding adds to the makespan, both in the caller's time.
    note : str
        Note on rounding; empty if the times are exact.
    """

    lengths: Indices
    apart: list[Indices]
    low: int
    high: int
    hint: Indices
    plan_of: Callable[[Indices], Any]
    widths: Indices | None = None
    capacity: int = 0
    unit: float = 1.0
    lost: float = 0.0
    note: str = ""


def starts_of(problem: OpenShop, plan: Any) -> Floats:
    """Return the start of every operation in a schedule without preemption, shape (jobs, machines)."""
    starts = np.zeros(problem.times.shape)
    starts[plan.job, plan.machine] = plan.start
    return starts


def shop_intervals(problem: OpenShop, plan: Any) -> Intervals:
    """Return the shop, with `plan` as the initial schedule."""
    lengths, unit, exact = whole_times(problem.times, problem.lower_bound)
    active = np.flatnonzero(lengths.ravel() > 0)
    flat = np.full(problem.times.size, -1)
    flat[active] = np.arange(len(active))
    place = flat.reshape(problem.times.shape)
    # Lengths are rounded up, so the hint is timed anew in units.
    rounded = open_shop_lists.from_starts(lengths.astype(np.float64), starts_of(problem, plan))
    hint = np.zeros(problem.times.shape, dtype=np.int64)
    hint[rounded.job, rounded.machine] = rounded.start.astype(np.int64)

    def plan_of(starts: Indices) -> Any:
        table = np.zeros(problem.times.size)
        table[active] = starts
        return open_shop_lists.from_starts(problem.times, table.reshape(problem.times.shape))

    lost = 0.0 if exact else len(active) * unit
    return Intervals(
        lengths=lengths.ravel()[active],
        apart=[row[row >= 0] for row in (*place, *place.T)],
        low=int(max(lengths.sum(axis=0).max(), lengths.sum(axis=1).max())),
        high=int(rounded.makespan),
        hint=hint.ravel()[active],
        plan_of=plan_of,
        unit=unit,
        lost=lost,
        note="" if exact else f"times rounded up to a grid of {unit:.3g}; the bound is corrected by {lost:.3g}",
    )


def gang_intervals(problem: GangMakespan, plan: Any) -> Intervals:
    """Return the gangs, with `plan` as the initial schedule."""
    active = np.flatnonzero(problem.rounds > 0)
    starts = np.zeros(len(problem.rounds), dtype=np.int64)
    starts[plan.job] = plan.start

    def plan_of(found: Indices) -> Any:
        table = np.zeros(len(problem.rounds), dtype=np.int64)
        table[active] = found
        return gang_lists.from_starts(problem.rounds, problem.gang_gpus, problem.gpus, table)

    return Intervals(
        lengths=problem.rounds[active],
        apart=[],
        widths=problem.gang_gpus[active],
        capacity=problem.gpus,
        low=problem.lower_bound,
        high=plan.makespan,
        hint=starts[active],
        plan_of=plan_of,
    )


def whole_times(times: Floats, longest: float) -> tuple[Indices, float, bool]:
    """Return times as whole numbers of a unit, the unit, and whether that is exact; otherwise they are rounded up.

    Times of up to six decimals are exact, as long as the numbers stay within CP-SAT's range.
    """
    for decimals in range(MOST_DECIMALS + 1):
        scale = 10.0**decimals
        if times.sum() * scale > MOST_UNITS:
            break
        whole = np.rint(times * scale)
        if np.array_equal(whole / scale, times):
            return whole.astype(np.int64), 1.0 / scale, True
    unit = longest / GRID_UNITS
    return np.ceil(times / unit).astype(np.int64), unit, False


BACKEND = CpSatSchedule()
