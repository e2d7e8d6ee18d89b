"""`equipoise tune wfq`: search for weighted fair queues that suit the jobs of a trace."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...formulations.checks import as_integer, as_real
from ...formulations.errors import InvalidInput
from ...formulations.search.objective import as_objectives
from ..console import print_status, print_text
from ..errors import OK
from ..json_text import json_text
from ..options import Json, SkipWide, deferred
from ..progress import SearchProgress
from ..simulate.config import SimulationConfig, read_config
from ..simulate.engine_options import EngineOptions
from ..simulate.options import Gpus, Rules, Sort, SpeedupFile, TraceName
from .folder import CHECKPOINT, CONFIGS, FRONT, PAGE, SUMMARY, digest, open_folder, write_results
from .summary import INTERRUPTED_BY, EndedSearch, document, print_summary

if TYPE_CHECKING:
    from ...heuristics.search.wfq_tuning import WfqTuning

tune_app = typer.Typer(
    help="Search for configurations of policies.", no_args_is_help=False, add_completion=False, rich_markup_mode=None
)

#: Names of searches, and of their choice.
BACKENDS = ("auto", "spea2", "nsga2", "random", "grid")
SPACES = ("parameters", "direct")
_TIME_LIMIT_S = 60.0


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """Options of a search, checked.

    InvalidInput names the option that is out of range.
    """

    backend: str
    space: str
    time_limit: float | None
    evaluations: int | None
    population: int | None
    samples: int
    held_out: int
    jobs: int
    load: float | None
    threads: int

    def __post_init__(self) -> None:
        least = {"evaluations": 1, "population": 4, "samples": 1, "held_out": 0, "jobs": 1, "threads": 1}
        for name, choices in (("backend", BACKENDS), ("space", SPACES)):
            if getattr(self, name) not in choices:
                raise InvalidInput(f"--{name}", getattr(self, name), f"must be one of {', '.join(choices)}")
        for each in fields(self):
            value, option = getattr(self, each.name), f"--{each.name.replace('_', '-')}"
            if value is not None and each.name in least:
                as_integer(option, value, minimum=least[each.name])
            elif value is not None and each.name in ("time_limit", "load"):
                as_real(option, value, above=0.0)
        if self.population is not None and self.backend in ("random", "grid"):
            raise InvalidInput("--population", self.population, f"{self.backend} has no population")

    @property
    def limit_s(self) -> float | None:
        """The time limit: 60 s if neither it nor a number of evaluations is given."""
        return _TIME_LIMIT_S if self.time_limit is None and self.evaluations is None else self.time_limit


@tune_app.command("wfq")
@deferred
def tune_wfq(
    trace: TraceName,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for front, page, configurations and checkpoint.")],
    gpus: Gpus = None,
    objectives: Annotated[
        str,
        typer.Option(
            metavar="METRIC:MEASURE,...",
            help="Two to four of jct, pred_error and unfairness, each by avg or a percentile such as p99.",
        ),
    ] = "jct:avg,pred_error:p99",
    backend: Annotated[str, typer.Option(metavar="NAME", help=f"One of {', '.join(BACKENDS)}.")] = "auto",
    time_limit: Annotated[
        float | None, typer.Option(metavar="S", help="Seconds of the search [60, unless --evaluations is given].")
    ] = None,
    evaluations: Annotated[int | None, typer.Option(metavar="N", help="Configurations to score at most.")] = None,
    population: Annotated[
        int | None, typer.Option(metavar="N", help="Configurations of a generation of spea2 and nsga2 [70].")
    ] = None,
    samples: Annotated[int, typer.Option(metavar="N", help="Workloads on which configurations are scored.")] = 1,
    held_out: Annotated[int, typer.Option(metavar="N", help="Further workloads, on which the front is scored.")] = 1,
    jobs: Annotated[int, typer.Option(metavar="N", help="Jobs of each workload, drawn from those of TRACE.")] = 1000,
    load: Annotated[
        float | None,
        typer.Option(metavar="L", help="Work on one GPU that arrives per second, over the GPUs [that of TRACE]."),
    ] = None,
    threads: Annotated[int, typer.Option(metavar="N", help="Processes that score; more than 1 need joblib.")] = 1,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the workloads and the search.")] = 0,
    speedups: SpeedupFile = None,
    rules: Rules = None,
    space: Annotated[
        str, typer.Option(metavar="NAME", help="parameters: T, W, zeta, delta; direct: thresholds and weights.")
    ] = "parameters",
    sort: Sort = False,
    skip_wide: SkipWide = False,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the search in DIR, if there is one.")] = False,
    as_json: Json = False,
) -> int:
    """Search for weighted fair queues that suit the jobs of a trace, and write the front and its page.

    Ctrl-C ends the search after writing the best so far; --resume continues it.
    """
    from ...heuristics.search.wfq_tuning import WfqTuning

    options = SearchOptions(
        backend=backend, space=space, time_limit=time_limit, evaluations=evaluations, population=population,
        samples=samples, held_out=held_out, jobs=jobs, load=load, threads=threads,
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
    name = _chosen(tuning, options)
    settings = _settings(config, tuning, options, name)
    open_folder(out, settings, resume=resume)
    ended = _search(tuning, options, name, seed, out / CHECKPOINT)
    front = ended.front
    if held_out and not ended.interrupted:
        front = front.with_held_out(tuning.held_out_scores(front))
    found = document(front, settings, ended)
    write_results(out, front, found)
    if as_json:
        print_text(json_text(found))
    else:
        print_summary(front, found)
    print_status(f"wrote {FRONT}, {PAGE}, {CONFIGS}/ and {SUMMARY} to {out}; {CHECKPOINT} is for --resume")
    if ended.interrupted:
        print_status("this is the best so far, with the scores of the search alone, which were not checked")
        raise KeyboardInterrupt
    return OK


def _chosen(tuning: WfqTuning, options: SearchOptions) -> str:
    """Return the name of the search, of which the checkpoint is an option."""
    from ...solvers.selection import candidates

    if options.backend != "auto":
        return options.backend
    table = candidates(tuning, time_limit=options.limit_s, threads=options.threads)
    return next(row.name for row in table if row.taken)


def _settings(config: SimulationConfig, tuning: WfqTuning, options: SearchOptions, backend: str) -> dict[str, Any]:
    """Return what defines the search, as fields of JSON."""
    metadata = config.metadata()
    return {
        **{name: metadata[name] for name in ("trace", "num_jobs", "gpus", "speedups", "rules", "seed")},
        "objectives": [str(each) for each in tuning.objectives],
        "backend": backend,
        **{name: getattr(options, name) for name in ("population", "samples", "held_out", "jobs", "load", "space")},
        "workloads": digest((*tuning.train, *tuning.test), config.own.speedups),
    }


def _search(tuning: WfqTuning, options: SearchOptions, backend: str, seed: int, checkpoint: Path) -> EndedSearch:
    """Search; after Ctrl-C return what was found, or raise KeyboardInterrupt if that is nothing."""
    from ...solvers.search.backend import SearchInterrupted
    from ...solvers.solve import solve

    own: dict[str, Any] = {"checkpoint": str(checkpoint)}
    own |= {
        name: getattr(options, name) for name in ("evaluations", "population") if getattr(options, name) is not None
    }
    with SearchProgress(tuning.objectives, options.limit_s) as progress:
        try:
            result = solve(
                tuning,
                backend,
                time_limit=options.limit_s,
                threads=options.threads,
                seed=seed,
                on_progress=progress,
                backend_options={backend: own},
            )
        except SearchInterrupted as interrupt:
            if interrupt.front is None:
                raise
            return EndedSearch(
                front=interrupt.front,
                limit=INTERRUPTED_BY,
                evaluations=interrupt.evaluations,
                wall_s=progress.elapsed_s,
            )
    return EndedSearch.of(result)
