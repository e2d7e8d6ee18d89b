"""The window program: which job runs in which of the next rounds (Shockwave, Eq. 11)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import Floats, Indices
from ..checks import as_flag, as_integer, as_real
from ..errors import InvalidInput
from ..program.data import ProblemClass, Residuals
from ..program.formulation import Formulation
from ..program.model import Program
from .jobs import LONGEST_REGIME, JobColumns, Regime, WindowJob, marked, named_as_jobs, refuse
from .plan import WindowPlan
from .tables import Tables, tabulate

MOST_ROUNDS = 10_000
MOST_CELLS = 200_000_000  # jobs x rounds; the tables of more would not fit a machine's memory

__all__ = ["Regime", "ScheduleWindow", "WindowJob"]


class ScheduleWindow(Formulation[WindowPlan]):
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

    sense = "max"
    forms = ("counts", "time_indexed")
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
        columns = JobColumns.of_jobs(jobs)
        try:
            self._fill(
                columns,
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
            raise named_as_jobs(error, columns.regime_starts) from None

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
        columns = JobColumns.checked(
            {
                "ids": ids,
                "gangs": gangs,
                "finished_epochs": finished_epochs,
                "total_epochs": total_epochs,
                "regime_starts": regime_starts,
                "regime_epochs": regime_epochs,
                "regime_epoch_s": regime_epoch_s,
                "ftf": ftf,
                "weight": weight,
            }
        )
        window = cls.__new__(cls)
        window._fill(
            columns,
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

    def _fill(self, columns: JobColumns, *, running: Any, skip_wide: Any, **data: Any) -> None:
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
        seconds = columns.regime_epochs * columns.regime_epoch_s
        too_long = ~(seconds / self.round_s < LONGEST_REGIME)
        refuse("regime_epoch_s", too_long, columns.regime_epoch_s, "the regime is too long")
        with np.errstate(over="ignore"):
            powers = columns.weight * columns.ftf**self.ftf_power
        out_of_range = ~np.isfinite(powers) | (powers <= 0)
        refuse("ftf", out_of_range, columns.ftf, f"its power {self.ftf_power:g} is out of range")
        columns, skipped = columns.without_wide(self.gpus, as_flag("skip_wide", skip_wide))
        count = len(columns.gangs)
        if count * (self.rounds + 1) > MOST_CELLS:
            raise InvalidInput("rounds", self.rounds, f"{count} jobs x {self.rounds} rounds exceed {MOST_CELLS} cells")
        self.__dict__.update(vars(columns), skipped=skipped, is_running=marked(running, columns.ids, skipped))
        scale = data["makespan_scale"]
        if scale is not None:
            scale = as_real("makespan_scale", scale, above=0.0)
        else:
            scale = float(self.regime_epochs @ self.regime_epoch_s) or 1.0
        put("makespan_scale", scale)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a ScheduleWindow is frozen: cannot set {name}")

    def __repr__(self) -> str:
        return f"<ScheduleWindow: {len(self.ids)} jobs, {self.gpus} GPUs, {self.rounds} rounds of {self.round_s:g} s>"

    @cached_property
    def tables(self) -> Tables:
        """Utilities and remaining run times after n = 0..T rounds, and the weights (see :class:`Tables`)."""
        return tabulate(self)

    def class_of(self, form: str | None = None) -> ProblemClass:
        """Return MILP."""
        self.check_form(form)
        return ProblemClass.MILP

    def program(self, form: str = "counts") -> Program:
        """Return the window as a MILP.

        Parameters
        ----------
        form : {"counts", "time_indexed"}
            "time_indexed" is the paper's: a binary per job and round. "counts" decides only how many rounds each
            job gets, a relaxation; `decode` packs them.
        """
        from . import programs as window_programs

        self.check_form(form)
        return window_programs.counts(self) if form == "counts" else window_programs.time_indexed(self)

    def decode(self, values: Floats, duals: Floats | None = None, form: str = "counts") -> WindowPlan:
        """Turn the column values of `program(form)` into a plan that leaves no GPU idle that a job could use."""
        from . import programs as window_programs

        self.check_form(form)
        return window_programs.decode(self, values, form)

    def encode(self, plan: WindowPlan, form: str = "counts") -> Floats:
        """Turn a plan of this window into column values of `program(form)`, for a warm start."""
        from . import programs as window_programs

        self.check_form(form)
        return window_programs.encode(self, plan, self.program(form))

    def evaluate(self, plan: WindowPlan) -> tuple[float, Residuals]:
        """Return the plan's objective and its worst fault (see :func:`~.window_check.schedule_faults`), recomputed."""
        from .check import schedule_faults

        faults = schedule_faults(self, plan.grants, plan.regime_of)
        worst = max((fault.size for fault in faults), default=0.0)
        return self.tables.objective(plan.grants, self.is_running, self.restart_penalty), Residuals(row=worst)

    def gap_scale(self, objective: float) -> float:
        """Return the sum of the weights w_j: a gap of 1e-4 is 0.01% of mean log-utility."""
        return self.tables.weight_sum
