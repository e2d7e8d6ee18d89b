"""The gang_packing backend: gangs packed into rounds within milliseconds, with proved bounds."""

from __future__ import annotations

import math
import sys
from dataclasses import replace

from ...formulations.makespan.gang.problem import GangMakespan, count_patterns
from ...formulations.makespan.gang.schedule import GangSchedule
from ..backend import Answer, OwnMethod, Progress, Task
from ..deadline import Deadline
from ..external.highs import solved_by_highs
from ..options import Options
from ..result import Limit

# Largest program, in columns, that HiGHS gets when the packing does not meet the bound.
MOST_COLUMNS = {"patterns": 5_000, "time_indexed": 20_000}
# Sets of widths are enumerated for clusters of few widths only: there may be very many.
MOST_WIDTHS = 12
# HiGHS stops at a makespan that is less than one round from its bound.
LAST_ROUND = 1.0 - 1e-6


class GangPacking(OwnMethod):
    """Packs jobs from the widest into their least loaded rounds; without preemption also by three lists.

    A schedule is optimal if it meets a combinatorial bound: lengths, GPUs in total, dual feasible functions, jobs that
    exclude each other. Otherwise a small problem goes to HiGHS within the time limit.
    """

    name = "gang_packing"
    formulations = frozenset({"PreemptiveGangMakespan", "GangMakespan"})
    supported_options = frozenset({"threads", "seed", "warm_start", "log"})
    delegates_to = frozenset({"highs"})

    def solve(self, task: Task, options: Options, on_progress: Progress) -> Answer:
        """Pack, and close the gap by HiGHS; the packing draws nothing, threads and seed apply to HiGHS."""
        self.backend_options(options)
        deadline = Deadline.of(options)
        problem: GangMakespan = task.problem
        low, why = problem.bound_and_reason
        notes = [f"bound: {why}"]
        plan, start = problem.list_plan, options.warm_start
        if start is not None:
            problem.check_plan(start, "warm_start")
            fault = problem.evaluate(start)[1].worst
            accepted = f"warm start accepted, objective {start.makespan}"
            notes.append(f"warm start rejected: it violates the problem by {fault:g}" if fault > 0 else accepted)
            if fault <= 0 and start.makespan < plan.makespan:
                plan = start
        on_progress(float(plan.makespan), float(low), plan)
        if options.log:
            sys.stdout.write(f"packing: makespan {plan.makespan}  bound {low}\n")
        bound, limit = float(low), Limit.METHOD
        if plan.makespan - low > max(options.rel_gap * plan.makespan, options.abs_gap):
            if deadline.passed:
                limit = Limit.TIME
            else:
                plan, bound, limit = _closed(problem, plan, bound, deadline.options(), notes)
        closed = plan.makespan - bound <= max(options.rel_gap * plan.makespan, options.abs_gap)
        return Answer.ended(None if closed else limit, plan=plan, bound=bound, notes=tuple(notes))


def _closed(
    problem: GangMakespan, plan: GangSchedule, bound: float, options: Options, notes: list[str]
) -> tuple[GangSchedule, float, Limit]:
    """Return plan and bound as HiGHS improves them, and the limit that stopped it."""
    form = _form(problem)
    if form is None:
        return plan, bound, Limit.METHOD
    program = problem.program(form)
    allowed = max(LAST_ROUND, options.abs_gap, options.rel_gap * plan.makespan)
    asked = replace(options, rel_gap=0.0, abs_gap=allowed)
    answer = solved_by_highs(problem, form, program, asked, problem.encode(plan, form))
    what = f"{form} (HiGHS, {program.num_columns} columns)"
    if answer.bound is not None and math.ceil(answer.bound - 1e-6) > bound:
        bound = float(math.ceil(answer.bound - 1e-6))  # the makespan is a whole number of rounds
        notes.append(f"bound from {what}")
    if answer.values is not None and program.residuals_at(answer.values).worst <= options.feasibility_tol:
        found = problem.decode(answer.values, form=form)
        if found.makespan < plan.makespan and problem.evaluate(found)[1].worst == 0:
            plan = found
            notes.append(f"plan from {what}")
    return plan, bound, answer.limit or Limit.METHOD


def _form(problem: GangMakespan) -> str | None:
    """Return the smallest form that HiGHS may solve, None if all are too large."""
    widths = len(set(problem.gang_gpus[problem.rounds > 0].tolist()))
    if problem.preemptive and widths <= MOST_WIDTHS:
        patterns = count_patterns(problem)
        if patterns is not None and patterns <= MOST_COLUMNS["patterns"]:
            return "patterns"
    columns = len(problem.rounds) * problem.list_plan.makespan
    return "time_indexed" if columns <= MOST_COLUMNS["time_indexed"] else None


BACKEND = GangPacking()
