"""The order of the rounds in a window: among schedules that grant every job as many, the one to follow first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from ...formulations.arrays import Floats
from ...formulations.window.packing import settled
from ...formulations.window.plan import WindowPlan

Order = Literal["slack", "shortest", "packed"]
ORDERS: tuple[Order, ...] = get_args(Order)


@dataclass(frozen=True, kw_only=True)
class RoundOrder:
    """Which jobs get the first rounds of a window.

    Parameters
    ----------
    rule : {"slack", "shortest", "packed"}
        "slack", in every round: first the jobs that would delay the end of all work, longest first; then all others
        by Smith's rule, least remaining time over weight first. "shortest": least remaining time first. "packed": as
        the solver left the rounds.
    end_margin : float
        A job would delay the end if its slack, H less its remaining time, is at most this share of H (Eq. 10).
    stay : float
        A running job's remaining time counts this much of itself among the others, in (0, 1]: a restart costs more
        than a small difference is worth.

    Notes
    -----
    The window's objective depends only on how many rounds each job gets, not on which (without a restart penalty), so
    every order is as good to it; the released code settles it by a ranking program of its own (weight over mean
    round). To a planner that solves again long before the window ends, the first rounds are all that happens. The rule
    is ours. Smith's rule is the order of least weighted completion time on one machine, and the weights are the
    program's own, B rho^k: a job that falls behind moves forward the sooner, the larger k is, and none starves.

    References
    ----------
    W. E. Smith, "Various optimizers for single-stage production", Naval Research Logistics Quarterly 3, 1956.
    """

    rule: Order
    end_margin: float
    stay: float

    def applied(self, plan: WindowPlan, *, remaining_s: Floats, risk: Floats, lead: int) -> WindowPlan:
        """Return the schedule with its first `lead` rounds in order.

        Parameters
        ----------
        plan : WindowPlan
        remaining_s : ndarray of float, shape (N,)
            Predicted isolated seconds left (R).
        risk : ndarray of float, shape (N,)
            A job would delay the end, too, if it could once it lasts this share of R longer than predicted.
        lead : int
            Rounds that will be followed.
        """
        if self.rule == "packed":
            return plan
        window = plan.window
        left = remaining_s / window.round_s
        if self.rule == "shortest":
            same = np.ones(len(left))
            return _ordered(plan, lead, left, np.full(len(left), np.inf), np.zeros(len(left)), same, self.stay)
        horizon = max(float(window.gangs @ left) / window.gpus, float(left.max()))
        margin = self.end_margin * horizon + risk * left
        weights = np.maximum(window.tables.weights, np.finfo(float).tiny)
        return _ordered(plan, lead, left, horizon - left, margin, weights, self.stay)


def _ordered(
    plan: WindowPlan, lead: int, left: Floats, end_slack: Floats, end_margin: Floats, weights: Floats, stay: float
) -> WindowPlan:
    """Serve the first rounds in order and pack the others; exchange rounds instead where that costs a job any."""
    from ...formulations.window.kernels import pack
    from .kernels import advance, serve

    window = plan.window
    gangs, gpus, lead = window.gangs, window.gpus, min(lead, window.rounds)
    rank = (window.is_running, left, end_slack, end_margin, weights, stay)
    counts = np.array(plan.rounds_granted)
    first = serve(counts, lead, window.rounds, gangs, gpus, *rank)
    rest = pack(np.lexsort((-counts, -gangs)), counts, gangs, gpus, window.rounds - lead)
    served = settled(window, np.column_stack([first, rest]))
    if (served.rounds_granted >= plan.rounds_granted).all():
        return served
    grants = np.array(plan.grants, dtype=np.bool_, order="C")
    advance(grants, lead, gangs, gpus, *rank)
    return settled(window, grants)
