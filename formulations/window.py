"""The window program: which job runs in which of the next rounds (Shockwave, Eq. 11)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .checks import as_flag, as_ids, as_integer, as_integers, as_real, as_reals, same_length
from .errors import InvalidInput
from .program import Floats, Indices, ProblemClass, Program, Residuals
from .window_plan import WindowPlan
from .window_tables import Tables, tabulate

MOST_ROUNDS = 10_000
MOST_CELLS = 200_000_000  # jobs x rounds; the tables of more would not fit a machine's memory
# How far the epochs of the regimes may be from total - finished, relative to the total: sums of decimals round.
EPOCH_TOLERANCE = 1e-6


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
        GPUs needed, all at once (g_j).
    finished_epochs, total_epochs : float
        0 <= finished_epochs <= total_epochs (F_j, E_j).
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


# What a column is called when the data came as jobs.
_AS_JOBS = {
    "ids": "jobs.id",
    "gangs": "jobs.gpus",
    "finished_epochs": "jobs.finished_epochs",
    "total_epochs": "jobs.total_epochs",
    "regime_epochs": "jobs.regimes.epochs",
    "regime_epoch_s": "jobs.regimes.epoch_s",
    "ftf": "jobs.ftf",
    "weight": "jobs.weight",
}


class ScheduleWindow:
    """Plan the next rounds of a cluster: every job's regimes in order, gangs whole, no GPU idle that a job could use.

    Maximises ``sum_j w_j log UTIL_j - (makespan_weight / makespan_scale) H - restart_penalty * restarts`` with
    ``w_j = weight_j * ftf_j**ftf_power / (N * gpus)``; UTIL_j is the share of its epochs that job j has done after the
    window (at least `utility_floor`), H the bound on the makespan of what is left (Eq. 10). A regime runs in whole
    rounds: the rest of its last round is lost to the job.

    Parameters
    ----------
    jobs : sequence of WindowJob
        N jobs; use :meth:`from_columns` for large clusters.
    gpus : int
        GPUs of the cluster (M).
    rounds : int
        Rounds in the window (T).
    round_s : float
        Seconds per round (D).
    ftf_power : float
        k of Eq. 11, at least 0.
    makespan_weight : float
        lambda of Eq. 11, at least 0.
    makespan_scale : float, optional
        Z0 in seconds: the sum of the jobs' predicted total run times; by default the sum of the remaining ones.
    gang_weighted : bool
        H >= sum_j g_j R_j / M; False takes the paper's literal sum_j R_j / M.
    utility_floor : float
        Smallest UTIL, in (0, 1): log 0 is no objective.
    restart_penalty : float
        Subtracted, in units of the objective, each time a job runs in a round and did not in the one before.
    running : sequence of ids
        Jobs that held their GPUs in the round just before the window.
    skip_wide : bool
        Leave out jobs wider than the cluster, with a warning; their ids are in `skipped`. By default they are an error.

    Raises
    ------
    InvalidInput
        Naming field, index and value, for any value out of range, duplicate ids, or regimes that do not add up.

    References
    ----------
    Zheng et al., "Shockwave: Fair and Efficient Cluster Scheduling for Dynamic Adaptation in Machine Learning",
    NSDI 2023, Eqs 2, 7, 8, 10, 11 and Appendices G and H.
    """

    sense: ClassVar[Literal["max"]] = "max"
    forms: ClassVar[tuple[str, ...]] = ("counts", "time_indexed")
    problem_class: ClassVar[ProblemClass] = ProblemClass.MILP
    reference: ClassVar[str] = "Zheng et al., Shockwave, NSDI 2023, Eq. 11"

    ids: tuple[str | int, ...]
    gangs: Indices
    finished_epochs: Floats
    total_epochs: Floats
    regime_starts: Indices
    regime_epochs: Floats
    regime_epoch_s: Floats
    ftf: Floats
    weight: Floats
    is_running: NDArray[np.bool_]
    gpus: int
    rounds: int
    round_s: float
    ftf_power: float
    makespan_weight: float
    makespan_scale: float
    gang_weighted: bool
    utility_floor: float
    restart_penalty: float
    skipped: tuple[str | int, ...]

    def __init__(
        self,
        jobs: Sequence[WindowJob],
        gpus: int,
        rounds: int = 20,
        round_s: float = 120.0,
        ftf_power: float = 5.0,
        makespan_weight: float = 1e-3,
        makespan_scale: float | None = None,
        gang_weighted: bool = True,
        utility_floor: float = 1e-6,
        restart_penalty: float = 0.0,
        running: Sequence[str | int] = (),
        skip_wide: bool = False,
    ) -> None:
        jobs = _checked_jobs(jobs)
        starts = np.cumsum([0, *(len(job.regimes) for job in jobs)])
        try:
            self._fill(
                ids=[job.id for job in jobs],
                gangs=[job.gpus for job in jobs],
                finished_epochs=[job.finished_epochs for job in jobs],
                total_epochs=[job.total_epochs for job in jobs],
                regime_starts=starts,
                regime_epochs=[regime.epochs for job in jobs for regime in job.regimes],
                regime_epoch_s=[regime.epoch_s for job in jobs for regime in job.regimes],
                ftf=[job.ftf for job in jobs],
                weight=[job.weight for job in jobs],
                gpus=gpus,
                rounds=rounds,
                round_s=round_s,
                ftf_power=ftf_power,
                makespan_weight=makespan_weight,
                makespan_scale=makespan_scale,
                gang_weighted=gang_weighted,
                utility_floor=utility_floor,
                restart_penalty=restart_penalty,
                running=running,
                skip_wide=skip_wide,
            )
        except InvalidInput as error:
            if error.field not in _AS_JOBS:
                raise
            index = error.index
            if index is not None and error.field.startswith("regime_"):
                job = int(np.searchsorted(starts, index[0], side="right")) - 1
                index = (job, index[0] - int(starts[job]))
            raise InvalidInput(_AS_JOBS[error.field], error.value, error.why, index=index) from None

    @classmethod
    def from_columns(
        cls,
        *,
        gangs: ArrayLike,
        finished_epochs: ArrayLike,
        total_epochs: ArrayLike,
        regime_starts: ArrayLike,
        regime_epochs: ArrayLike,
        regime_epoch_s: ArrayLike,
        gpus: int,
        ids: Sequence[str | int] | None = None,
        ftf: ArrayLike | None = None,
        weight: ArrayLike | None = None,
        rounds: int = 20,
        round_s: float = 120.0,
        ftf_power: float = 5.0,
        makespan_weight: float = 1e-3,
        makespan_scale: float | None = None,
        gang_weighted: bool = True,
        utility_floor: float = 1e-6,
        restart_penalty: float = 0.0,
        running: Sequence[str | int] = (),
        skip_wide: bool = False,
    ) -> ScheduleWindow:
        """Build a window from arrays, shape (N,) each; for large clusters.

        The regimes of job j are entries ``regime_starts[j]:regime_starts[j + 1]`` of `regime_epochs` and
        `regime_epoch_s`; `regime_starts` has shape (N + 1,). `ids` defaults to 0..N-1, `ftf` and `weight` to 1. The
        rest is as in the class.
        """
        window = cls.__new__(cls)
        window._fill(
            ids=ids,
            gangs=gangs,
            finished_epochs=finished_epochs,
            total_epochs=total_epochs,
            regime_starts=regime_starts,
            regime_epochs=regime_epochs,
            regime_epoch_s=regime_epoch_s,
            ftf=ftf,
            weight=weight,
            gpus=gpus,
            rounds=rounds,
            round_s=round_s,
            ftf_power=ftf_power,
            makespan_weight=makespan_weight,
            makespan_scale=makespan_scale,
            gang_weighted=gang_weighted,
            utility_floor=utility_floor,
            restart_penalty=restart_penalty,
            running=running,
            skip_wide=skip_wide,
        )
        return window

    def _fill(self, *, running: Sequence[str | int], skip_wide: bool, **data: Any) -> None:
        put = self.__dict__.__setitem__
        put("gpus", as_integer("gpus", data["gpus"], minimum=1))
        put("rounds", as_integer("rounds", data["rounds"], minimum=1, maximum=MOST_ROUNDS))
        put("round_s", as_real("round_s", data["round_s"], above=0.0))
        put("ftf_power", as_real("ftf_power", data["ftf_power"], minimum=0.0))
        put("makespan_weight", as_real("makespan_weight", data["makespan_weight"], minimum=0.0))
        put("gang_weighted", as_flag("gang_weighted", data["gang_weighted"]))
        put("utility_floor", as_real("utility_floor", data["utility_floor"], above=0.0))
        if self.utility_floor >= 1:
            raise InvalidInput("utility_floor", self.utility_floor, "must be less than 1")
        put("restart_penalty", as_real("restart_penalty", data["restart_penalty"], minimum=0.0))
        self._fill_jobs(data)
        self._drop_wide(as_flag("skip_wide", skip_wide))
        count = len(self.gangs)
        if count * (self.rounds + 1) > MOST_CELLS:
            raise InvalidInput("rounds", self.rounds, f"{count} jobs x {self.rounds} rounds exceed {MOST_CELLS} cells")
        scale = data["makespan_scale"]
        if scale is not None:
            scale = as_real("makespan_scale", scale, above=0.0)
        else:
            scale = float(self.regime_epochs @ self.regime_epoch_s) or 1.0
        put("makespan_scale", scale)
        put("is_running", self._running(running))
        with np.errstate(over="ignore"):
            powers = self.weight * self.ftf**self.ftf_power
        _refuse("ftf", ~np.isfinite(powers) | (powers <= 0), self.ftf, f"its power {self.ftf_power:g} is out of range")

    def _fill_jobs(self, data: dict[str, Any]) -> None:
        put = self.__dict__.__setitem__
        put("gangs", as_integers("gangs", data["gangs"], minimum=1))
        count = len(self.gangs)
        put("ids", tuple(range(count)) if data["ids"] is None else as_ids("ids", data["ids"]))
        put("total_epochs", as_reals("total_epochs", data["total_epochs"], above=0.0))
        put("finished_epochs", as_reals("finished_epochs", data["finished_epochs"], minimum=0.0))
        for name in ("ftf", "weight"):
            put(name, as_reals(name, np.ones(count) if data[name] is None else data[name], above=0.0))
        put("regime_epochs", as_reals("regime_epochs", data["regime_epochs"], above=0.0, empty=True))
        put("regime_epoch_s", as_reals("regime_epoch_s", data["regime_epoch_s"], above=0.0, empty=True))
        put("regime_starts", as_integers("regime_starts", data["regime_starts"], minimum=0))
        same_length(
            ids=self.ids,
            total_epochs=self.total_epochs,
            finished_epochs=self.finished_epochs,
            ftf=self.ftf,
            weight=self.weight,
            gangs=self.gangs,
        )
        same_length(regime_epoch_s=self.regime_epoch_s, regime_epochs=self.regime_epochs)
        starts = self.regime_starts
        if len(starts) != count + 1:
            raise InvalidInput("regime_starts", len(starts), f"must have N + 1 = {count + 1} entries")
        if starts[0] != 0 or starts[-1] != len(self.regime_epochs):
            raise InvalidInput(
                "regime_starts",
                (int(starts[0]), int(starts[-1])),
                f"must start at 0 and end at {len(self.regime_epochs)}",
            )
        _refuse("regime_starts", np.diff(starts) < 0, starts, "must not decrease")
        finished, total = self.finished_epochs, self.total_epochs
        _refuse("finished_epochs", finished > total, finished, "must not exceed total_epochs")
        left = np.bincount(np.repeat(np.arange(count), np.diff(starts)), weights=self.regime_epochs, minlength=count)
        wrong = np.abs(finished + left - total) > EPOCH_TOLERANCE * total
        if wrong.any():
            j = int(np.flatnonzero(wrong)[0])
            raise InvalidInput(
                "total_epochs",
                float(total[j]),
                "the regimes do not add up: finished "
                f"{finished[j]:g} + regimes {left[j]:g} = {finished[j] + left[j]:g}",
                index=j,
            )
        seconds = self.regime_epochs * self.regime_epoch_s
        _refuse("regime_epoch_s", ~(seconds / self.round_s < 2**53), self.regime_epoch_s, "the regime is too long")

    def _drop_wide(self, skip: bool) -> None:
        put = self.__dict__.__setitem__
        put("skipped", ())
        wide = self.gangs > self.gpus
        if not wide.any():
            return
        if not skip:
            _refuse(
                "gangs",
                wide,
                self.gangs,
                f"wider than the cluster's {self.gpus} GPUs; skip_wide=True leaves such jobs out",
            )
        if wide.all():
            raise InvalidInput(
                "gangs", f"[{self.gangs[0]}, ...]", f"every job is wider than the cluster's {self.gpus} GPUs"
            )
        keep = ~wide
        entries = np.repeat(keep, np.diff(self.regime_starts))
        lengths = np.diff(self.regime_starts)[keep]
        put("skipped", tuple(name for name, out in zip(self.ids, wide, strict=True) if out))
        put("ids", tuple(name for name, stays in zip(self.ids, keep, strict=True) if stays))
        put("regime_starts", np.concatenate(([0], np.cumsum(lengths))))
        for name in ("gangs", "finished_epochs", "total_epochs", "ftf", "weight"):
            put(name, getattr(self, name)[keep])
        for name in ("regime_epochs", "regime_epoch_s"):
            put(name, getattr(self, name)[entries])
        for name in (
            "regime_starts",
            "gangs",
            "finished_epochs",
            "total_epochs",
            "ftf",
            "weight",
            "regime_epochs",
            "regime_epoch_s",
        ):
            getattr(self, name).setflags(write=False)
        warnings.warn(
            f"{len(self.skipped)} job(s) wider than {self.gpus} GPUs left out: {self.skipped[:5]}", stacklevel=5
        )

    def _running(self, running: Sequence[str | int]) -> NDArray[np.bool_]:
        is_running = np.zeros(len(self.ids), dtype=np.bool_)
        names = as_ids("running", running) if len(running) else ()
        if names:
            place = {name: j for j, name in enumerate(self.ids)}
            for i, name in enumerate(names):
                if name not in place and name not in self.skipped:
                    raise InvalidInput("running", name, "no job has this id", index=i)
                if name in place:
                    is_running[place[name]] = True
        is_running.setflags(write=False)
        return is_running

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a ScheduleWindow is frozen: cannot set {name}")

    def __repr__(self) -> str:
        return f"<ScheduleWindow: {len(self.ids)} jobs, {self.gpus} GPUs, {self.rounds} rounds of {self.round_s:g} s>"

    @cached_property
    def tables(self) -> Tables:
        """Utilities and remaining run times after n = 0..T rounds, and the weights (see :class:`Tables`)."""
        return tabulate(self)

    def program(self, form: str = "counts") -> Program:
        """Return the window as a MILP.

        Parameters
        ----------
        form : {"counts", "time_indexed"}
            "time_indexed" is the paper's: a binary per micro-job and round. "counts" decides only how many rounds each
            job gets, a relaxation; `decode` packs them.
        """
        from . import window_programs

        if form not in self.forms:
            raise InvalidInput("form", form, f"must be one of {', '.join(self.forms)}")
        return window_programs.counts(self) if form == "counts" else window_programs.time_indexed(self)

    def decode(self, values: Floats, duals: Floats | None = None, form: str = "counts") -> WindowPlan:
        """Turn the column values of `program(form)` into a plan that leaves no GPU idle that a job could use."""
        from . import window_programs

        return window_programs.decode(self, values, form)

    def encode(self, plan: WindowPlan, form: str = "counts") -> Floats:
        """Turn a plan of this window into column values of `program(form)`, for a warm start."""
        from . import window_programs

        return window_programs.encode(self, plan, form)

    def evaluate(self, plan: WindowPlan) -> tuple[float, Residuals]:
        """Return the plan's objective and its worst fault (see :func:`~.window_check.schedule_faults`), recomputed."""
        from .window_check import schedule_faults

        faults = schedule_faults(self, plan.grants, plan.regime_of)
        worst = max((fault.size for fault in faults), default=0.0)
        return self.tables.objective(plan.grants, self.is_running, self.restart_penalty), Residuals(row=worst)

    def gap_scale(self, objective: float) -> float:
        """Return the sum of the weights w_j: a gap of 1e-4 is 0.01% of mean log-utility."""
        return self.tables.weight_sum


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


def _refuse(name: str, bad: NDArray[np.bool_], values: NDArray[Any], why: str) -> None:
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        raise InvalidInput(name, values[at].item(), why, index=at)
