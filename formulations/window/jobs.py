"""Jobs of a window as validated columns, and its settings: cluster, rounds and terms of the objective."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import InitVar, dataclass, field, fields
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import Floats, Indices
from ..checks import as_flag, as_ids, as_integer, as_integers, as_real, as_reals, refuse, same_length, store_checked
from ..errors import InvalidInput
from ..former_names import FormerName, former_parameters

# Tolerance, relative to the total epochs, on the sum of the regimes' epochs, because sums of decimals are rounded.
EPOCH_TOLERANCE = 1e-6
# Limit of a regime's rounds: doubles cannot represent all larger whole numbers.
LONGEST_REGIME = 2**53
MOST_ROUNDS = 10_000


@dataclass(frozen=True)
class Regime:
    """A stretch of a job's remaining epochs at one speed: `epochs` > 0, `epoch_s` > 0 isolated seconds per epoch."""

    epochs: float
    epoch_s: float


@dataclass(frozen=True, kw_only=True)
class WindowJob:
    """One job of a window.

    Parameters
    ----------
    id : str or int
    gpus : int
        GPUs of the job's gang, all held at once (g_j).
    finished_epochs, total_epochs : float
        Epochs done and epochs in total, 0 <= finished_epochs <= total_epochs (F_j, E_j).
    regimes : sequence of Regime
        The remaining regimes in order; their epochs sum to total_epochs - finished_epochs.
    ftf : float
        Predicted finish-time fairness (rho_j), positive.
    weight : float
        Priority (B_j), positive.
    """

    id: str | int
    gpus: int
    finished_epochs: float
    total_epochs: float
    regimes: Sequence[Regime]
    ftf: float = 1.0
    weight: float = 1.0


# Name of each column in errors about a WindowJob.
_AS_JOBS = {
    "ids": "jobs.id",
    "gang_gpus": "jobs.gpus",
    "finished_epochs": "jobs.finished_epochs",
    "total_epochs": "jobs.total_epochs",
    "regime_epochs": "jobs.regimes.epochs",
    "regime_epoch_s": "jobs.regimes.epoch_s",
    "ftf": "jobs.ftf",
    "weight": "jobs.weight",
}


