"""The order of the rounds in a window: among schedules that grant every job as many, the one to follow first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from ..formulations.program import Floats
from ..formulations.window import ScheduleWindow
from ..formulations.window_pack import settled
from ..formulations.window_plan import WindowPlan

Order = Literal["slack", "shortest", "packed"]
ORDERS: tuple[Order, ...] = get_args(Order)

# Rounds, where a deadline does not count: beyond every window.
_NEVER = 1e8


@dataclass(frozen=True, kw_only=True)
class RoundOrder:
    """Which jobs get the first rounds of a window.

    Parameters
    ----------
    rule : {"slack", "shortest", "packed"}
        "slack", in every round: first the jobs that would delay the end of all work, longest first; then those that
        are about to become unfair, least slack first; then all others, least remaining time first. "shortest": least
        remaining time first. "packed": as the solver left the rounds.
    end_margin : float
        A job would delay the end if its slack, H less its remaining time, is at most this share of H (Eq. 10).
    fair_margin : float
        A job is about to become unfair if the time it can still wait within its egalitarian time P N_avg is at most
        this share of that time; one that is overdue by more counts no longer, for nothing can be won.
    stay : float
        A running job's remaining time counts this much of itself among the others, in (0, 1]: a restart costs more
        than a small difference is worth.

    Notes
    -----
    The window's objective depends only on how many rounds each job gets, not on which (without a restart penalty), so
    every order is as good to it; the released code settles it by a ranking program of its own (weight over mean
    round). To a planner that solves again long before the window ends, the first rounds are all that happens. The rule
    is ours: it is what completion times are made of.
    """

    rule: Order
    end_margin: float
    fair_margin: float
    stay: float

    def applied(
        self, plan: WindowPlan, *, remaining_s: Floats, lived_s: Floats, fair_s: Floats, lead: int
    ) -> WindowPlan:
        """Return the schedule with its first `lead` rounds in order.

        Parameters
        ----------
        plan : WindowPlan
        remaining_s, lived_s : ndarray of float, shape (N,)
            Predicted isolated seconds left (R), and seconds since arrival (L + W).
        fair_s : ndarray of float, shape (N,)
            Seconds from arrival within which it is fair to complete (P N_avg).
        lead : int
            Rounds that will be followed.
        """
        window = plan.window
        if self.rule == "packed":
            return plan
        rounds_left = remaining_s / window.round_s
        never = np.full(len(rounds_left), _NEVER)
        if self.rule == "shortest":
            return _ordered(plan, lead, rounds_left, never, 0.0, never, np.zeros(len(never)), self.stay)
        horizon = _horizon(window, rounds_left)
        fair_slack = (fair_s - lived_s - remaining_s) / window.round_s
        margin = self.fair_margin * fair_s / window.round_s
        return _ordered(
            plan, lead, rounds_left, horizon - rounds_left, self.end_margin * horizon, fair_slack, margin, self.stay
        )


def _horizon(window: ScheduleWindow, rounds_left: Floats) -> float:
    """Return H in rounds: no schedule ends all work sooner, if predictions are right."""
    return max(float(window.gangs @ rounds_left) / window.gpus, float(rounds_left.max()))


def _ordered(
    plan: WindowPlan,
    lead: int,
    left: Floats,
    end_slack: Floats,
    end_margin: float,
    fair_slack: Floats,
    fair_margin: Floats,
    stay: float,
) -> WindowPlan:
    """Serve the first rounds in order and pack the others; exchange rounds instead where that costs a job any."""
    from ..formulations.window_kernels import pack
    from .shockwave_kernels import advance, serve

    window = plan.window
    gangs, gpus, lead = window.gangs, window.gpus, min(lead, window.rounds)
    rank = (window.is_running, left, end_slack, end_margin, fair_slack, fair_margin, stay)
    counts = np.array(plan.rounds_granted)
    first = serve(counts, lead, window.rounds, gangs, gpus, *rank)
    rest = pack(np.lexsort((-counts, -gangs)), counts, gangs, gpus, window.rounds - lead)
    served = settled(window, np.column_stack([first, rest]))
    if (served.rounds_granted >= plan.rounds_granted).all():
        return served
    grants = np.array(plan.grants, dtype=np.bool_, order="C")
    advance(grants, lead, gangs, gpus, *rank)
    return settled(window, grants)
