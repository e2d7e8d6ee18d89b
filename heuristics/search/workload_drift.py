"""Test of whether recent jobs still come from the workload of earlier ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...formulations.arrays import Floats


class ObservedJob(NamedTuple):
    """Job as a scheduler sees it at its arrival: time, size on one GPU, speedups s(0), ..., s(d), and least GPUs."""

    arrival_s: float
    size_s: float
    speedups: Sequence[float]
    min_gpus: int = 1


@dataclass(frozen=True, kw_only=True)
class DriftReport:
    """Result of one look at recent jobs.

    Attributes
    ----------
    quantity : {"sizes", "demands", "gaps"}
        The quantity whose distribution differs most: sizes, maximum demands, or times between arrivals.
    statistic : float
        Largest difference between the two empirical distribution functions (Kolmogorov and Smirnov).
    p_value : float
        Probability of such a statistic without a drift.
    corrected_p_value : float
        The same, corrected for three quantities and for all looks, at most 1.
    look : int
        Number of looks since the earlier jobs were collected, this one included.
    drifted : bool
        Whether the corrected value is below the alarm rate.
    """

    quantity: str
    statistic: float
    p_value: float
    corrected_p_value: float
    look: int
    drifted: bool


def drift_report(
    earlier: Sequence[ObservedJob], recent: Sequence[ObservedJob], *, look: int, alarm_rate: float
) -> DriftReport:
    """Return the report of one look: two-sample Kolmogorov-Smirnov tests of three quantities.

    On jobs that are drawn independently from one workload the probability that any look ever reports a drift is at
    most `alarm_rate`: look k has the part ``6 / (pi k)^2`` of it, and each of the three tests a third of that. Ties,
    such as those of demands, make a test more cautious. Bursts of arrivals in recorded traces are no independent draws
    and may be reported.

    Parameters
    ----------
    earlier, recent : sequence of ObservedJob
        At least two each, in order of arrival.
    look : int
        From 1.
    alarm_rate : float
    """
    first, second = _quantities(earlier), _quantities(recent)
    tests = {name: kolmogorov_smirnov(first[name], second[name]) for name in first}
    quantity = min(tests, key=lambda name: tests[name][1])
    statistic, p_value = tests[quantity]
    corrected = min(1.0, p_value * len(tests) * (math.pi * look) ** 2 / 6.0)
    return DriftReport(
        quantity=quantity,
        statistic=statistic,
        p_value=p_value,
        corrected_p_value=corrected,
        look=look,
        drifted=corrected < alarm_rate,
    )


def kolmogorov_smirnov(first: Floats, second: Floats) -> tuple[float, float]:
    """Return the two-sample statistic of Kolmogorov and Smirnov, and its p-value by the limit for large samples."""
    from scipy.special import kolmogorov

    values = np.concatenate((first, second))
    shares = [np.searchsorted(np.sort(each), values, side="right") / len(each) for each in (first, second)]
    statistic = float(np.abs(shares[0] - shares[1]).max())
    return statistic, float(kolmogorov(statistic * math.sqrt(len(first) * len(second) / len(values))))


def _quantities(jobs: Sequence[ObservedJob]) -> dict[str, Floats]:
    return {
        "sizes": np.array([job.size_s for job in jobs]),
        "demands": np.array([len(job.speedups) - 1.0 for job in jobs]),
        "gaps": np.diff([job.arrival_s for job in jobs]),
    }
