"""Variant of Shockwave in its released code, as a policy of the rounds engine, for comparison."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...formulations.checks import as_flag, as_integer, as_real, store_checked
from ...formulations.errors import InvalidInput
from ...simulation.job_state import JobState
from ...simulation.rounds.policy import Evidence, RoundState, Schedule
from ...simulation.rounds.view import Clock
from ...solvers.options import present_name
from .artifact_programs import ArtifactJobs, conserve_work, counts_of, counts_program, ranking_program
from .policy import check_cluster

if TYPE_CHECKING:
    from ...formulations.arrays import Floats, Indices
    from ...solvers.backend import Backend
    from ...solvers.result import Result

# Power of rho in the released code for a job in its last round.
LAST_ROUND_POWER = 100.0
# Limit of the weights, which are powers up to 100 and exceed the accuracy of doubles; the released code has none.
GREATEST_WEIGHT = 1e6


@dataclass(kw_only=True, eq=False)
class ArtifactPolicy:
    """Plan a window as in the released code: one mean epoch time per job, a logarithm of six points, hard FTF rows.

    The first program requires every job to meet its finish-time target. If it is infeasible, which is nearly always the
    case, a second program weights jobs by a power of the ratio to the target. A ranking program then assigns rounds.

    Parameters
    ----------
    makespan_weight : float
        Weight k in the released code (lambda in the paper), at least 0.
    rho_power : float
        Exponent lambda in the released code (k in the paper), at least 0.
    most_rho : float
        Largest finish-time fairness that the first program allows, above which the second one weights jobs; positive.
    rounds : int
        Rounds planned ahead (T).
    reactive : bool
        Whether a change of a batch size triggers a plan.
    rel_gap : float
        Gap of each program, as a share of the mean weight.
    time_limit : float
        Time limit of each program, in seconds.
    backend : str or Backend
        General backend; the programs are MILPs.

    Raises
    ------
    InvalidInput
        If an option is out of range; in `decide`, as for `ShockwavePolicy`.

    Notes
    -----
    The behaviour follows the source and runs of the released code (docs/shockwave.md compares it with the paper): epoch
    times are rounded to seconds; the prediction is the standard Bayesian posterior over the job's true batch sizes,
    less the observed epochs; contention is jobs over GPUs. Rounds per job are solved first, and the assignment by round
    only if they cannot be packed, which gives the same optimum faster. Weights are limited to 1e6.
    """

    makespan_weight: float = 1e-3
    rho_power: float = 12.0
    most_rho: float = 1.0
    rounds: int = 20
    reactive: bool = True
    rel_gap: float = 1e-3
    time_limit: float = 15.0
    backend: str | Backend = "highs"
    name: str = field(default="shockwave-artifact", init=False)
    _contention: _ContentionIntegral = field(init=False, repr=False)

    def __post_init__(self) -> None:
        store_checked(self, as_real, "makespan_weight", "rho_power", "rel_gap", minimum=0.0)
        store_checked(self, as_real, "most_rho", "time_limit", above=0.0)
        store_checked(self, as_integer, "rounds", minimum=1, maximum=1_000)
        store_checked(self, as_flag, "reactive")
        if present_name(self.backend) == "lagrangian":
            why = "solves the paper's window only; the program of the released code is a MILP"
            raise InvalidInput("backend", self.backend, why)
        self._contention = _ContentionIntegral()

    def due(self, state: RoundState) -> bool:
        """Return whether a job arrived, completed or (if reactive) changed its batch size since the last call."""
        self._contention.advance(state)
        return bool(state.arrived or state.completed or (self.reactive and state.rescaled))

    def decide(self, state: RoundState) -> Schedule:
        """Plan a window; the bound and gap are those of the program that set the rounds per job."""
        self._contention.advance(state)
        if not state.jobs:
            return Schedule([{}])
        check_cluster(state, self.name)
        jobs = self._read(state)
        weights, result = self._solve_counts(state, jobs)
        grants = self._solve_ranking(state, jobs, weights, result)
        needs = np.maximum(1, np.ceil(jobs.remaining_s / state.round_s)).astype(np.int64)
        conserve_work(grants, jobs.gang_gpus, needs, np.argsort(-weights, kind="stable"), state.total_gpus)
        ids = [job.id for job in state.jobs]
        rounds = [{ids[j]: 0 for j in np.flatnonzero(grants[:, t])} for t in range(self.rounds)]
        return Schedule(rounds, Evidence.of(result))

    def _read(self, state: RoundState) -> ArtifactJobs:
        states = [job.state for job in state.jobs]
        predicted = [released_prediction(now) for now in states]
        remaining_s = np.array([left for _, left in predicted])
        attained_s = np.array([job.attained_s for job in state.jobs])
        return ArtifactJobs(
            gang_gpus=state.gang_gpus,
            total_epochs=np.array([now.total_epochs for now in states]),
            finished_epochs=np.array([now.finished_epochs for now in states]),
            epoch_s=np.array([epoch_s for epoch_s, _ in predicted]),
            remaining_s=remaining_s,
            target_s=(attained_s + remaining_s) * self._contention.means(state),
        )

    def _solve_counts(self, state: RoundState, jobs: ArtifactJobs) -> tuple[Floats, Result[Any]]:
        """Solve with finish-time rows; if these are infeasible, without them and with weights."""
        share = min(1.0, state.total_gpus / len(state.jobs))
        begun_s = state.round_s * state.round
        # D(r + T) + left/share <= rhomax A bounds the time left; a negative bound is infeasible.
        most_left_s = share * (self.most_rho * jobs.target_s - begun_s - state.round_s * self.rounds)
        ones = np.ones(len(state.jobs))
        if (most_left_s >= 0.0).all():
            result = self._counts(state, jobs, ones, most_left_s)
            if result.plan is not None:
                return ones, result
        rho = (begun_s + jobs.remaining_s / share) / jobs.target_s
        power = np.where(jobs.remaining_s < state.round_s, LAST_ROUND_POWER, self.rho_power)
        weights = np.where(rho > self.most_rho, np.minimum(np.maximum(rho, 1.0) ** power, GREATEST_WEIGHT), 1.0)
        result = self._counts(state, jobs, weights, None)
        return weights, result

    def _counts(
        self, state: RoundState, jobs: ArtifactJobs, weights: Floats, most_left_s: Floats | None, by_round: bool = False
    ) -> Result[Any]:
        from ...solvers.solve import solve

        program = counts_program(
            jobs,
            weights=weights,
            gpus=state.total_gpus,
            rounds=self.rounds,
            round_s=state.round_s,
            makespan_weight=self.makespan_weight,
            most_left_s=most_left_s,
            by_round=by_round,
        )
        return solve(program, self.backend, rel_gap=self.rel_gap, time_limit=self.time_limit)

    def _solve_ranking(
        self, state: RoundState, jobs: ArtifactJobs, weights: Floats, result: Result[Any]
    ) -> NDArray[np.bool_]:
        """Return the grants, shape (N, T), from the ranking of the rounds per job; empty without a plan."""
        from ...solvers.solve import solve

        empty = np.zeros((len(state.jobs), self.rounds), dtype=np.bool_)
        if result.plan is None:
            return empty
        counts: Indices = counts_of(result.plan)
        gpus = state.total_gpus
        for by_round in (False, True):
            if by_round:
                exact = self._counts(state, jobs, weights, None, by_round=True)
                if exact.plan is None:
                    break
                counts = counts_of(exact.plan)
            ranking = ranking_program(jobs.gang_gpus, counts, weights=weights, gpus=gpus, rounds=self.rounds)
            ranked = solve(ranking, self.backend, rel_gap=self.rel_gap, time_limit=self.time_limit)
            if ranked.plan is not None:
                return np.asarray(ranked.plan["run"] > 0.5)
        return empty


def released_prediction(state: JobState) -> tuple[float, float]:
    """Return the epoch time d and the remaining run time R of one job, in seconds, as in the released code.

    Each of the K true batch sizes of the job has a prior of E/K epochs; the epochs so far and the current one are
    added, the sum is scaled to E, and the observed epochs are subtracted. Epoch times are whole seconds.
    """
    sizes = [*dict.fromkeys([*state.batch_sizes, *(size for size, _ in state.future)])]
    epoch_s = np.array([max(1.0, round(float(state.epoch_s[size]))) for size in sizes])
    observed = np.zeros(len(sizes))
    for size, epochs in zip(state.batch_sizes, state.regime_epochs, strict=True):
        observed[sizes.index(size)] += epochs
    left = state.total_epochs - state.finished_epochs
    observed[sizes.index(state.batch_sizes[-1])] += min(1.0, left)
    total = state.total_epochs
    mean = total * (total / len(sizes) + observed) / (total + observed.sum())
    left_epochs = np.maximum(mean - observed, 0.0)
    return float(observed @ epoch_s / observed.sum()), float(left_epochs @ epoch_s)


class _ContentionIntegral:
    """Integral over time of the contention max(1, jobs/GPUs), updated every round."""

    def __init__(self) -> None:
        self._clock = Clock()
        self._at_arrival: dict[str | int, tuple[float, float]] = {}

    def advance(self, state: RoundState) -> None:
        """Advance to the state's time; the means of new jobs start there."""
        self._clock.advance(state.time_s)
        self._clock.contention = max(1.0, len(state.jobs) / state.total_gpus)
        now = self._clock.time_s, self._clock.contention_integral_s
        self._at_arrival = {job.id: self._at_arrival.get(job.id, now) for job in state.jobs}

    def means(self, state: RoundState) -> Floats:
        """Return the mean contention since each job's arrival, shape (N,); the current value for new jobs."""
        return np.array([self._clock.mean_contention(*self._at_arrival[job.id]) for job in state.jobs])
