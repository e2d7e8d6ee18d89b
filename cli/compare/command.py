"""`equipoise compare`: several policies on one trace, as a table and a page; each is on disk once it is finished."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ...formulations.checks import as_integer
from ...heuristics.registry import find_policy, policies_of
from ..console import console, new_table, print_status, print_text
from ..errors import OK, CommandError, explain
from ..files import check_target, write_text
from ..json_text import json_text
from ..options import Cluster, Json, SkipWide, deferred
from ..progress import QUIET_S, CountProgress
from ..simulate.config import SimulationConfig, read_config
from ..simulate.engine_options import EngineOptions
from ..simulate.folder import check_folder, csv_text, write_folder
from ..simulate.options import (
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
from ..simulate.policy_spec import PolicySpec, read_policies
from ..simulate.run import FinishedRun
from .comparison import Comparison, table_rows
from .run import run_policies, workers_for

PAGE = Path("compare.html")
#: The policies of the paper's main figures.
PAPER = ("shockwave", "ossp", "themis", "gavel", "allox", "mst", "gandiva-fair")


@deferred
def compare_command(
    trace: TraceName,
    gpus: Gpus = None,
    policies: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[:KEY=VALUE,...],...",
            help="Policies as in `simulate`, each with options of its own; or all. By default those of the paper.",
        ),
    ] = None,
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
    workers: Annotated[
        int | None, typer.Option(metavar="N", help="Policies run at once [one for each processor; needs joblib].")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write comparison.csv, page.html and a folder for each policy.")
    ] = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="The page to write [compare.html].")] = None,
    as_json: Json = False,
) -> int:
    """Run several policies on one trace, and set them side by side.

    Ctrl-C ends it after a line on standard error that names the results on disk.
    """
    own = EngineOptions(
        machines=machines, gpus_per_machine=gpus_per_machine, racks=racks, speeds=speeds, models=models,
        slowdown=slowdown, network=network, interference=interference, speedups=speedups,
    )  # fmt: skip
    engine = own.engine(engine)
    if workers is not None:
        as_integer("--workers", workers, minimum=1)
    specs = read_policies(policies or default_policies(engine, own.speeds), seed, engine)
    config = read_config(
        trace, gpus=gpus, engine=str(specs[0].engine), profiles=profiles, cluster=cluster, jobs=jobs,
        rules=",".join(filter(None, (rules, "predict=true" if predict else None))) or None,
        seed=seed, sort=sort, skip_wide=skip_wide, split_gpus=split_gpus, own=own,
    )  # fmt: skip
    targets = Targets(out, PAGE if html is None and out is None and not as_json else html)
    check_target("--html", targets.page)
    check_folder(targets.folder)
    count, note = workers_for(workers, len(specs))
    if note:
        print_status(note)
    comparison = _run(config, specs, count, targets)
    _report(comparison, targets, as_json=as_json)
    return OK


def default_policies(engine: str | None, speeds: str | None = None) -> Sequence[str]:
    """Return the policies of the paper's main figures that the engine has; if it has none, all that can run.

    Policies whose class has `needs_models` can run with `--speeds models` only.
    """
    if engine is None:
        return PAPER
    own = policies_of(engine)
    elastic = [name for name in own if getattr(find_policy(name, engine).load(), "needs_models", False)]
    runnable = [name for name in own if speeds == "models" or name not in elastic]
    return [name for name in PAPER if name in own] if PAPER[0] in own else runnable


@dataclass(frozen=True)
class Targets:
    """Where results are written, as soon as each policy is finished.

    The folder is for tables, page and summary, and for a folder of each policy; `page` is a file.
    """

    folder: Path | None
    page: Path | None

    def write_run(self, config: SimulationConfig, run: FinishedRun) -> None:
        """Write the folder of one policy."""
        if self.folder is not None:
            write_folder(self.folder / run.spec.folder, config, run)

    def write_comparison(self, comparison: Comparison) -> None:
        """Write what covers all finished policies: page, table and summary; nothing if there is none."""
        from .page import render

        if not comparison.finished or (self.folder is None and self.page is None):
            return
        page = render(comparison)
        if self.page is not None:
            write_text(self.page, page)
        if self.folder is not None:
            import pandas as pd

            rows = [{"policy": label, **run.result.metrics} for label, run in comparison.finished.items()]
            write_text(self.folder / "comparison.csv", csv_text(pd.DataFrame(rows)))
            write_text(self.folder / "page.html", page)
            write_text(self.folder / "summary.json", json_text(comparison.document()))

    def status(self, comparison: Comparison) -> str:
        """Return which results are on disk, and where."""
        places = [str(place) for place in (self.folder, self.page) if place is not None]
        finished = comparison.finished
        names = ", ".join(finished)
        if not finished:
            return "no policy had finished; nothing was written"
        if not places:
            return f"finished, but not written (no --out, no --html): {names}"
        return f"wrote {len(finished)} of {len(comparison.specs)} policies ({names}) to {' and '.join(places)}"


def _run(config: SimulationConfig, specs: Sequence[PolicySpec], workers: int, targets: Targets) -> Comparison:
    """Run the policies and write each one that finishes."""
    comparison = Comparison(config, specs)
    try:
        with CountProgress("policies" if workers > 1 else "jobs of all policies", QUIET_S) as counted:

            def on_step(number: int, time_s: float, completed: int, total: int) -> None:
                counted(len(comparison.outcomes) * total + completed, total * len(specs))

            for spec, outcome in run_policies(config, specs, workers=workers, on_step=on_step):
                if isinstance(outcome, FinishedRun):
                    targets.write_run(config, outcome)
                comparison = comparison.with_outcome(spec, outcome)
                targets.write_comparison(comparison)
                if workers > 1:
                    counted(len(comparison.outcomes), len(specs))
    except KeyboardInterrupt:
        targets.write_comparison(comparison)  # the interrupt may have come between two files
        print_status(targets.status(comparison))
        raise
    return comparison


def _report(comparison: Comparison, targets: Targets, *, as_json: bool) -> None:
    """Print the finished policies, and raise if a policy failed."""
    failed = comparison.failed
    if not comparison.finished and len({str(error) for error in failed.values()}) == 1:
        raise next(iter(failed.values()))  # a fault of the trace or the cluster, not of the policies
    if as_json:
        print_text(json_text(comparison.document()))
    elif comparison.finished:
        _print_table(comparison)
    if targets.folder is not None or targets.page is not None:
        print_status(targets.status(comparison))
    for label, error in failed.items():
        print_status(f"{label}: {explain(error, 'compare').line}")
    if failed:
        failure = explain(next(iter(failed.values())), "compare")
        raise CommandError(f"{len(failed)} of {len(comparison.specs)} policies failed", failure.hint, failure.code)


def _print_table(comparison: Comparison) -> None:
    """Print a row for each policy, the best of each column marked, with the ratio to the base in brackets."""
    from rich.text import Text

    out = console()
    config = comparison.config
    head = f"{len(config.trace):,} jobs of {config.trace_name} on {config.total_gpus:,} GPUs"
    out.print(Text(f"{head}; in brackets, relative to {comparison.base}", style="bold"), soft_wrap=True)
    table = new_table()
    table.add_column("policy", no_wrap=True)
    for headline in comparison.headlines:
        table.add_column(headline.title, justify="right", overflow="fold")
    for label, cells in table_rows(comparison).items():
        table.add_row(Text(label), *(Text(text, style="bold green" if best else "") for text, best in cells))
    out.print(table)
    sys.stdout.flush()
