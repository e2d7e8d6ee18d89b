"""One `solve` for every problem: choose a backend, run it, and check its answer with our own arithmetic."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ..formulations.checks import as_flag
from ..formulations.errors import EquipoiseError, InvalidInput, UnsupportedProblem
from ..formulations.program.model import Floats, Program
from .answers import well_formed, words_of
from .backend import Answer, Backend, Claim, Task
from .isolation.run import Isolation, run_isolated
from .options import Options
from .reductions.run import run_backend
from .registry import find_backend, kind_of
from .result import HistoryPoint, Limit, Result
from .selection import CandidateTable, check_form, check_named, choose, weigh
from .verification.verify import Listener, verified


def solve(
    problem: Any,
    backend: str | Backend = "auto",
    *,
    form: str | None = None,
    isolate: bool | Isolation = False,
    explain: bool = False,
    on_progress: Callable[[HistoryPoint], None] | None = None,
    **options: Any,
) -> Result[Any]:
    """Solve a problem, and verify what comes back.

    Parameters
    ----------
    problem : formulation or Program
    backend : str or Backend
        A name from :func:`backends`; "auto", the first that can (see :func:`candidates`); or a backend object.
    form : str, optional
        Which of the problem's programs a general backend is given, from `problem.forms`; the first by default.
    isolate : bool or Isolation
        Run the backend in a process of its own, which is ended at the time limit plus a grace period: a solver that
        hangs or crashes takes nothing with it.
    explain : bool
        Fill `Result.candidates`: why "auto" took one backend and passed over the others.
    on_progress : callable, optional
        Called with a :class:`HistoryPoint` as the incumbent or the bound improves.
    **options
        The fields of :class:`Options`.

    Returns
    -------
    Result
        Always, for any ordinary outcome: infeasible, unbounded, out of time, a solver that fails.

    Raises
    ------
    BackendNotFound, BackendUnavailable, LicenseLimit, UnsupportedProblem, InvalidInput, TypeError
        Faults of the call or of the environment, before anything runs.
    """
    started = time.perf_counter()
    chosen = Options(**options)
    for other in chosen.backend_options:
        if other != getattr(backend, "name", None):
            find_backend(other)
    if problem is None:  # backends(None) lists them all
        raise UnsupportedProblem("cannot solve a NoneType: give a formulation or a Program")
    check_form(problem, form)
    as_flag("explain", explain)
    if not isinstance(isolate, Isolation):
        as_flag("isolate", isolate)
    if on_progress is not None and not callable(on_progress):
        raise InvalidInput("on_progress", on_progress, "must be callable")

    @cache
    def build() -> Program:
        program: Program = problem.program(form or problem.forms[0])
        return program

    if backend == "auto":
        solver, version = choose(problem, form, chosen, build)
    else:
        solver = backend if not isinstance(backend, str) and hasattr(backend, "probe") else find_backend(backend)
        version = check_named(solver, problem, form, chosen)
    if chosen.warm_start is not None and hasattr(problem, "check_plan"):
        problem.check_plan(chosen.warm_start, "warm_start")
    considered = CandidateTable(weigh(problem, form, chosen, build) if explain else ())

    if kind_of(problem) in solver.formulations and form is None:
        task = Task(problem=problem, form="special")
    else:
        program = build()
        task = Task(
            problem=problem,
            form=form or problem.forms[0],
            program=program,
            start=_start(problem, program, form or problem.forms[0], chosen),
        )
    listener = Listener(task, chosen, started, on_progress)
    answer = _answer(solver, task, chosen, listener, isolate)
    listener.raise_callers_error()
    return verified(task, answer, chosen, listener, backend=solver.name, version=version, candidates=considered)


def _answer(solver: Backend, task: Task, options: Options, listener: Listener, isolate: bool | Isolation) -> Answer:
    """Run the backend; whatever becomes of it, short of the caller's own faults, is an Answer."""
    program = task.program
    if program is not None and not program.num_columns:
        return _empty(program)
    if options.time_limit is not None and program is not None:
        options = options.with_time(max(0.0, options.time_limit - listener.elapsed()))
    try:
        if isolate or solver.isolated:
            how = isolate if isinstance(isolate, Isolation) else Isolation()
            answer = run_isolated(solver, task, options, listener, how)
        else:
            answer = run_backend(solver, task, options, listener)
    except EquipoiseError:
        raise
    except MemoryError:
        return Answer(claim=Claim.STOPPED, limit=Limit.MEMORY, message=f"{solver.name} ran out of memory")
    except (Exception, SystemExit) as error:
        listener.raise_callers_error()
        return Answer(claim=Claim.FAILED, message=f"{solver.name} failed: {words_of(error)}")
    return well_formed(answer, task, solver.name)


def _start(problem: Any, program: Program, form: str, options: Options) -> Floats | None:
    if options.warm_start is None:
        return None
    try:
        start = problem.encode(options.warm_start) if problem is program else problem.encode(options.warm_start, form)
    except InvalidInput as error:  # in the caller's words: its plan is our warm_start
        if error.field.partition(".")[0] != "plan":
            raise
        raise InvalidInput("warm_start" + error.field[4:], error.value, error.why, error.index) from None
    return np.asarray(start, dtype=np.float64)


def _empty(program: Program) -> Answer:
    nothing = np.zeros(0)
    if program.residuals_at(nothing).row > 0:
        return Answer(claim=Claim.INFEASIBLE)
    return Answer(claim=Claim.SOLVED, values=nothing, bound=program.objective_at(nothing))
