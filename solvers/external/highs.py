"""HiGHS backend: the default solver of linear and mixed-integer programs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from ...formulations.arrays import Floats
from ...formulations.errors import InvalidInput
from ...formulations.program.data import ProblemClass
from ...formulations.program.model import Program
from ..backend import Answer, Backend, Claim, Progress, Task, gaps, ignore_progress
from ..options import Options
from ..reductions.run import run_backend
from ..result import Limit
from .conventions import inner_tolerance, warm_start_note

# Options that are values of the objective.
IN_OBJECTIVE = ("objective_bound", "objective_target")


class Highs(Backend):
    """HiGHS through its own Python interface, given arrays."""

    name = "highs"
    licence = "MIT"
    requires = ("highspy",)
    classes = frozenset({ProblemClass.LP, ProblemClass.MILP})
    supported_options = frozenset({"threads", "seed", "warm_start", "log"})
    covered_options: ClassVar = {
        "time_limit": "time_limit",
        "mip_rel_gap": "rel_gap",
        "mip_abs_gap": "abs_gap",
        "primal_feasibility_tolerance": "feasibility_tol",
        "mip_feasibility_tolerance": "feasibility_tol",
        "threads": "threads",
        "random_seed": "seed",
        "output_flag": "log",
        "log_to_console": "log",
    }
    known_options = None  # the solver refuses unknown options

    def solve(self, task: Task, options: Options, on_progress: Progress) -> Answer:
        """Pass the program as arrays, stream incumbents and bounds, and read the proved values."""
        import highspy

        program, own = task.stated_program, self.backend_options(options)
        solver = highspy.Highs()
        solver.setOptionValue("output_flag", options.log)
        for name, value in program_options(program, options).items():
            solver.setOptionValue(name, value)
        for name, value in own.items():
            if name in IN_OBJECTIVE and isinstance(value, float):
                own[name] = value * task.objective_factor
        set_own(solver, own, self.name)
        pass_program(solver, program)
        notes: tuple[str, ...] = ()
        if task.start is not None:
            given = np.flatnonzero(np.isfinite(task.start)).astype(np.int32)
            solver.setSolution(len(given), given, task.start[given])
            notes = (warm_start_note(program, task.start, options, "HiGHS"),)
        if program.problem_class is ProblemClass.MILP:
            _listen(solver, program, on_progress)
        if solver.run() == highspy.HighsStatus.kError and solver.getModelStatus() == highspy.HighsModelStatus.kNotset:
            # HiGHS starts its threads once per process and refuses another number of them: start them anew.
            highspy.Highs.resetGlobalScheduler(True)
            solver.run()
        status = solver.getModelStatus()
        if status == highspy.HighsModelStatus.kUnboundedOrInfeasible:
            solver.setOptionValue("presolve", "off")  # presolve cannot decide which; the simplex method can
            solver.run()
            status = solver.getModelStatus()
        return _answer(solver, program, status, notes)


def solved_by_highs(problem: Any, form: str, program: Program, options: Options, start: Floats | None = None) -> Answer:
    """Return the answer of HiGHS to a program that a special backend makes for its problem; progress is ignored."""
    task = Task(problem=problem, form=form, program=program, start=start)
    return run_backend(BACKEND, task, replace(options, warm_start=None), ignore_progress)


def set_own(solver: Any, own: Mapping[str, Any], backend: str) -> None:
    """Set a backend's own options on a `highspy.Highs`; InvalidInput for one that HiGHS refuses."""
    import highspy

    for name, value in own.items():
        if solver.setOptionValue(name, value) != highspy.HighsStatus.kOk:
            field = f"backend_options[{backend!r}][{name!r}]"
            raise InvalidInput(field, value, "HiGHS does not take this option or value")


