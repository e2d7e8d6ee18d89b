"""Verification of a backend's answer: objective, residuals, bound and termination are recomputed."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from ...formulations.arrays import Floats
from ...formulations.program.data import Residuals
from ...formulations.program.model import Program
from ..backend import Answer, Claim, Task
from ..options import Options
from ..result import CLOSED_GAP, HistoryPoint, Limit, Result, Termination, TerminationReason, gap_between
from .bound import bound_of_solve
from .checked_solution import CheckedSolution, ProgressRecorder, better_solution, check_solution
from .refute import infeasible_note, infeasible_refuted, refuted_bound, unbounded_refuted

# Description of the limit that stopped a solve, and advice; other limits are the backend's own.
ADVICE = {
    Limit.TIME: ("it ran out of time", "a longer time_limit or a warm_start may help"),
    Limit.MEMORY: ("it ran out of memory", "a smaller problem, or with isolate a larger memory_gb, may help"),
    Limit.INTERRUPTED: ("it was interrupted", "solve again to go on"),
    Limit.METHOD: ("its method ended", "a looser rel_gap or another backend may help"),
}


class Verification:
    """The verification of one answer, in five steps; each uses the results of the steps before it.

    Attributes
    ----------
    solution : CheckedSolution or None
        The best known solution. It is feasible, except for a plan of a special backend without a better replacement.
    residuals : Residuals or None
        Residuals of the solution; without one, of the answer's values if it has any.
    bound_proved : bool
        Whether the bound is proved here, by duals or by the plan; an unverified one is the backend's.
    fault : str
        Fault of the answer, which makes the result NUMERICAL; empty if there is none.
    """

    def __init__(self, task: Task, answer: Answer, options: Options, progress: ProgressRecorder) -> None:
        self.task, self.answer, self.options, self.progress = task, answer, options, progress
        self.sign = task.problem.sign
        self.solution: CheckedSolution | None = None
        self.residuals: Residuals | None = None
        self.bound, self.bound_proved = self.sign * math.inf, False
        self.fault = (answer.message or "the backend failed") if answer.claim is Claim.FAILED else ""
        self.notes = list(answer.notes)

    def result(self, *, backend: str, version: str, candidates: tuple[Any, ...]) -> Result[Any]:
        """Run the five steps and return the result."""
        self.examine_answer()
        self.reconcile_with_incumbent()
        self.test_claims()
        self.establish_bound()
        termination = self.conclude()
        solution, duals, reduced_costs = self.solution, None, None
        if solution is not None and solution.final:
            duals, reduced_costs = self.answer.duals, self.answer.reduced_costs
        wall_time = self.progress.elapsed()
        return Result(
            termination=termination,
            plan=None if solution is None else solution.plan,
            objective=self.objective,
            bound=self.bound,
            gap=self.gap,
            residuals=self.residuals,
            duals=_by_block(self.task.program, "rows", duals),
            reduced_costs=_by_block(self.task.program, "columns", reduced_costs),
            wall_time=wall_time,
            history=(*self.progress.history, HistoryPoint(wall_time, self.objective, self.bound)),
            backend=backend,
            version=version,
            form=self.task.form,
            seed=self.options.seed,
            notes=tuple(self.notes),
            candidates=candidates,
            problem=self.task.problem,
        )

    @property
    def objective(self) -> float | None:
        """The objective of the solution."""
        return None if self.solution is None else self.solution.objective

    @property
    def gap(self) -> float:
        """The gap between objective and bound."""
        return gap_between(self.task.problem, self.objective, self.bound)

    def examine_answer(self) -> None:
        """Recompute objective and residuals of the answer; a violated problem is a fault."""
        program, answer = self.task.program, self.answer
        given = answer.values
        if program is None:
            given = self.progress.unchecked if answer.plan is None else answer.plan
        if given is None:
            return
        checked = check_solution(self.task, given, self.options, duals=answer.duals, final=True)
        self.residuals = checked.residuals
        if checked.feasible:
            self.solution = checked
            return
        allowed = self.options.feasibility_tol
        worst = checked.residuals.worst
        self.fault = f"the answer violates its own problem by {worst:.3g} (feasibility_tol {allowed:g})"
        self.answer = replace(answer, bound=None)  # its bound is not reliable either
        if program is None and self.progress.best is None:
            self.solution = checked  # for inspection of its violations

    def reconcile_with_incumbent(self) -> None:
        """Keep the better of the answer and the best incumbent reported; a claim that there is no plan is a fault."""
        incumbent, claim = self.progress.best, self.answer.claim
        if incumbent is None:
            return
        if self.solution is not None:
            self.solution = better_solution(self.task.problem, self.solution, incumbent)
        elif claim is not Claim.UNBOUNDED:
            self.solution = incumbent
            if claim in (Claim.INFEASIBLE, Claim.INFEASIBLE_OR_UNBOUNDED):
                self.fault = "the backend claims that there is no plan, but one that it reported passes our check"
        if self.solution is not None:
            self.residuals = self.solution.residuals

    def test_claims(self) -> None:
        """Try to refute a claim of infeasibility or unboundedness without a plan at hand."""
        program, claim = self.task.program, self.answer.claim
        if self.fault or self.solution is not None or program is None:
            return
        if claim is Claim.INFEASIBLE:
            self.fault = infeasible_refuted(self.task, program, self.options)
            if not self.fault:
                self.notes.append(infeasible_note(program, self.answer.ray))
        elif claim in (Claim.UNBOUNDED, Claim.INFEASIBLE_OR_UNBOUNDED):
            self.fault = unbounded_refuted(self.task, program, claim, self.options)

    def establish_bound(self) -> None:
        """Take the proved bound, or the backend's; drop it if a plan at hand or a short search refutes it."""
        found = bound_of_solve(self.task, self.answer, self.solution, self.progress.bound)
        self.bound, self.bound_proved = found.value, found.proved
        if found.note:
            self.notes.append(found.note)
        if self.objective is not None:
            self._compare_bound_with(self.objective)
        if not self.task.problem.proves_bounds:
            self._refute_bound()

    def conclude(self) -> Termination:
        """Return the termination; without a plan, the bound follows from it."""
        if self.fault:
            return Termination(TerminationReason.NUMERICAL, message=self.fault)
        if self.objective is not None:
            if not self.task.problem.claims_optimality:
                return _limited(TerminationReason.FEASIBLE, self.answer, "with a plan", self.options)
            return termination_with_plan(self.answer, self.objective, self.bound, self.gap, self.options)
        termination = termination_without_plan(self.answer, self.options)
        if termination.reason is TerminationReason.INFEASIBLE:
            self.bound = -self.sign * math.inf
        elif termination.reason is not TerminationReason.NO_SOLUTION_FOUND:
            self.bound = self.sign * math.inf
        return termination

    def _compare_bound_with(self, objective: float) -> None:
        """Move an exceeded bound to the objective, if rounding explains the excess or the bound is proved."""
        if not math.isfinite(objective):
            self.fault = self.fault or "the plan's objective is not finite"
            if not self.bound_proved:
                self.bound = self.sign * math.inf
        elif self.sign * (self.bound - objective) < 0:
            excess = self.sign * (objective - self.bound)
            if self.bound_proved or excess <= self.options.feasibility_tol * max(1.0, abs(objective)):
                self.bound = objective
            else:
                side = f"is on the wrong side of a verified plan by {excess:.3g}"
                self._drop_bound(f"the backend's bound {self.bound:.12g} {side}")

    def _refute_bound(self) -> None:
        """Drop a bound of a program that a short search beats, even one that duals prove."""
        program = self.task.program
        if program is None or not math.isfinite(self.bound):
            return
        values = None if self.solution is None else self.solution.values
        duals = self.answer.duals if self.bound_proved else None
        refuted = refuted_bound(program, values, self.bound, self.options.feasibility_tol, duals)
        if refuted:
            self._drop_bound(refuted)

    def _drop_bound(self, fault: str) -> None:
        self.fault = self.fault or fault
        self.bound = self.sign * math.inf


