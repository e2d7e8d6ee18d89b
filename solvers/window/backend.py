"""The window planner: a Lagrangian dual, rounding, packing and restricted integer programs, with a proved bound."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...formulations.arrays import Floats, Indices
from ...formulations.program.model import Program
from ...formulations.window import programs as window_programs
from ...formulations.window.plan import WindowPlan, scheduled
from ...formulations.window.problem import Regime, ScheduleWindow, WindowJob
from ..backend import Answer, Claim, OwnMethod, Progress, Task
from ..deadline import Deadline
from ..external.highs import solved_by_highs
from ..incumbent import Incumbent
from ..options import Options
from ..result import Limit
from .cuts import violated_cuts
from .dual import Dual, branches, rounded, solve_dual

# Share of the remaining gap that the integer programs may leave, so that two of them still close it.
GAP_SHARE = 0.25
# Choices per job that the first, quick integer program may use.
NEAREST = 3
# Branches on jobs that set the horizon; ties of the makespan's branches need few.
MOST_BRANCHES = 16


class Lagrangian(OwnMethod):
    """Grants rounds by gain per GPU at the price of the dual; then packs, fills and checks the schedule.

    If the gap is still too wide, the numbers of rounds that could be better (few, by the dual) go to HiGHS as "counts",
    and then as "time_indexed", within the time limit.
    """

    name = "lagrangian"
    formulations = frozenset({"ScheduleWindow"})
    supported_options = frozenset({"threads", "seed", "warm_start", "log"})
    delegates_to = frozenset({"highs"})

    def solve(self, task: Task, options: Options, on_progress: Progress) -> Answer:
        """Solve the window; nothing is drawn, so the seed has no effect; threads apply to the fallback."""
        self.backend_options(options)
        compile_kernels()
        deadline = Deadline.of(options)
        window: ScheduleWindow = task.problem
        done = None if options.warm_start is not None else _all_done(window)
        if done is not None and -done.objective <= min(_gap(window, options), 1e-9 * window.tables.weight_sum):
            on_progress(done.objective, 0.0, done)
            note = "bound: 0, the objective when all jobs finish within the window"
            return Answer(claim=Claim.SOLVED, plan=done, bound=0.0, notes=(note,))
        root = solve_dual(window)
        best = _Incumbent(window, root.bound, options, on_progress)
        if options.warm_start is not None:
            best.offer_start(options.warm_start)
        best.offer(scheduled(window, rounded(window, root)), "")
        duals = _branched(window, root, best, deadline)
        limit = None if best.closed() else _Refinement(window, duals, best, deadline).run()
        limit = None if best.closed() else limit
        return Answer.ended(limit, plan=best.solution, bound=best.bound, notes=tuple(best.notes))


@cache
def compile_kernels() -> None:
    """Plan a small window, which compiles the kernels or loads them from the disk.

    The time limit begins afterwards: compiling takes some 10 s once, and plans must not depend on it.
    """
    jobs = [
        WindowJob(id=str(n), gpus=n, finished_epochs=0, total_epochs=9, regimes=[Regime(9, 100.0 * n)], ftf=1.0 + n)
        for n in (1, 2, 3)
    ]
    window = ScheduleWindow(jobs, gpus=5, rounds=3)
    for dual in (root := solve_dual(window), *branches(window, root)):
        scheduled(window, rounded(window, dual))


def _all_done(window: ScheduleWindow) -> WindowPlan | None:
    """Return a schedule that grants every job its whole need, as far as that packs; None beyond the capacity.

    No objective exceeds that of a schedule in which all jobs end: utilities are at most 1, their logarithms at most 0.
    """
    needs = window.tables.needs
    if needs.max() > window.rounds or int(window.gang_gpus @ needs) > window.gpus * window.rounds:
        return None
    return scheduled(window, needs)


def _gap(window: ScheduleWindow, options: Options) -> float:
    return max(options.rel_gap * window.tables.weight_sum, options.abs_gap)


def _branched(window: ScheduleWindow, root: Dual, best: _Incumbent, deadline: Deadline) -> list[Dual]:
    """Branch on the jobs that set the horizon, best bound first; return the duals that bound better schedules."""
    duals = [root]
    for _ in range(MOST_BRANCHES):
        if best.closed() or deadline.passed:
            break
        worst = max(range(len(duals)), key=lambda i: duals[i].bound)
        children = branches(window, duals[worst])
        if not children:
            break
        for child in children:
            best.offer(scheduled(window, rounded(window, child)), "")
        duals[worst : worst + 1] = children
        best.bound_by(max(dual.bound for dual in duals), "")
    return [dual for dual in duals if dual.bound > best.objective] or [root]


class _Incumbent(Incumbent[WindowPlan, None]):
    """The best plan and bound so far and their sources, reported at every improvement."""

    def __init__(self, window: ScheduleWindow, bound: float, options: Options, on_progress: Progress) -> None:
        super().__init__(bound)
        self.window = window
        self.notes = ["bound: Lagrangian, holds for the time-indexed program"]
        self._asked = _gap(window, options)
        self._on_progress = on_progress

    def offer(self, plan: WindowPlan, note: str) -> None:
        if self.improve(plan.objective, plan) and note:
            self.notes.append(note)
        self._on_progress(self.objective, self.bound, self.solution)

    def offer_start(self, plan: Any) -> None:
        from ...formulations.window.check import schedule_faults

        window_programs.check_plan(self.window, plan)
        plan = WindowPlan(self.window, plan.grants)
        faults = schedule_faults(self.window, plan.grants, plan.regime_of)
        if faults:
            self.notes.append(f"warm start rejected: {faults[0]}")
        else:
            self.offer(plan, f"warm start accepted, objective {plan.objective:.12g}")

    def lower(self, answer: Answer, note: str) -> None:
        """Accept the bound of a program over all choices that could beat the plan: no other choice can."""
        self.bound_by(-np.inf if answer.claim is Claim.INFEASIBLE else answer.bound, note)

    def bound_by(self, bound: float | None, note: str) -> None:
        if bound is not None and self.tighten(max(bound, self.objective)) and note:
            self.notes.append(note)
        self._on_progress(self.objective, self.bound, self.solution)

    def closed(self) -> bool:
        return self.gap <= self._asked


class _Refinement:
    """Integer programs over the choices that could still be better, until the gap closes or time is up."""

    def __init__(self, window: ScheduleWindow, duals: list[Dual], best: _Incumbent, deadline: Deadline) -> None:
        self.window, self.duals, self.best, self.deadline, self.options = window, duals, best, deadline, deadline.given

    def run(self) -> Limit:
        """Solve "counts", tightened until its rounds pack; then "time_indexed". Return the limit that stopped it."""
        cuts: list[window_programs.Cut] = []
        limit = Limit.METHOD
        if self.deadline.left() == 0.0:
            return Limit.TIME
        # The best choices of every job first: a better plan, found early, excludes most of the others.
        few = np.logical_or.reduce([dual.nearest(NEAREST) for dual in self.duals])
        self._counts(few & self._possible(), cuts, proves=False)
        while not self.best.closed():
            if self.deadline.left() == 0.0:
                return Limit.TIME
            limit, counts = self._counts(self._possible(), cuts, proves=True)
            new = [] if counts is None or self.best.closed() else violated_cuts(self.window, counts)
            if not new:
                break
            cuts += new
        if self.best.closed():
            return limit
        return Limit.TIME if self.deadline.left() == 0.0 else self._time_indexed()

    def _counts(
        self, keep: NDArray[np.bool_], cuts: list[window_programs.Cut], *, proves: bool
    ) -> tuple[Limit, Indices | None]:
        program = window_programs.counts(self.window, keep, cuts)
        answer = self._solve("counts", program, None)
        counts = None
        what = f"counts (HiGHS, {len(program.columns['choice'])} of {keep.size} choices, {len(cuts)} cuts)"
        if answer.values is not None and program.residuals_at(answer.values).worst <= 10 * self.options.feasibility_tol:
            counts = window_programs.counts_of(self.window, answer.values, keep)
            self.best.offer(scheduled(self.window, counts), f"plan from {what}")
        if proves:
            self.best.lower(answer, f"bound from {what}")
        return answer.limit or Limit.METHOD, counts

    def _time_indexed(self) -> Limit:
        keep = self._possible()
        program = window_programs.time_indexed(self.window, keep)
        plan = self.best.solution
        start = None if plan is None else window_programs.encode(self.window, plan, program, keep)
        answer = self._solve("time_indexed", program, start)
        what = f"time_indexed (HiGHS, {len(program.columns['choice'])} of {keep.size} choices)"
        if answer.values is not None and program.residuals_at(answer.values).worst <= 10 * self.options.feasibility_tol:
            self.best.offer(window_programs.decode(self.window, answer.values, "time_indexed"), f"plan from {what}")
        self.best.lower(answer, f"bound from {what}")
        return answer.limit or Limit.METHOD

    def _solve(self, form: str, program: Program, start: Floats | None) -> Answer:
        options = self.deadline.options()
        asked = replace(options, rel_gap=GAP_SHARE * options.rel_gap, abs_gap=GAP_SHARE * options.abs_gap)
        return solved_by_highs(self.window, form, program, asked, start)

    def _possible(self) -> NDArray[np.bool_]:
        """Return the numbers of rounds that a better plan may use, shape (N, T + 1)."""
        return np.asarray(np.logical_or.reduce([dual.possible(self.best.objective) for dual in self.duals]))


BACKEND = Lagrangian()
