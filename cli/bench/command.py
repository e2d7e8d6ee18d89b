"""`equipoise bench`: run the benchmarks of `validation/` and print their rows."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from ..errors import FAILED, OK, CommandError

# Characters in a line; a table is as wide as its columns need.
WIDEST = 1000


def bench_window(
    *,
    jobs: int,
    gpus: int,
    seed: int,
    rounds: int,
    makespan_weight: float,
    backends: list[str] | None,
    time_limit: float,
    rel_gap: float,
    as_json: bool,
) -> int:
    """Solve one generated window with each backend and form; times cover `solve` with its verification."""
    from ...validation.benchmarks.window import window_rows

    rows = window_rows(
        jobs=jobs,
        gpus=gpus,
        seed=seed,
        rounds=rounds,
        makespan_weight=makespan_weight,
        backends=split_names(backends),
        time_limit=time_limit,
        rel_gap=rel_gap,
    )
    return print_rows(rows, as_json=as_json)


def bench_handoff(*, as_json: bool) -> int:
    """Hand a large program to HiGHS from this library and from the modelling layers that are installed."""
    from ...validation.benchmarks.model_building import handoff_rows

    return print_rows(handoff_rows(), as_json=as_json)


def bench_prediction(*, jobs: int, seed: int, as_json: bool) -> int:
    """Compare the predictors' errors over the course of generated jobs."""
    from ...validation.benchmarks.prediction import prediction_rows

    return print_rows(prediction_rows(jobs=jobs, seed=seed), as_json=as_json)


def bench_agreement(
    *, count: int, seed: int, kinds: list[str] | None, backends: list[str] | None, as_json: bool
) -> int:
    """Solve random programs and markets with every backend; the exit code is 1 if any disagrees with the optimum."""
    from ...validation.agreement.run import agreement
    from ..progress import Counted

    with Counted("programs") as counted:
        tallies = agreement(
            count=count,
            seed=seed,
            names=split_names(backends),
            kinds=split_names(kinds, "--kinds"),
            on_program=counted,
        )
    print_rows([tally.row() for tally in tallies], as_json=as_json)
    return FAILED if any(tally.failed for tally in tallies) else OK


def bench_market(
    *,
    sizes: list[str] | None,
    kinds: list[str] | None,
    gaps: list[str] | None,
    backends: list[str] | None,
    seed: int,
    patience: float,
    as_json: bool,
) -> int:
    """Solve random markets by every backend, each in a process of its own; rows appear as they are measured."""
    from ...validation.benchmarks.markets import GAPS, SIZES, market_rows
    from ...validation.instances.markets import KINDS
    from ..progress import Counted

    try:
        wanted = [float(gap) for gap in split_names(gaps, "--gaps") or []] or GAPS
    except ValueError:
        raise CommandError(
            f"--gaps {','.join(gaps or [])}: not numbers", "give relative gaps like 1e-3,1e-6."
        ) from None
    with Counted("solves") as counted:
        rows = list(
            market_rows(
                sizes=split_names(sizes, "--sizes") or SIZES,
                kinds=split_names(kinds, "--kinds") or KINDS,
                gaps=wanted,
                names=split_names(backends),
                seed=seed,
                patience=patience,
                on_solve=counted,
            )
        )
    return print_rows(rows, as_json=as_json)


def bench_open_shop(
    *,
    sizes: list[str] | None,
    backends: list[str] | None,
    time_limit: float,
    preemptive: bool,
    seed: int,
    as_json: bool,
) -> int:
    """Solve Taillard's open shops by each backend, or random ones with preemption."""
    from ...validation.benchmarks.open_shop import open_shop_rows, preemptive_rows
    from ...validation.instances.taillard import SEEDS
    from ..progress import Counted

    try:
        wanted = [int(size) for size in split_names(sizes, "--sizes") or []]
    except ValueError:
        raise CommandError(f"--sizes {','.join(sizes or [])}: not whole numbers", "give sizes like 4,10,20.") from None
    if preemptive:
        return print_rows(preemptive_rows(sizes=wanted or (10, 30, 100, 200), seed=seed), as_json=as_json)
    with Counted("solves") as counted:
        rows = list(
            open_shop_rows(
                sizes=wanted or tuple(SEEDS), names=split_names(backends), time_limit=time_limit, on_solve=counted
            )
        )
    return print_rows(rows, as_json=as_json)


def bench_shares(
    *,
    jobs: int,
    types: int,
    distinct: int | None,
    problems: list[str] | None,
    peers: list[str] | None,
    rel_gap: float,
    time_limit: float,
    seed: int,
    as_json: bool,
) -> int:
    """Share GPUs among random jobs with our own backend and its peers."""
    from ...validation.benchmarks.shares import PEERS, PROBLEMS, share_rows
    from ..progress import Counted

    with Counted("solves") as counted:
        rows = list(
            share_rows(
                jobs=jobs,
                types=types,
                distinct=distinct,
                problems=split_names(problems, "--problems") or PROBLEMS,
                peers=split_names(peers, "--peers") or tuple(PEERS),
                rel_gap=rel_gap,
                time_limit=time_limit,
                seed=seed,
                on_solve=counted,
            )
        )
    return print_rows(rows, as_json=as_json)


def bench_door(*, jobs: int, gpus: int, repeats: int, as_json: bool) -> int:
    """Time `solve` beside the bare solvers on the same window."""
    from ...validation.benchmarks.solve_overhead import overhead_rows

    return print_rows(overhead_rows(jobs=jobs, gpus=gpus, repeats=repeats), as_json=as_json)


def split_names(given: list[str] | None, option: str = "--backends") -> list[str] | None:
    """Return names given once each or several in one, separated by commas; None when none are given."""
    if not given:
        return None
    names = [name.strip() for text in given for name in text.split(",")]
    if not all(names):
        raise CommandError(f"{option} {','.join(given)}: an empty name", "separate names by commas.")
    return names


def print_rows(rows: Iterable[Mapping[str, Any]], *, as_json: bool) -> int:
    """Print rows as a table, or as JSON, one row a line."""
    table = [{key: _plain(value) for key, value in row.items()} for row in rows]
    if as_json:
        lines = ",\n".join(f" {json.dumps(row, allow_nan=False)}" for row in table)
        sys.stdout.write(f"[\n{lines}\n]\n" if table else "[]\n")
        return OK
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    from ..plan.summary import console

    columns = list(dict.fromkeys(key for row in table for key in row))
    shown = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for name in columns:
        numbers = all(not isinstance(row.get(name), str) for row in table)
        shown.add_column(name, justify="right" if numbers else "left", no_wrap=True)
    for row in table:
        shown.add_row(*(Text(_cell(row.get(name))) for name in columns))
    out = console()
    out.width = max(out.width, WIDEST)  # a number that is cut short says nothing
    out.print(shown)
    return OK


def _plain(value: Any) -> Any:
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _cell(value: Any) -> str:
    return "-" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
