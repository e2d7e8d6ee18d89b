"""One solve by Gurobi of a configured model: run it, report progress, and read the proved values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....formulations.arrays import Floats
from ....formulations.program.model import Program
from ....formulations.program.to_gurobi import gurobi_values, log_terms, status_name
from ...backend import Answer, Claim, Progress, Task
from ...options import Options
from ...result import CLOSED_GAP, Limit
from ..conventions import by_column, warm_start_note


def run(model: Any, task: Task, options: Options, own: dict[str, Any], on_progress: Progress) -> Answer | None:
    """Return Gurobi's answer; None where tangent cuts suit the logarithms better."""
    program = task.stated_program
    notes = () if task.start is None else _start(model, program, task.start, options, own, on_progress)
    if len(log_terms(program)) and not program.integer.any():
        return _smooth_optimum(model, program, options, notes, on_progress)
    _optimize(model, program, on_progress)
    return _answer(model, program, options, notes)


def _start(
    model: Any, program: Program, start: Floats, options: Options, own: dict[str, Any], on_progress: Progress
) -> tuple[str, ...]:
    """Pass on the warm start; return the note on its use."""
    from gurobipy import GRB

    columns, given = model.getVars()[: program.num_columns], np.isfinite(start)
    rest = ""
    if program.integer.any():
        model.setAttr("Start", columns, np.where(given, start, GRB.UNDEFINED))
    elif len(log_terms(program)):
        rest = "which Gurobi's barrier does not use"
    elif "Method" not in own:
        model.setAttr("PStart", columns, np.where(given, start, np.clip(0.0, program.lower, program.upper)))
        model.setParam("Method", 0)  # the primal simplex is the only method for LPs that starts from a point
    if program.residuals_at(start).worst <= options.feasibility_tol:
        objective = program.objective_at(start)
        if not math.isfinite(objective):
            return ("warm start gives a logarithm no positive argument: Gurobi may repair or drop it",)
        on_progress(objective, program.sign * math.inf, start.copy())
    return (warm_start_note(program, start, options, "Gurobi", rest),)


def _optimize(model: Any, program: Program, on_progress: Progress) -> None:
    """Optimise, reporting incumbents and bounds; an exception of the callback ends the solve and is raised."""
    from gurobipy import GRB, gurobi

    at, columns, sign = GRB.Callback, model.getVars()[: program.num_columns], program.sign
    last_reported: tuple[float, float] | None = None
    errors: list[BaseException] = []

    def on_event(model: Any, where: int) -> None:
        nonlocal last_reported
        incumbent = None
        if where == at.MIPSOL:
            best, bound = model.cbGet(at.MIPSOL_OBJBST), model.cbGet(at.MIPSOL_OBJBND)
            found = model.cbGet(at.MIPSOL_OBJ)
            if abs(best) >= GRB.INFINITY or sign * found >= sign * best:  # Gurobi reports worse solutions as well
                best, incumbent = found, np.array(model.cbGetSolution(columns))
        elif where == at.MIP:
            best, bound = model.cbGet(at.MIP_OBJBST), model.cbGet(at.MIP_OBJBND)
        else:
            return
        if incumbent is not None or (best, bound) != last_reported:
            last_reported = best, bound
            known = bound if abs(bound) < GRB.INFINITY else sign * math.inf
            on_progress(best if abs(best) < GRB.INFINITY else None, known, incumbent)

    def callback(model: Any, where: int) -> None:
        if errors:
            return
        try:
            on_event(model, where)
        except BaseException as error:  # Gurobi would print it and continue
            errors.append(error)
            model.terminate()

    if gurobi.version() >= (13,):
        model.optimize(callback, wheres=[at.MIP, at.MIPSOL])  # avoids thousands of calls of other kinds
    else:
        model.optimize(callback)
    if errors:
        raise errors[0]


