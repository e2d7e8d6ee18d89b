"""The options of `equipoise bench`: each benchmark a command that binds its arguments, for `main` to run."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from ...validation.experiments.papers import EXPERIMENTS

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
    from .command import bench_window

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
    from .command import bench_handoff

    return partial(bench_handoff, as_json=as_json)


@bench_app.command("prediction")
def _bench_prediction(
    jobs: Annotated[int, typer.Option(help="Jobs to generate.")] = 200,
    seed: Annotated[int, typer.Option(help="Seed of the jobs.")] = 0,
    as_json: Json = False,
) -> Action:
    """Compare the predictors of dynamic adaptation over the course of generated jobs."""
    from .command import bench_prediction

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
    from .command import bench_agreement

    return partial(bench_agreement, count=count, seed=seed, kinds=kinds, backends=backends, as_json=as_json)


@bench_app.command("door")
def _bench_door(
    jobs: Annotated[int, typer.Option(help="Jobs in the window, over 20 rounds.")] = 1500,
    gpus: Annotated[int, typer.Option(help="GPUs of the cluster.")] = 256,
    repeats: Annotated[int, typer.Option(help="Runs per median.")] = 5,
    as_json: Json = False,
) -> Action:
    """Time what `solve` adds to the bare solvers, and what a process of its own adds."""
    from .command import bench_door

    return partial(bench_door, jobs=jobs, gpus=gpus, repeats=repeats, as_json=as_json)


@bench_app.command("open-shop")
def _bench_open_shop(
    sizes: Annotated[
        list[str] | None, typer.Option(metavar="N[,N]", help="Jobs and machines of Taillard's instances: 4 to 20.")
    ] = None,
    backends: Annotated[
        list[str] | None, typer.Option(metavar="NAME[,NAME]", help="Backends to measure [cp_sat_schedule,highs].")
    ] = None,
    time_limit: Annotated[float, typer.Option(help="Seconds for each instance.")] = 10.0,
    preemptive: Annotated[bool, typer.Option("--preemptive", help="Random instances with preemption instead.")] = False,
    seed: Annotated[int, typer.Option(help="Seed of the random instances.")] = 0,
    as_json: Json = False,
) -> Action:
    """Solve Taillard's sixty open shops to their known optima, or large random ones with preemption."""
    from .command import bench_open_shop

    return partial(
        bench_open_shop,
        sizes=sizes,
        backends=backends,
        time_limit=time_limit,
        preemptive=preemptive,
        seed=seed,
        as_json=as_json,
    )


@bench_app.command("shares")
def _bench_shares(
    jobs: Annotated[int, typer.Option(help="Jobs.")] = 100_000,
    types: Annotated[int, typer.Option(help="Types of GPU.")] = 3,
    distinct: Annotated[int | None, typer.Option(help="Different jobs among them [all].")] = None,
    problems: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME[,NAME]", help="max_min, water_filling, max_sum, duration; all by default."),
    ] = None,
    peers: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME[,NAME]", help="share_prices, highs simplex, highs ipm, clarabel; all by default."),
    ] = None,
    rel_gap: Annotated[float, typer.Option(help="Stop at this certified gap.")] = 1e-6,
    time_limit: Annotated[float, typer.Option(help="Seconds for each solve.")] = 60.0,
    seed: Annotated[int, typer.Option(help="Seed of the jobs.")] = 0,
    as_json: Json = False,
) -> Action:
    """Share GPUs among random jobs with our own backend and general ones."""
    from .command import bench_shares

    return partial(
        bench_shares,
        jobs=jobs,
        types=types,
        distinct=distinct,
        problems=problems,
        peers=peers,
        rel_gap=rel_gap,
        time_limit=time_limit,
        seed=seed,
        as_json=as_json,
    )


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
    from .command import bench_market

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


def _paper_command(paper: str, title: str) -> Callable[..., Action]:
    """Return the command that runs the experiments of a paper."""

    def bench_experiments(
        figure: Annotated[
            str | None, typer.Option(metavar="NAME", help="A figure from the list, or all; without it, the list.")
        ] = None,
        jobs: Annotated[int, typer.Option(help="Jobs of a generated workload.")] = 120,
        gpus: Annotated[int | None, typer.Option(help="GPUs [as many per job as in the paper].")] = None,
        seed: Annotated[int, typer.Option(help="Seed of the first workload.")] = 0,
        repeats: Annotated[int, typer.Option(help="Workloads to average over.")] = 3,
        data: Annotated[
            Path | None, typer.Option(metavar="FOLDER", help="Data sets, for Figure 17: a folder with pollux/.")
        ] = None,
        out: Annotated[
            Path | None, typer.Option("--html", metavar="FILE", help="Write tables and plots as a page.")
        ] = None,
        as_json: Json = False,
    ) -> Action:
        from .papers import bench_paper

        return partial(
            bench_paper,
            paper,
            figure=figure,
            jobs=jobs,
            gpus=gpus,
            seed=seed,
            repeats=repeats,
            data=data,
            out=out,
            as_json=as_json,
        )

    bench_experiments.__doc__ = f"Run the experiments of the {title} paper, and say which come out in shape."
    return bench_experiments


for _name, _catalogue in EXPERIMENTS.items():
    bench_app.command(_name)(_paper_command(_name, _catalogue.paper))
