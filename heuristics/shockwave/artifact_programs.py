"""Programs of the code released with Shockwave: rounds per job, then their ranking."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...formulations.arrays import Floats, Indices
from ...formulations.program.builder import ProgramBuilder
from ...formulations.program.model import Program

# Nodes of the piecewise linear logarithm; its value at 0 is log 1e-6.
LOG_NODES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
LOG_ORIGIN = 1e-6


@dataclass(frozen=True, kw_only=True, eq=False)
class ArtifactJobs:
    """Data of N jobs in the released code, shape (N,) each: GPUs, epochs in all (E) and finished (F), and times.

    `epoch_s` is the mean epoch time over the epochs so far and the current one (d), `remaining_s` the predicted run
    time left (R), and `target_s` the finish-time target: predicted total run time times contention (A).
    """

    gang_gpus: Indices
    total_epochs: Floats
    finished_epochs: Floats
    epoch_s: Floats
    remaining_s: Floats
    target_s: Floats


def counts_program(
    jobs: ArtifactJobs,
    *,
    weights: Floats,
    gpus: int,
    rounds: int,
    round_s: float,
    makespan_weight: float,
    most_left_s: Floats | None = None,
    by_round: bool = False,
) -> Program:
    """Maximise (1/(N T)) sum_j W_j PWLlog((F_j + p_j)/E_j) - k max_j max(0, R_j - d_j p_j).

    The columns "run" are rounds per job (N, 1), limited by the cluster's total of GPU-rounds; with `by_round` they are
    binaries X (N, T), limited by the cluster in every round. The epochs run, p_j, satisfy d_j p_j <= D sum_t X_jt.
    `weights` are W, shape (N,), and `makespan_weight` is k in the released code. `most_left_s`, shape (N,), bounds the
    finish-time rows R_j - d_j p_j <= most_left_s_j.
    """
    count, job = len(jobs.gang_gpus), np.arange(len(jobs.gang_gpus))
    nodes = np.array(LOG_NODES)
    logs = np.log(np.maximum(nodes, LOG_ORIGIN))
    done = np.minimum(jobs.finished_epochs / jobs.total_epochs, 1.0)
    build = ProgramBuilder(sense="max")
    if by_round:
        run = build.add_binaries("run", (count, rounds))
        build.add_rows("capacity", (rounds,), terms=[(np.arange(rounds), run, jobs.gang_gpus[:, None])], upper=gpus)
    else:
        run = build.add_columns("run", (count, 1), upper=rounds, integer=True)
        build.add_rows("capacity", (1,), terms=[(0, run, jobs.gang_gpus[:, None])], upper=gpus * rounds)
    progress = build.add_columns("progress", (count,))
    build.add_rows(
        "run_time", (count,), terms=[(job, progress, jobs.epoch_s), (job[:, None], run, -round_s)], upper=0.0
    )
    # The logarithm is concave, so its convex combination of nodes needs no binaries.
    mix = build.add_columns("mix", (count, len(nodes)), upper=1.0)
    build.add_rows("one_mix", (count,), terms=[(job[:, None], mix, 1.0)], lower=1.0, upper=1.0)
    build.add_rows(
        "share",
        (count,),
        terms=[(job[:, None], mix, nodes), (job, progress, -1.0 / jobs.total_epochs)],
        lower=done,
        upper=done,
    )
    longest = build.add_columns("longest", (1,))
    build.add_rows(
        "left", (count,), terms=[(job, longest[0], 1.0), (job, progress, jobs.epoch_s)], lower=jobs.remaining_s
    )
    if most_left_s is not None:
        build.add_rows(
            "finish_time", (count,), terms=[(job, progress, jobs.epoch_s)], lower=jobs.remaining_s - most_left_s
        )
    scaled = weights[:, None] * logs / (count * rounds)
    build.set_objective([(mix, scaled), (longest, np.array([-makespan_weight]))])
    return build.program(gap_unit=float(weights.sum()) / (count * rounds))


def counts_of(plan: Mapping[str, Floats]) -> Indices:
    """Return rounds per job, shape (N,), from a plan of `counts_program`."""
    rounds: Indices = np.rint(plan["run"].sum(axis=1)).astype(np.int64)
    return rounds


def ranking_program(gang_gpus: Indices, counts: Indices, *, weights: Floats, gpus: int, rounds: int) -> Program:
    """Rank the rounds of jobs: minimise sum_j W_j (sum_t t Y_jt)/n_j, every job n_j rounds, within capacity."""
    job, t = np.arange(len(gang_gpus)), np.arange(rounds)
    build = ProgramBuilder(sense="min")
    run = build.add_binaries("run", (len(gang_gpus), rounds))
    build.add_rows("granted", job.shape, terms=[(job[:, None], run, 1.0)], lower=counts, upper=counts)
    build.add_rows("capacity", t.shape, terms=[(t, run, gang_gpus[:, None])], upper=gpus)
    build.set_objective([(run, (weights / np.maximum(counts, 1))[:, None] * t)])
    return build.program()


def conserve_work(grants: NDArray[np.bool_], gang_gpus: Indices, needs: Indices, order: Indices, gpus: int) -> None:
    """Grant idle GPUs, round by round, to jobs in `order` that fit and need more rounds; in place."""
    free = gpus - gang_gpus @ grants
    granted = grants.sum(axis=1)
    for t in np.flatnonzero(free >= gang_gpus.min()):
        for j in order:
            if not grants[j, t] and granted[j] < needs[j] and gang_gpus[j] <= free[t]:
                grants[j, t] = True
                granted[j] += 1
                free[t] -= gang_gpus[j]
