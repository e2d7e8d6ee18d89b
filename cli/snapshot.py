"""`equipoise snapshot`: an instance of the window from a trace, as the cluster would look at one moment."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..formulations.errors import InvalidInput
from .errors import OK, CommandError
from .files import check_target, print_text, write_text
from .json_text import json_text
from .plan.instance import instance_of

if TYPE_CHECKING:
    from ..formulations.window.problem import ScheduleWindow
    from ..heuristics.prediction.predictors import Predictor
    from ..simulation.job_state import JobState
    from ..simulation.profiles.table import Profiles

PROFILE_FILES = ("throughputs.csv", "models.csv", "accordion_rules.csv", "gns_rules.csv")
BUILTIN = "builtin"
DEFAULT_CLUSTER = "tacc"


def snapshot_trace(
    trace: Path,
    *,
    at_s: float,
    gpus: int,
    profiles: str | None,
    cluster: str | None,
    predictor: str,
    rounds: int,
    round_s: float,
    skip_wide: bool,
    out: Path | None,
) -> int:
    """Write the instance of the jobs in `trace` that are unfinished `at_s` seconds after its start.

    Parameters
    ----------
    trace : Path
        A Shockwave CSV, a CSV of durations or a Gavel TSV.
    at_s : float
        Moment, seconds after the start of the trace.
    gpus : int
        GPUs of the cluster (M).
    profiles : str or None
        Folder of profiles, "builtin", or None: the trace's own folder if the profiles are there, else built in; a trace
        of durations has its own.
    cluster : str or None
        Which cluster's throughputs; only with a folder.
    predictor : str
        How the remaining regimes are foreseen; see `heuristics.predict`.
    rounds, round_s : int, float
        The window.
    skip_wide : bool
        Leave out jobs wider than the cluster, with a warning.
    out : Path or None
        File to write; None: standard output.

    Returns
    -------
    int
        Exit code.
    """
    from ..heuristics.prediction.predictors import PREDICTORS
    from ..simulation import Trace, read_durations, snapshot
    from ..simulation.traces.durations import is_duration_trace

    check_target("--out", out)
    if predictor not in PREDICTORS:
        raise InvalidInput("predictor", predictor, f"must be one of {', '.join(PREDICTORS)}")
    try:
        if is_duration_trace(trace):
            known = named_profiles(BUILTIN if profiles is None else profiles, cluster)
            jobs, known = read_durations(trace, None if profiles is None else known)
        else:
            jobs, known = Trace.read(trace), _profiles(trace, profiles, cluster)
    except UnicodeDecodeError as error:
        raise CommandError(
            f"{trace}: is not text (byte 0x{error.object[error.start]:02x} at offset {error.start})",
            "a trace is Shockwave's CSV, a CSV of durations, or Gavel's tab-separated text.",
        ) from None
    states = snapshot(jobs, at_s=at_s, gpus=gpus, profiles=known)
    if not states:
        raise CommandError(
            f"{trace}: no job has arrived and is unfinished at {at_s:g} s",
            "choose another --at, or fewer --gpus.",
        )
    window = window_of_states(states, predictor, gpus, rounds, round_s, skip_wide=skip_wide)
    text = json_text(instance_of(window))
    if out is None:
        print_text(text)
    else:
        write_text(out, text)
    _tell(f"{len(window.ids)} unfinished jobs on {gpus} GPUs" + (f", written to {out}" if out else ""))
    return OK


def _tell(message: str) -> None:
    sys.stderr.write(f"equipoise: {message}\n")


def _profiles(trace: Path, folder: str | None, cluster: str | None) -> Profiles:
    if folder is None:
        beside = trace.parent
        if all((beside / name).is_file() for name in PROFILE_FILES):
            folder = str(beside)
            _tell(f"profiles: those beside the trace in {folder} (--profiles chooses others)")
        else:
            folder = BUILTIN
            _tell("profiles: built in (--profiles FOLDER chooses others)")
    return named_profiles(folder, cluster)


def named_profiles(folder: str, cluster: str | None) -> Profiles:
    """Return the profiles of a folder, or the package's own for "builtin", which are of no particular cluster."""
    from ..simulation import Profiles

    if folder != BUILTIN:
        for name in PROFILE_FILES:
            if not (Path(folder) / name).is_file():
                raise CommandError(
                    f"--profiles {folder}: has no {name}", f"a folder of profiles holds {', '.join(PROFILE_FILES)}."
                )
        return Profiles.read(Path(folder), cluster=DEFAULT_CLUSTER if cluster is None else cluster)
    if cluster is not None:
        raise CommandError(
            f"--cluster {cluster}: the built-in profiles are of one cluster", "name a folder with --profiles."
        )
    return Profiles.builtin()


def window_of_states(
    states: Sequence[JobState],
    predictor: Predictor,
    gpus: int,
    rounds: int,
    round_s: float,
    *,
    skip_wide: bool = False,
) -> ScheduleWindow:
    """Return the window of the given jobs, regimes and fairness predicted, Z0 the sum of predicted run times."""
    from ..formulations.window.problem import ScheduleWindow
    from ..heuristics import predicted_total_s, window_job

    return ScheduleWindow(
        [window_job(state, predictor) for state in states],
        gpus,
        rounds=rounds,
        round_s=round_s,
        makespan_scale=sum(predicted_total_s(state, predictor) for state in states),
        running=tuple(state.id for state in states if state.running and not (skip_wide and state.gpus > gpus)),
        skip_wide=skip_wide,
    )
