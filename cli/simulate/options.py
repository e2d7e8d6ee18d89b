"""The options of `equipoise simulate` and `equipoise compare`: each binds its arguments, for `main` to run."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from ...heuristics.registry import POLICIES
from ...simulation.engines import ENGINES
from ..bench.options import Action, Json

_TRACE_HELP = (
    "A trace: Shockwave's CSV, a CSV of durations, or Gavel's tab-separated text; or generated, or "
    "generated:JOBS[,KEY=VALUE...], a workload by formula."
)
TraceName = Annotated[str, typer.Argument(metavar="TRACE", help=_TRACE_HELP)]
Gpus = Annotated[
    str,
    typer.Option(metavar="N|TYPE=N,...", help="GPUs of the cluster; types are named as clusters in --profiles."),
]
Engine = Annotated[
    str | None, typer.Option(metavar="NAME", help=f"The model of the cluster [the policy's]: {', '.join(ENGINES)}.")
]
ProfileFolder = Annotated[
    str | None,
    typer.Option(
        metavar="FOLDER",
        help="Folder of throughputs.csv, models.csv, accordion_rules.csv and gns_rules.csv; builtin by default, "
        "but a trace of durations has its own.",
    ),
]
Cluster = Annotated[str | None, typer.Option(help="Cluster whose throughputs to read [tacc].")]
Jobs = Annotated[int | None, typer.Option(help="Only the first N arrivals.", metavar="N")]
Seed = Annotated[int, typer.Option(help="Seed of a generated workload, and of policies that draw.")]
Rules = Annotated[
    str | None,
    typer.Option(metavar="KEY=VALUE,...", help="Rules of the engine, such as round_s=120,restart_s=20."),
]
Sort = Annotated[bool, typer.Option("--sort", help="Put the jobs of TRACE in order of arrival.")]
SkipWide = Annotated[bool, typer.Option("--skip-wide", help="Skip jobs wider than the cluster, with a warning.")]


def simulate_options(
    trace: TraceName,
    gpus: Gpus = "32",
    policy: Annotated[
        str,
        typer.Option(
            metavar="NAME[:KEY=VALUE,...]",
            help=f"{', '.join(POLICIES)}; with options of its own.",
        ),
    ] = "shockwave",
    engine: Engine = None,
    profiles: ProfileFolder = None,
    cluster: Cluster = None,
    jobs: Jobs = None,
    seed: Seed = 0,
    rules: Rules = None,
    sort: Sort = False,
    skip_wide: SkipWide = False,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write the tables as CSV, page.html and summary.json here."),
    ] = None,
    per_job: Annotated[bool, typer.Option("--per-job", help="Also each job: start, end, JCT, FTF.")] = False,
    as_json: Json = False,
) -> Action:
    """Run one policy on a trace, and say how long and how fair it was."""
    from .command import simulate_command

    return partial(
        simulate_command,
        trace,
        policy=policy,
        gpus=gpus,
        engine=engine,
        profiles=profiles,
        cluster=cluster,
        jobs=jobs,
        seed=seed,
        rules=rules,
        sort=sort,
        skip_wide=skip_wide,
        out=out,
        per_job=per_job,
        as_json=as_json,
    )


def compare_options(
    trace: TraceName,
    gpus: Gpus = "32",
    policies: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[:KEY=VALUE,...],...",
            help="Policies as in `simulate`, each with options of its own; or all. By default those of the paper.",
        ),
    ] = None,
    engine: Engine = None,
    profiles: ProfileFolder = None,
    cluster: Cluster = None,
    jobs: Jobs = None,
    seed: Seed = 0,
    rules: Rules = None,
    sort: Sort = False,
    skip_wide: SkipWide = False,
    workers: Annotated[
        int | None, typer.Option(metavar="N", help="Policies run at once [one for each processor; needs joblib].")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write comparison.csv, page.html and a folder for each policy.")
    ] = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="The page to write [compare.html].")] = None,
    as_json: Json = False,
) -> Action:
    """Run several policies on one trace, and set them side by side."""
    from ..compare.command import compare_command

    return partial(
        compare_command,
        trace,
        policies=policies,
        gpus=gpus,
        engine=engine,
        profiles=profiles,
        cluster=cluster,
        jobs=jobs,
        seed=seed,
        rules=rules,
        sort=sort,
        skip_wide=skip_wide,
        workers=workers,
        out=out,
        html=html,
        as_json=as_json,
    )