def _by_block(program: Program | None, what: str, values: Floats | None) -> dict[str, Floats] | None:
    if program is None or values is None:
        return None
    blocks = program.rows if what == "rows" else program.columns
    return {name: values[index] for name, index in blocks.items()}


def termination_with_plan(answer: Answer, objective: float, bound: float, gap: float, options: Options) -> Termination:
    """Return OPTIMAL if the gap is closed within the options' tolerances, else FEASIBLE with the limit."""
    if gap <= max(options.rel_gap, CLOSED_GAP) or abs(bound - objective) <= options.abs_gap:
        message = answer.message if answer.claim is Claim.SOLVED else ""
        return Termination(TerminationReason.OPTIMAL, message=message)
    left = f"with a plan whose gap is {gap:.2g}" if math.isfinite(gap) else "with a plan, but no bound"
    return _limited(TerminationReason.FEASIBLE, answer, left, options)


def termination_without_plan(answer: Answer, options: Options) -> Termination:
    """Return the claim of a backend without a plan, if it concerns all plans; else the limit that stopped it."""
    if answer.claim in (Claim.INFEASIBLE, Claim.UNBOUNDED, Claim.INFEASIBLE_OR_UNBOUNDED):
        return Termination(TerminationReason[answer.claim.name], message=answer.message)
    left = "before it had a plan; there may be one"
    return _limited(TerminationReason.NO_SOLUTION_FOUND, answer, left, options)


def _limited(reason: TerminationReason, answer: Answer, left: str, options: Options) -> Termination:
    """Return a termination that names the limit, the state it left, advice, and the backend's own message."""
    limit = answer.limit or Limit.METHOD
    other = f"it stopped at its limit of {limit.value}", "a higher limit in backend_options may help"
    what, advice = ADVICE.get(limit, other)
    if limit is Limit.TIME and options.time_limit is not None:
        what = f"it stopped at time_limit={options.time_limit:g} s"
    message = f" [{answer.message}]" if answer.message else ""
    return Termination(reason, limit, f"{what} {left}: {advice}{message}")
