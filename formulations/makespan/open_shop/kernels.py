"""Compiled loops of open shop: the decomposition into matchings, and greedy list scheduling."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...arrays import Indices
from ...compiled import compiled


@compiled()
def decomposed(work: Indices) -> tuple[Any, Any, Any, Any, Any]:
    """Decompose a table of whole numbers, shape (n, m), into matchings whose total length is its largest line sum C.

    The table is extended to a square one in which every row and column sums to C (Birkhoff and von Neumann: such a
    table is a sum of matchings): to the right of row i its missing work, below column k its missing work, and in the
    last corner the table transposed. A matching runs until one of its pairs has no work left; then only the rows of
    such pairs get another column, by a shortest path that changes few other pairs.

    Returns the number of pieces, and arrays of job, machine, start and end whose first so many entries are set.
    """
    n, m = work.shape
    size = n + m
    longest = np.int64(0)
    for i in range(n):
        longest = max(longest, work[i].sum())
    for k in range(m):
        longest = max(longest, work[:, k].sum())
    table = np.zeros((size, size), dtype=np.int64)
    for i in range(n):
        table[i, m + i] = longest - work[i].sum()
        for k in range(m):
            table[i, k] = table[n + k, m + i] = work[i, k]
    for k in range(m):
        table[n + k, k] = longest - work[:, k].sum()

    column_of = np.full(size, -1, dtype=np.int64)
    row_of = np.full(size, -1, dtype=np.int64)
    before = np.full(size, -1, dtype=np.int64)  # the column of each row in the matching before
    since = np.zeros(size, dtype=np.int64)
    job, machine = np.empty(4 * size, dtype=np.int64), np.empty(4 * size, dtype=np.int64)
    start, end = np.empty(4 * size, dtype=np.int64), np.empty(4 * size, dtype=np.int64)
    count, now = 0, np.int64(0)
    while now < longest:
        for row in range(size):
            if column_of[row] < 0:
                _match(table, row, column_of, row_of)
        if count + n > len(job):
            job, machine = np.append(job, np.empty_like(job)), np.append(machine, np.empty_like(machine))
            start, end = np.append(start, np.empty_like(start)), np.append(end, np.empty_like(end))
        for row in range(n):
            if column_of[row] != before[row]:
                if 0 <= before[row] < m:
                    job[count], machine[count], start[count], end[count] = row, before[row], since[row], now
                    count += 1
                before[row], since[row] = column_of[row], now
        step = longest - now
        for row in range(size):
            step = min(step, table[row, column_of[row]])
        now += step
        for row in range(size):
            column = column_of[row]
            table[row, column] -= step
            if table[row, column] == 0:
                column_of[row] = -1
                row_of[column] = -1
    if count + n > len(job):
        job, machine = np.append(job, np.empty_like(job)), np.append(machine, np.empty_like(machine))
        start, end = np.append(start, np.empty_like(start)), np.append(end, np.empty_like(end))
    for row in range(n):
        if 0 <= before[row] < m:
            job[count], machine[count], start[count], end[count] = row, before[row], since[row], now
            count += 1
    return count, job, machine, start, end


@compiled()
def _match(table: Indices, row: int, column_of: Indices, row_of: Indices) -> None:
    """Give `row` a column by a shortest augmenting path; one exists because all rows and columns have the same sum."""
    size = len(column_of)
    came_from = np.full(size, -1, dtype=np.int64)  # the predecessor row of each column on the path
    queue = np.empty(size, dtype=np.int64)
    queue[0], head, tail = row, 0, 1
    while head < tail:
        at = queue[head]
        head += 1
        free = -1
        for column in range(size):
            if row_of[column] < 0 and table[at, column] > 0:
                free = column
                break
        if free >= 0:
            came_from[free] = at
            while True:
                at = came_from[free]
                after = column_of[at]
                column_of[at] = free
                row_of[free] = at
                if at == row:
                    return
                free = after
        for column in range(size):
            if came_from[column] < 0 and table[at, column] > 0:
                came_from[column] = at
                queue[tail] = row_of[column]
                tail += 1


@compiled()
def listed(times: Any, rule: int) -> Any:
    """Return starts, shape (n, m), of greedy list scheduling: the next operation is the one that can start first.

    Ties go to the operation with the most work left of its job and machine (`rule` 0), of its machine (1), or of
    itself (2); then to the first.
    """
    n, m = times.shape
    starts = np.zeros((n, m))
    job_free, machine_free = np.zeros(n), np.zeros(m)
    job_left, machine_left = np.zeros(n), np.zeros(m)
    for i in range(n):  # numba takes four seconds to compile a sum along an axis
        for k in range(m):
            job_left[i] += times[i, k]
            machine_left[k] += times[i, k]
    open_ = times > 0
    for _ in range(open_.sum()):
        best_i, best_k, best_start, best_worth = -1, -1, np.inf, -np.inf
        for i in range(n):
            for k in range(m):
                if open_[i, k]:
                    earliest = max(job_free[i], machine_free[k])
                    if earliest <= best_start:
                        worth = times[i, k]
                        if rule == 0:
                            worth = max(job_left[i], machine_left[k])
                        elif rule == 1:
                            worth = machine_left[k]
                        if earliest < best_start or worth > best_worth:
                            best_i, best_k, best_start, best_worth = i, k, earliest, worth
        i, k = best_i, best_k
        starts[i, k] = best_start
        job_free[i] = machine_free[k] = best_start + times[i, k]
        job_left[i] -= times[i, k]
        machine_left[k] -= times[i, k]
        open_[i, k] = False
    return starts
