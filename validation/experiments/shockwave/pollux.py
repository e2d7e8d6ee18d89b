"""Pollux's workloads for the rounds engine: jobs at the GPUs and batch size their users asked for, of fixed speed."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from ....simulation import Profiles, Trace, read_durations
from ..experiment import ExperimentSettings
from .paper import PAPER_JOBS

FOLDER, TRACES = "pollux", "pollux_160_w*.csv"
# Pollux's testbed: 16 machines of 4 GPUs, for 160 jobs.
PAPER_GPUS, TRACE_JOBS = 64, 160


def pollux_workloads(settings: ExperimentSettings) -> tuple[dict[str, tuple[Trace, Profiles]], int] | str:
    """Return each trace with its profiles, by the file's name, and the GPUs; or why there are none.

    The files give each job's seconds at the GPUs and batch size its user asked for, and nothing of how it would adapt.
    All jobs are taken, on 64 GPUs; if `settings.jobs` is below 120, the first so many, on a part of the GPUs in
    proportion, but at least as many as the widest job needs. InvalidInput for a file that is no trace of durations.
    """
    if settings.data is None:
        return "needs the shared data: give its folder by --data"
    folder = Path(settings.data) / FOLDER
    jobs = TRACE_JOBS if settings.jobs >= PAPER_JOBS else settings.jobs
    found = {}
    for file in sorted(folder.glob(TRACES)):
        trace, profiles = read_durations(file)
        found[file.stem] = trace.select(np.argsort(trace.arrival_s, kind="stable")[:jobs]), profiles
    if not found:
        return f"no {TRACES} in {folder}"
    part = math.ceil(PAPER_GPUS * jobs / TRACE_JOBS) if settings.gpus is None else settings.gpus
    return found, max(part, *(int(trace.gang_gpus.max()) for trace, _ in found.values()))
