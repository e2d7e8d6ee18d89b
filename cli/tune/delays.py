"""`equipoise tune delays`: search for delay timers of Dally that suit the jobs of a trace."""

from __future__ import annotations

from typing import Annotated

import typer

from ...formulations.search.delay_space import SPACES
from ...formulations.search.objective import as_objectives
from ..options import Json, SkipWide, deferred
from ..simulate.config import read_config
from ..simulate.engine_options import SPEEDS, EngineOptions
from ..simulate.options import (
    Gpus,
    GpusPerMachine,
    Machines,
    ModelFile,
    NetworkFile,
    ProfileFolder,
    Racks,
    Rules,
    Slowdown,
    Sort,
    TraceName,
)
from .folder_search import FolderSearch
from .search_options import (
    BackendName,
    Evaluations,
    HeldOut,
    Load,
    Out,
    Population,
    Resume,
    SampleJobs,
    Samples,
    SearchOptions,
    SearchSeed,
    Threads,
    TimeLimit,
)

# Seconds of a checkpoint for each GPU, unless --rules states them.
_CHECKPOINT = "checkpoint_s_per_gpu=1"


@deferred
def tune_delays(
    trace: TraceName,
    out: Out,
    gpus: Gpus = None,
    machines: Machines = None,
    gpus_per_machine: GpusPerMachine = None,
    racks: Racks = None,
    objectives: Annotated[
        str,
        typer.Option(
            metavar="METRIC[:MEASURE],...",
            help="One to four of jct, waited and communication, each by avg or a percentile such as p99, and makespan.",
        ),
    ] = "jct:avg,makespan",
    backend: BackendName = "auto",
    time_limit: TimeLimit = None,
    evaluations: Evaluations = None,
    population: Population = None,
    samples: Samples = 1,
    held_out: HeldOut = 1,
    jobs: SampleJobs = 400,
    load: Load = None,
    threads: Threads = 1,
    seed: SearchSeed = 0,
    speeds: Annotated[str, typer.Option(metavar="NAME", help=f"One of {', '.join(SPEEDS)}.")] = "table",
    network: NetworkFile = None,
    models: ModelFile = None,
    slowdown: Slowdown = None,
    profiles: ProfileFolder = None,
    rules: Rules = None,
    lease_s: Annotated[float, typer.Option(metavar="S", help="Seconds of a lease.")] = 3600.0,
    offer_s: Annotated[
        float | None, typer.Option(metavar="S", help="Seconds between offers [offers at events].")
    ] = None,
    keep: Annotated[
        bool, typer.Option("--keep/--no-keep", help="Keep GPUs beyond a lease if no job takes one.")
    ] = True,
    space: Annotated[
        str, typer.Option(metavar="NAME", help="by_demand: timers for each number of GPUs; shared: one pair.")
    ] = "by_demand",
    sort: Sort = False,
    skip_wide: SkipWide = False,
    resume: Resume = False,
    as_json: Json = False,
) -> int:
    """Search for delay timers of Dally that suit the jobs of a trace, and write the front and its page.

    Ctrl-C ends the search after writing the best so far; --resume continues it.
    """
    from ...heuristics.search.delay_tuning import DelayTuning

    options = SearchOptions(
        backend=backend, spaces=SPACES, space=space, time_limit=time_limit, evaluations=evaluations,
        population=population, samples=samples, held_out=held_out, jobs=jobs, load=load, threads=threads, seed=seed,
    )  # fmt: skip
    chosen = as_objectives("--objectives", tuple(text.strip() for text in objectives.split(",")))
    if "checkpoint_s_per_gpu" not in (rules or ""):
        rules = f"{_CHECKPOINT},{rules}" if rules else _CHECKPOINT
    own = EngineOptions(
        machines=machines, gpus_per_machine=gpus_per_machine, racks=racks, speeds=speeds, network=network,
        models=models, slowdown=slowdown,
    )  # fmt: skip
    config = read_config(
        trace, gpus=gpus, engine="placement", profiles=profiles, cluster=None, jobs=None, rules=rules, seed=seed,
        sort=sort, skip_wide=skip_wide, split_gpus=None, own=own,
    )  # fmt: skip
    policy = {"lease_s": lease_s, "offer_s": offer_s, "keep": keep}
    tuning = DelayTuning.from_history(
        config.trace, cluster=own.cluster(config.gpus), objectives=chosen, samples=samples, held_out=held_out,
        jobs=jobs, load=load, seed=seed, speeds=config.speeds.speeds, rules=config.rules, space=space, **policy,
    )  # fmt: skip
    stated = (
        "trace", "num_jobs", "gpus", "machines", "gpus_per_machine", "racks", "speeds", "network", "models", "slowdown",
        "profiles", "rules", "seed",
    )  # fmt: skip
    search = FolderSearch(
        tuning=tuning, options=options, config=config, stated=stated, more=policy, files=(network, models)
    )
    return search.run(out, resume=resume, as_json=as_json)
