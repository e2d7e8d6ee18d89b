"""`equipoise tune wfq`: search for weighted fair queues that suit the jobs of a trace."""

from __future__ import annotations

from typing import Annotated

import typer

from ...formulations.search.objective import as_objectives
from ..options import Json, SkipWide, deferred
from ..simulate.config import read_config
from ..simulate.engine_options import EngineOptions
from ..simulate.options import Gpus, Rules, Sort, SpeedupFile, TraceName
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

SPACES = ("parameters", "direct")


@deferred
def tune_wfq(
    trace: TraceName,
    out: Out,
    gpus: Gpus = None,
    objectives: Annotated[
        str,
        typer.Option(
            metavar="METRIC:MEASURE,...",
            help="Two to four of jct, pred_error and unfairness, each by avg or a percentile such as p99.",
        ),
    ] = "jct:avg,pred_error:p99",
    backend: BackendName = "auto",
    time_limit: TimeLimit = None,
    evaluations: Evaluations = None,
    population: Population = None,
    samples: Samples = 1,
    held_out: HeldOut = 1,
    jobs: SampleJobs = 1000,
    load: Load = None,
    threads: Threads = 1,
    seed: SearchSeed = 0,
    speedups: SpeedupFile = None,
    rules: Rules = None,
    space: Annotated[
        str, typer.Option(metavar="NAME", help="parameters: T, W, zeta, delta; direct: thresholds and weights.")
    ] = "parameters",
    sort: Sort = False,
    skip_wide: SkipWide = False,
    resume: Resume = False,
    as_json: Json = False,
) -> int:
    """Search for weighted fair queues that suit the jobs of a trace, and write the front and its page.

    Ctrl-C ends the search after writing the best so far; --resume continues it.
    """
    from ...heuristics.search.wfq_tuning import WfqTuning

    options = SearchOptions(
        backend=backend, spaces=SPACES, space=space, time_limit=time_limit, evaluations=evaluations,
        population=population, samples=samples, held_out=held_out, jobs=jobs, load=load, threads=threads, seed=seed,
    )  # fmt: skip
    chosen = as_objectives("--objectives", tuple(text.strip() for text in objectives.split(",")))
    config = read_config(
        trace, gpus=gpus, engine="fluid", profiles=None, cluster=None, jobs=None, rules=rules, seed=seed, sort=sort,
        skip_wide=skip_wide, split_gpus=None, own=EngineOptions(speedups=speedups),
    )  # fmt: skip
    tuning = WfqTuning.from_history(
        config.trace, gpus=config.gpus, objectives=chosen, samples=samples, held_out=held_out, jobs=jobs, load=load,
        seed=seed, speedups=config.speeds, rules=config.rules, space=space,
    )  # fmt: skip
    stated = ("trace", "num_jobs", "gpus", "speedups", "rules", "seed")
    search = FolderSearch(
        tuning=tuning, options=options, config=config, stated=stated, more={}, files=(config.own.speedups,)
    )
    return search.run(out, resume=resume, as_json=as_json)
