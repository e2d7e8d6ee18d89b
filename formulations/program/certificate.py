"""The certificate of a solve: objective, proved bound, and the backend that found the plan."""

from __future__ import annotations

from dataclasses import dataclass

from .data import Residuals


@dataclass(frozen=True, kw_only=True)
class SolveCertificate:
    """Facts of a solve that documents and pages show beside the plan; `Result.certificate` creates it.

    Attributes
    ----------
    objective : float or None
        Objective recomputed from the plan; None without a plan.
    bound, gap : float
        Bound on the objective of every plan, infinite without a proof; gap in the problem's own scale, infinite
        without a plan.
    residuals : Residuals or None
    termination, limit, message : str
        Names of the termination reason (OPTIMAL, FEASIBLE and so on) and of the limit that ended the solve, None
        without one; the backend's addition to the reason.
    backend, version, form : str
    seed : int
    wall_time : float
        Duration of the solve in seconds.
    notes : tuple of str
    """

    objective: float | None
    bound: float
    gap: float
    residuals: Residuals | None
    termination: str
    backend: str
    version: str
    form: str
    seed: int
    wall_time: float
    notes: tuple[str, ...] = ()
    limit: str | None = None
    message: str = ""
