"""Arithmetic of a new job over several running jobs: all ends for a delay, and where they change their slopes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import TypeVar

from .dual_numbers import Dual

Number = TypeVar("Number", float, Fraction, Dual)


def group_ends(
    running_s: Sequence[Number],
    waiting_s: Number,
    running_ratios: Sequence[Number],
    waiting_ratios: Sequence[Number],
    delay_s: Number,
) -> list[Number]:
    """Return the ends of the running jobs in their order, then that of the waiting job, from now.

    The waiting job starts after the delay on the GPUs of all running jobs. A gang moves at its slowest worker, so its
    ratio is the largest waiting ratio of the jobs that still run. A running job takes its own ratio until the waiting
    job ends. The function checks nothing and computes in the type of its arguments.

    Parameters
    ----------
    running_s : sequence of Number, length m
        Time that each running job still needs alone (a), in seconds.
    waiting_s : Number
        Time that the waiting job needs alone (b).
    running_ratios, waiting_ratios : sequence of Number, length m
        Factors by which sharing slows the running job (x) and the waiting job (y), greater than 0.
    delay_s : Number
        Start of the waiting job (kappa), at least 0.
    """
    ends: list[Number] = list(running_s)  # the ends of jobs that end before the start
    beside = [i for i, alone_s in enumerate(running_s) if alone_s > delay_s]
    for i in beside:
        ends[i] = delay_s + running_ratios[i] * (running_s[i] - delay_s)
    beside.sort(key=ends.__getitem__)
    now, left_s = delay_s, waiting_s
    for place, i in enumerate(beside):
        ratio = max(waiting_ratios[j] for j in beside[place:])
        waiting_end = now + left_s * ratio
        if waiting_end < ends[i]:
            for j in beside[place:]:
                ends[j] = waiting_end + (running_s[j] - delay_s - (waiting_end - delay_s) / running_ratios[j])
            break
        left_s = left_s - (ends[i] - now) / ratio
        now = ends[i]
    else:
        waiting_end = now + left_s
    ends.append(waiting_end)
    return ends


def linear_pieces(
    running_s: Sequence[Fraction],
    waiting_s: Fraction,
    running_ratios: Sequence[Fraction],
    waiting_ratios: Sequence[Fraction],
) -> Iterator[Fraction]:
    """Yield in ascending order the delays between which every end is linear and no two ends change their order.

    They are 0, the times at which a running job ends alone, and the delays at which two jobs end together: while the
    order of all ends stays, the same jobs share in each interval between two ends. An objective that is a weighted sum
    or the maximum of the ends is linear between them, too, so it is smallest at one of them. The last one is the
    longest `running_s`: a longer delay only moves the end of the waiting job.
    """
    alone = [Dual(each) for each in running_s]
    ratios = [Dual(each) for each in running_ratios], [Dual(each) for each in waiting_ratios]
    last, delay = max(running_s), Fraction(0)
    yield delay
    while delay < last:
        following = min(each for each in running_s if each > delay)
        ends = sorted(group_ends(alone, Dual(waiting_s), *ratios, Dual(delay, Fraction(1))))
        # Of lines in order, neighbours meet first.
        for lower, upper in pairwise(ends):
            if lower.slope > upper.slope:
                meet = delay + (upper.value - lower.value) / (lower.slope - upper.slope)
                following = min(following, meet)
        delay = following
        yield delay
