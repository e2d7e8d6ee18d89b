"""Figure 4: the delay timers of a job by size of the cluster, and what the history limit does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from ....heuristics.dally.auto_tuner import TunerSettings
from ....simulation.placement import TimerLog
from ..claims import below
from ..experiment import ExperimentOutcome, ExperimentSettings, PaperClaim
from ..plots import Curves
from .paper import MACHINE_GPUS, racks_of
from .run import ARRIVALS, DAY_S, Case, CaseFigures, run_cases

#: History limits in days, of which the second is the tuner's default.
HISTORY_DAYS = (1.0, 7.0, 30.0)
_DEFAULT = 7.0
_HOUR_S = 3600.0
_TIERS = ("machine", "rack")
# Points of a curve over the stay of a job.
_POINTS = 200

#: Cluster (arrivals and racks), and history limit in days.
Setting = tuple[tuple[str, int], float]


def figure_4(settings: ExperimentSettings) -> ExperimentOutcome:
    """Run `dally` with several history limits on every cluster, and follow the timers of one job of each run."""
    every: list[Setting] = list(product(product(ARRIVALS, racks_of(settings)), HISTORY_DAYS))

    def case(setting: Setting, seed: int) -> Case:
        (arrivals, racks), days = setting
        # The default is no option, so that the runs are those of the other figures.
        options = () if days == _DEFAULT else (("history_s", days * DAY_S),)
        return Case(arrivals=arrivals, racks=racks, seed=seed, policy="dally", jobs=settings.jobs, options=options)

    found = run_cases([case(setting, seed) for setting in every for seed in settings.seeds], settings)
    results = {setting: [found[case(setting, seed)] for seed in settings.seeds] for setting in every}
    rows = [_row(setting, results[setting]) for setting in every]
    return ExperimentOutcome(rows=rows, claims=timer_claims(rows), plots=_plots(results))


def _row(setting: Setting, results: Sequence[CaseFigures]) -> dict[str, Any]:
    (arrivals, racks), days = setting
    timers_h = [np.array(mean_timers_s(each)) / _HOUR_S for each in results]
    return {
        "arrivals": arrivals,
        "racks": racks,
        "history d": days,
        **{
            f"{tier} timer h": float(np.mean(each))
            for tier, each in zip(_TIERS, zip(*timers_h, strict=True), strict=True)
        },
        "makespan d": float(np.mean([each.makespan_s for each in results])) / DAY_S,
        "jct d": float(np.mean([each.jct_s.mean() for each in results])) / DAY_S,
        "exposed d": float(np.mean([each.exposed_s.mean() for each in results])) / DAY_S,
    }


def timer_claims(rows: Sequence[Mapping[str, Any]]) -> tuple[PaperClaim, ...]:
    """Check the claims on the rows of the figure."""
    by = {(row["arrivals"], row["racks"], row["history d"]): row for row in rows}
    arrivals, racks = (sorted({row[name] for row in rows}) for name in ("arrivals", "racks"))

    def shorter(tier: str) -> dict[str, tuple[float, float]]:
        return {
            f"{kind} {racks[-1]} racks and {racks[0]}": tuple(
                by[kind, count, _DEFAULT][f"{tier} timer h"] for count in (racks[-1], racks[0])
            )
            for kind in arrivals
            if len(racks) > 1
        }

    def spread(kind: str, count: int) -> float:
        jct_d = [by[kind, count, days]["jct d"] for days in HISTORY_DAYS]
        return float(max(jct_d) / min(jct_d))

    least = {
        (kind, count): min(HISTORY_DAYS, key=lambda days: by[kind, count, days]["jct d"])
        for kind in arrivals
        for count in racks
    }
    return (
        *(below(f"timers of a {tier} are shorter in the largest cluster than in the smallest", shorter(tier), unit=" h")
          for tier in _TIERS),
        below(
            "the best history limit by average JCT is no longer in the largest cluster than in the smallest",
            {kind: (least[kind, racks[-1]], least[kind, racks[0]]) for kind in arrivals if len(racks) > 1},
            unit=" d",
            equal=True,
            printed="smaller for larger clusters",
        ),
        below(
            "the history limit changes the average JCT by less in the largest cluster than in the smallest: largest "
            "over least",
            {kind: (spread(kind, racks[-1]), spread(kind, racks[0])) for kind in arrivals if len(racks) > 1},
        ),
    )  # fmt: skip


def slow_job(figures: CaseFigures) -> int:
    """Return the index of the job at the 95th percentile of JCT, of those that fill a machine.

    Narrower jobs of the mix are few, and those wider than a machine have no timer of a machine.
    """
    full = np.flatnonzero(figures.gang_gpus == MACHINE_GPUS)
    order = full[np.argsort(figures.jct_s[full], kind="stable")]
    return int(order[min(len(order) - 1, int(0.95 * len(order)))])


def timer_at(log: TimerLog, tier: int, demand: int, times_s: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the timer of a tier and a demand at some times; before its first change it is that of an empty list."""
    own = (log.tier == tier) & (log.demand == demand)
    values = np.append(TunerSettings().empty_s[tier], log.timer_s[own])
    return np.asarray(values[np.searchsorted(log.time_s[own], times_s, side="right")])


def timers_of_slow_job(figures: CaseFigures) -> tuple[np.ndarray[Any, Any], tuple[np.ndarray[Any, Any], ...]]:
    """Return times over the stay of the slow job, and the timers of its demand at these times, by tier."""
    assert figures.timers is not None
    job = slow_job(figures)
    times_s = np.linspace(figures.arrival_s[job], figures.end_s[job], _POINTS)
    return times_s, tuple(timer_at(figures.timers, tier, MACHINE_GPUS, times_s) for tier in range(len(_TIERS)))


def mean_timers_s(figures: CaseFigures) -> tuple[float, ...]:
    """Return the timers of a machine and of a rack, on average over the stay of the slow job."""
    return tuple(float(np.mean(each)) for each in timers_of_slow_job(figures)[1])


def _plots(results: Mapping[Setting, Sequence[CaseFigures]]) -> tuple[Curves, ...]:
    plots = []
    for kind, (place, tier) in product(ARRIVALS, enumerate(_TIERS)):
        curves = {}
        for (cluster, days), each in results.items():
            if cluster[0] == kind and days == _DEFAULT:
                times_s, timers = timers_of_slow_job(each[0])
                curves[f"{cluster[1]} racks"] = (
                    ((times_s - times_s[0]) / DAY_S).tolist(), (timers[place] / _HOUR_S).tolist()
                )  # fmt: skip
        plots.append(
            Curves(title=f"Figure 4: timer of a {tier}, {kind}", x_axis="days since arrival", y_axis="h", curves=curves)
        )
    return tuple(plots)