def pass_program(solver: Any, program: Program) -> None:
    """Pass the program's arrays to a `highspy.Highs`, without a Python loop over them."""
    import highspy

    matrix = program.matrix
    lower, upper = program.whole_bounds  # HiGHS 1.15 misses optima between fractional bounds of integers
    if (lower > upper).any():
        lower, upper = program.lower, program.upper
    solver.passModel(
        program.num_columns,
        program.num_rows,
        len(matrix.values),
        int(highspy.MatrixFormat.kRowwise),
        int(highspy.ObjSense.kMaximize if program.sense == "max" else highspy.ObjSense.kMinimize),
        program.offset,
        program.objective,
        lower,
        upper,
        program.row_lower,
        program.row_upper,
        matrix.starts.astype(np.int32),
        matrix.columns.astype(np.int32),
        matrix.values,
        program.integer.astype(np.int32),
    )


def program_options(program: Program, options: Options) -> dict[str, Any]:
    """Return the options of HiGHS that state the common ones."""
    relative, absolute = gaps(program, options)
    tolerance = inner_tolerance(options)
    return {
        "time_limit": math.inf if options.time_limit is None else options.time_limit,
        "mip_rel_gap": relative,
        "mip_abs_gap": absolute,
        "primal_feasibility_tolerance": tolerance,
        "mip_feasibility_tolerance": tolerance,
        "threads": options.threads,
        "random_seed": options.seed,
    }


def _listen(solver: Any, program: Program, on_progress: Progress) -> None:
    from highspy import cb

    worst = -program.sign * math.inf

    def on_event(kind: int, message: str, out: Any, back: Any, data: Any) -> None:
        primal = out.mip_primal_bound
        on_progress(
            None if not math.isfinite(primal) or primal == worst else primal,
            out.mip_dual_bound,
            np.array(out.mip_solution) if kind == int(cb.HighsCallbackType.kCallbackMipImprovingSolution) else None,
        )

    solver.setCallback(on_event, None)
    solver.startCallback(cb.HighsCallbackType.kCallbackMipImprovingSolution)
    solver.startCallback(cb.HighsCallbackType.kCallbackMipLogging)


def _answer(solver: Any, program: Program, status: Any, notes: tuple[str, ...]) -> Answer:
    from highspy import HighsModelStatus as Status
    from highspy import SolutionStatus

    verdicts: dict[Any, tuple[Claim, Limit | None]] = {
        Status.kOptimal: (Claim.SOLVED, None),
        Status.kInfeasible: (Claim.INFEASIBLE, None),
        Status.kUnbounded: (Claim.UNBOUNDED, None),
        Status.kUnboundedOrInfeasible: (Claim.INFEASIBLE_OR_UNBOUNDED, None),
        Status.kTimeLimit: (Claim.STOPPED, Limit.TIME),
        Status.kIterationLimit: (Claim.STOPPED, Limit.ITERATIONS),
        Status.kSolutionLimit: (Claim.STOPPED, Limit.SOLUTIONS),
        Status.kInterrupt: (Claim.STOPPED, Limit.INTERRUPTED),
        Status.kMemoryLimit: (Claim.STOPPED, Limit.MEMORY),
        Status.kObjectiveBound: (Claim.STOPPED, Limit.METHOD),
        Status.kObjectiveTarget: (Claim.STOPPED, Limit.METHOD),
    }
    info = solver.getInfo()
    values = duals = reduced = bound = None
    claim, limit = verdicts.get(status, (Claim.FAILED, None))
    has_point = SolutionStatus(info.primal_solution_status) == SolutionStatus.kSolutionStatusFeasible
    if has_point and claim in (Claim.SOLVED, Claim.STOPPED):
        solution = solver.getSolution()
        values = np.array(solution.col_value)
        has_duals = SolutionStatus(info.dual_solution_status) == SolutionStatus.kSolutionStatusFeasible
        if has_duals and program.problem_class is ProblemClass.LP:
            duals, reduced = np.array(solution.row_dual), np.array(solution.col_dual)
    if program.problem_class is ProblemClass.MILP and math.isfinite(info.mip_dual_bound):
        bound = info.mip_dual_bound
    message = "" if claim is Claim.SOLVED else f"HiGHS: {solver.modelStatusToString(status)}"
    return Answer(
        claim=claim, limit=limit, message=message, values=values, bound=bound, duals=duals,
        reduced_costs=reduced, notes=notes,
    )  # fmt: skip


BACKEND = Highs()