def _answer(model: Any, program: Program, options: Options, notes: tuple[str, ...]) -> Answer:
    from gurobipy import GRB

    status, integer = model.Status, bool(program.integer.any())
    if status in (GRB.INFEASIBLE, GRB.INF_OR_UNBD, GRB.UNBOUNDED):
        return _without_optimum(model, program, options, notes)
    limits = {
        GRB.TIME_LIMIT: Limit.TIME,
        GRB.WORK_LIMIT: Limit.TIME,  # measured by Gurobi's own clock, which counts work
        GRB.ITERATION_LIMIT: Limit.ITERATIONS,
        GRB.NODE_LIMIT: Limit.NODES,
        GRB.SOLUTION_LIMIT: Limit.SOLUTIONS,
        GRB.MEM_LIMIT: Limit.MEMORY,
        GRB.INTERRUPTED: Limit.INTERRUPTED,
    }
    values = duals = reduced = bound = None
    claim = {GRB.OPTIMAL: Claim.SOLVED, GRB.NUMERIC: Claim.FAILED}.get(status, Claim.STOPPED)
    if model.SolCount > 0:
        values = gurobi_values(program, model)
        if claim is Claim.SOLVED and not integer:
            duals, reduced = _prices(model, program)
    if integer and abs(model.ObjBound) < GRB.INFINITY:
        bound = model.ObjBound
    message = "" if claim is Claim.SOLVED else f"Gurobi: {status_name(status)}"
    return Answer(
        claim=claim, limit=limits.get(status, Limit.METHOD) if claim is Claim.STOPPED else None, message=message,
        values=values, bound=bound, duals=duals, reduced_costs=reduced, notes=notes,
    )  # fmt: skip


def _without_optimum(model: Any, program: Program, options: Options, notes: tuple[str, ...]) -> Answer:
    """Decide between infeasible and unbounded, and prove the former if possible: solve again for any feasible point.

    Gurobi's status "unbounded" means that there is a ray, not that there is a plan.
    """
    from gurobipy import GRB

    first, integer = model.Status, bool(program.integer.any())
    if first == GRB.INFEASIBLE and integer:
        return Answer(claim=Claim.INFEASIBLE, notes=notes)
    _set_time_left(model, options)
    model.setParam("InfUnbdInfo", 1)
    model.setObjective(0.0)
    model.optimize()
    if model.Status == GRB.INFEASIBLE:
        ray = None if integer else np.array(model.getAttr("FarkasDual", model.getConstrs()))
        return Answer(claim=Claim.INFEASIBLE, ray=ray, notes=notes)
    if model.SolCount > 0:
        if first == GRB.INFEASIBLE:
            return Answer(claim=Claim.FAILED, message="Gurobi: INFEASIBLE, and then a point without the objective")
        return Answer(claim=Claim.UNBOUNDED, notes=notes)
    if first == GRB.INFEASIBLE:
        return Answer(claim=Claim.INFEASIBLE, notes=notes)
    return Answer(claim=Claim.INFEASIBLE_OR_UNBOUNDED, message=f"Gurobi: {status_name(first)}", notes=notes)


def _smooth_optimum(
    model: Any, program: Program, options: Options, notes: tuple[str, ...], on_progress: Progress
) -> Answer | None:
    """Solve a continuous program with logarithms by Gurobi's barrier, and prove the optimum by one linear program.

    The barrier reports a locally optimal point without a bound; in a concave program that point is the optimum.
    The proof: with every logarithm replaced by its tangent at that point, the duals of the linear program bound the
    program itself. None if they do not close the gap.
    """
    from gurobipy import GRB

    model.optimize()
    if model.SolCount == 0:
        return None
    values = gurobi_values(program, model)
    inside, used = program.log_matrix.times(values) + program.log_offsets, program.log_weights > 0
    if (inside[used] <= 0).any() or program.residuals_at(values).worst > options.feasibility_tol:
        return None
    objective = program.objective_at(values)
    on_progress(objective, program.sign * math.inf, values)

    slopes = np.where(used, program.log_weights / np.where(used, inside, 1.0), 1.0)
    tangent = by_column(program.log_matrix, np.where(used, slopes, 0.0), program.num_columns)
    model.remove(model.getGenConstrs())
    model.setMObjective(None, program.objective + tangent, 0.0, xc=model.getVars()[: program.num_columns])
    model.setParam("OptimalityTarget", -1)
    _set_time_left(model, options)
    model.optimize()
    if model.Status != GRB.OPTIMAL:
        return None
    duals, reduced = _prices(model, program)
    gap = abs(program.linear_bound(duals, slopes) - objective)
    if gap > options.abs_gap and gap > max(options.rel_gap, CLOSED_GAP) * program.gap_scale(objective):
        return None
    return Answer(claim=Claim.SOLVED, values=values, duals=duals, reduced_costs=reduced, slopes=slopes, notes=notes)


def _prices(model: Any, program: Program) -> tuple[Floats, Floats]:
    """Return duals by row and reduced costs by column in our sign convention, for max and min alike."""
    columns = model.getVars()[: program.num_columns]
    return np.array(model.getAttr("Pi", model.getConstrs())), np.array(model.getAttr("RC", columns))


def _set_time_left(model: Any, options: Options) -> None:
    if options.time_limit is not None:
        model.setParam("TimeLimit", max(0.0, options.time_limit - model.Runtime))
