"""Run any backend on a task: small objectives are scaled, log terms are approximated by tangent cuts."""

from __future__ import annotations

from ..backend import Answer, Backend, Progress, Task
from ..options import Options
from .objective_scale import lowered, lowering, raised, raising_factor
from .outer_approximation.solve import solve_by_tangents


def run_backend(backend: Backend, task: Task, options: Options, on_progress: Progress) -> Answer:
    """Run the backend on the task with a scaled objective; by tangent cuts if it does not read log terms."""
    factor = raising_factor(task)
    if factor != 1.0:
        larger, theirs = raised(task, options, factor)
        answer = run_backend(backend, larger, theirs, lowering(on_progress, factor))
        return lowered(answer, factor) if isinstance(answer, Answer) else answer
    program = task.program
    if program is None or program.problem_class in backend.classes:
        return backend.solve(task, options, on_progress)
    return solve_by_tangents(backend, task, options, on_progress)
