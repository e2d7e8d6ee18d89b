"""What no schedule of gangs can beat: bounds on the rounds, from lengths, GPUs, and what cannot share a round."""

from __future__ import annotations

import numpy as np

from ...arrays import Indices

# Denominators of the rounded dual feasible functions; finer ones prove no more in practice.
MOST_ROUNDED = 64


def round_bound(rounds: Indices, gangs: Indices, gpus: int) -> tuple[int, str]:
    """Return the largest of the bounds on the makespan, in rounds, and what it is of; holds with preemption too.

    Parameters
    ----------
    rounds, gangs : ndarray of int, shape (N,)
    gpus : int

    Notes
    -----
    Every round is a bin of `gpus`, every round of a job an item of its width. A dual feasible function f of bin
    packing (widths that fit one bin add up to at most `gpus` under f) proves ``sum_j n_j f(g_j) / gpus`` rounds:
    f_lambda, which takes what leaves less than lambda beside it for a whole bin and drops what is smaller (Martello and
    Toth 1990), and u_k, which rounds widths to multiples of 1/k (Fekete and Schepers 2001). A job's own rounds are bins
    apart, too: jobs that are all too wide to run beside each other take their rounds one after another.
    """
    real = rounds > 0
    if not real.any():
        return 0, "no work"
    widths, at = np.unique(gangs[real], return_inverse=True)
    amount, longest = np.zeros(len(widths), dtype=np.int64), np.zeros(len(widths), dtype=np.int64)
    np.add.at(amount, at, rounds[real])
    np.maximum.at(longest, at, rounds[real])
    best = (int(longest.max()), "the longest job")
    for value, why in (
        (_ceil(int(amount @ widths), gpus), "GPUs in total"),
        (_by_threshold(widths, amount, gpus), "widths that leave no room"),
        (_by_rounding(widths, amount, gpus), "rounded widths"),
        (_by_exclusion(widths, amount, longest, gpus), "jobs that exclude each other"),
    ):
        if value > best[0]:
            best = (value, why)
    return best


def _by_threshold(widths: Indices, amount: Indices, gpus: int) -> int:
    found = 0
    for least in widths[2 * widths <= gpus].tolist():
        full = widths > gpus - least
        counted = (widths >= least) & ~full
        found = max(found, _ceil(int((amount * np.where(full, gpus, np.where(counted, widths, 0))).sum()), gpus))
    return found


def _by_rounding(widths: Indices, amount: Indices, gpus: int) -> int:
    found = 0
    for k in range(1, min(gpus, MOST_ROUNDED) + 1):
        parts, rest = np.divmod((k + 1) * widths, gpus)
        worth = np.where(rest == 0, k * widths, gpus * parts)  # in units of 1 / (k gpus) of a round
        found = max(found, _ceil(int((amount * worth).sum()), k * gpus))
    return found


def _by_exclusion(widths: Indices, amount: Indices, longest: Indices, gpus: int) -> int:
    wide = 2 * widths > gpus
    found = int(amount[wide].sum())
    for width, length in zip(widths[~wide].tolist(), longest[~wide].tolist(), strict=True):
        found = max(found, length + int(amount[wide & (widths > gpus - width)].sum()))
    return found


def _ceil(amount: int, by: int) -> int:
    return -(-amount // by)
