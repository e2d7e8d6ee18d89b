"""`equipoise bench`: run the benchmarks of `validation/` and print their rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, TypeVar

import typer

from ...validation.experiments.papers import EXPERIMENTS
from ..errors import FAILED, OK, CommandError
from ..options import Json, deferred
from ..progress import CountProgress
from .papers import experiments_command
from .rows import print_rows, split_names

bench_app = typer.Typer(
    help="Run a benchmark and print its rows.", no_args_is_help=False, add_completion=False, rich_markup_mode=None
)

Backends = Annotated[
    list[str] | None, typer.Option(metavar="NAME[,NAME]", help="Backends to measure; all usable ones by default.")
]
TimeLimit = Annotated[float, typer.Option(help="Seconds for each solve.")]
_Number = TypeVar("_Number", int, float)


@bench_app.command("window")
@deferred
def bench_window(
    jobs: Annotated[int, typer.Option(help="Jobs in the window.")],
    gpus: Annotated[int, typer.Option(help="GPUs of the cluster.")],
    seed: Annotated[int, typer.Option(help="Seed of the instance.")] = 0,
    rounds: Annotated[int, typer.Option(help="Rounds in the window.")] = 20,
    makespan_weight: Annotated[float, typer.Option(help="Weight of the makespan bound (lambda).")] = 1e-3,
    backends: Backends = None,
    time_limit: TimeLimit = 15.0,
    rel_gap: Annotated[float, typer.Option(help="Stop at this gap.")] = 1e-4,
    as_json: Json = False,
) -> int:
    """Plan one generated window with each backend and form.

    The times cover `solve` with its verification.
    """
    from ...validation.benchmarks.window import window_rows

    rows = window_rows(
        jobs=jobs, gpus=gpus, seed=seed, rounds=rounds, makespan_weight=makespan_weight,
        backends=split_names(backends), time_limit=time_limit, rel_gap=rel_gap,
    )  # fmt: skip
    return print_rows(rows, as_json=as_json)


@bench_app.command("handoff")
@deferred
def bench_handoff(as_json: Json = False) -> int:
    """Hand a large program to HiGHS, beside other modelling layers."""
    from ...validation.benchmarks.model_building import handoff_rows

    return print_rows(handoff_rows(), as_json=as_json)


@bench_app.command("prediction")
@deferred
def bench_prediction(
    jobs: Annotated[int, typer.Option(help="Jobs to generate.")] = 200,
    seed: Annotated[int, typer.Option(help="Seed of the jobs.")] = 0,
    as_json: Json = False,
) -> int:
    """Compare the predictors of dynamic adaptation over the course of generated jobs."""
    from ...validation.benchmarks.prediction import prediction_rows

    return print_rows(prediction_rows(jobs=jobs, seed=seed), as_json=as_json)


@bench_app.command("agreement")
@deferred
def bench_agreement(
    count: Annotated[int, typer.Option(help="Programs of each kind.")] = 25,
    seed: Annotated[int, typer.Option(help="Seed of the programs.")] = 0,
    kinds: Annotated[
        list[str] | None, typer.Option(metavar="KIND[,KIND]", help="Kinds of programs and markets; all by default.")
    ] = None,
    backends: Annotated[
        list[str] | None, typer.Option(metavar="NAME[,NAME]", help="Backends to compare; all usable ones by default.")
    ] = None,
    as_json: Json = False,
) -> int:
    """Solve random programs and markets by every backend; exit code 1 if one disagrees."""
    from ...validation.agreement.run import agreement

    with CountProgress("programs") as counted:
        names, chosen = split_names(backends), split_names(kinds, "--kinds")
        tallies = agreement(count=count, seed=seed, names=names, kinds=chosen, on_program=counted)
    print_rows([tally.row() for tally in tallies], as_json=as_json)
    return FAILED if any(tally.failed for tally in tallies) else OK


@bench_app.command("overhead")
@bench_app.command("door", hidden=True)  # its former name
@deferred
def bench_overhead(
    jobs: Annotated[int, typer.Option(help="Jobs in the window, over 20 rounds.")] = 1500,
    gpus: Annotated[int, typer.Option(help="GPUs of the cluster.")] = 256,
    repeats: Annotated[int, typer.Option(help="Runs per median.")] = 5,
    as_json: Json = False,
) -> int:
    """Time what `solve` adds to the bare solvers, and what a separate process adds."""
    from ...validation.benchmarks.solve_overhead import overhead_rows

    return print_rows(overhead_rows(jobs=jobs, gpus=gpus, repeats=repeats), as_json=as_json)


@bench_app.command("open-shop")
@deferred
def bench_open_shop(
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
) -> int:
    """Solve Taillard's sixty open shops to their known optima, or large random ones with preemption."""
    from ...validation.benchmarks.open_shop import open_shop_rows, preemptive_rows
    from ...validation.instances.taillard import SEEDS

    wanted = _numbers(sizes, "--sizes", int, "not whole numbers", "give sizes like 4,10,20.")
    if preemptive:
        return print_rows(preemptive_rows(sizes=wanted or (10, 30, 100, 200), seed=seed), as_json=as_json)
    options = {"sizes": wanted or tuple(SEEDS), "names": split_names(backends), "time_limit": time_limit}
    return _print_counted(open_shop_rows, as_json, **options)


