"""`equipoise snapshot`: an instance of the window from a trace, as the cluster would look at one moment."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..formulations.errors import InvalidInput
from ..heuristics.prediction.predictors import PREDICTORS, Predictor
from .console import print_status, print_text
from .errors import OK, CommandError
from .files import check_target, write_text
from .json_text import json_text
from .options import Cluster, SkipWide, deferred
from .plan.instance import instance_of
from .profiles import BUILTIN, PROFILE_FILES, named_profiles

if TYPE_CHECKING:
    from ..formulations.window.problem import ScheduleWindow
    from ..simulation.job_state import JobState
    from ..simulation.profiles.table import Profiles
    from ..simulation.traces.trace import Trace


@deferred
def snapshot_command(
    trace: Annotated[
        Path, typer.Argument(metavar="TRACE", help="Shockwave's CSV, a CSV of durations, or Gavel's text.")
    ],
    at: Annotated[float, typer.Option(help="Seconds after the start of the trace.")],
    gpus: Annotated[int, typer.Option(help="GPUs of the cluster.")],
    profiles: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER",
            help=f"Folder of {', '.join(PROFILE_FILES[:-1])} and {PROFILE_FILES[-1]}, or builtin; "
            "by default the trace's own folder if it holds them, else builtin.",
        ),
    ] = None,
    cluster: Cluster = None,
    predictor: Annotated[
        str, typer.Option(help=f"How remaining regimes are predicted: {', '.join(PREDICTORS)}.")
    ] = "restatement",
    rounds: Annotated[int, typer.Option(help="Rounds in the window.")] = 20,
    round_s: Annotated[float, typer.Option(help="Seconds in a round.")] = 120.0,
    skip_wide: SkipWide = False,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write here, not on standard output.")] = None,
) -> int:
    """Make an instance of the jobs of TRACE that are unfinished at one moment.

    What cannot be read, and a moment where no job is unfinished, is an InvalidInput or a CommandError.
    """
    from ..simulation import snapshot

    check_target("--out", out)
    if predictor not in PREDICTORS:
        raise InvalidInput("predictor", predictor, f"must be one of {', '.join(PREDICTORS)}")
    jobs, known = _read(trace, profiles, cluster)
    states = snapshot(jobs, at_s=at, gpus=gpus, profiles=known)
    if not states:
        raise CommandError(
            f"{trace}: no job has arrived and is unfinished at {at:g} s", "choose another --at, or fewer --gpus."
        )
    window = window_of_states(states, predictor, gpus, rounds, round_s, skip_wide=skip_wide)
    text = json_text(instance_of(window))
    if out is None:
        print_text(text)
    else:
        write_text(out, text)
    print_status(f"{len(window.ids)} unfinished jobs on {gpus} GPUs" + (f", written to {out}" if out else ""))
    return OK


def _read(trace: Path, profiles: str | None, cluster: str | None) -> tuple[Trace, Profiles]:
    """Return the trace and its profiles: those named, else the trace's own where it has some, else the package's."""
    from ..simulation import Trace, read_durations
    from ..simulation.traces.durations import is_duration_trace

    try:
        if not is_duration_trace(trace):
            return Trace.read(trace), _profiles(trace, profiles, cluster)
        known = named_profiles(BUILTIN if profiles is None else profiles, cluster)
        return read_durations(trace, None if profiles is None else known)
    except UnicodeDecodeError as error:
        raise CommandError(
            f"{trace}: is not text (byte 0x{error.object[error.start]:02x} at offset {error.start})",
            "a trace is Shockwave's CSV, a CSV of durations, or Gavel's tab-separated text.",
        ) from None


def _profiles(trace: Path, folder: str | None, cluster: str | None) -> Profiles:
    if folder is None:
        beside = trace.parent
        if all((beside / name).is_file() for name in PROFILE_FILES):
            folder = str(beside)
            print_status(f"profiles: those beside the trace in {folder} (--profiles chooses others)")
        else:
            folder = BUILTIN
            print_status("profiles: built in (--profiles FOLDER chooses others)")
    return named_profiles(folder, cluster)


def window_of_states(
    states: Sequence[JobState], predictor: Predictor, gpus: int, rounds: int, round_s: float, *, skip_wide: bool = False
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
