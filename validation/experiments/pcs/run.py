"""Simulations and searches of the PCS experiments: policies beside the picks of a front, and their figures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import t as student

from ....formulations.search.front import ParetoFront
from ....formulations.search.objective import as_objectives
from ....formulations.search.problem import SearchProblem
from ....formulations.search.wfq_config import WfqConfig
from ....heuristics.registry import make_policy
from ....heuristics.search.wfq_tuning import WfqTuning
from ....simulation.fluid import FluidResult, FluidRules, simulate_fluid
from ....solvers.result import Result
from ....solvers.solve import solve
from ..experiment import ExperimentSettings, OnStep
from .workloads import Case, generated_case, held_out_case

#: Policies that the paper compares; `srsf` is its Tiresias.
BASELINES = ("afs", "srsf", "themis", "fifo")
#: Names of the picks of a front.
PICKS = ("pcs-jct", "pcs-bal", "pcs-pred")
#: Size errors and unfairness are shares; tables have percent.
_PERCENT = 100.0


class Steps:
    """Counts the finished steps of an experiment out of a total for its progress."""

    def __init__(self, on_step: OnStep | None, total: int) -> None:
        self._on_step, self._total, self._done = on_step, total, 0

    def add(self, count: int = 1) -> None:
        """Count steps."""
        self._done += count
        if self._on_step is not None:
            self._on_step(self._done, self._total)


@dataclass(frozen=True, kw_only=True)
class Figures:
    """Figures of one run: JCT in seconds; errors of predictions and unfairness in percent."""

    jct_s: float
    p90_jct_s: float
    error_pct: float
    p90_error_pct: float
    p99_error_pct: float
    unfair_pct: float
    p90_unfair_pct: float
    most_unfair_pct: float

    @classmethod
    def of(cls, result: FluidResult) -> Figures:
        """Return the figures of a result with predictions."""
        jct_s, error_pct, unfair_pct = result.jct_s, result.error_pct, _PERCENT * result.unfairness
        return cls(
            jct_s=float(jct_s.mean()),
            p90_jct_s=float(np.percentile(jct_s, 90.0)),
            error_pct=float(error_pct.mean()),
            p90_error_pct=float(np.percentile(error_pct, 90.0)),
            p99_error_pct=float(np.percentile(error_pct, 99.0)),
            unfair_pct=float(unfair_pct.mean()),
            p90_unfair_pct=float(np.percentile(unfair_pct, 90.0)),
            most_unfair_pct=float(unfair_pct.max()),
        )


def simulated(case: Case, policy: str | WfqConfig, *, size_error_pct: float = 0.0, seed: int = 0) -> Figures:
    """Run a policy by name, or weighted fair queues of a configuration, with a prediction for each job."""
    config = {} if isinstance(policy, str) else {"config": policy}
    chosen = make_policy(policy if isinstance(policy, str) else "wfq", "fluid", **config)
    rules = FluidRules(predict=True, size_error_pct=size_error_pct, seed=seed)
    result = simulate_fluid(case.trace, chosen, cluster=case.gpus, speedups=case.speedups, rules=rules, record=False)
    return Figures.of(result)


def tuning_of(
    case: Case, *, held_out: Sequence[Case] = (), objectives: Sequence[str] = ("jct:avg", "pred_error:avg"), **more: Any
) -> WfqTuning:
    """Return the search problem of the jobs of a case; fronts can be scored on those of others."""
    return WfqTuning(
        train=(case.trace,),
        test=tuple(each.trace for each in held_out),
        gpus=case.gpus,
        speedups=case.speedups,
        objectives=as_objectives("objectives", objectives),
        **more,
    )


def searched(
    problem: SearchProblem,
    settings: ExperimentSettings,
    *,
    seed: int,
    backend: str = "spea2",
    time_limit: float | None = None,
    **options: Any,
) -> Result[ParetoFront]:
    """Search with so many evaluations as the settings, or the options, say."""
    chosen = {"evaluations": settings.evaluations, **options}
    return solve(
        problem,
        backend,
        seed=seed,
        threads=settings.threads,
        time_limit=time_limit,
        backend_options={backend: chosen},
    )


def progress_of(result: Result[ParetoFront]) -> list[tuple[float, int, float]]:
    """Return (seconds, evaluations, hypervolume) of the reports of a search."""
    return [
        (point.time, int(point.measures["evaluations"]), float(point.objective))
        for point in result.history
        if point.objective is not None and "evaluations" in point.measures
    ]


def tuned(
    case: Case, settings: ExperimentSettings, *, seed: int, objectives: Sequence[str] = ("jct:avg", "pred_error:avg")
) -> ParetoFront:
    """Return the front of a search on the jobs of a case."""
    front = searched(tuning_of(case, objectives=objectives), settings, seed=seed).plan
    assert front is not None  # the corners are feasible
    return front


def picks(front: ParetoFront, most_jct_s: float) -> dict[str, WfqConfig]:
    """Return three configurations: the least JCT; and, up to a mean JCT, the balanced one and the least error.

    FIFO predicts exactly, so that without a limit the least error is FIFO's. Where no point is within the limit, all
    three are the point of the least JCT.
    """
    first = str(front.objectives[0])
    limits = {first: max(most_jct_s, float(front.scores[:, 0].min()))}
    found = (front.pick("jct"), front.pick("balanced", limits=limits), front.pick("pred", limits=limits))
    return {name: point.configuration for name, point in zip(PICKS, found, strict=True)}


def compared(
    case: Case, settings: ExperimentSettings, *, seed: int, times: float, steps: Steps, objectives: Sequence[str]
) -> tuple[dict[str, Figures], dict[str, WfqConfig], ParetoFront]:
    """Run the baselines and the picks of a front; the latter have at most so many `times` AFS's mean JCT.

    Counts one step for each baseline, and one for the search.
    """
    found: dict[str, Figures] = {}
    for name in BASELINES:
        found[name] = simulated(case, name)
        steps.add()
    front = tuned(case, settings, seed=seed, objectives=objectives)
    chosen = picks(front, times * found["afs"].jct_s)
    found |= {name: simulated(case, config) for name, config in chosen.items()}
    steps.add()
    return found, chosen, front


def tuned_and_held_out(
    settings: ExperimentSettings, workload: str, *, gpus: int, times: float, objectives: Sequence[str], error: str
) -> tuple[Case, list[dict[str, Figures]], list[dict[str, Figures]], dict[str, tuple[list[float], list[float]]]]:
    """Run baselines and picks on drawn jobs on which the picks are tuned, and on others of the same kind, by seed.

    Returns
    -------
    tuple
        The last case; the figures by seed on the jobs of the search, and on the others; and the curves of the first
        seed: the front and each policy, by the figure `error` and by JCT over that of AFS.
    """
    steps = Steps(settings.on_step, settings.repeats * (len(BASELINES) + 2))
    seen: list[dict[str, Figures]] = []
    unseen: list[dict[str, Figures]] = []
    curves: dict[str, tuple[list[float], list[float]]] = {}
    for seed in settings.seeds:
        case = generated_case(settings, workload, gpus=gpus, seed=seed)
        found, configs, front = compared(case, settings, seed=seed, times=times, steps=steps, objectives=objectives)
        seen.append(found)
        other = held_out_case(settings, workload, gpus=gpus, seed=seed)
        unseen.append({name: simulated(other, configs.get(name, name)) for name in found})
        steps.add()
        if not curves:
            afs_s = found["afs"].jct_s
            curves["front"] = (front.scores[:, 1].tolist(), (front.scores[:, 0] / afs_s).tolist())
            curves |= {name: ([getattr(each, error)], [each.jct_s / afs_s]) for name, each in found.items()}
    return case, seen, unseen, curves


def rows_of(case: Case, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of a table with a column that says where the jobs are from: published data, or our generators."""
    return [{"jobs of": case.source, **row} for row in rows]


