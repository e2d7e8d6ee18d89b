"""Lower bounds on the rounds of a gang schedule: from lengths, total GPUs, and jobs that cannot share a round."""

from __future__ import annotations

import numpy as np

from ...arrays import Indices

# Denominators of the rounded dual feasible functions; finer ones prove no more in practice.
MOST_ROUNDED = 64


def round_bound(rounds: Indices, gang_gpus: Indices, gpus: int) -> tuple[int, str]:
    """Return the largest of the bounds on the makespan, in rounds, and its reason; valid with preemption too.

    `rounds` and `gang_gpus` have shape (N,). Every round is a bin of `gpus`; every round of a job is an item of the
    size of its gang. A dual feasible function f of bin packing (sizes that fit one bin sum to at most `gpus` under f)
    proves ``sum_j n_j f(g_j) / gpus`` rounds. Used are f_lambda, which rounds sizes above ``gpus - lambda`` up to a
    whole bin and drops sizes below lambda (Martello and Toth 1990), and u_k, which rounds sizes to multiples of 1/k
    (Fekete and Schepers 2001). In addition, the rounds of jobs of which no two fit together are all different.
    """
    real = rounds > 0
    if not real.any():
        return 0, "no work"
    sizes, at = np.unique(gang_gpus[real], return_inverse=True)
    amount, longest = np.zeros(len(sizes), dtype=np.int64), np.zeros(len(sizes), dtype=np.int64)
    np.add.at(amount, at, rounds[real])
    np.maximum.at(longest, at, rounds[real])
    best = (int(longest.max()), "the longest job")
    for value, why in (
        (_ceil(int(amount @ sizes), gpus), "GPUs in total"),
        (_by_threshold(sizes, amount, gpus), "gangs too large to share a round"),
        (_by_rounding(sizes, amount, gpus), "rounded gang sizes"),
        (_by_exclusion(sizes, amount, longest, gpus), "jobs that exclude each other"),
    ):
        if value > best[0]:
            best = (value, why)
    return best


def _by_threshold(sizes: Indices, amount: Indices, gpus: int) -> int:
    found = 0
    for least in sizes[2 * sizes <= gpus].tolist():
        full = sizes > gpus - least
        counted = (sizes >= least) & ~full
        found = max(found, _ceil(int((amount * np.where(full, gpus, np.where(counted, sizes, 0))).sum()), gpus))
    return found


def _by_rounding(sizes: Indices, amount: Indices, gpus: int) -> int:
    found = 0
    for k in range(1, min(gpus, MOST_ROUNDED) + 1):
        parts, rest = np.divmod((k + 1) * sizes, gpus)
        weight = np.where(rest == 0, k * sizes, gpus * parts)  # in units of 1 / (k gpus) of a round
        found = max(found, _ceil(int((amount * weight).sum()), k * gpus))
    return found


def _by_exclusion(sizes: Indices, amount: Indices, longest: Indices, gpus: int) -> int:
    wide = 2 * sizes > gpus
    found = int(amount[wide].sum())
    for size, length in zip(sizes[~wide].tolist(), longest[~wide].tolist(), strict=True):
        found = max(found, length + int(amount[wide & (sizes > gpus - size)].sum()))
    return found


def _ceil(amount: int, by: int) -> int:
    return -(-amount // by)
