"""Order of the rounds in a window, among schedules with the same number of rounds for every job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from ...formulations.arrays import Floats
from ...formulations.window.plan import WindowPlan, settled

Order = Literal["slack", "shortest", "packed"]
ORDERS: tuple[Order, ...] = get_args(Order)


@dataclass(frozen=True, kw_only=True)
class RoundOrder:
    """Rule that assigns the first rounds of a window to jobs.

    Parameters
    ----------
    rule : {"slack", "shortest", "packed"}
        "slack": in every round, first the jobs that would delay the end of all work, longest first; then all others by
        Smith's rule, least remaining time over weight first. "shortest": least remaining time first. "packed": the
        order of the solver.
    end_margin : float
        Largest slack, as a share of H, of a job that would delay the end; the slack is H less the remaining time
        (Eq. 10).
    stay : float
        Factor of a running job's remaining time in Smith's rule, in (0, 1], which avoids restarts for small
        differences.

    Notes
    -----
    Without a restart penalty the window's objective depends only on the number of rounds of each job, so it is equal
    for all orders; the released code uses a separate ranking program (weight over mean round). Since the planner solves
    again long before the window ends, only the first rounds are executed. The rule "slack" is not in the paper. Smith's
    rule is the order of least weighted completion time on one machine, with the program's weights B rho^k: a larger k
    moves a delayed job forward sooner, which prevents starvation.

    References
    ----------
    W. E. Smith, "Various optimizers for single-stage production", Naval Research Logistics Quarterly 3, 1956.
    """

    rule: Order
    end_margin: float
    stay: float

    def applied(self, plan: WindowPlan, *, remaining_s: Floats, risk: Floats, lead: int) -> WindowPlan:
        """Return the schedule with its first `lead` rounds, which will be followed, in order.

        `remaining_s` is the predicted time left of each job on its whole gang (R), `risk` the margin added to it, as a
        share of R, when testing whether a job would delay the end; both of shape (N,).
        """
        if self.rule == "packed":
            return plan
        window = plan.window
        left = remaining_s / window.round_s
        if self.rule == "shortest":
            same = np.ones(len(left))
            return _ordered(plan, lead, left, np.full(len(left), np.inf), np.zeros(len(left)), same, self.stay)
        horizon = max(float(window.gang_gpus @ left) / window.gpus, float(left.max()))
        margin = self.end_margin * horizon + risk * left
        weights = np.maximum(window.tables.weights, np.finfo(float).tiny)
        return _ordered(plan, lead, left, horizon - left, margin, weights, self.stay)


def _ordered(
    plan: WindowPlan, lead: int, left: Floats, end_slack: Floats, end_margin: Floats, weights: Floats, stay: float
) -> WindowPlan:
    """Fill the first rounds in order and pack the others; if a job loses rounds, exchange rounds instead."""
    from ...formulations.window.kernels import pack
    from .kernels import advance, serve

    window = plan.window
    gang_gpus, gpus, lead = window.gang_gpus, window.gpus, min(lead, window.rounds)
    rank = (window.is_running, left, end_slack, end_margin, weights, stay)
    counts = np.array(plan.rounds_granted)
    first = serve(counts, lead, window.rounds, gang_gpus, gpus, *rank)
    rest = pack(np.lexsort((-counts, -gang_gpus)), counts, gang_gpus, gpus, window.rounds - lead)
    served = settled(window, np.column_stack([first, rest]))
    if (served.rounds_granted >= plan.rounds_granted).all():
        return served
    grants = np.array(plan.grants, dtype=np.bool_, order="C")
    advance(grants, lead, gang_gpus, gpus, *rank)
    return settled(window, grants)
