"""Figures 9 to 12: distributions of completion times, GPUs in use, and jobs left over time."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np

from ....formulations.arrays import Floats
from ..claims import below
from ..experiment import ExperimentOutcome, ExperimentSettings, PaperClaim
from ..plots import Curves
from .paper import POLICIES, shown
from .run import ARRIVALS, DAY_S, CaseFigures, Grid, grid, label

_PERCENTILES = (25, 50, 75, 90, 95, 99, 100)
# The tail of a run: from the time when so many percent of the jobs have ended.
TAIL_PCT = 95
# Points of a curve over time.
_POINTS = 200


def figures_9_and_10(settings: ExperimentSettings) -> ExperimentOutcome:
    """Compare the distributions of completion times, at once (Figure 9) and with Poisson arrivals (Figure 10)."""
    found = grid(settings)
    rows = [
        {
            "arrivals": cluster[0],
            "racks": cluster[1],
            "policy": policy,
            **{f"p{share} jct d": jct_percentile(each, share) for share in _PERCENTILES},
        }
        for cluster, policies in found.cases.items()
        for policy, each in policies.items()
    ]
    plots = tuple(
        Curves(
            title=f"Figure {9 + ARRIVALS.index(cluster[0])}: {label(cluster)} racks", x_axis="JCT in days (log)",
            y_axis="share of jobs", log_x=True, steps=True,
            curves={policy: _distribution(each[0].jct_s / DAY_S) for policy, each in policies.items()},
        )
        for cluster, policies in found.cases.items()
    )  # fmt: skip
    return ExperimentOutcome(rows=rows, claims=distribution_claims(found), plots=plots)


def figures_11_and_12(settings: ExperimentSettings) -> ExperimentOutcome:
    """Compare the GPUs in use (Figure 11) and the jobs left (Figure 12) over time."""
    found = grid(settings)
    rows = [
        {
            "arrivals": cluster[0],
            "racks": cluster[1],
            "policy": policy,
            "makespan d": found.mean("makespan", cluster, policy),
            "tail d": tail_d(each),
            "tail %": 100.0 * tail_d(each) / found.mean("makespan", cluster, policy),
            "GPU-days": held_gpu_d(each),
            "GPUs in use %": use_pct(each),
            "GPUs in use in the tail %": use_pct(each, tail=True),
        }
        for cluster, policies in found.cases.items()
        for policy, each in policies.items()
    ]
    plots = [plot for cluster, policies in found.cases.items() for plot in _over_time(cluster, policies)]
    return ExperimentOutcome(rows=rows, claims=use_claims(found), plots=tuple(plots))


def distribution_claims(found: Grid) -> tuple[PaperClaim, ...]:
    """Check that the upper end of Dally's distributions is to the left of the others'."""
    return tuple(
        below(
            f"the p{share} of JCT under Dally is below that under {shown(name)}",
            {
                label(cluster): (jct_percentile(each["dally"], share), jct_percentile(each[name], share))
                for cluster, each in found.cases.items()
            },
            unit=" d",
        )
        for share in (99, 100)
        for name in ("tiresias", "gandiva")
    )


def use_claims(found: Grid) -> tuple[PaperClaim, ...]:
    """Check that Gandiva's last jobs take long on few GPUs."""

    def pairs(of: Any) -> dict[str, tuple[float, float]]:
        return {label(cluster): (of(each["dally"]), of(each["gandiva"])) for cluster, each in found.cases.items()}

    return (
        below(f"the last {100 - TAIL_PCT}% of the jobs end sooner after the others under Dally than under Gandiva",
              pairs(tail_d), unit=" d"),
        below("Dally holds GPUs for fewer GPU-days in all than Gandiva, whose jobs communicate on them",
              pairs(held_gpu_d), unit=" GPU-days"),
        below("in its tail Gandiva uses fewer GPUs than before it",
              {label(cluster): (use_pct(each["gandiva"], tail=True), use_pct(each["gandiva"], tail=False))
               for cluster, each in found.cases.items()}, unit="%"),
    )  # fmt: skip


def jct_percentile(results: Iterable[CaseFigures], share: float) -> float:
    """Return a percentile of the completion times in days, on average over the seeds."""
    return float(np.mean([np.percentile(each.jct_s, share) for each in results])) / DAY_S


def tail_d(results: Iterable[CaseFigures]) -> float:
    """Return the days from the end of most jobs to the last end, on average over the seeds."""
    return float(np.mean([each.end_s.max() - _tail_from_s(each) for each in results])) / DAY_S


def held_gpu_d(results: Iterable[CaseFigures]) -> float:
    """Return the GPU-days for which jobs held GPUs, on average over the seeds."""
    return float(np.mean([each.mean_busy_gpus(each.arrival_s.min(), each.end_s.max()) * each.makespan_s
                          for each in results])) / DAY_S  # fmt: skip


def use_pct(results: Iterable[CaseFigures], *, tail: bool | None = None) -> float:
    """Return the GPUs in use in percent over the makespan, in the tail, or before it, on average over the seeds."""
    shares = []
    for each in results:
        middle_s = _tail_from_s(each)
        first_s, last_s = float(each.arrival_s.min()), float(each.end_s.max())
        start_s, end_s = (first_s, last_s) if tail is None else (middle_s, last_s) if tail else (first_s, middle_s)
        shares.append(100.0 * each.mean_busy_gpus(start_s, end_s) / each.gpus)
    return float(np.mean(shares))


def _tail_from_s(figures: CaseFigures) -> float:
    """Return the time at which most jobs have ended; several must be left, or the last end is no tail."""
    order = np.sort(figures.end_s)
    return float(order[min(len(order) - 2, int(len(order) * TAIL_PCT / 100))])


def _distribution(values: Floats) -> tuple[list[float], list[float]]:
    order = np.sort(values)
    return order.tolist(), (np.arange(1, len(order) + 1) / len(order)).tolist()


def _over_time(cluster: tuple[str, int], policies: Any) -> tuple[Curves, Curves]:
    """Return GPUs in use and jobs left over time under each policy, of the first seed."""
    in_use, left = {}, {}
    for policy in POLICIES:
        each: CaseFigures = policies[policy][0]
        edges_s = np.linspace(each.arrival_s.min(), each.end_s.max(), _POINTS + 1)
        use = [each.mean_busy_gpus(start_s, end_s) for start_s, end_s in pairwise(edges_s.tolist())]
        days = np.maximum((edges_s[1:] - edges_s[0]) / DAY_S, 1e-9)
        in_use[policy] = days.tolist(), use
        left[policy] = days.tolist(), each.jobs_left(edges_s[1:]).tolist()
    name = f"{label(cluster)} racks"
    return (
        Curves(title=f"Figure 11: {name}", x_axis="days (log)", y_axis="GPUs in use", curves=in_use, log_x=True),
        Curves(title=f"Figure 12: {name}", x_axis="days (log)", y_axis="jobs left", curves=left, log_x=True),
    )