@bench_app.command("sharing-optimum")
@deferred
def bench_sharing_optimum(
    count: Annotated[int, typer.Option(help="Instances.")] = 200,
    jobs: Annotated[int, typer.Option(help="Jobs of an instance.")] = 6,
    gpus: Annotated[int, typer.Option(help="GPUs of an instance.")] = 4,
    seed: Annotated[int, typer.Option(help="Seed of the instances.")] = 0,
    backend: Annotated[str, typer.Option(help="Backend that finds the optimum.")] = "highs",
    time_limit: TimeLimit = 100.0,
    as_json: Json = False,
) -> int:
    """Compare SJF-BSBF and SJF-FFS with the optimum, in slots."""
    from ...validation.benchmarks.optimality import optimality_rows

    options = {"count": count, "jobs": jobs, "gpus": gpus, "seed": seed, "backend": backend}
    return _print_counted(optimality_rows, as_json, **options, time_limit=time_limit)


@bench_app.command("sharing-decisions")
@deferred
def bench_sharing_decisions(
    repeat: Annotated[int, typer.Option(help="Runs of each size; the least time of each call counts.")] = 5,
    seed: Annotated[int, typer.Option(help="Seed of the jobs.")] = 0,
    as_json: Json = False,
) -> int:
    """Time the decisions of SJF-BSBF on full clusters of 16 to 4,096 GPUs."""
    from ...validation.benchmarks.sharing_decisions import decision_rows

    return print_rows(decision_rows(repeat=repeat, seed=seed), as_json=as_json)


@bench_app.command("shares")
@deferred
def bench_shares(
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
    time_limit: TimeLimit = 60.0,
    seed: Annotated[int, typer.Option(help="Seed of the jobs.")] = 0,
    as_json: Json = False,
) -> int:
    """Share GPUs among random jobs with our own backend and general ones."""
    from ...validation.benchmarks.shares import PEERS, PROBLEMS, share_rows

    size = {"jobs": jobs, "types": types, "distinct": distinct, "seed": seed}
    chosen = {
        "problems": split_names(problems, "--problems") or PROBLEMS,
        "peers": split_names(peers, "--peers") or tuple(PEERS),
    }
    return _print_counted(share_rows, as_json, **size, **chosen, rel_gap=rel_gap, time_limit=time_limit)


@bench_app.command("market")
@deferred
def bench_market(
    sizes: Annotated[
        list[str] | None,
        typer.Option(metavar="NxK[,NxJxT]", help="Buyers x goods, or buyers x resources x rounds (Leontief)."),
    ] = None,
    kinds: Annotated[
        list[str] | None, typer.Option(metavar="KIND[,KIND]", help="Linear markets: uniform, low_rank, lognormal.")
    ] = None,
    gaps: Annotated[list[str] | None, typer.Option(metavar="GAP[,GAP]", help="Certified gaps [1e-3,1e-6].")] = None,
    backends: Backends = None,
    seed: Annotated[int, typer.Option(help="Seed of the markets.")] = 0,
    patience: Annotated[float, typer.Option(help="Stop a backend after this many times our own seconds.")] = 10.0,
    as_json: Json = False,
) -> int:
    """Solve random markets by every backend to certified gaps, each in a process of one thread."""
    from ...validation.benchmarks.markets import GAPS, SIZES, market_rows
    from ...validation.instances.markets import KINDS

    chosen = {
        "sizes": split_names(sizes, "--sizes") or SIZES,
        "kinds": split_names(kinds, "--kinds") or KINDS,
        "gaps": _numbers(gaps, "--gaps", float, "not numbers", "give relative gaps like 1e-3,1e-6.") or GAPS,
        "names": split_names(backends),
    }
    return _print_counted(market_rows, as_json, **chosen, seed=seed, patience=patience)


def _print_counted(rows: Callable[..., Iterable[Mapping[str, Any]]], as_json: bool, **options: Any) -> int:
    """Print the rows of a benchmark that counts its solves."""
    with CountProgress("solves") as counted:
        found = list(rows(**options, on_solve=counted))
    return print_rows(found, as_json=as_json)


def _numbers(
    given: list[str] | None, option: str, number: Callable[[str], _Number], wrong: str, hint: str
) -> list[_Number]:
    """Return numbers separated by commas; none if none are given."""
    try:
        return [number(text) for text in split_names(given, option) or []]
    except ValueError:
        raise CommandError(f"{option} {','.join(given or [])}: {wrong}", hint) from None


for _paper, _catalogue in EXPERIMENTS.items():
    bench_app.command(_paper)(experiments_command(_paper, _catalogue.paper))
