"""The result of a solve: the plan, its proof, and the reason of its end."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..formulations.errors import NoSolution
from ..formulations.program.certificate import SolveCertificate
from ..formulations.program.data import Residuals
from ..formulations.program.formulation import Formulation

Plan = TypeVar("Plan")

#: A gap at or below this counts as closed: sums of thousands of doubles have no higher accuracy.
CLOSED_GAP = 1e-9


class TerminationReason(Enum):
    """The reason why a solve ended."""

    OPTIMAL = "optimal"  #: a verified plan, its gap within rel_gap or abs_gap
    FEASIBLE = "feasible"  #: a verified plan, stopped by a limit before the gap closed
    NO_SOLUTION_FOUND = "no solution found"  #: stopped by a limit without a plan; there may be one
    INFEASIBLE = "infeasible"  #: the backend proved that there is no plan
    UNBOUNDED = "unbounded"  #: the backend found an unbounded objective
    INFEASIBLE_OR_UNBOUNDED = "infeasible or unbounded"  #: the backend could not decide which
    NUMERICAL = "numerical"  #: the backend failed, or its answer failed the check


#: Short name of `TerminationReason`.
Reason = TerminationReason


class Limit(Enum):
    """The limit that ended a FEASIBLE or NO_SOLUTION_FOUND solve."""

    TIME = "time"
    ITERATIONS = "iterations"
    NODES = "nodes"
    SOLUTIONS = "solutions"
    MEMORY = "memory"
    INTERRUPTED = "interrupted"  #: by the user
    METHOD = "method"  #: the backend's method ended without closing the gap between bound and plan


@dataclass(frozen=True)
class Termination:
    """The reason and the limit of a solve's end: a limit is set exactly for FEASIBLE and NO_SOLUTION_FOUND."""

    reason: TerminationReason
    limit: Limit | None = None
    message: str = ""

    def __post_init__(self) -> None:
        limited = self.reason in (TerminationReason.FEASIBLE, TerminationReason.NO_SOLUTION_FOUND)
        if limited != (self.limit is not None):
            raise ValueError(f"a termination {self.reason.name} {'needs' if limited else 'has no'} limit")

    def __str__(self) -> str:
        limit = f" ({self.limit.value} limit)" if self.limit else ""
        return self.reason.name + limit + (f": {self.message}" if self.message else "")


