"""`equipoise simulate`: run one policy on a trace, print the result, and write it to a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...heuristics.registry import POLICIES
from ..console import print_status, print_text
from ..errors import OK, CommandError
from ..json_text import json_text
from ..options import Cluster, Json, SkipWide, deferred
from ..progress import QUIET_S, CountProgress
from .config import read_config
from .engine_options import EngineOptions
from .folder import check_folder, write_folder, write_partial
from .options import (
    EngineName,
    Gpus,
    GpusPerMachine,
    InterferenceText,
    Jobs,
    Machines,
    ModelFile,
    NetworkFile,
    Predict,
    ProfileFolder,
    Racks,
    Rules,
    Seed,
    Slowdown,
    Sort,
    SpeedsName,
    SpeedupFile,
    SplitGpus,
    TraceName,
)
from .policy_spec import read_policies
from .run import document, run_policy
from .summary import print_summary


@deferred
def simulate_command(
    trace: TraceName,
    gpus: Gpus = None,
    policy: Annotated[
        str,
        typer.Option(
            metavar="NAME[:KEY=VALUE,...]",
            help=f"{', '.join(POLICIES)}; with options of its own: a number, 1/2/3, NAME:1/NAME:2, or a file.",
        ),
    ] = "shockwave",
    engine: EngineName = None,
    profiles: ProfileFolder = None,
    cluster: Cluster = None,
    jobs: Jobs = None,
    seed: Seed = 0,
    rules: Rules = None,
    sort: Sort = False,
    skip_wide: SkipWide = False,
    split_gpus: SplitGpus = None,
    machines: Machines = None,
    gpus_per_machine: GpusPerMachine = None,
    racks: Racks = None,
    speeds: SpeedsName = None,
    models: ModelFile = None,
    slowdown: Slowdown = None,
    network: NetworkFile = None,
    interference: InterferenceText = None,
    speedups: SpeedupFile = None,
    predict: Predict = False,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write the tables as CSV, page.html and summary.json here.")
    ] = None,
    per_job: Annotated[bool, typer.Option("--per-job", help="Also each job: start, end, JCT, FTF.")] = False,
    as_json: Json = False,
) -> int:
    """Run one policy on a trace, and report how long and how fair it was.

    Ctrl-C ends it after writing the jobs that had ended, with a line on standard error.
    """
    own = EngineOptions(
        machines=machines, gpus_per_machine=gpus_per_machine, racks=racks, speeds=speeds, models=models,
        slowdown=slowdown, network=network, interference=interference, speedups=speedups,
    )  # fmt: skip
    engine = own.engine(engine)
    spec, *more = read_policies([policy], seed, engine)
    if more:
        raise CommandError(f"--policy {policy}: names {1 + len(more)} policies", "`equipoise compare` runs several.")
    config = read_config(
        trace, gpus=gpus, engine=str(spec.engine), profiles=profiles, cluster=cluster, jobs=jobs,
        rules=",".join(filter(None, (rules, "predict=true" if predict else None))) or None,
        seed=seed, sort=sort, skip_wide=skip_wide, split_gpus=split_gpus, own=own,
    )  # fmt: skip
    check_folder(out)
    with CountProgress(spec.label, QUIET_S) as counted:

        def on_step(number: int, time_s: float, completed: int, total: int) -> None:
            counted(completed, total)

        try:
            run = run_policy(config, spec, on_step)
        except KeyboardInterrupt as interrupt:
            _report_interrupt(interrupt, out)
            raise
    if out is not None:
        write_folder(out, config, run)
    if as_json:
        print_text(json_text(document(config, run, per_job=per_job)))
    else:
        print_summary(config, run, per_job=per_job)
    if out is not None:
        names = ", ".join(f"{name}.csv" for name in run.result.tables())
        print_status(f"wrote {names}, page.html and summary.json to {out}")
    return OK


def _report_interrupt(interrupt: KeyboardInterrupt, out: Path | None) -> None:
    """Write the jobs that had ended before Ctrl-C and the steps so far, and print which and where."""
    from ...simulation import SimulationInterrupted

    if not isinstance(interrupt, SimulationInterrupted):
        return
    if out is None:
        print_status(f"{interrupt}; nothing was written (no --out)")
        return
    print_status(f"{interrupt}; wrote {', '.join(write_partial(out, interrupt))} to {out}")
