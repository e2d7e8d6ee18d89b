"""Pollux's workloads: jobs at the GPUs and batch sizes that their users asked for."""

from __future__ import annotations

import math
import warnings
from pathlib import Path

import numpy as np

from ....simulation import Profiles, Trace, read_durations
from ....simulation.placement import ModelSpeeds
from ..experiment import ExperimentSettings
from .paper import PAPER_JOBS

FOLDER, TRACES = "pollux", "pollux_160_w*.csv"
# Pollux's testbed: 16 machines of 4 GPUs, for 160 jobs.
PAPER_GPUS, TRACE_JOBS = 64, 160


def pollux_workloads(
    settings: ExperimentSettings, models: ModelSpeeds | None = None
) -> tuple[dict[str, tuple[Trace, Profiles]], int] | str:
    """Return each trace with its profiles, by the file's name, and the GPUs; or why there are none.

    The files give each job's seconds at the GPUs and batch size its user asked for, and nothing of how it would adapt.
    Without `models` a job has this speed alone; with them it has its model, and its batch size is per GPU, rounded.
    All jobs are taken, on 64 GPUs; if `settings.jobs` is below 120, the first so many, on a part of the GPUs in
    proportion, but at least as many as the widest job needs. InvalidInput for a file that is no trace of durations.
    """
    if settings.data is None:
        return "needs the shared data: give its folder by --data"
    folder = Path(settings.data) / FOLDER
    jobs = TRACE_JOBS if settings.jobs >= PAPER_JOBS else settings.jobs
    found = {}
    for file in sorted(folder.glob(TRACES)):
        with warnings.catch_warnings():
            # Totals that the GPUs of a job do not divide; docs/experiments.md counts them.
            warnings.filterwarnings("ignore", ".*have a batch size that their GPUs do not divide", UserWarning)
            trace, profiles = read_durations(file, models=models)
        found[file.stem] = trace.select(np.argsort(trace.arrival_s, kind="stable")[:jobs]), profiles
    if not found:
        return f"no {TRACES} in {folder}"
    part = math.ceil(PAPER_GPUS * jobs / TRACE_JOBS) if settings.gpus is None else settings.gpus
    return found, max(part, *(int(trace.gang_gpus.max()) for trace, _ in found.values()))
