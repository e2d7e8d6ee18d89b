"""Shockwave planner as a policy of the rounds engine: predict, plan a window, follow its first rounds."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ...formulations.checks import as_flag, as_integer, as_real, store_checked
from ...formulations.errors import InvalidInput
from ...formulations.window.plan import WindowPlan, scheduled
from ...formulations.window.problem import ScheduleWindow
from ...simulation.rounds.policy import Evidence, RoundState, Schedule
from ..prediction.predictors import PREDICTORS, Predictor
from .jobs import CONTENTIONS, ActiveJobs, Contention, JobReader
from .order import ORDERS, Order, RoundOrder

if TYPE_CHECKING:
    from ...solvers.backend import Backend

# Default length of the window: this multiple of the makespan bound, since only slack lets jobs exchange rounds, and at
# least the paper's T. A round of the plan spans several rounds of the cluster beyond these limits of rounds and of
# jobs x rounds, which keep the time of a plan below 1% of a round of 120 s.
HORIZON_FACTOR = 2.0
FEWEST_ROUNDS, MOST_PLANNED_ROUNDS, MOST_CELLS = 20, 1_000, 600_000
MOST_ROUNDS = 10_000


@dataclass(kw_only=True, eq=False)
class ShockwavePolicy:
    """Plan the next rounds by the window program of Eq. 11 on predicted regimes, at every event.

    Each call predicts the remaining regimes of every job, weights the job by its planned finish-time fairness (Eq. 9),
    solves the window, and orders its rounds. The engine calls the policy when a job arrives or completes, after
    `replan_rounds` rounds of a plan, when a job waits beside idle GPUs because it runs longer than its plan, and, if
    `reactive`, when the batch size of a job changes.

    Parameters
    ----------
    ftf_power : float
        Exponent k of Eq. 11, at least 0; 5 in the paper. The weights rho^k act in the window and in the order of its
        rounds.
    makespan_weight : float
        Weight lambda of Eq. 11, at least 0.
    rounds : int, optional
        Rounds planned ahead (T); 20 or 30 in the paper. By default twice the rounds that all present work needs by
        Eq. 10, and at least 20. Beyond 1,000 rounds, or 600,000 over the number of jobs, a round of the plan spans
        several of the cluster. docs/shockwave.md measures the effect of this length.
    replan_rounds : int
        Largest number of rounds of a plan that are followed before the next one.
    predictor : {"restatement", "bayes", "greedy", "oracle"}
    max_regimes : int, optional
        Largest number of regimes of a job (K); see `regime_limit`.
    reactive : bool
        Whether a change of a batch size triggers a plan. If False (lazy), it takes effect at the next call.
    contention : {"jobs_seen", "jobs_present", "demand"}
        Definition of N_avg in Eq. 9: jobs arrived so far over GPUs, by which the released simulator evaluates fairness;
        jobs present over GPUs; or the mean since the job's arrival of GPUs requested over GPUs, as in Section 6.
    order : {"slack", "shortest", "packed"}
        Rule that assigns the window's rounds to jobs; see `RoundOrder`. With a restart penalty the order is part of the
        program, and the solver's order is kept.
    end_margin, stay : float
        Parameters of `RoundOrder`.
    measured_speeds : bool
        Whether each job's seconds per epoch are multiplied by its measured over its predicted time so far. A job that
        has not run gets a margin for the typical error of the other jobs.
    restart_penalty : float
        Penalty in the objective for each start after a pause, at least 0.
    gang_weighted : bool
        Whether the makespan bound H counts work in GPU-seconds; False takes Eq. 10 as printed.
    utility_floor : float
        Smallest utility under the logarithm, within (0, 1).
    rel_gap : float
        Gap to which every window is solved, as a share of the sum of its weights.
    time_limit : float
        Time limit of each window, in seconds. If no window reaches it, the simulation is deterministic to the last bit.
    backend : str or Backend
        Backend of `solve`.

    Raises
    ------
    InvalidInput
        If an option is out of range; in `decide`, if the cluster has several GPU types, or a job needs more GPUs than
        the cluster has.

    References
    ----------
    Zheng et al., "Shockwave", NSDI 2023, Sections 5 and 6, Eqs 9 to 11.
    """

    ftf_power: float = 1.0
    makespan_weight: float = 1e-3
    rounds: int | None = None
    replan_rounds: int = 20
    predictor: Predictor = "restatement"
    max_regimes: int | None = None
    reactive: bool = True
    contention: Contention = "jobs_seen"
    order: Order = "slack"
    end_margin: float = 0.05
    stay: float = 0.8
    measured_speeds: bool = True
    restart_penalty: float = 0.0
    gang_weighted: bool = True
    utility_floor: float = 1e-6
    rel_gap: float = 1e-4
    time_limit: float = 15.0
    backend: str | Backend = "auto"
    name: str = field(default="shockwave", init=False)
    _reader: JobReader = field(init=False, repr=False)
    _order: RoundOrder = field(init=False, repr=False)

    def __post_init__(self) -> None:
        store_checked(self, as_real, "ftf_power", "makespan_weight", "restart_penalty", "rel_gap", minimum=0.0)
        store_checked(self, as_real, "utility_floor", "time_limit", above=0.0)
        store_checked(self, as_real, "end_margin", minimum=0.0, maximum=1.0)
        store_checked(self, as_real, "stay", above=0.0, maximum=1.0)
        store_checked(self, as_flag, "reactive", "gang_weighted", "measured_speeds")
        store_checked(self, as_integer, "replan_rounds", minimum=1)
        if self.rounds is not None:
            store_checked(self, as_integer, "rounds", minimum=1, maximum=MOST_ROUNDS)
        if self.max_regimes is not None:
            store_checked(self, as_integer, "max_regimes", minimum=1)
        for name, choices in (("predictor", PREDICTORS), ("contention", CONTENTIONS), ("order", ORDERS)):
            if getattr(self, name) not in choices:
                raise InvalidInput(name, getattr(self, name), f"one of {', '.join(choices)}")
        if self.utility_floor >= 1.0:
            raise InvalidInput("utility_floor", self.utility_floor, "must be less than 1")
        self._reader = JobReader(self.predictor, self.max_regimes, self.contention, self.measured_speeds)
        rule: Order = "packed" if self.restart_penalty else self.order
        self._order = RoundOrder(rule=rule, end_margin=self.end_margin, stay=self.stay)

    def due(self, state: RoundState) -> bool:
        """Return whether a job waits, or since the last call arrived, completed or (if reactive) was rescaled.

        A job waits if it did not run although it fits the GPUs that were idle in the preceding round.
        """
        happened = state.arrived or state.completed or (self.reactive and state.rescaled)
        return bool(happened) or _waits(state)

    def decide(self, state: RoundState) -> Schedule:
        """Plan a window and return its first rounds, with the solver's bound and the gap of the returned schedule."""
        if not state.jobs:
            return Schedule([{}])
        check_cluster(state, self.name)
        jobs = self._reader.read(state)
        window = self.window(state, jobs)
        each = round(window.round_s / state.round_s)
        plan, evidence = self._planned(window, jobs, -(-self.replan_rounds // each))
        return Schedule(first_rounds(plan, min(self.replan_rounds, each * window.rounds), each), evidence)

    def window(self, state: RoundState, jobs: ActiveJobs) -> ScheduleWindow:
        """Return the window program of these jobs."""
        rounds, each = _planning_horizon(state, jobs) if self.rounds is None else (self.rounds, 1)
        return ScheduleWindow.from_columns(
            ids=[job.id for job in state.jobs],
            gang_gpus=state.gang_gpus,
            finished_epochs=jobs.finished_epochs,
            total_epochs=jobs.total_epochs,
            regime_starts=jobs.regime_starts,
            regime_epochs=jobs.regime_epochs,
            regime_epoch_s=jobs.regime_epoch_s,
            ftf=jobs.ftf,
            weight=[job.weight for job in state.jobs],
            gpus=state.total_gpus,
            rounds=rounds,
            round_s=each * state.round_s,
            ftf_power=self.ftf_power,
            makespan_weight=self.makespan_weight,
            makespan_scale=float(jobs.predicted_s.sum()),
            gang_weighted=self.gang_weighted,
            utility_floor=self.utility_floor,
            restart_penalty=self.restart_penalty,
            running=[job.id for job in state.jobs if job.running],
        )

    def _planned(self, window: ScheduleWindow, jobs: ActiveJobs, lead: int) -> tuple[WindowPlan, Evidence]:
        """Solve the window and order its first rounds; the gap is that of the schedule as ordered."""
        from ...solvers.solve import solve

        result = solve(window, self.backend, rel_gap=self.rel_gap, time_limit=self.time_limit)
        # Without an incumbent at the time limit, pack the jobs that fit.
        plan = scheduled(window, window.tables.needs) if result.plan is None else result.plan
        ordered = self._order.applied(plan, remaining_s=jobs.remaining_s, risk=jobs.risk, lead=lead)
        # The order changes the objective only by rounding; otherwise the solver's plan is kept.
        objective, residuals = window.evaluate(ordered)
        if residuals.worst > 0.0 or objective < plan.objective - 1e-9 * window.tables.weight_sum:
            ordered, objective = plan, plan.objective
        return ordered, Evidence(
            reason=result.termination.reason.name,
            objective=objective,
            bound=result.bound,
            gap=result.with_plan(window, ordered).gap,
            backend=result.backend,
        )


def _waits(state: RoundState) -> bool:
    idle = state.total_gpus - sum(job.gpus for job in state.jobs if job.running)
    return any(job.gpus <= idle for job in state.jobs if not job.running)


def _planning_horizon(state: RoundState, jobs: ActiveJobs) -> tuple[int, int]:
    """Return the number of rounds of the plan, enough for all present work, and the cluster rounds of each."""
    work = float(state.gang_gpus @ jobs.remaining_s) / state.total_gpus
    needed = max(float(FEWEST_ROUNDS), 1.0 + HORIZON_FACTOR * max(work, float(jobs.remaining_s.max())) / state.round_s)
    most = max(FEWEST_ROUNDS, min(MOST_PLANNED_ROUNDS, MOST_CELLS // len(state.jobs)))
    each = math.ceil(needed / most)
    return math.ceil(needed / each), each


def check_cluster(state: RoundState, policy: str) -> None:
    """Raise InvalidInput unless the cluster has one GPU type and every job fits it."""
    if len(state.gpus) != 1:
        why = f"policy {policy} plans for one GPU type: the paper's program does not cover several"
        raise InvalidInput("gpus", state.gpu_types, why)
    for index, job in enumerate(state.jobs):
        if job.gpus > state.total_gpus:
            why = f"job {job.id!r} is wider than the cluster of {state.total_gpus} GPUs"
            raise InvalidInput("jobs.gpus", job.gpus, why, index=index)


def first_rounds(plan: WindowPlan, count: int, each: int = 1) -> list[dict[str | int, int]]:
    """Return the jobs of each of the first `count` rounds; one round of the plan spans `each` of them."""
    ids = plan.window.ids
    return [{ids[j]: 0 for j in plan.grants[:, t // each].nonzero()[0]} for t in range(count)]
