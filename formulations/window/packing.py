"""From rounds per job to a schedule of the window that keeps capacity and conserves work."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..arrays import Indices
from .data import WindowData
from .plan import WindowPlan

if TYPE_CHECKING:
    from numpy.typing import NDArray


def scheduled(window: WindowData, counts: Indices) -> WindowPlan:
    """Pack counts[j] rounds for each job into the window, then fill and settle what is idle.

    Wide jobs come before narrow ones and long before short, each into its least loaded rounds. With a restart penalty
    a schedule with one block of rounds per job is made too, and the better of the two returned. A job may get fewer
    rounds than asked where they cannot be packed, and more where GPUs would idle.
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

    Jobs that gain most per GPU come first. Without a restart penalty no job gets fewer rounds, so the objective never
    falls.
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
