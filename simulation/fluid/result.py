"""Result of the fluid engine: contention, preemptions, predictions and unfairness of each job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from ...formulations.arrays import Floats, Indices
from ...formulations.checks import as_real, as_reals, same_length
from ..cluster import Cluster
from ..decision import CallRecord
from ..results.result import SimulationResult
from ..results.timeline import Levels, Stretches
from ..traces.trace import Trace
from .job import FluidJob
from .policy import FluidPolicy
from .rules import FluidRules


def fair_s(size_s: ArrayLike, contention: ArrayLike, max_gpus: ArrayLike, *, gpus: int) -> Floats:
    """Return the fair finish time of each job, ``S / min(M/c, d)``, shape (N,).

    Parameters
    ----------
    size_s, contention : array_like of float, shape (N,)
        Run times on one GPU (S), and mean numbers of jobs in the system (c), at least 1.
    max_gpus : array_like of int, shape (N,)
        Maximum demands (d).
    gpus : int
        GPUs of the cluster (M).
    """
    sizes_s, jobs = as_reals("size_s", size_s, above=0.0), as_reals("contention", contention, minimum=1.0)
    demands = as_reals("max_gpus", max_gpus, minimum=1.0)
    same_length(contention=jobs, max_gpus=demands, size_s=sizes_s)
    return np.asarray(sizes_s / np.minimum(as_real("gpus", gpus, minimum=1.0) / jobs, demands))


#: Records of each job that both forms of the engine keep under the names of the result.
RECORDS = ("start_s", "end_s", "run_s", "gpu_s", "restarts", "preemptions", "cuts")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class FluidResult(SimulationResult):
    """Result of one simulation by the fluid engine.

    Attributes
    ----------
    rules : FluidRules
    size_s : ndarray of float, shape (N,)
        Run times on one GPU (S).
    max_gpus : ndarray of int, shape (N,)
        Maximum demands (d).
    contention : ndarray of float, shape (N,)
        Mean number of jobs in the system over the events from a job's arrival to its end.
    mean_contention : ndarray of float, shape (N,)
        The same mean over time.
    preemptions, cuts : ndarray of int, shape (N,)
        How often a job lost all its GPUs before its end, and how often it lost some.
    predicted_end_s, bound_s : ndarray of float, shape (N,)
        End predicted at the arrival, and the time by which the policy guaranteed the end; nan where there is none.
    """

    step_name = "event"

    rules: FluidRules
    size_s: Floats
    max_gpus: Indices
    contention: Floats
    mean_contention: Floats
    preemptions: Indices
    cuts: Indices
    predicted_end_s: Floats
    bound_s: Floats

    @property
    def fair_s(self) -> Floats:
        """Fair finish time of each job, from arrival, with contention by event, shape (N,)."""
        return fair_s(self.size_s, self.contention, self.max_gpus, gpus=self.gpus)

    @cached_property
    def unfairness(self) -> Floats:
        """Share by which each job's time exceeds its fair finish time, shape (N,); contention is by event."""
        return np.asarray(np.maximum(0.0, self.jct_s / self.fair_s - 1.0))

    @cached_property
    def mean_unfairness(self) -> Floats:
        """The same with contention by time, shape (N,)."""
        fair = fair_s(self.size_s, self.mean_contention, self.max_gpus, gpus=self.gpus)
        return np.asarray(np.maximum(0.0, self.jct_s / fair - 1.0))

    @cached_property
    def signed_error_pct(self) -> Floats:
        """Difference of each job's time from the predicted one, in percent of the latter, shape (N,)."""
        predicted_s = self.predicted_end_s - self.trace.arrival_s
        # A prediction of no time, which rounding may make, is off by nothing or without measure.
        exact = np.where(self.jct_s == predicted_s, 0.0, np.inf)
        with np.errstate(divide="ignore", invalid="ignore"):
            error_pct = 100.0 * (self.jct_s - predicted_s) / predicted_s
        return np.asarray(np.where(predicted_s == 0.0, exact, error_pct))

    @property
    def error_pct(self) -> Floats:
        """Prediction error ``100 |JCT - JCT_pred| / JCT_pred`` of each job, shape (N,)."""
        return np.abs(self.signed_error_pct)

    def _own_columns(self) -> Mapping[str, ArrayLike]:
        return {
            "size_s": self.size_s,
            "max_gpus": self.max_gpus,
            "contention": self.contention,
            "mean_contention": self.mean_contention,
            "fair_s": self.fair_s,
            "unfairness": self.unfairness,
            "preemptions": self.preemptions,
            "cuts": self.cuts,
            "predicted_end_s": self.predicted_end_s,
            "bound_s": self.bound_s,
            "error_pct": self.error_pct,
        }

    def of(self, which: ArrayLike) -> Mapping[str, float]:
        """Return the metrics of a subset of the jobs: those of `SimulationResult.of`, and further ones.

        avg_unfairness and p99_unfairness, preemptions and cuts (sums); and with predictions avg_error_pct and
        p99_error_pct.
        """
        common = super().of(which)
        mask = np.asarray(which)
        own = {
            "avg_unfairness": float(self.unfairness[mask].mean()),
            "p99_unfairness": float(np.percentile(self.unfairness[mask], 99.0)),
            "preemptions": int(self.preemptions[mask].sum()),
            "cuts": int(self.cuts[mask].sum()),
        }
        if self.rules.predict:
            error_pct = self.error_pct[mask]
            own["avg_error_pct"] = float(error_pct.mean())
            own["p99_error_pct"] = float(np.percentile(error_pct, 99.0))
        return {**common, **own}


def job_columns(jobs: Sequence[FluidJob]) -> dict[str, Floats | Indices]:
    """Return the columns of a result that depend on no policy; `jobs` are in the order of the trace."""
    return {
        "exclusive_s": np.array([job.exclusive_s for job in jobs]),
        "size_s": np.array([job.true_size_s for job in jobs]),
        "max_gpus": np.array([job.max_gpus for job in jobs]),
    }


def fluid_result(
    trace: Trace,
    policy: FluidPolicy,
    cluster: Cluster,
    rules: FluidRules,
    columns: Mapping[str, ArrayLike],
    *,
    levels: Levels,
    stretches: Stretches | None,
    calls: tuple[CallRecord, ...] = (),
) -> FluidResult:
    """Return the result of a run; `columns` are those of `job_columns` and the records, in the order of the trace."""
    found = {name: np.array(column) for name, column in columns.items()}
    # Jobs that have not arrived have seen no event.
    found["contention"], found["mean_contention"] = (
        np.maximum(1.0, found[name]) for name in ("contention", "mean_contention")
    )
    return FluidResult(
        engine="fluid",
        policy=str(policy.name),
        trace=trace,
        cluster=cluster,
        rules=rules,
        ended_by=np.where(np.isnan(found["end_s"]), "", "completed"),
        levels=levels,
        stretches=None if stretches is None else _ordered(stretches),
        solve_rows=calls,
        **found,
    )


def _ordered(stretches: Stretches) -> Stretches:
    """Return the stretches that take time, by start and then by trace index."""
    order = np.lexsort((stretches.trace_index, stretches.start_s))
    order = order[stretches.end_s[order] > stretches.start_s[order]]
    names = ("trace_index", "start_s", "end_s", "gpus", "gpu_type")
    return Stretches(**{name: getattr(stretches, name)[order] for name in names})
