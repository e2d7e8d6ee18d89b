"""Hypothesis strategies: small problems of every kind, of small integers, repaired rather than filtered."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy
from hypothesis.vendor.pretty import for_type_by_name

from ...formulations.program.builder import ProgramBuilder
from ...formulations.program.model import Program
from ...formulations.window.problem import Regime, ScheduleWindow, WindowJob
from .markets import allocations, fisher_markets, floats, volatile_markets
from .stochastic import job_chains, stochastic_markets

__all__ = [
    "allocations", "fisher_markets", "job_chains", "programs", "stochastic_markets", "volatile_markets", "window_jobs",
    "windows",
]  # fmt: skip

#: Half of these regimes do not fill their last round of 60 s, and later regimes may be faster or slower.
EPOCH_SECONDS = (15.0, 30.0, 45.0, 60.0, 75.0, 120.0)
ROUND_S = 60.0

# Hypothesis prints a failing dataclass by its parameters, and a window keeps no jobs, only their columns.
for_type_by_name(
    ScheduleWindow.__module__, ScheduleWindow.__name__, lambda window, printer, _: printer.text(repr(window))
)


def window_jobs(max_gang: int = 8, max_regimes: int = 3) -> SearchStrategy[WindowJob]:
    """Draw one job of a window, its id 0: up to `max_regimes` regimes of 1 to 4 epochs; none means that it has ended.

    Parameters
    ----------
    max_gang : int
        Most GPUs the job needs.
    max_regimes : int
        Most regimes it has left.

    Returns
    -------
    SearchStrategy of WindowJob
    """
    regimes = st.builds(Regime, epochs=st.integers(1, 4), epoch_s=st.sampled_from(EPOCH_SECONDS))

    def job(gpus: int, finished: int, left: list[Regime], ftf: float, weight: float) -> WindowJob:
        finished = finished if left else max(1, finished)  # a job of no epochs at all does not exist
        total = finished + sum(regime.epochs for regime in left)
        return WindowJob(
            id=0, gpus=gpus, finished_epochs=finished, total_epochs=total, regimes=left, ftf=ftf, weight=weight
        )

    return st.builds(
        job,
        gpus=st.integers(1, max_gang),
        finished=st.integers(0, 4),
        left=st.lists(regimes, min_size=0, max_size=max_regimes),
        ftf=st.sampled_from([0.5, 1.0, 1.5, 2.0]),
        weight=st.sampled_from([1.0, 2.0, 3.0]),
    )


@st.composite
def windows(
    draw: DrawFn,
    max_jobs: int = 4,
    max_rounds: int = 4,
    *,
    max_gpus: int = 8,
    max_regimes: int = 3,
    restart_penalty: float | SearchStrategy[float] = 0.0,
) -> ScheduleWindow:
    """Draw a window small enough to enumerate.

    Gangs wider than the drawn cluster are cut to its width. Every parameter of the window varies: the two forms of the
    makespan, its weight from nothing to dominant, its scale, the power of the finish-time fairness, the floor, and
    which jobs run just before the window.

    Parameters
    ----------
    max_jobs, max_rounds, max_gpus, max_regimes : int
        Most jobs, rounds, GPUs, and regimes of one job; at least one of each, save regimes.
    restart_penalty : float or strategy
        The window's, or what to draw it from.

    Returns
    -------
    ScheduleWindow
        Its ids are 0..N-1, its rounds last :data:`ROUND_S`.
    """
    gpus = draw(st.integers(1, max_gpus))
    drawn = draw(st.lists(window_jobs(max_gpus, max_regimes), min_size=1, max_size=max_jobs))
    jobs = [replace(job, id=j, gpus=min(job.gpus, gpus)) for j, job in enumerate(drawn)]
    return ScheduleWindow(
        jobs,
        gpus=gpus,
        rounds=draw(st.integers(1, max_rounds)),
        round_s=ROUND_S,
        ftf_power=draw(st.sampled_from([0.0, 1.0, 5.0])),
        makespan_weight=draw(st.sampled_from([0.0, 1e-3, 0.1, 1.0, 10.0])),
        makespan_scale=draw(st.sampled_from([None, 60.0, 600.0])),  # type: ignore[arg-type]  # None: the default
        gang_weighted=draw(st.booleans()),
        utility_floor=draw(st.sampled_from([1e-6, 1e-2])),
        restart_penalty=draw(restart_penalty) if isinstance(restart_penalty, SearchStrategy) else restart_penalty,
        running=[j for j in range(len(jobs)) if draw(st.booleans())],
    )


@st.composite
def programs(
    draw: DrawFn,
    max_columns: int = 4,
    max_rows: int = 4,
    *,
    integers: bool = False,
    bounded: bool = True,
    logs: bool = False,
) -> Program:
    """Draw a feasible program with quarters as data, so that sums and products are exact in floating point.

    A point is drawn first and the sides of the rows are widened to hold it: rows may be equations, ranges, one-sided,
    free or empty.

    Parameters
    ----------
    max_columns, max_rows : int
        Most columns (at least 1) and rows (at least 0).
    integers : bool
        Whether some columns may be integer.
    bounded : bool
        Whether all column bounds are finite, so that there is an optimum; otherwise either side may be infinite, and
        the program may be unbounded.
    logs : bool
        Whether to add a log term or two, positive at the drawn point; the program is then a maximisation.

    Returns
    -------
    Program
        With one block of columns, "x", and one of rows, "row".
    """
    columns, rows = draw(st.integers(1, max_columns)), draw(st.integers(0, max_rows))
    point = floats(draw, st.integers(-3, 3), columns)
    lower, upper = (point - floats(draw, st.integers(0, 3), columns), point + floats(draw, st.integers(0, 3), columns))
    if not bounded:
        lower[floats(draw, st.booleans(), columns).astype(bool)] = -np.inf
        upper[floats(draw, st.booleans(), columns).astype(bool)] = np.inf
    build = ProgramBuilder(sense="max" if logs else draw(st.sampled_from(["max", "min"])))
    x = build.add_columns(
        "x", (columns,), lower=lower, upper=upper, integer=floats(draw, st.booleans(), columns) if integers else False
    )
    matrix = floats(draw, _QUARTERS, rows * columns).reshape(rows, columns)
    activity = matrix @ point
    low, high = (activity + sign * floats(draw, st.integers(0, 4), rows) / 2 for sign in (-1, 1))
    low[floats(draw, st.booleans(), rows).astype(bool)] = -np.inf
    high[floats(draw, st.booleans(), rows).astype(bool)] = np.inf
    used = np.nonzero(matrix)  # zeros are left out, so that rows may be empty
    build.add_rows("row", (rows,), terms=[(used[0], x[used[1]], matrix[used])], lower=low, upper=high)
    build.set_objective([(x, floats(draw, _QUARTERS, columns))], offset=float(draw(_QUARTERS)))
    if logs:
        inside = floats(draw, _QUARTERS, 2 * columns).reshape(2, columns)
        offsets = 1.0 - np.minimum(inside @ point, 0.0)
        terms = [(np.arange(2)[:, None], x, inside)]
        build.add_logs(floats(draw, st.integers(0, 3), 2), terms=terms, offsets=offsets)
    return build.program(gap_unit=draw(st.sampled_from([None, 0.5, 8.0])))


_QUARTERS: SearchStrategy[Fraction] = st.integers(-12, 12).map(lambda quarters: Fraction(quarters, 4))
