"""Programs of a window: rounds per job ("counts"), and the paper's micro-jobs by round ("time_indexed")."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats, Indices
from ..errors import InvalidInput
from ..program.builder import ProgramBuilder
from ..program.model import Program
from .data import WindowData
from .plan import WindowPlan, scheduled, settled
from .tables import starts

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Cut:
    """A cut ``coefficients @ n <= upper`` on the rounds n of all jobs, coefficients of shape (N,)."""

    coefficients: Floats
    upper: float


def counts(window: WindowData, keep: Mask | None = None, cuts: Sequence[Cut] = ()) -> Program:
    """Choose the number of rounds of each job: ``choice[j, n] = 1`` grants job j n rounds.

    The program is a relaxation of the window: the rounds fit the total GPU-rounds, but perhaps not each round. `keep`,
    shape (N, T + 1), selects the numbers of rounds to consider; by default all that a job can use. `cuts` tighten the
    relaxation.
    """
    build = ProgramBuilder(sense="max")
    job, rounds, choice = _choices(build, window, _options(window, keep), whole=None)
    build.add_rows(
        "capacity", (1,), terms=[(0, choice, window.gang_gpus[job] * rounds)], upper=window.gpus * window.rounds
    )
    for i, cut in enumerate(cuts):
        build.add_rows(f"cut_{i}", (1,), terms=[(0, choice, cut.coefficients[job] * rounds)], upper=cut.upper)
    # A job that was not running pays at least one restart if it runs.
    penalty = window.restart_penalty * ((rounds > 0) & ~window.is_running[job])
    _set_objective(
        build, window, job, rounds, choice, [(choice, -penalty.astype(float))] if window.restart_penalty else []
    )
    return build.program(gap_unit=window.tables.weight_sum)


def time_indexed(window: WindowData, keep: Mask | None = None) -> Program:
    """Choose the jobs of each round: ``grant[j, t] = 1``.

    The grants determine the paper's micro-jobs Y_j[k, t]: a job's regimes run in order, so the number of earlier rounds
    determines the regime of a granted round, and rows for the order would be redundant. The tables over the number of
    rounds include the order and are linked to the grants by ``choice``, so the objective is exact. See :func:`counts`
    for `keep`.
    """
    build = ProgramBuilder(sense="max")
    jobs, t = np.arange(len(window.gang_gpus)), np.arange(window.rounds)
    grant = build.add_binaries("grant", (len(jobs), window.rounds))
    options = _options(window, keep)
    job, rounds, choice = _choices(build, window, options, whole=_needs_binaries(window) | _has_gaps(options))
    build.add_rows("granted", jobs.shape, terms=[(jobs[:, None], grant, 1.0), (job, choice, -rounds)], lower=0, upper=0)
    build.add_rows("capacity", t.shape, terms=[(t, grant, window.gang_gpus[:, None])], upper=window.gpus)
    extra = _restarts(build, window, grant) if window.restart_penalty else []
    _set_objective(build, window, job, rounds, choice, extra)
    return build.program(gap_unit=window.tables.weight_sum)


def decode(window: WindowData, values: Floats, form: str) -> WindowPlan:
    """Turn column values of the program in this form into a plan."""
    if form == "counts":
        return scheduled(window, counts_of(window, values))
    grants = values[: len(window.gang_gpus) * window.rounds].reshape(-1, window.rounds) > 0.5
    return settled(window, grants)


def counts_of(window: WindowData, values: Floats, keep: Mask | None = None) -> Indices:
    """Return the rounds of each job, shape (N,), from column values of :func:`counts` with the same `keep`."""
    job, rounds = np.nonzero(_options(window, keep))
    picked = values[: len(job)] > 0.5
    chosen = np.zeros(len(window.gang_gpus), dtype=np.int64)
    chosen[job[picked]] = rounds[picked]
    return chosen


def check_plan(window: WindowData, plan: WindowPlan) -> None:
    """Raise InvalidInput unless `plan` is a schedule of as many jobs and rounds as the window has."""
    if not isinstance(plan, WindowPlan) or plan.grants.shape != (len(window.gang_gpus), window.rounds):
        raise InvalidInput("plan", type(plan).__name__, "must be a WindowPlan of this window's jobs and rounds")


def encode(window: WindowData, plan: WindowPlan, program: Program, keep: Mask | None = None) -> Floats:
    """Turn a plan into column values of the window's program, built with the same `keep`."""
    check_plan(window, plan)
    values = np.full(program.num_columns, np.nan)
    job, rounds = np.nonzero(_options(window, keep))
    values[program.columns["choice"]] = plan.rounds_granted[job] == rounds
    if "horizon" in program.columns:
        values[program.columns["horizon"]] = window.tables.makespan(plan.rounds_granted)
    if "grant" in program.columns:
        values[program.columns["grant"]] = plan.grants
        if "start" in program.columns:
            values[program.columns["start"]] = starts(plan.grants, window.is_running)
            had: Indices = np.cumsum(plan.grants, axis=1) - plan.grants
            values[program.columns["ended"]] = had >= window.tables.needs[:, None]
            values[program.columns["used"]] = plan.gpus_in_use
    return values


