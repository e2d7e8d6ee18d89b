"""Records of the rounds engine: one for each round, and one for each run of a job in a round."""

from __future__ import annotations

from typing import NamedTuple


class RoundRecord(NamedTuple):
    """Record of one round; times in seconds, counts of GPUs and jobs."""

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
    """Record of one job's run in a round.

    Attributes
    ----------
    round, trace_index : int
        Round, and the job's index in the trace.
    gpu_type : int
        Index of the GPU type.
    gpu_ids : tuple of int
        Numbers of the GPUs within the type.
    first, lease_extended : bool
        Whether this was the job's first run; whether the job kept its GPUs.
    restart_s : float
        Seconds lost to a restart.
    batch_size, steps, run_s
        Batch size, steps and seconds of the run.
    steps_run, total_steps, next_batch_size : int
        Values after the round, with steps at the next batch size.
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
