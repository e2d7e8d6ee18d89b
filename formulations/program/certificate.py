"""The certificate of a solve: what was found, what is proved of it, and by whom."""

from __future__ import annotations

from dataclasses import dataclass

from .data import Residuals


@dataclass(frozen=True, kw_only=True)
class SolveCertificate:
    """What a document or a page says of a solve beside the plan itself; `Result.certificate` makes it.

    Attributes
    ----------
    objective : float or None
        Recomputed from the plan; None without one.
    bound : float
        No plan is better; infinite when nothing is proved.
    gap : float
        In the problem's own scale; infinite without a plan.
    residuals : Residuals or None
    termination : str
        The name of the reason: OPTIMAL, FEASIBLE and so on.
    limit : str or None
        The name of the limit that ended the solve.
    message : str
        What the backend adds to the reason.
    backend, version, form : str
    seed : int
    wall_time : float
        Seconds.
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
