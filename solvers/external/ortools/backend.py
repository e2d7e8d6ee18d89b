"""CP-SAT backend (OR-Tools): mixed-integer programs in whole numbers, always in a separate process."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from ....formulations.arrays import Floats
from ....formulations.checks import as_real
from ....formulations.errors import InvalidInput
from ....formulations.program.data import ProblemClass
from ....formulations.program.model import Program
from ...backend import Answer, Backend, Claim, Progress, Task, gaps
from ...deadline import Deadline
from ...options import Options
from ...result import Limit
from ..conventions import warm_start_note
from .scaling import WholeProgram, whole_program

# Parameters that change the program, or lead to wrong answers.
REFUSED = {
    "fix_variables_to_their_hinted_value": "it would solve another program; fix columns by their bounds",
    "instantiate_all_variables": "without it, CP-SAT leaves columns open and takes them for solved",
    "use_exact_lp_reason": "without it, CP-SAT's bounds are wrong by the rounding of floats",
}
# CP-SAT's relative gap is in max(|objective|, 1), ours in max(|objective|, 1e-9): its objective is in billionths.
UNITS = 1e9
# Share of the gap at which CP-SAT stops; the rest is a margin for rounding.
GAP_SHARE = 0.9
# From this share of columns on a grid, CP-SAT alternates several branching rules, with all rows in its linear
# relaxation: by its defaults it may enumerate a grid point by point. With few such columns the defaults are faster.
GRID_COLUMNS = 0.1
# Own options that stop CP-SAT, and the limits that they mean.
STOPS = {
    "stop_after_first_solution": Limit.SOLUTIONS,
    "max_deterministic_time": Limit.ITERATIONS,
    "max_num_deterministic_batches": Limit.ITERATIONS,
    "max_number_of_conflicts": Limit.NODES,
    "max_memory_in_mb": Limit.MEMORY,
    "stop_after_presolve": Limit.METHOD,
    "stop_after_root_propagation": Limit.METHOD,
}


class CpSat(Backend):
    """CP-SAT on integers: `scaling` describes how a program is converted."""

    name = "ortools"
    licence = "Apache-2.0"
    requires = ("ortools>=9.15",)  # earlier versions have other types of parameters and responses
    extra = "ortools"
    classes = frozenset({ProblemClass.MILP})
    supported_options = frozenset({"threads", "seed", "warm_start", "log"})
    covered_options: ClassVar = {
        "max_time_in_seconds": "time_limit",
        "relative_gap_limit": "rel_gap",
        "absolute_gap_limit": "abs_gap",
        "num_workers": "threads",
        "num_search_workers": "threads",
        "random_seed": "seed",
        "log_search_progress": "log",
        "log_to_stdout": "log",
    }
    known_options = None  # the solver refuses unknown options
    isolated = True  # ortools and highspy cannot be loaded into one process
    supports_outer_approximation = False  # their continuous columns, on a grid, take minutes

    def solve(self, task: Task, options: Options, on_progress: Progress) -> Answer:
        """Scale the program to integers, stream incumbents and bounds, and read what CP-SAT proved.

        Raise UnsupportedProblem for a program whose ranges or coefficients CP-SAT cannot hold.
        """
        program, deadline = task.stated_program, Deadline.of(options)
        own = self.backend_options(options)
        grid = own.pop("grid", None)
        if grid is not None:
            grid = as_real("backend_options['ortools']['grid']", grid, above=0.0)
        whole = whole_program(program, options, grid)
        notes = _scaling_notes(program, whole)
        if task.start is not None:
            notes = (*notes, warm_start_note(program, task.start, options, "CP-SAT"))
        best = Best(program, whole, on_progress)
        if task.start is not None and program.residuals_at(task.start).worst <= options.feasibility_tol:
            best.take(task.start)
        if whole.never:
            return _no_point(whole, whole.never, notes)

        from ortools.sat.python import cp_model

        model, solver = cp_model.CpModel(), cp_model.CpSolver()
        pass_program(model.proto, program.sense, whole)
        if task.start is not None:
            given, hint = np.isfinite(task.start), model.proto.solution_hint
            hint.vars.extend(np.flatnonzero(given).tolist())
            hint.values.extend(whole.columns.counts(np.where(given, task.start, 0.0))[given].tolist())
        _set_parameters(solver.parameters, program, whole, deadline.options(), own)

        class ProgressCallback(cp_model.CpSolverSolutionCallback):  # type: ignore[misc]
            def on_solution_callback(self) -> None:
                best.take(best.values(self.response_proto))

        solver.best_bound_callback = best.take_bound
        solver.solve(model, ProgressCallback())
        if solver.response_proto.status == cp_model.MODEL_INVALID:
            fault = model.validate()
            if not fault:  # the parameters are at fault
                raise InvalidInput("backend_options['ortools']", own, f"CP-SAT: {solver.solution_info()}")
            return Answer(claim=Claim.FAILED, message=f"CP-SAT does not take the model: {fault}", notes=notes)
        # CP-SAT does not report which limit stopped it.
        limit = next((limit for name, limit in STOPS.items() if name in own), Limit.INTERRUPTED)
        if options.time_limit is not None and solver.wall_time >= 0.95 * solver.parameters.max_time_in_seconds:
            limit = Limit.TIME
        return _answer(solver, best, limit, notes)


class Best:
    """The best incumbent and bound so far, in terms of the original program, reported as they improve."""

    def __init__(self, program: Program, whole: WholeProgram, on_progress: Progress) -> None:
        self.objective: float | None = None
        self.bound: float | None = None
        self.whole = whole
        self._program, self._on_progress = program, on_progress
        self._turn = -program.sign
        if whole.columns.covers:
            # CP-SAT reports a bound of 0 before it has one; this bound holds without it.
            least = int(np.minimum(whole.costs * whole.columns.most, 0).sum()) / whole.scale + whole.constant
            self.bound = self._turn * whole.bound(least)

    def values(self, response: Any) -> Floats:
        """Return the values by column of a `CpSolverResponse` that has a solution."""
        return self.whole.columns.values(np.array(list(response.solution), dtype=np.int64))

    def take(self, values: Floats) -> None:
        """Record an incumbent, by column."""
        objective = self._program.objective_at(values)
        if self.objective is None or self._turn * (objective - self.objective) < 0:
            self.objective = objective
        self._on_progress(self.objective, -self._turn * math.inf if self.bound is None else self.bound, values)

    def take_bound(self, bound: float) -> None:
        """Record a bound of CP-SAT, corrected by the largest error of rounding."""
        if not (self.whole.columns.covers and self.whole.costs.any()):
            return
        corrected = self._turn * self.whole.bound(self._turn * bound / UNITS)
        if self.bound is None or self._turn * (corrected - self.bound) > 0:
            self.bound = corrected
            self._on_progress(self.objective, corrected)


def _answer(solver: Any, best: Best, limit: Limit, notes: tuple[str, ...]) -> Answer:
    from ortools.sat.python import cp_model

    status = solver.response_proto.status
    message = "" if status == cp_model.OPTIMAL else f"CP-SAT: {status.name}"
    if status == cp_model.INFEASIBLE:
        return _no_point(best.whole, message, notes)
    if status == cp_model.UNKNOWN:
        return Answer(claim=Claim.STOPPED, limit=limit, message=message, bound=best.bound, notes=notes)
    values = best.values(solver.response_proto)
    if status == cp_model.FEASIBLE:
        return Answer(claim=Claim.STOPPED, limit=limit, message=message, values=values, bound=best.bound, notes=notes)
    if not best.whole.columns.covers:
        message = "the best point of the grid; there may be a better one off it"
        return Answer(claim=Claim.STOPPED, limit=Limit.METHOD, message=message, values=values, notes=notes)
    best.take_bound(solver.best_objective_bound)
    return Answer(claim=Claim.SOLVED, values=values, bound=best.bound, notes=notes)


def pass_program(proto: Any, sense: str, whole: WholeProgram) -> None:
    """Fill a `CpModelProto`, row by row."""
    add_variable, add_row = proto.variables.add, proto.constraints.add
    for most in whole.columns.most.tolist():
        add_variable().domain.extend((0, most))
    starts, entries, coefficients = whole.starts.tolist(), whole.entries.tolist(), whole.coefficients.tolist()
    sides = zip(whole.lower.tolist(), whole.upper.tolist(), strict=True)
    for i, side in enumerate(sides):
        row = add_row().linear
        row.vars.extend(entries[starts[i] : starts[i + 1]])
        row.coeffs.extend(coefficients[starts[i] : starts[i + 1]])
        row.domain.extend(side)
    used = np.flatnonzero(whole.costs)
    if len(used):
        turn = 1.0 if sense == "min" else -1.0
        proto.objective.vars.extend(used.tolist())
        proto.objective.coeffs.extend(whole.costs[used].tolist())
        proto.objective.offset = whole.constant * whole.scale
        proto.objective.scaling_factor = turn * UNITS / whole.scale


def set_common(parameters: Any, options: Options) -> None:
    """Set the parameters of CP-SAT that state common options, but for the gaps."""
    parameters.num_workers = options.threads
    parameters.interleave_search = options.threads > 1  # without it several threads do not repeat their search
    parameters.random_seed = options.seed
    parameters.log_search_progress = options.log
    if options.time_limit is not None:
        parameters.max_time_in_seconds = options.time_limit


def _set_parameters(
    parameters: Any, program: Program, whole: WholeProgram, options: Options, own: Mapping[str, Any]
) -> None:
    relative, absolute = gaps(program, options)
    set_common(parameters, options)
    parameters.relative_gap_limit = GAP_SHARE * relative
    parameters.absolute_gap_limit = max(0.0, GAP_SHARE * absolute - whole.loss) * UNITS
    if whole.columns.on_grid.mean() > GRID_COLUMNS:
        parameters.search_branching = parameters.SearchBranching.PORTFOLIO_WITH_QUICK_RESTART_SEARCH
        parameters.linearization_level = 2
    for name, value in own.items():
        _set_own(parameters, name, value)


def _set_own(parameters: Any, name: str, value: Any) -> None:
    """Set one of CP-SAT's parameters by name; an enumeration's member by its name as well."""
    field = f"backend_options['ortools'][{name!r}]"
    if not isinstance(getattr(type(parameters), str(name), None), property):
        raise InvalidInput(field, value, "CP-SAT has no such parameter")
    if name.startswith("mip_"):
        raise InvalidInput(field, value, "CP-SAT reads it for programs in floats; it is given integers here")
    if name in REFUSED:
        raise InvalidInput(field, value, REFUSED[name])
    present = getattr(parameters, name)
    try:
        if hasattr(present, "extend"):
            present.extend(value)
        else:
            member = getattr(type(present), "__members__", {}).get(value) if isinstance(value, str) else None
            setattr(parameters, name, value if member is None else member)
    except TypeError:
        raise InvalidInput(field, value, "CP-SAT does not take this value") from None


def _no_point(whole: WholeProgram, why: str, notes: tuple[str, ...]) -> Answer:
    if whole.columns.covers:
        return Answer(claim=Claim.INFEASIBLE, message=why, notes=notes)
    message = f"{why}: the grid has no point; there may be one off it"
    return Answer(claim=Claim.STOPPED, limit=Limit.METHOD, message=message, notes=notes)


def _scaling_notes(program: Program, whole: WholeProgram) -> tuple[str, ...]:
    def continuous(count: int) -> str:
        return f"{count} continuous column" + ("" if count == 1 else "s")

    columns = whole.columns
    count, implied = int(columns.on_grid.sum()), int((columns.whole & ~program.integer).sum())
    notes = []
    if implied:
        notes.append(f"{continuous(implied)} searched as whole numbers: they are whole at some optimum")
    if count:
        steps = columns.step[columns.on_grid]
        span = f"{steps.min():.3g}" if steps.min() == steps.max() else f"{steps.min():.3g} to {steps.max():.3g}"
        grid = f"{continuous(count)} on a grid of {span}"
        if columns.covers:
            notes.append(f"{grid}, which stands for every value; the bound is corrected by {whole.loss:.3g}")
        else:
            notes.append(f"{grid}, which leaves values out: CP-SAT's bound holds on the grid only and is dropped")
    return tuple(notes)


BACKEND = CpSat()
