"""The options of `equipoise bench`: each benchmark a command that binds its arguments, for `main` to run."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated

import typer

# Each command only binds its arguments; the work runs outside typer, whose own handling of errors would interfere.
Action = Callable[[], int]

bench_app = typer.Typer(
    help="Run a benchmark and print its rows.", no_args_is_help=False, add_completion=False, rich_markup_mode=None
)

Json = Annotated[bool, typer.Option("--json", help="Print JSON, and only JSON, on standard output.")]


@bench_app.command("window")
def _bench_window(
    jobs: Annotated[int, typer.Option(help="Jobs in the window.")],
    gpus: Annotated[int, typer.Option(help="GPUs of the cluster.")],
    seed: Annotated[int, typer.Option(help="Seed of the instance.")] = 0,
    rounds: Annotated[int, typer.Option(help="Rounds in the window.")] = 20,
    makespan_weight: Annotated[float, typer.Option(help="Weight of the makespan bound (lambda).")] = 1e-3,
    backends: Annotated[
        list[str] | None, typer.Option(metavar="NAME[,NAME]", help="Backends to measure; all usable ones by default.")
    ] = None,
    time_limit: Annotated[float, typer.Option(help="Seconds for each solve.")] = 15.0,
    rel_gap: Annotated[float, typer.Option(help="Stop at this gap.")] = 1e-4,
    as_json: Json = False,
) -> Action:
    """Plan one generated window with each backend and form."""
    from .bench import bench_window

    return partial(
        bench_window,
        jobs=jobs,
        gpus=gpus,
        seed=seed,
        rounds=rounds,
        makespan_weight=makespan_weight,
        backends=backends,
        time_limit=time_limit,
        rel_gap=rel_gap,
        as_json=as_json,
    )


@bench_app.command("handoff")
def _bench_handoff(as_json: Json = False) -> Action:
    """Hand a large program to HiGHS, beside other modelling layers."""
    from .bench import bench_handoff

    return partial(bench_handoff, as_json=as_json)


@bench_app.command("prediction")
def _bench_prediction(
    jobs: Annotated[int, typer.Option(help="Jobs to generate.")] = 200,
    seed: Annotated[int, typer.Option(help="Seed of the jobs.")] = 0,
    as_json: Json = False,
) -> Action:
    """Compare the predictors of dynamic adaptation over the course of generated jobs."""
    from .bench import bench_prediction

    return partial(bench_prediction, jobs=jobs, seed=seed, as_json=as_json)


@bench_app.command("agreement")
def _bench_agreement(
    count: Annotated[int, typer.Option(help="Programs of each kind.")] = 25,
    seed: Annotated[int, typer.Option(help="Seed of the programs.")] = 0,
    kinds: Annotated[
        list[str] | None, typer.Option(metavar="KIND[,KIND]", help="Kinds of programs and markets; all by default.")
    ] = None,
    backends: Annotated[
        list[str] | None, typer.Option(metavar="NAME[,NAME]", help="Backends to compare; all usable ones by default.")
    ] = None,
    as_json: Json = False,
) -> Action:
    """Solve random programs and markets by every backend; exit code 1 if one disagrees."""
    from .bench import bench_agreement

    return partial(bench_agreement, count=count, seed=seed, kinds=kinds, backends=backends, as_json=as_json)


@bench_app.command("door")
def _bench_door(
    jobs: Annotated[int, typer.Option(help="Jobs in the window, over 20 rounds.")] = 1500,
    gpus: Annotated[int, typer.Option(help="GPUs of the cluster.")] = 256,
    repeats: Annotated[int, typer.Option(help="Runs per median.")] = 5,
    as_json: Json = False,
) -> Action:
    """Time what `solve` adds to the bare solvers, and what a process of its own adds."""
    from .bench import bench_door

    return partial(bench_door, jobs=jobs, gpus=gpus, repeats=repeats, as_json=as_json)


@bench_app.command("market")
def _bench_market(
    sizes: Annotated[
        list[str] | None,
        typer.Option(metavar="NxK[,NxJxT]", help="Buyers x goods, or buyers x resources x rounds (Leontief)."),
    ] = None,
    kinds: Annotated[
        list[str] | None, typer.Option(metavar="KIND[,KIND]", help="Linear markets: uniform, low_rank, lognormal.")
    ] = None,
    gaps: Annotated[list[str] | None, typer.Option(metavar="GAP[,GAP]", help="Certified gaps [1e-3,1e-6].")] = None,
    backends: Annotated[
        list[str] | None, typer.Option(metavar="NAME[,NAME]", help="Backends to measure; all usable ones by default.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the markets.")] = 0,
    patience: Annotated[float, typer.Option(help="Stop a backend after this many times our own seconds.")] = 10.0,
    as_json: Json = False,
) -> Action:
    """Solve random markets by every backend to certified gaps, each in a process of one thread."""
    from .bench import bench_market

    return partial(
        bench_market,
        sizes=sizes,
        kinds=kinds,
        gaps=gaps,
        backends=backends,
        seed=seed,
        patience=patience,
        as_json=as_json,
    )
