"""Packing of rounds per job into a work-conserving schedule of the window within capacity."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..arrays import Indices
from .data import WindowData
from .plan import WindowPlan

if TYPE_CHECKING:
    from numpy.typing import NDArray


def scheduled(window: WindowData, counts: Indices) -> WindowPlan:
    """Pack counts[j] rounds for each job into the window, then make the schedule work-conserving.

    Jobs with larger gangs come first, and then longer jobs; each gets its least loaded rounds. With a restart penalty,
    the result is the better of this schedule and one with a single block of rounds per job. A job may get fewer than
    counts[j] rounds if they cannot be packed, and more if GPUs would idle.
    """
    from . import kernels as window_kernels

    counts = np.minimum(counts, np.minimum(window.tables.needs, window.rounds))
    order = np.lexsort((-counts, -window.gangs))
    plan = settled(window, window_kernels.pack(order, counts, window.gangs, window.gpus, window.rounds))
    if not window.restart_penalty:
        return plan
    grants = window_kernels.pack_blocks(order, counts, window.gangs, window.gpus, window.rounds, window.is_running)
    return max(settled(window, grants), plan, key=lambda plan: plan.objective)


def settled(window: WindowData, grants: NDArray[np.bool_]) -> WindowPlan:
    """Return the schedule with idle GPUs filled, and granted rounds moved earlier, until work is conserved.

    Jobs with the largest gain per GPU come first. Without a restart penalty no job gets fewer rounds, so the objective
    does not fall.
    """
    from . import kernels as window_kernels

    tables = window.tables
    grants = np.array(grants, dtype=np.bool_, order="C")
    counts = grants.sum(axis=1)
    rows = np.arange(len(counts))
    after = np.minimum(counts + 1, window.rounds)
    gain = tables.value[rows, after] - tables.value[rows, counts]
    gain += (
        tables.makespan_price * tables.branch_weights * (tables.remaining[rows, counts] - tables.remaining[rows, after])
    )
    order = np.argsort(-gain / window.gangs, kind="stable")
    window_kernels.settle(grants, order, tables.needs, window.gangs, window.gpus, window.is_running)
    return WindowPlan(window, grants)
