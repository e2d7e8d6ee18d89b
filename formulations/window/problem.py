"""The window program: which job runs in which of the next rounds (Shockwave, Eq. 11)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..arrays import Floats
from ..program.data import ProblemClass, Residuals
from ..program.formulation import Formulation
from ..program.model import Program
from . import programs as window_programs
from .check import schedule_faults
from .data import WindowData
from .jobs import Regime, WindowJob
from .plan import WindowPlan

__all__ = ["Regime", "ScheduleWindow", "WindowJob"]


@dataclass(frozen=True, eq=False, repr=False)
class ScheduleWindow(WindowData, Formulation[WindowPlan]):
    """Plan the next rounds of a cluster: every job's regimes in order, gangs whole, no GPU idle that a job could use.

    Maximises ``sum_j w_j log UTIL_j - (makespan_weight / makespan_scale) H - restart_penalty * restarts`` with
    ``w_j = weight_j * ftf_j**ftf_power / (N * gpus)``; UTIL_j is the share of its epochs that job j has done after the
    window (at least `utility_floor`), H the bound on the makespan of what is left (Eq. 10). A regime runs in whole
    rounds: the rest of its last round is lost to the job.

    Parameters
    ----------
    jobs : sequence of WindowJob, or a window whose jobs are taken
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

    def __repr__(self) -> str:
        return f"<ScheduleWindow: {len(self.ids)} jobs, {self.gpus} GPUs, {self.rounds} rounds of {self.round_s:g} s>"

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
        self.check_form(form)
        return window_programs.counts(self) if form == "counts" else window_programs.time_indexed(self)

    def decode(self, values: Floats, duals: Floats | None = None, form: str = "counts") -> WindowPlan:
        """Turn the column values of `program(form)` into a plan that leaves no GPU idle that a job could use."""
        self.check_form(form)
        return window_programs.decode(self, values, form)

    def encode(self, plan: WindowPlan, form: str = "counts") -> Floats:
        """Turn a plan of this window into column values of `program(form)`, for a warm start."""
        self.check_form(form)
        return window_programs.encode(self, plan, self.program(form))

    def evaluate(self, plan: WindowPlan) -> tuple[float, Residuals]:
        """Return the plan's objective and its worst fault (see :func:`~.check.schedule_faults`), recomputed."""
        faults = schedule_faults(self, plan.grants, plan.regime_of)
        worst = max((fault.size for fault in faults), default=0.0)
        return self.tables.objective(plan.grants, self.is_running, self.restart_penalty), Residuals(row=worst)

    def gap_scale(self, objective: float) -> float:
        """Return the sum of the weights w_j: a gap of 1e-4 is 0.01% of mean log-utility."""
        return self.tables.weight_sum
