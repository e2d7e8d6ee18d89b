"""Readers of trace files, whose errors name column and line, and the writer of Shockwave's CSV."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from ...formulations.errors import InvalidInput
from ...formulations.files import write_text
from ..delimited_files import as_id
from ..profiles.table import Profiles
from .durations import TimedModels, duration_columns, own_profiles
from .file_columns import gavel_columns, pcs_columns, shockwave_columns
from .helios import helios_columns
from .trace import Trace, schedule_text


def read_trace(path: str | Path) -> Trace:
    """Read a trace in any of the five formats.

    A tab in the first line that is not blank marks Gavel's format, a column duration_s or submit_time_s a CSV of
    durations, two of the columns vc, gpu_num, cpu_num and node_num a Helios trace, and the columns app_id and service
    PCS's format. A trace of durations has the models and batch sizes of the file (1 where there is none) and one step
    for each GPU-second. The placement engine runs it by its durations;
    for the rounds engine, `read_durations` returns a trace and the profiles that belong to it.

    Raises
    ------
    InvalidInput
        If the file cannot be read, is empty, or is malformed (see the readers of the formats).
    """
    return Trace.read(path)


def read_shockwave(path: str | Path) -> Trace:
    """Read a CSV trace with a header line.

    Columns needed: job_id, model, batch_size, scale_factor (GPUs), mode, total_steps (at that batch size) and
    arrival_time_s. Used where present: num_epochs, steps_per_epoch (must agree with the two others),
    priority_weight, and profile_bs_schedule_rle ("32x28 256x64": 28 epochs at 32, then 64 at 256). Other columns
    are not read.

    Raises
    ------
    InvalidInput
        If the file is malformed; the message names column, value, file and line.
    """
    return Trace.of(shockwave_columns(path))


def read_gavel(path: str | Path) -> Trace:
    """Read a tab-separated trace without a header, in Gavel's form or Shockwave's.

    Gavel's 10 columns: job_type, command, working_directory, num_steps_arg, needs_data_dir, total_steps,
    scale_factor, priority_weight, SLO, arrival_time; every job is static. Shockwave's 12 put mode before
    priority_weight and duration before arrival_time. job_type is such as "ResNet-18 (batch size 64)". Job ids count
    lines from 0. Command, data paths, SLO and duration are not kept; epochs and batch-size schedules follow
    from the profiles.

    Raises
    ------
    InvalidInput
        If the file is malformed or a line has another number of columns; the message names column, value, file and
        line.
    """
    return Trace.of(gavel_columns(path))


def read_pcs(path: str | Path) -> Trace:
    """Read a CSV trace of PCS with a header line.

    Columns needed: app_id, submit_time (seconds), service (exact run time on one GPU, in seconds), num_jobs (maximum
    demand in GPUs) and model_name. Used where present: min_gpus (least GPUs of the job, 1 where empty). sleep_time and
    other columns are not read. The trace has `size_s`, and one step for each of its seconds.

    Raises
    ------
    InvalidInput
        If the file is malformed; the message names column, value, file and line.
    """
    return Trace.of(pcs_columns(path))


def read_helios(path: str | Path) -> Trace:
    """Read a CSV of SenseTime's Helios traces, with a header line.

    Columns needed: job_id, user, vc (virtual cluster), gpu_num, cpu_num, node_num, state, submit_time, start_time,
    end_time, duration and queue (seconds); others are not read. Times are dates such as 2020-06-09 18:41:01, all with a
    time zone (+08:00) or all without. States are COMPLETED, CANCELLED, FAILED, TIMEOUT, NODE_FAIL and SUSPENDED; a job
    runs for its duration in each of them. Arrivals count from the first submission of a job that is kept. The virtual
    cluster stands for the model, which the format does not name.

    Jobs without GPUs, and jobs with a duration of 0, which never ran, are left out; a UserWarning states their numbers.

    Raises
    ------
    InvalidInput
        If the file is malformed, or a duration or queueing time differs from the difference of its dates by more than
        1 s; the message names column, value, file and line.

    Notes
    -----
    Format of Q. Hu et al., "Characterization and Prediction of Deep Learning Workloads in Large-Scale GPU Datacenters",
    SC 2021, and of its public traces HeliosData.
    """
    return Trace.of(helios_columns(path))


def read_durations(
    path: str | Path, profiles: Profiles | None = None, *, models: TimedModels | None = None
) -> tuple[Trace, Profiles]:
    """Read a trace of durations, and the profiles under which its jobs have these durations. All jobs are static.

    Parameters
    ----------
    path : path
        A CSV file with a header, plain or compressed (.gz). Columns needed: job_id, submit_time_s (seconds from any
        moment; kept unchanged, in any order), duration_s (run time alone on the requested GPUs), num_gpus and
        model (any label). Used where present: batch_size, min_gpus (1 where empty), and work_gpu_s, which must be
        duration_s x num_gpus; their cells may be empty. Other columns are not read. Or a Helios trace (see
        `read_helios`), without `profiles` and `models`.
    profiles : Profiles, optional
        Measured rates, which must cover every model at its batch size and GPUs. Where the file has no batch size, the
        profiles must have exactly one for the model on these GPUs.
    models : TimedModels, optional
        Models with a range of batch sizes per GPU, such as a `ModelTable`, instead of `profiles`. The file's batch
        sizes, which must not be empty, are then totals over the GPUs of a job: the reader divides them, rounds to the
        nearest whole number within the model's range, and warns of the number of jobs whose total changes by that.

    Returns
    -------
    Trace
        Trace of the jobs; `duration_s` is as recorded. With `profiles` or `models`, steps are duration x rate and
        epochs duration / epoch time, each rounded to a whole number of at least 1. Without, times are rounded to whole
        seconds of at least 1, and a step is a GPU-second.
    Profiles
        Given profiles, those of the models, or those derived from the file: a gang of g GPUs runs g steps per second,
        an epoch takes one second, and each pair of model and GPU count is a model of its own, such as "VGG on 4 GPUs".
        Batch sizes are 1, since the duration already includes their effect. `read_trace` keeps models and batch sizes.

    Raises
    ------
    InvalidInput
        If the file is malformed; the message names column, value, file and line.

    Notes
    -----
    `exclusive_s` counts whole epochs, so it differs from duration_s by at most half an epoch (by less than one epoch if
    duration_s is below half an epoch); without `profiles` and `models` by at most 0.5 s.
    """
    columns, found = duration_columns(path, profiles, models)
    if found is None:
        columns, found = own_profiles(columns, Path(path).name)
    return Trace.of(columns), found


def write_shockwave(trace: Trace, path: str | Path) -> None:
    """Write a trace as the CSV that `read_shockwave` reads. The file is written completely or not at all.

    Raises
    ------
    InvalidInput
        If an id is text that would be read back as a number or without its blanks ("7", " a").
    """
    for index, value in enumerate(trace.job_id):
        if as_id(str(value).strip()) != value:
            raise InvalidInput("job_id", value, "would read back as another id", index=index)
    columns: dict[str, list[object]] = {
        "job_id": list(trace.job_id),
        "model": list(trace.model),
        "batch_size": trace.batch_size.tolist(),
        "scale_factor": trace.gang_gpus.tolist(),
        "mode": list(trace.mode),
        "total_steps": trace.total_steps.tolist(),
        "arrival_time_s": trace.arrival_s.tolist(),
        "priority_weight": trace.weight.tolist(),
    }
    if trace.total_epochs is not None:
        columns["num_epochs"] = trace.total_epochs.tolist()
    if trace.schedule is not None:
        columns["profile_bs_schedule_rle"] = [schedule_text(runs) for runs in trace.schedule]
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    write_text(path, buffer.getvalue())
