"""The size of the Shockwave paper's main experiment, from which other sizes are scaled."""

from __future__ import annotations

from ..experiment import ExperimentSettings

# The paper's workload: 120 jobs on 32 GPUs, one job every 40 s. Other sizes keep jobs and arrivals per GPU.
PAPER_JOBS, PAPER_GPUS, PAPER_INTERARRIVAL_S = 120, 32, 40.0


def cluster_gpus(settings: ExperimentSettings) -> int:
    """Return the number of GPUs of the cluster: the given one, or as many per job as in the paper, at least 8."""
    return max(8, round(settings.jobs * PAPER_GPUS / PAPER_JOBS)) if settings.gpus is None else settings.gpus
