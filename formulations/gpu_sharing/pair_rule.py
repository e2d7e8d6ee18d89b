"""Plain arithmetic of a pair of jobs on the same GPUs: both ends for a delay, and the rule whether to share at once.

A job R runs, and a job W waits. W starts after a delay. While both run, each takes its ratio times as long as alone.
The functions check nothing, so that a policy can call them thousands of times in a decision. They compute in the type
of their arguments: floats, or `fractions.Fraction` for exact values.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TypeVar

Number = TypeVar("Number", float, Fraction)


def pair_ends(
    running_s: Number, waiting_s: Number, running_ratio: Number, waiting_ratio: Number, delay_s: Number
) -> tuple[Number, Number]:
    """Return the ends of the running and of the waiting job, from now.

    Parameters
    ----------
    running_s, waiting_s : float or Fraction
        Time that each job still needs alone (a, b), in seconds.
    running_ratio, waiting_ratio : float or Fraction
        Factor by which each job's time grows beside the other (x, y), greater than 0.
    delay_s : float or Fraction
        Start of the waiting job (kappa), at least 0; from `running_s` on the jobs run one after the other.
    """
    left_s = running_s - delay_s
    if left_s <= 0:
        return running_s, delay_s + waiting_s
    shared_running_s, shared_waiting_s = running_ratio * left_s, waiting_ratio * waiting_s
    if shared_running_s <= shared_waiting_s:
        running_end_s = delay_s + shared_running_s
        return running_end_s, running_end_s + (waiting_s - shared_running_s / waiting_ratio)
    waiting_end_s = delay_s + shared_waiting_s
    return waiting_end_s + (left_s - shared_waiting_s / running_ratio), waiting_end_s


def shares_at_once(running_s: Number, waiting_s: Number, running_ratio: Number, waiting_ratio: Number) -> bool:
    """Return whether the mean of both ends is at least as small when the waiting job starts now as one after the other.

    No delay in between is better than both: the best delay is 0 or `running_s`. With a, b the times and x, y the
    ratios, share if and only if ``2/x + 1/y >= 2`` where ``x a <= y b`` (the running job ends first), else
    ``a >= b (2 y - 1 - y/x)``. Both are computed without a division.
    """
    x, y = running_ratio, waiting_ratio
    if x * running_s <= y * waiting_s:
        return x + 2 * y >= 2 * x * y
    return running_s * x >= waiting_s * (2 * x * y - x - y)