@dataclass(frozen=True, eq=False)
class JobColumns:
    """N jobs as read-only arrays, shape (N,) each; regimes of job j are entries starts[j]:starts[j + 1], shape (R,).

    Parameters
    ----------
    jobs : sequence of WindowJob, or JobColumns
        Errors in a job name the field of WindowJob. JobColumns are not checked again.
    """

    jobs: InitVar[Sequence[WindowJob] | JobColumns]
    ids: tuple[str | int, ...] = field(init=False)
    gang_gpus: Indices = field(init=False)
    finished_epochs: Floats = field(init=False)
    total_epochs: Floats = field(init=False)
    regime_starts: Indices = field(init=False)
    regime_epochs: Floats = field(init=False)
    regime_epoch_s: Floats = field(init=False)
    ftf: Floats = field(init=False)
    weight: Floats = field(init=False)

    gangs = FormerName("gang_gpus")

    def __post_init__(self, jobs: Sequence[WindowJob] | JobColumns) -> None:
        columns = jobs if isinstance(jobs, JobColumns) else _columns_of(jobs)
        self.__dict__.update(columns._columns())

    def _columns(self) -> dict[str, Any]:
        """Return the columns by name."""
        return {column.name: getattr(self, column.name) for column in fields(JobColumns)}

    @classmethod
    @former_parameters(gangs="gang_gpus")
    def from_columns(
        cls,
        *,
        gang_gpus: ArrayLike,
        finished_epochs: ArrayLike,
        total_epochs: ArrayLike,
        regime_starts: ArrayLike,
        regime_epochs: ArrayLike,
        regime_epoch_s: ArrayLike,
        ids: Sequence[str | int] | None = None,
        ftf: ArrayLike | None = None,
        weight: ArrayLike | None = None,
        **settings: Any,
    ) -> Self:
        """Build from arrays, shape (N,) each; for large clusters.

        The regimes of job j are entries ``regime_starts[j]:regime_starts[j + 1]`` of `regime_epochs` and
        `regime_epoch_s`; `regime_starts` has shape (N + 1,). `ids` defaults to 0..N-1, `ftf` and `weight` to 1. The
        settings are the class's other parameters, by keyword.
        """
        sizes = as_integers("gang_gpus", gang_gpus, minimum=1)
        count, ones = len(sizes), np.ones(len(sizes))
        columns = JobColumns.__new__(JobColumns)
        columns.__dict__.update(
            gang_gpus=sizes,
            ids=tuple(range(count)) if ids is None else as_ids("ids", ids),
            total_epochs=as_reals("total_epochs", total_epochs, above=0.0),
            finished_epochs=as_reals("finished_epochs", finished_epochs, minimum=0.0),
            ftf=as_reals("ftf", ones if ftf is None else ftf, above=0.0),
            weight=as_reals("weight", ones if weight is None else weight, above=0.0),
            regime_epochs=as_reals("regime_epochs", regime_epochs, above=0.0, empty=True),
            regime_epoch_s=as_reals("regime_epoch_s", regime_epoch_s, above=0.0, empty=True),
            regime_starts=as_integers("regime_starts", regime_starts, minimum=0),
        )
        columns._check_columns()
        return cls(columns, **settings)

    def _check_columns(self) -> None:
        """Check conditions between columns: lengths, starts, and sums of epochs."""
        count, starts = len(self.gang_gpus), self.regime_starts
        by_job = ("ids", "total_epochs", "finished_epochs", "ftf", "weight", "gang_gpus")
        same_length(**{name: getattr(self, name) for name in by_job})
        same_length(regime_epoch_s=self.regime_epoch_s, regime_epochs=self.regime_epochs)
        if len(starts) != count + 1:
            raise InvalidInput("regime_starts", len(starts), f"must have N + 1 = {count + 1} entries")
        ends, entries = (int(starts[0]), int(starts[-1])), len(self.regime_epochs)
        if ends != (0, entries):
            raise InvalidInput("regime_starts", ends, f"must start at 0 and end at {entries}")
        refuse("regime_starts", np.diff(starts) < 0, starts, "must not decrease")
        finished, total = self.finished_epochs, self.total_epochs
        refuse("finished_epochs", finished > total, finished, "must not exceed total_epochs")
        owner = np.repeat(np.arange(count), np.diff(starts))
        left = np.bincount(owner, weights=self.regime_epochs, minlength=count)
        wrong = np.abs(finished + left - total) > EPOCH_TOLERANCE * total
        if wrong.any():
            j = int(np.flatnonzero(wrong)[0])
            sums = f"finished {finished[j]:g} + regimes {left[j]:g} = {finished[j] + left[j]:g}"
            raise InvalidInput("total_epochs", float(total[j]), f"the regimes do not add up: {sums}", index=j)

    def _without_wide(self, gpus: int, skip: bool) -> tuple[dict[str, Any], tuple[str | int, ...]]:
        """Return the columns of the jobs that fit `gpus` GPUs, and the ids of the others, which need `skip`."""
        wide = self.gang_gpus > gpus
        if not wide.any():
            return self._columns(), ()
        if not skip:
            why = f"wider than the cluster's {gpus} GPUs; skip_wide=True leaves such jobs out"
            refuse("gang_gpus", wide, self.gang_gpus, why)
        if wide.all():
            raise InvalidInput(
                "gang_gpus", f"[{self.gang_gpus[0]}, ...]", f"every job is wider than the cluster's {gpus} GPUs"
            )
        lengths = np.diff(self.regime_starts)
        per_job = ("gang_gpus", "finished_epochs", "total_epochs", "ftf", "weight")
        kept = {name: getattr(self, name)[~wide] for name in per_job}
        kept |= {name: getattr(self, name)[np.repeat(~wide, lengths)] for name in ("regime_epochs", "regime_epoch_s")}
        kept["regime_starts"] = np.concatenate(([0], np.cumsum(lengths[~wide])))
        for array in kept.values():
            array.setflags(write=False)
        skipped = tuple(name for name, out in zip(self.ids, wide, strict=True) if out)
        names = tuple(name for name, out in zip(self.ids, wide, strict=True) if not out)
        return {**kept, "ids": names}, skipped


