"""The plan as a JSON document: termination and bound always, the schedule where there is one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..json_text import json_value

if TYPE_CHECKING:
    from ...formulations.window.plan import WindowPlan
    from ...formulations.window.problem import ScheduleWindow
    from ...solvers.result import Result

PLAN_FORMAT = "equipoise.window-plan/1"


def plan_document(window: ScheduleWindow, result: Result[WindowPlan]) -> dict[str, Any]:
    """Return the plan document of a solved window, as `equipoise schema plan` describes it."""
    termination, plan = result.termination, result.plan
    certificate = result.certificate()
    residuals = certificate.residuals
    return {
        "format": PLAN_FORMAT,
        "termination": certificate.termination,
        "limit": None if termination.limit is None else termination.limit.name,
        "message": termination.message,
        "objective": json_value(certificate.objective),
        "bound": json_value(certificate.bound),
        "gap": json_value(certificate.gap),
        "residuals": None
        if residuals is None
        else {name: json_value(getattr(residuals, name)) for name in ("bound", "row", "integrality")},
        "wall_s": certificate.wall_time,
        "backend": certificate.backend,
        "form": certificate.form,
        "notes": list(certificate.notes),
        "rounds": window.rounds,
        "round_s": window.round_s,
        "gpus": window.gpus,
        "gpus_in_use": None if plan is None else plan.gpus_in_use.tolist(),
        "makespan_bound_s": None if plan is None else json_value(plan.makespan_bound_s),
        "restarts": None if plan is None else int(plan.restarts),
        "skipped": list(window.skipped),
        "jobs": None if plan is None else _jobs(plan),
    }


def _jobs(plan: WindowPlan) -> list[dict[str, Any]]:
    columns = {
        "id": plan.window.ids,
        "gpus": plan.window.gang_gpus.tolist(),
        "rounds": [row.nonzero()[0].tolist() for row in plan.grants],
        "regimes": [regime[row].tolist() for regime, row in zip(plan.regime_of, plan.grants, strict=True)],
        "utility": plan.utilities.tolist(),
        "remaining_s": [json_value(left) for left in plan.remaining_s.tolist()],
    }
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
