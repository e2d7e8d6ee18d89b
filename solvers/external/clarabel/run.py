"""One run of Clarabel: settings from the common and the own options, and the meaning of its statuses."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from ....formulations.arrays import Floats
from ....formulations.errors import InvalidInput
from ...deadline import Deadline
from ...result import Limit

# Relative gap requested of every run: the last steps cost little, and improve the duals, which prove the bound, most.
TOLERANCE = 1e-10
# Share of the wanted gap, and its least value, requested of a later solve around a point near the optimum.
SHARE, LEAST = 0.1, 1e-17
# Share of our tolerance by which a constraint may be violated in Clarabel's own measure, relative to the data.
TOLERANCE_SHARE = 1e-3
LIMITS = {
    "MaxIterations": Limit.ITERATIONS,
    "MaxTime": Limit.TIME,
    "CallbackTerminated": Limit.INTERRUPTED,
    "InsufficientProgress": Limit.METHOD,
}
STOPPED = ("MaxIterations", "MaxTime", "CallbackTerminated")
SOLVED = ("Solved", "AlmostSolved")


@dataclass(frozen=True, kw_only=True)
class ConeProgram(ABC):
    """A problem as ``min cost @ x`` over ``right - matrix @ x`` in a product of cones; the matrix is a csc_array."""

    cost: Floats
    matrix: Any
    right: Floats

    @abstractmethod
    def kinds(self) -> list[Any]:
        """Return the cones as objects of Clarabel."""


def solved(stated: ConeProgram, tolerance: float, deadline: Deadline, own: dict[str, Any]) -> Any:
    """Run Clarabel; None when no time is left. InvalidInput for an own option that Clarabel lacks."""
    import clarabel
    from scipy.sparse import csc_array

    options, settings = deadline.given, clarabel.DefaultSettings()
    settings.verbose = options.log
    settings.max_threads = options.threads
    settings.tol_gap_rel = settings.tol_gap_abs = max(tolerance, LEAST)
    settings.tol_feas = min(TOLERANCE, TOLERANCE_SHARE * options.feasibility_tol)
    for name, value in own.items():
        _set(settings, name, value)
    if (left := deadline.left()) is not None:
        if left == 0.0:
            return None
        settings.time_limit = left
    nothing = csc_array((len(stated.cost), len(stated.cost)))
    return clarabel.DefaultSolver(nothing, stated.cost, stated.matrix, stated.right, stated.kinds(), settings).solve()


def stopped(status: str, own: dict[str, Any]) -> bool:
    """Whether a requested limit ended the run."""
    return status in STOPPED and not (status == "MaxIterations" and "max_iter" not in own)


def limit_of(status: str, own: dict[str, Any]) -> Limit | None:
    """Return the limit that ended the run; Clarabel's own count of iterations counts as the end of its method."""
    if status == "MaxIterations" and "max_iter" not in own:
        return Limit.METHOD
    return LIMITS.get(status)


def _set(settings: Any, name: str, value: Any) -> None:
    field = f"backend_options['clarabel'][{name!r}]"
    if not isinstance(name, str) or not hasattr(settings, name) or callable(getattr(settings, name)):
        raise InvalidInput(field, value, "Clarabel has no such setting")
    if isinstance(value, bool) is not isinstance(getattr(settings, name), bool):
        raise InvalidInput(field, value, "Clarabel does not take this value")
    try:
        setattr(settings, name, value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(field, value, "Clarabel does not take this value") from None
