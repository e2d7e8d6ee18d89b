"""ScheduleWindow: the plan of the next rounds of a cluster (Shockwave, Eq. 11)."""

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
    """Plan the next rounds of a cluster, with regimes in order, whole gangs, and no idle GPU that a job could use.

    Maximises ``sum_j w_j log UTIL_j - (makespan_weight / makespan_scale) H - restart_penalty * restarts`` with
    ``w_j = weight_j * ftf_j**ftf_power / (N * gpus)``; UTIL_j is the share of its epochs that job j has done after the
    window (at least `utility_floor`), H the bound on the makespan of the remaining work (Eq. 10). A regime runs in
    whole rounds: the job loses the remaining time of its last round.

    Parameters
    ----------
    jobs : sequence of WindowJob, or a window with the same jobs
        The N jobs; use :meth:`from_columns` for large clusters.
    gpus : int
        GPUs of the cluster (M).
    rounds : int
        Rounds in the window (T).
    round_s : float
        Seconds per round (D).
    ftf_power : float
        Exponent k of Eq. 11, at least 0.
    makespan_weight : float
        Weight lambda of Eq. 11, at least 0.
    makespan_scale : float, optional
        Scale Z0 in seconds: the sum of the jobs' predicted total run times; by default the sum of the remaining ones.
    gang_weighted : bool
        Whether H >= sum_j g_j R_j / M; False uses the paper's sum_j R_j / M.
    utility_floor : float
        Smallest UTIL, in (0, 1), which keeps the logarithm finite.
    restart_penalty : float
        Amount subtracted from the objective for each round in which a job runs and did not run in the round before.
    running : sequence of ids
        Jobs that held their GPUs in the round just before the window.
    skip_wide : bool
        Whether to leave out jobs that need more GPUs than the cluster has, with a warning; their ids are in `skipped`.
        By default they raise InvalidInput.

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
    _declared_class = ProblemClass.MILP
    reference: ClassVar[str] = "Zheng et al., Shockwave, NSDI 2023, Eq. 11"

    def __repr__(self) -> str:
        return f"<ScheduleWindow: {len(self.ids)} jobs, {self.gpus} GPUs, {self.rounds} rounds of {self.round_s:g} s>"

    def program(self, form: str = "counts") -> Program:
        """Return the window as a MILP.

        Parameters
        ----------
        form : {"counts", "time_indexed"}
            "time_indexed" is the paper's: a binary per job and round. "counts" is a relaxation over the number of
            rounds of each job; `decode` packs them.
        """
        self.check_form(form)
        return window_programs.counts(self) if form == "counts" else window_programs.time_indexed(self)

    def decode(self, values: Floats, duals: Floats | None = None, form: str = "counts") -> WindowPlan:
        """Turn the column values of `program(form)` into a work-conserving plan."""
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
