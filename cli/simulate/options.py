"""Options that `equipoise simulate` and `equipoise compare` share."""

from __future__ import annotations

from typing import Annotated

import typer

from ...simulation.engines import ENGINES
from ..profiles import PROFILE_FILES

TraceName = Annotated[
    str,
    typer.Argument(
        metavar="TRACE",
        help="A trace: Shockwave's CSV, a CSV of durations, PCS's or Helios's CSV, or Gavel's tab-separated text; "
        "FILE:cluster=NAME, one virtual cluster of a CSV of durations or of Helios; or generated, or "
        "generated:JOBS[,KEY=VALUE...], a workload by formula.",
    ),
]
Gpus = Annotated[
    str | None,
    typer.Option(metavar="N|TYPE=N,...", help="GPUs of the cluster [32]; types are named as clusters in --profiles."),
]
EngineName = Annotated[
    str | None, typer.Option(metavar="NAME", help=f"The model of the cluster [the policy's]: {', '.join(ENGINES)}.")
]
ProfileFolder = Annotated[
    str | None,
    typer.Option(
        metavar="FOLDER",
        help=f"Folder of {', '.join(PROFILE_FILES[:-1])} and {PROFILE_FILES[-1]}; builtin by default, "
        "but a trace of durations has its own.",
    ),
]
Jobs = Annotated[int | None, typer.Option(help="Only the first N arrivals.", metavar="N")]
Seed = Annotated[int, typer.Option(help="Seed of a generated workload, and of policies that draw.")]
Rules = Annotated[
    str | None, typer.Option(metavar="KEY=VALUE,...", help="Rules of the engine, such as round_s=120,restart_s=20.")
]
Sort = Annotated[bool, typer.Option("--sort", help="Put the jobs of TRACE in order of arrival.")]
Machines = Annotated[int | None, typer.Option(metavar="N", help="Machines, in the placement and fluid engines.")]
GpusPerMachine = Annotated[int | None, typer.Option(metavar="N", help="GPUs of each machine.")]
Racks = Annotated[
    int | None,
    typer.Option(metavar="N", help="Racks of equally many machines; without machines, each has 8 machines of 8 GPUs."),
]
SpeedsName = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Speeds in the placement engine: durations [if the trace has any], models, profiles; or, by the network, "
        "table, all-reduce, penalties.",
    ),
]
ModelFile = Annotated[
    str | None, typer.Option(metavar="FILE", help="Rows that --speeds models adds to its table of models.")
]
NetworkFile = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Measurements (CSV) of --speeds table, dimensions (JSON) of --speeds all-reduce, or penalties (JSON) of "
        "--speeds penalties [builtin].",
    ),
]
Slowdown = Annotated[
    str | None,
    typer.Option(
        metavar="X|FILE",
        help="Slowdown of jobs on more machines than they need [1]: a number, or measured by job and GPUs; not with "
        "--speeds models or by the network.",
    ),
]
InterferenceText = Annotated[
    str | None,
    typer.Option(
        metavar="X|FILE|drawn:FILE",
        help="Slowdown of jobs that share a GPU [1]: a number, measured pairs, or pairs drawn from a file by --seed; "
        "--rules jobs_per_gpu=2 lets jobs share.",
    ),
]
Predict = Annotated[
    bool,
    typer.Option("--predict", help="Predict each job's end at its arrival, in the fluid engine: a rule, predict=true."),
]
SpeedupFile = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Speedups of models on several GPUs, as JSON, for the fluid engine [builtin]."),
]
SplitGpus = Annotated[
    int | None, typer.Option(metavar="N", help="Every metric also for jobs of more and of at most N GPUs.")
]
