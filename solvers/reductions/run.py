"""Run any backend on a task: small objectives are scaled, log terms are approximated by tangent cuts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ...formulations.arrays import Floats
from ..backend import Answer, Backend, Claim, Progress, Task
from ..options import Options
from .outer_approximation.solve import solve_by_tangents


def run_backend(backend: Backend, task: Task, options: Options, on_progress: Progress) -> Answer:
    """Run the backend on the task with a scaled objective; by tangent cuts if it does not read log terms.

    A program without columns is answered here: some solvers call it an error.
    """
    program = task.program
    if program is not None and not program.num_columns:
        nothing = np.zeros(0)
        if program.residuals_at(nothing).row > 0:
            return Answer(claim=Claim.INFEASIBLE)
        return Answer(claim=Claim.SOLVED, values=nothing, bound=program.objective_at(nothing))
    factor = raising_factor(task)
    if factor != 1.0:
        larger, theirs = raised(task, options, factor)
        answer = run_backend(backend, larger, theirs, lowering(on_progress, factor))
        return lowered(answer, factor) if isinstance(answer, Answer) else answer
    if program is None or program.problem_class in backend.classes:
        return backend.solve(task, options, on_progress)
    return solve_by_tangents(backend, task, options, on_progress)


def raising_factor(task: Task) -> float:
    """Return the power of two that brings the largest coefficient of the objective to between 1 and 2, at least 1.

    HiGHS, for example, calls a knapsack of costs around 1e-7 optimal at a thirtieth of its value.
    """
    program = task.program
    if program is None:
        return 1.0
    largest = max(np.abs(program.objective).max(initial=0.0), np.abs(program.log_weights).max(initial=0.0))
    return 2.0 ** -math.floor(math.log2(largest)) if 1e-300 < largest < 1.0 else 1.0


def raised(task: Task, options: Options, factor: float) -> tuple[Task, Options]:
    """Return the task and its options with the objective multiplied by `factor`; a power of two changes no digit."""
    program = task.stated_program
    larger = replace(
        program,
        objective=program.objective * factor,
        offset=program.offset * factor,
        log_weights=program.log_weights * factor,
        gap_unit=None if program.gap_unit is None else program.gap_unit * factor,
    )
    larger_task = replace(task, problem=larger, program=larger, objective_factor=factor)
    return larger_task, replace(options, abs_gap=options.abs_gap * factor)


def lowered(answer: Answer, factor: float) -> Answer:
    """Return the answer in the units of the original program."""

    def down(given: Floats | None) -> Floats | None:
        return None if given is None else np.asarray(given) / factor

    return replace(
        answer,
        bound=None if answer.bound is None else answer.bound / factor,
        duals=down(answer.duals),
        reduced_costs=down(answer.reduced_costs),
        slopes=down(answer.slopes),
    )


def lowering(on_progress: Progress, factor: float) -> Progress:
    """Return a callback for reports in the scaled units."""

    def report(
        objective: float | None, bound: float, incumbent: object = None, measures: Mapping[str, float] | None = None
    ) -> None:
        on_progress(None if objective is None else objective / factor, bound / factor, incumbent, measures)

    return report
