"""Pollux's workload for the rounds engine: jobs at the GPUs and batch size their users asked for, of fixed speed."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from ..formulations.errors import InvalidInput
from ..simulation import Profiles, Trace
from .benchmark_shockwave_run import PAPER_JOBS, Setup

FOLDER, TRACE, MODELS = "pollux", "pollux_160_w1.csv", "six_models_fit_t4.csv"
# Pollux's testbed: 16 machines of 4 GPUs.
PAPER_GPUS = 64


def pollux_workload(setup: Setup) -> tuple[Trace, Profiles, int] | str:
    """Return trace, profiles and GPUs, or why there are none.

    Notes
    -----
    The file gives each job's seconds at the GPUs and batch size its user asked for; the second file, each model's
    epochs and data set (iterations at a batch size, over epochs). An epoch then takes the job's seconds over its
    epochs. Batch sizes stay: the file says nothing of how they would grow without Pollux. All 160 jobs are taken, on
    64 GPUs; if `setup.jobs` is below 120, the first so many, on a part of the GPUs in proportion, but at least as many
    as the widest job needs.

    Raises
    ------
    InvalidInput
        If a file is there and cannot be read as that.
    """
    if setup.data is None:
        return "needs the shared data: give its folder by --data"
    folder = Path(setup.data) / FOLDER
    if not (folder / TRACE).is_file() or not (folder / MODELS).is_file():
        return f"{TRACE} and {MODELS} are not in {folder}"
    import pandas as pd

    jobs, models = pd.read_csv(folder / TRACE), pd.read_csv(folder / MODELS).set_index("model")
    wanted = {"job_id", "submit_time_s", "duration_s", "num_gpus", "model", "batch_size"}
    if missing := sorted(wanted - set(jobs.columns)):
        raise InvalidInput("data", str(folder / TRACE), f"has no column {', '.join(missing)}")
    if unknown := sorted(set(jobs["model"]) - set(models.index)):
        raise InvalidInput("data", str(folder / MODELS), f"has no model {', '.join(unknown)}")
    count = len(jobs)
    jobs = jobs.sort_values("submit_time_s", kind="stable").head(count if setup.jobs >= PAPER_JOBS else setup.jobs)
    samples = {
        str(name): round(row["iterations_at_init_batch"] * row["init_batch"] / row["epochs"])
        for name, row in models.iterrows()
    }
    epochs = {str(name): int(row["epochs"]) for name, row in models.iterrows()}
    names = [str(name) for name in jobs["model"]]
    sizes, gangs = jobs["batch_size"].to_numpy(dtype=np.int64), jobs["num_gpus"].to_numpy(dtype=np.int64)
    seconds = jobs["duration_s"].to_numpy(dtype=np.float64)
    # Seconds per epoch are samples / batch size / rate.
    rates = {
        (name, int(size), int(gang)): samples[name] / int(size) * epochs[name] / float(run_s)
        for name, size, gang, run_s in zip(names, sizes, gangs, seconds, strict=True)
    }
    per_epoch = -(-np.array([samples[name] for name in names], dtype=np.int64) // sizes)
    all_epochs = np.array([epochs[name] for name in names], dtype=np.int64)
    trace = Trace(
        job_id=[str(name) for name in jobs["job_id"]],
        model=names,
        batch_size=sizes,
        num_gpus=gangs,
        mode=["static"] * len(jobs),
        total_steps=all_epochs * per_epoch,
        arrival_s=(jobs["submit_time_s"] - jobs["submit_time_s"].min()).to_numpy(dtype=np.float64),
        total_epochs=all_epochs,
    )
    profiles = Profiles(name="pollux", rates=rates, dataset_sizes=samples, max_batch_sizes={})
    part = math.ceil(PAPER_GPUS * len(jobs) / count)
    gpus = max(part if setup.gpus is None else setup.gpus, int(trace.num_gpus.max()))
    return trace, profiles, gpus