def marked(
    running: Sequence[str | int], ids: tuple[str | int, ...], skipped: tuple[str | int, ...]
) -> NDArray[np.bool_]:
    """Return which jobs are in `running`, shape (N,); skipped ids are ignored, unknown ids raise InvalidInput."""
    is_running = np.zeros(len(ids), dtype=np.bool_)
    if running:
        place = {name: j for j, name in enumerate(ids)}
        for i, name in enumerate(running):
            if name not in place and name not in skipped:
                raise InvalidInput("running", name, "no job has this id", index=i)
            if name in place:
                is_running[place[name]] = True
    is_running.setflags(write=False)
    return is_running


def named_as_jobs(error: InvalidInput, starts: Indices) -> InvalidInput:
    """Return an error about a column as an error about the job of the entry."""
    if error.field not in _AS_JOBS:
        return error
    index = error.index
    if index is not None and error.field.startswith("regime_"):
        job = int(np.searchsorted(starts, index[0], side="right")) - 1
        index = (job, index[0] - int(starts[job]))
    return InvalidInput(_AS_JOBS[error.field], error.value, error.why, index=index)


def _columns_of(jobs: Any) -> JobColumns:
    """Turn a sequence of WindowJob into columns."""
    jobs = _checked_jobs(jobs)
    starts = np.cumsum([0, *(len(job.regimes) for job in jobs)])
    data: dict[str, Any] = {
        "ids": [job.id for job in jobs],
        "gang_gpus": [job.gpus for job in jobs],
        "finished_epochs": [job.finished_epochs for job in jobs],
        "total_epochs": [job.total_epochs for job in jobs],
        "regime_starts": starts,
        "regime_epochs": [regime.epochs for job in jobs for regime in job.regimes],
        "regime_epoch_s": [regime.epoch_s for job in jobs for regime in job.regimes],
        "ftf": [job.ftf for job in jobs],
        "weight": [job.weight for job in jobs],
    }
    try:
        return JobColumns.from_columns(**data)
    except InvalidInput as error:
        raise named_as_jobs(error, starts) from None


def _checked_jobs(jobs: Any) -> Sequence[WindowJob]:
    if isinstance(jobs, str | bytes) or not isinstance(jobs, Sequence):
        raise InvalidInput("jobs", type(jobs).__name__, "must be a sequence of WindowJob")
    if not jobs:
        raise InvalidInput("jobs", "[]", "must not be empty")
    for j, job in enumerate(jobs):
        if not isinstance(job, WindowJob):
            raise InvalidInput("jobs", type(job).__name__, "must be a WindowJob", index=j)
        regimes: Any = job.regimes
        if isinstance(regimes, str | bytes) or not isinstance(regimes, Sequence):
            raise InvalidInput("jobs.regimes", type(regimes).__name__, "must be a sequence of Regime", index=j)
        for k, regime in enumerate(regimes):
            if not isinstance(regime, Regime):
                raise InvalidInput("jobs.regimes", type(regime).__name__, "must be a Regime", index=(j, k))
    checked: Sequence[WindowJob] = jobs
    return checked


@dataclass(frozen=True, eq=False)
class WindowSettings:
    """Data of a window beside its jobs; :class:`~.problem.ScheduleWindow` describes each setting."""

    gpus: int
    rounds: int = 20
    round_s: float = 120.0
    ftf_power: float = 5.0
    makespan_weight: float = 1e-3
    makespan_scale: float = None  # type: ignore[assignment]  # the jobs' remaining run times
    gang_weighted: bool = True
    utility_floor: float = 1e-6
    restart_penalty: float = 0.0
    running: Sequence[str | int] = ()
    skip_wide: bool = False

    def _check_settings(self) -> None:
        """Check each setting, and store it with its type."""
        store_checked(self, as_integer, "gpus", minimum=1)
        store_checked(self, as_integer, "rounds", minimum=1, maximum=MOST_ROUNDS)
        store_checked(self, as_real, "round_s", "utility_floor", above=0.0)
        store_checked(self, as_real, "ftf_power", "makespan_weight", "restart_penalty", minimum=0.0)
        store_checked(self, as_flag, "gang_weighted", "skip_wide")
        store_checked(self, as_ids, "running")
        if self.makespan_scale is not None:
            store_checked(self, as_real, "makespan_scale", above=0.0)
        if self.utility_floor >= 1:
            raise InvalidInput("utility_floor", self.utility_floor, "must be less than 1")
