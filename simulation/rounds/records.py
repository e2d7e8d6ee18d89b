"""Records of the rounds engine: one of each round, and one of each job's run in a round."""

from __future__ import annotations

from typing import NamedTuple


class RoundRecord(NamedTuple):
    """One round; times in seconds, counts of GPUs and jobs."""

    round: int
    start_s: float
    end_s: float
    gpus_busy: int
    jobs_running: int
    jobs_waiting: int
    arrived: int
    ended: int
    rescaled: int
    calls: int


class RunRecord(NamedTuple):
    """One job's run in a round.

    Attributes
    ----------
    round, place : int
        The round, and the job's position in the trace.
    gpu_type : int
        Index of the type that it ran on.
    gpu_ids : tuple of int
        The GPUs' numbers within the type.
    first, lease_extended : bool
        Whether it was the job's first run; whether it kept its GPUs.
    restart_s : float
        What a restart took.
    batch_size, steps, run_s
        What the job did, and at which batch size.
    steps_run, total_steps, next_batch_size : int
        As they are after the round, steps at the next batch size.
    """

    round: int
    trace_index: int
    gpu_type: int
    gpu_ids: tuple[int, ...]
    first: bool
    lease_extended: bool
    restart_s: float
    batch_size: int
    steps: int
    run_s: float
    steps_run: int
    total_steps: int
    next_batch_size: int