def interval(values: ArrayLike) -> tuple[float, float]:
    """Return the mean of values and half the width of its 95% interval by Student's t; nan for a single value."""
    each = np.asarray(values, dtype=np.float64)
    if len(each) < 2:
        return float(each.mean()), math.nan
    return float(each.mean()), float(student.ppf(0.975, len(each) - 1) * each.std(ddof=1) / math.sqrt(len(each)))


def spread_columns(name: str, values: ArrayLike) -> dict[str, float]:
    """Return the columns of a mean and of half its interval."""
    mean, half = interval(values)
    return {name: mean, f"{name} \N{PLUS-MINUS SIGN}": half}


def ratios(found: Sequence[Mapping[str, Figures]], name: str, figure: str = "jct_s") -> list[float]:
    """Return a figure of a policy over that of AFS, for each run."""
    return [getattr(each[name], figure) / getattr(each["afs"], figure) for each in found]


def column(found: Sequence[Mapping[str, Figures]], name: str, figure: str) -> list[float]:
    """Return a figure of a policy, for each run."""
    return [getattr(each[name], figure) for each in found]


def mean(found: Sequence[Mapping[str, Figures]], name: str, figure: str) -> float:
    """Return the mean over runs of a figure of a policy."""
    return float(np.mean(column(found, name, figure)))