def _options(window: WindowData, keep: Mask | None) -> Mask:
    possible = np.arange(window.rounds + 1) <= window.tables.needs[:, None]
    return possible if keep is None else possible & keep


def _choices(
    build: ProgramBuilder, window: WindowData, options: Mask, whole: Mask | None
) -> tuple[Indices, Indices, Indices]:
    """Add the columns choice[j, n] and the row that one n per job is chosen; all binary, or those of `whole` jobs."""
    job, rounds = np.nonzero(options)
    choice = build.add_columns(
        "choice", (len(job),), upper=1.0, integer=np.ones(len(job), bool) if whole is None else whole[job]
    )
    build.add_rows("one_choice", (len(window.gang_gpus),), terms=[(job, choice, 1.0)], lower=1, upper=1)
    return job, rounds, choice


def _set_objective(
    build: ProgramBuilder,
    window: WindowData,
    job: Indices,
    rounds: Indices,
    choice: Indices,
    extra: list[tuple[Indices, Floats]],
) -> None:
    """Maximise the tabulated values minus the price of the makespan, plus the terms `extra`."""
    tables = window.tables
    terms: list[tuple[Indices, Floats]] = [(choice, tables.value[job, rounds]), *extra]
    if tables.makespan_price:
        least = tables.remaining[:, -1].max()  # a lower bound on the largest remaining time, whatever the grants
        horizon = build.add_columns("horizon", (1,), lower=least)
        left = tables.remaining[job, rounds]
        build.add_rows(
            "sum_branch", (1,), lower=0, terms=[(0, horizon, 1.0), (0, choice, -tables.branch_weights[job] * left)]
        )
        longest = np.flatnonzero(tables.remaining[:, 0] > least)  # only these can set the maximum
        place = np.full(len(window.gang_gpus), -1)
        place[longest] = np.arange(len(longest))
        mine = place[job] >= 0
        build.add_rows(
            "max_branch",
            (len(longest),),
            lower=0,
            terms=[(np.arange(len(longest)), horizon, 1.0), (place[job[mine]], choice[mine], -left[mine])],
        )
        terms.append((horizon, np.array([-tables.makespan_price])))
    build.set_objective(terms)


def _needs_binaries(window: WindowData) -> Mask:
    """Return for each job whether a mix of two numbers of rounds can have a better value than the number between them.

    It cannot if gains decrease and remaining time is convex in the number of rounds; then choice may be continuous.
    """
    tables = window.tables
    beyond = np.arange(2, window.rounds + 1) > tables.needs[:, None]
    gains, drops = np.diff(tables.value, axis=1), -np.diff(tables.remaining, axis=1)
    rising = (np.diff(gains, axis=1) > 0) | (np.diff(drops, axis=1) > 0)
    return np.asarray((rising & ~beyond).any(axis=1))


def _has_gaps(options: Mask) -> Mask:
    """Return for each job whether its options skip a number of rounds, which a mix of the neighbours could replace."""
    ends = np.diff(options.astype(np.int8), axis=1, prepend=0) == 1
    return np.asarray(ends.sum(axis=1) > 1)


def _restarts(build: ProgramBuilder, window: WindowData, grant: Indices) -> list[tuple[Indices, Floats]]:
    """Add restarts, and work conservation as a constraint, because later filling could add restarts."""
    shape, t, needs = grant.shape, np.arange(window.rounds), window.tables.needs[:, None]
    row = np.arange(grant.size).reshape(shape)
    start = build.add_columns("start", shape, upper=1.0)
    running = np.zeros(shape)
    running[:, 0] = window.is_running
    build.add_rows(
        "restart",
        shape,
        lower=-running,
        terms=[(row, start, 1.0), (row, grant, -1.0), (row[:, 1:], grant[:, :-1], 1.0)],
    )
    used = build.add_columns("used", t.shape, upper=window.gpus)
    build.add_rows(
        "gpus_used", t.shape, lower=0, upper=0, terms=[(t, grant, window.gang_gpus[:, None]), (t, used, -1.0)]
    )
    # ended[j, t] = 1 only if job j has had all its rounds before t.
    ended = build.add_binaries("ended", shape, upper=np.where(t >= needs, 1.0, 0.0))
    job, now, past = np.nonzero((t[:, None] > t) & (t[:, None] >= needs[:, :, None]))
    build.add_rows(
        "ended_after",
        shape,
        upper=0,
        terms=[(row, ended, np.minimum(needs, window.rounds + 1)), (row[job, now], grant[job, past], -1.0)],
    )
    # The idle GPUs are fewer than the job's gang, unless the job runs or has ended.
    full = (window.gpus - window.gang_gpus + 1)[:, None]
    build.add_rows(
        "work_conservation", shape, lower=full, terms=[(row, used, 1.0), (row, grant, full), (row, ended, full)]
    )
    return [(start.ravel(), np.full(grant.size, -window.restart_penalty))]
