"""SCIP backend: a branch-and-cut solver of linear and mixed-integer programs."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ....formulations.arrays import Floats
from ....formulations.program.data import ProblemClass
from ....formulations.program.model import Program
from ...backend import Answer, Backend, Claim, Progress, Task, gaps
from ...deadline import Deadline
from ...options import Options
from ...result import Limit
from ..conventions import inner_tolerance, reduced_costs, warm_start_note
from .model import ScipModel

# SCIP's numerics/epsilon: it treats smaller differences as 0.
SMALLEST_TOLERANCE = 1e-9
# Whole numbers are rounded after SCIP's test of its gap.
GAP_SHARE = 0.99
VERDICTS: dict[str, tuple[Claim, Limit | None]] = {
    "optimal": (Claim.SOLVED, None),
    "gaplimit": (Claim.SOLVED, None),
    "infeasible": (Claim.INFEASIBLE, None),
    "unbounded": (Claim.UNBOUNDED, None),
    "inforunbd": (Claim.INFEASIBLE_OR_UNBOUNDED, None),
    "timelimit": (Claim.STOPPED, Limit.TIME),
    "nodelimit": (Claim.STOPPED, Limit.NODES),
    "totalnodelimit": (Claim.STOPPED, Limit.NODES),
    "stallnodelimit": (Claim.STOPPED, Limit.NODES),
    "sollimit": (Claim.STOPPED, Limit.SOLUTIONS),
    "bestsollimit": (Claim.STOPPED, Limit.SOLUTIONS),
    "memlimit": (Claim.STOPPED, Limit.MEMORY),
    "userinterrupt": (Claim.STOPPED, Limit.INTERRUPTED),
    "restartlimit": (Claim.STOPPED, Limit.METHOD),
    "primallimit": (Claim.STOPPED, Limit.METHOD),
    "duallimit": (Claim.STOPPED, Limit.METHOD),
}


class Scip(Backend):
    """SCIP through pyscipopt: branch and cut with all its features; for an LP its simplex method alone."""

    name = "scip"
    licence = "Apache-2.0"
    requires = ("pyscipopt>=6.2",)  # the first version whose models can be freed explicitly
    extra = "scip"
    classes = frozenset({ProblemClass.LP, ProblemClass.MILP})
    supported_options = frozenset({"seed", "warm_start", "log"})
    covered_options: ClassVar = {
        "limits/time": "time_limit",
        "timing/clocktype": "time_limit",
        "timing/enabled": "time_limit",
        "limits/gap": "rel_gap",
        "limits/absgap": "abs_gap",
        "numerics/feastol": "feasibility_tol",
        "randomization/randomseedshift": "seed",
        "display/verblevel": "log",
    }
    known_options = None  # the solver refuses unknown options

    def solve(self, task: Task, options: Options, on_progress: Progress) -> Answer:
        """Build the model, stream incumbents and bounds, and read the proved values."""
        deadline = Deadline.of(options)
        scip = self._model(task, options)
        try:
            notes = _start(scip, task.start, options, on_progress)
            raised = [] if scip.linear else scip.listen(on_progress)
            status = scip.optimize(deadline)
            if raised:
                raise raised[0]
            answer = _answer(scip, status, notes)
        finally:
            scip.free()
        if answer.claim is Claim.INFEASIBLE_OR_UNBOUNDED:
            return self._infeasible_or_unbounded(task, options, answer, deadline)
        return answer

    def _infeasible_or_unbounded(self, task: Task, options: Options, answer: Answer, deadline: Deadline) -> Answer:
        """Decide between infeasible and unbounded: without an objective, a program is not unbounded."""
        scip = self._model(task, options, feasibility_only=True)
        try:
            status = scip.optimize(deadline)
            if scip.values() is not None:
                message = f"{answer.message}, and there are plans"
                return Answer(claim=Claim.UNBOUNDED, message=message, notes=answer.notes)
            return _answer(scip, status, answer.notes) if status == "infeasible" else answer
        finally:
            scip.free()

    def _model(self, task: Task, options: Options, *, feasibility_only: bool = False) -> ScipModel:
        program, factor, own = task.stated_program, task.objective_factor, self.backend_options(options)
        asked = _parameters(program, options)
        return ScipModel(
            program, asked, own, log=options.log, feasibility_only=feasibility_only, objective_factor=factor
        )


def _parameters(program: Program, options: Options) -> dict[str, Any]:
    relative, absolute = gaps(program, options)
    tolerance = inner_tolerance(options, SMALLEST_TOLERANCE)
    return {
        # SCIP's gap is |primal - dual| / min(|primal|, |dual|), infinite if the signs differ: never less than ours.
        "limits/gap": GAP_SHARE * relative,
        "limits/absgap": GAP_SHARE * absolute,
        "numerics/feastol": tolerance,
        "numerics/sumepsilon": min(tolerance, 1e-6),  # SCIP requires that it be no larger
        "randomization/randomseedshift": options.seed,
        "heuristics/completesol/maxunknownrate": 1.0,  # complete a start however few of its values are given
    }


def _start(scip: ScipModel, start: Floats | None, options: Options, on_progress: Progress) -> tuple[str, ...]:
    """Pass the warm start to SCIP; return the note on its use."""
    if start is None:
        return ()
    program, note = scip.program, warm_start_note(scip.program, start, options, "SCIP")
    feasible = program.residuals_at(start).worst <= options.feasibility_tol
    scip.fallback = start if feasible else None
    if scip.linear:
        use = f"{note}, kept as a fallback" if feasible else "warm start dropped"
        return (f"{use}: SCIP's simplex method does not start from a point",)
    if feasible or not np.isfinite(start).all():
        scip.offer(start)
    elif not program.integer.all():
        # SCIP drops a start that violates the program, but completes one that leaves columns open.
        scip.offer(np.where(program.integer, start, np.nan))
    if feasible:  # SCIP does not report it as an incumbent
        on_progress(program.objective_at(start), scip.nothing, start)
    return (note,)


def _answer(scip: ScipModel, status: str, notes: tuple[str, ...]) -> Answer:
    claim, limit = VERDICTS.get(status, (Claim.FAILED, None))
    values = duals = reduced = bound = ray = None
    if claim in (Claim.SOLVED, Claim.STOPPED):
        values, bound = scip.values(), scip.bound()
        values = scip.fallback if values is None else values
    if status == "optimal":
        duals = scip.duals()
    if duals is not None:
        reduced = reduced_costs(scip.program, duals)
    if status == "infeasible":
        ray = scip.ray()
    return Answer(
        claim=claim, limit=limit, message="" if claim is Claim.SOLVED else f"SCIP: {status}", values=values,
        bound=bound, duals=duals, reduced_costs=reduced, ray=ray, notes=notes,
    )  # fmt: skip


BACKEND = Scip()
