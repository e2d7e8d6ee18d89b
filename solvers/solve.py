"""One `solve` for every problem: choose a backend, run it, and verify its answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Never, TypeVar

import numpy as np

from ..formulations.arrays import Floats
from ..formulations.checks import as_flag
from ..formulations.errors import EquipoiseError, InvalidInput
from ..formulations.program.formulation import Formulation
from .answers import error_text, well_formed
from .backend import Answer, Backend, Claim, Task
from .isolation.run import Isolation, run_isolated
from .options import DEFAULTS, Options, refuse_unknown
from .reductions.run import run_backend
from .registry import find_backend
from .result import HistoryPoint, Limit, Result
from .selection import CandidateTable, ProblemInfo, Selection
from .verification.checked_solution import ProgressRecorder
from .verification.verify import Verification

PlanT = TypeVar("PlanT")


def solve(
    problem: Formulation[PlanT],
    backend: str | Backend = "auto",
    *,
    form: str | None = None,
    isolate: bool | Isolation = False,
    explain: bool = False,
    on_progress: Callable[[HistoryPoint], None] | None = None,
    time_limit: float | None = DEFAULTS.time_limit,
    rel_gap: float = DEFAULTS.rel_gap,
    abs_gap: float = DEFAULTS.abs_gap,
    feasibility_tol: float = DEFAULTS.feasibility_tol,
    threads: int = DEFAULTS.threads,
    seed: int = DEFAULTS.seed,
    warm_start: Any = DEFAULTS.warm_start,
    log: bool = DEFAULTS.log,
    backend_options: Mapping[str, Mapping[str, Any]] = DEFAULTS.backend_options,
    **unknown: Never,
) -> Result[PlanT]:
    """Solve a problem, and verify the answer.

    Parameters
    ----------
    problem : formulation or Program
    backend : str or Backend
        A name from :func:`backends`; "auto", the first suitable one (see :func:`candidates`); or a backend object.
    form : str, optional
        Form of the program that a general backend gets, from `problem.forms`; the first by default.
    isolate : bool or Isolation
        Whether to run the backend in a separate process, which is ended at the time limit plus a grace period: a solver
        that hangs or crashes does not affect the caller.
    explain : bool
        Whether to fill `Result.candidates`: why "auto" took one backend and passed over the others.
    on_progress : callable, optional
        Called with a :class:`HistoryPoint` as the incumbent or the bound improves.
    time_limit, rel_gap, abs_gap, feasibility_tol, threads, seed, warm_start, log, backend_options
        The common options: see :class:`Options`.

    Returns
    -------
    Result
        The result of any ordinary outcome, also infeasible, unbounded, out of time, or a failed solver.

    Raises
    ------
    BackendNotFound, BackendUnavailable, LicenseLimit, UnsupportedProblem, InvalidInput
        If the call or the environment is at fault, before anything runs. An option that does not exist is an
        :class:`UnknownOption`, an InvalidInput that names the nearest one.
    """
    started = time.perf_counter()
    refuse_unknown(unknown, "backend", "form", "isolate", "explain", "on_progress")
    options = Options(
        time_limit=time_limit, rel_gap=rel_gap, abs_gap=abs_gap, feasibility_tol=feasibility_tol, threads=threads,
        seed=seed, warm_start=warm_start, log=log, backend_options=backend_options,
    )  # fmt: skip
    for other in options.backend_options:
        if other != getattr(backend, "name", None):
            find_backend(other)
    info = ProblemInfo(problem, form)
    as_flag("explain", explain)
    if not isinstance(isolate, Isolation):
        as_flag("isolate", isolate)
    if on_progress is not None and not callable(on_progress):
        raise InvalidInput("on_progress", on_progress, "must be callable")

    selection = Selection(info, options)
    if backend == "auto":
        solver, version = selection.choose()
    else:
        solver = backend if not isinstance(backend, str) and hasattr(backend, "probe") else find_backend(backend)
        version = selection.check_named(solver)
    if options.warm_start is not None:
        problem.check_plan(options.warm_start, "warm_start")
    considered = selection.table() if explain else CandidateTable()

    if form is None and info.kind in solver.formulations:
        task = Task(problem=problem, form="special")
    else:
        task = Task(problem=problem, form=info.form, program=info.program, start=_start(info, options))
    progress = ProgressRecorder(task, options, started, on_progress)
    answer = _answer(solver, task, options, progress, isolate)
    progress.raise_callers_error()
    verification = Verification(task, answer, options, progress)
    return verification.result(backend=solver.name, version=version, candidates=considered)


def _answer(
    solver: Backend, task: Task, options: Options, progress: ProgressRecorder, isolate: bool | Isolation
) -> Answer:
    """Run the backend; every failure except a fault of the caller becomes an Answer."""
    program = task.program
    nothing = program is not None and not program.num_columns
    if options.time_limit is not None and program is not None:
        options = options.with_time(max(0.0, options.time_limit - progress.elapsed()))
    try:
        if (isolate or solver.isolated) and not nothing:
            how = isolate if isinstance(isolate, Isolation) else Isolation()
            answer = run_isolated(solver, task, options, progress, how)
        else:
            answer = run_backend(solver, task, options, progress)
    except EquipoiseError:
        raise
    except MemoryError:
        return Answer(claim=Claim.STOPPED, limit=Limit.MEMORY, message=f"{solver.name} ran out of memory")
    except (Exception, SystemExit) as error:
        progress.raise_callers_error()
        return Answer(claim=Claim.FAILED, message=f"{solver.name} failed: {error_text(error)}")
    return well_formed(answer, task, solver.name)


def _start(info: ProblemInfo, options: Options) -> Floats | None:
    """Return the warm start by column of the program; an error in it names the option instead of a plan."""
    if options.warm_start is None:
        return None
    try:
        start = info.problem.encode(options.warm_start, info.form)
    except InvalidInput as error:
        if error.field.partition(".")[0] != "plan":
            raise
        raise InvalidInput("warm_start" + error.field[4:], error.value, error.why, error.index) from None
    return np.asarray(start, dtype=np.float64)