@dataclass(frozen=True)
class HistoryPoint:
    """One moment of a solve.

    Attributes
    ----------
    time : float
        Seconds since the start.
    objective : float or None
        Objective of the incumbent; None: none yet.
    bound : float
    measures : mapping of str to float
        Further figures of a search: "evaluations", and the best score of each objective. Empty for other backends.
    """

    time: float
    objective: float | None
    bound: float
    measures: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Result(Generic[Plan]):
    """The outcome of one solve.

    Attributes
    ----------
    termination : Termination
    plan : the problem's own answer type, or None
    objective : float or None
        Objective recomputed from the plan and the problem's data; None without a plan.
    bound : float
        Bound on the objective of every plan. Infinite when nothing is proved, never None; -inf (of a maximum) when
        infeasible.
    gap : float
        abs(bound - objective) / problem.gap_scale(objective); infinite without a plan.
    residuals : Residuals or None
        Violations recomputed from the problem's data; None without a plan.
    duals : mapping of str to ndarray, or None
        Change of the optimal objective per unit of the row's active side, by block of rows. LPs only.
    reduced_costs : mapping of str to ndarray, or None
        Change of the optimal objective per unit of the column's active bound, by block of columns.
    wall_time : float
        Seconds, measured here: building, solving, checking.
    history : tuple of HistoryPoint
        Reports of the backend on the way; the last point is the verified outcome.
    backend, version, form : str
        Name and version of the backend, and the form of the program that it solved; form is "special" for a backend
        that reads the problem itself.
    seed : int
    notes : tuple of str
        Facts for the reader: the source of the bound, fallbacks, the use of the warm start.
    candidates : tuple of Candidate
        With ``explain=True``: why "auto" took one backend and passed over the others; prints as a table.
    problem : formulation, Program or None
        What was solved.
    """

    termination: Termination
    plan: Plan | None
    objective: float | None
    bound: float
    gap: float
    residuals: Residuals | None
    duals: Mapping[str, NDArray[np.float64]] | None = None
    reduced_costs: Mapping[str, NDArray[np.float64]] | None = None
    wall_time: float
    history: tuple[HistoryPoint, ...] = ()
    backend: str
    version: str
    form: str
    seed: int
    notes: tuple[str, ...] = ()
    candidates: tuple[Any, ...] = ()
    problem: Formulation[Plan] | None = field(default=None, repr=False, compare=False)

    def require_plan(self) -> Plan:
        """Return the plan; raise NoSolution, carrying this result, when there is none."""
        if self.plan is None:
            raise NoSolution(f"no plan: {self.termination}", self)
        return self.plan

    def require_optimal(self) -> Plan:
        """Return the plan if it is proven optimal within the requested gap; raise NoSolution otherwise."""
        if self.termination.reason is not TerminationReason.OPTIMAL:
            raise NoSolution(f"not optimal: {self.termination}, gap {self.gap:.3g}", self)
        return self.require_plan()

    def with_plan(self, problem: Formulation[Plan], plan: Plan) -> Result[Plan]:
        """Return this result with another plan of the same problem: objective, residuals and gap recomputed.

        The bound is kept, as it holds for every feasible plan; where the plan exceeds it, by however much, it is moved
        to the plan's objective. An infeasible plan may exceed it by more than rounding: read the residuals first. The
        other fields are those of the solve.

        Parameters
        ----------
        problem : formulation or Program
            The problem that was solved.
        plan : the problem's own answer type

        Raises
        ------
        InvalidInput
            If the plan is not one of this problem.
        """
        problem.check_plan(plan, "plan")
        evaluated = problem.evaluate(plan)
        if evaluated is None:
            program = problem.program(self.form)
            values = problem.encode(plan, self.form)
            evaluated = program.objective_at(values), program.residuals_at(values)
        objective, residuals = evaluated
        bound = max(self.bound, objective) if problem.sense == "max" else min(self.bound, objective)
        gap = gap_between(problem, objective, bound)
        return replace(self, plan=plan, objective=objective, residuals=residuals, bound=bound, gap=gap)

    def certificate(self) -> SolveCertificate:
        """Return the data on the solve that documents and pages show beside the plan."""
        return SolveCertificate(
            objective=self.objective, bound=self.bound, gap=self.gap, residuals=self.residuals,
            termination=self.termination.reason.name,
            limit=None if self.termination.limit is None else self.termination.limit.value,
            message=self.termination.message, backend=self.backend, version=self.version, form=self.form,
            seed=self.seed, wall_time=self.wall_time, notes=self.notes,
        )  # fmt: skip

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the result as one self-contained HTML page, and write it to `path` if given.

        The page shows the certificate, objective and bound over time, and the plan: its picture if it has `to_svg`, its
        table if it has `to_frame`.

        Parameters
        ----------
        path : path-like, optional
            The file appears whole or not at all.

        Returns
        -------
        str
            The same text for the same result.
        """
        from ..formulations.files import write_text
        from ..formulations.program.page import render

        page = render(self.certificate(), self.plan, self.history)
        if path is not None:
            write_text(path, page)
        return page

    def __repr__(self) -> str:
        objective = "none" if self.objective is None else f"{self.objective:.8g}"
        gap = "inf" if math.isinf(self.gap) else f"{self.gap:.2e}"
        return (
            f"<Result {self.termination} objective={objective} bound={self.bound:.8g} gap={gap} "
            f"backend={self.backend} form={self.form} {self.wall_time:.3f} s>"
        )


def gap_between(problem: Formulation[Any], objective: float | None, bound: float) -> float:
    """Return abs(bound - objective) / problem.gap_scale(objective); infinite unless both are finite."""
    if objective is None or not math.isfinite(objective) or not math.isfinite(bound):
        return math.inf
    return abs(bound - objective) / problem.gap_scale(objective)
