"""Cases of the contract: every option is honoured or refused, and none ignored."""

from __future__ import annotations

import ctypes
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from typing import Any

import numpy as np

from ...formulations.errors import BackendUnavailable, InvalidInput
from ...formulations.program.data import ProblemClass
from ...solvers.backend import OPTIONAL
from .check import REL_GAP, Check, Failure, Skip
from .formulations import DRAWS
from .fronts import schaffer_problem
from .market_draws import MARKETS, planted_market
from .programs import INTEGER, knapsack, planted
from .searches import SEARCH, needs_joblib
from .windows import window

# A gap that makes a backend which holds its log for the hard cases meet one.
TIGHT = 1e-7
#: What a case is about: a class of programs, or the name of a formulation.
Kind = ProblemClass | str

# Solvers' names of the settings that a common option covers, with a value that each accepts.
SAID_BY_COMMON_OPTIONS = {
    "time_limit": (
        "time_limit", "TimeLimit", "timelimit", "limits/time", "max_time_in_seconds", "tmlim", "sec", "max_wall_time",
    ),
    "rel_gap": ("rel_gap", "mip_rel_gap", "MIPGap", "limits/gap", "relative_gap_limit", "ratio", "ratioGap", "mipgap"),
    "abs_gap": ("abs_gap", "mip_abs_gap", "MIPGapAbs", "limits/absgap", "absolute_gap_limit", "allowableGap", "allow"),
    "feasibility_tol": (
        "feasibility_tol", "primal_feasibility_tolerance", "mip_feasibility_tolerance", "FeasibilityTol", "IntFeasTol",
        "numerics/feastol", "primalTolerance", "primalT", "constr_viol_tol", "tol_feas",
    ),
    "threads": ("threads", "Threads", "parallel/maxnthreads", "num_workers", "num_search_workers", "max_threads"),
    "seed": ("seed", "random_seed", "Seed", "randomization/randomseedshift", "randomSeed", "randomCbcSeed"),
    "log": ("log", "output_flag", "log_to_console", "OutputFlag", "LogToConsole", "display/verblevel", "verbose",
            "log_search_progress", "logLevel", "print_level", "disp"),
}  # fmt: skip
VALUES: dict[str, Any] = {
    "time_limit": 5.0, "rel_gap": 0.1, "abs_gap": 0.1, "feasibility_tol": 1e-5, "threads": 1, "seed": 3, "log": True,
}  # fmt: skip


def optional_options(check: Check, kind: Kind) -> None:
    """Each option that a backend may be unable to honour is refused when set, unless the backend says it honours it."""
    unknown = set(check.backend.supported_options) - set(OPTIONAL)
    if unknown:
        raise Failure(f"supported_options lists {sorted(unknown)}; the optional options are {', '.join(OPTIONAL)}")
    problem = sample(check.rng(), kind)
    values = {"threads": 2, "seed": 7, "log": True, "warm_start": check.solve(problem).require_plan()}
    for name in set(OPTIONAL) - set(check.backend.supported_options):
        check.refused(problem, f"{name}=, which it does not list in supported_options", **{name: values[name]})


def own_options(check: Check, kind: Kind) -> None:
    """An own option that does not exist is an InvalidInput; so is one of another backend."""
    problem, name = sample(check.rng(), kind), check.backend.name
    for own in ({"no_such_option_of_any_solver": 1}, {"": 1}):
        check.refused(problem, f"the own option {own}, which does not exist", backend_options={name: own})
    own_names = (name, *check.backend.delegates_to)
    other = next(each for each in ("scipy", "highs", "gurobi") if each not in own_names)
    check.refused(problem, "options of another backend", backend_options={other: {"presolve": "off"}})


def said_twice(check: Check, kind: Kind) -> None:
    """A backend option that a common option covers is refused, under every name that solvers have for it."""
    problem = sample(check.rng(), kind)
    for common, names in SAID_BY_COMMON_OPTIONS.items():
        for name in names:
            what = f"backend_options[{check.backend.name!r}][{name!r}], which says what {common}= says"
            check.refused(problem, what, backend_options={check.backend.name: {name: VALUES[common]}})


def threads(check: Check, kind: Kind) -> None:
    """More threads, the same optimum."""
    if "threads" not in check.backend.supported_options:
        raise Skip("it cannot use threads, and says so")
    if kind == SEARCH:
        needs_joblib()
    problem = sample(check.rng(), kind)
    one, two = (check.solve(problem, threads=each) for each in (1, 2))
    if one.objective is None or two.objective is None:
        raise Failure(f"{one.termination} with one thread, {two.termination} with two")
    if abs(one.objective - two.objective) > 2 * REL_GAP * problem.gap_scale(one.objective):
        raise Failure(f"objective {one.objective:.12g} with one thread, {two.objective:.12g} with two")


def isolated(check: Check, kind: Kind) -> None:
    """The same answer from a process of its own."""
    problem = sample(check.rng(), kind)
    here = check.solve(problem)
    try:
        there = check.solve(problem, isolate=True)
    except (InvalidInput, BackendUnavailable) as error:
        raise Skip(str(error)) from error
    if here.objective is None or there.objective is None or here.termination.reason is not there.termination.reason:
        raise Failure(f"{here.termination} in this process, {there.termination} in one of its own")
    if abs(here.objective - there.objective) > 2 * REL_GAP * problem.gap_scale(here.objective):
        raise Failure(f"objective {here.objective:.12g} in this process, {there.objective:.12g} in one of its own")


def log(check: Check, kind: Kind) -> None:
    """log=False writes nothing to standard output; log=True writes something, or is refused."""
    for rng in check.draws(1, 20):
        problem = sample(rng, kind)
        with captured() as quiet:
            check.solve(problem, rel_gap=TIGHT)
        if quiet():
            raise Failure(f"with log=False it writes to standard output: {quiet()[:80]!r}")
        if "log" not in check.backend.supported_options:
            raise Skip("log=False is silent; it cannot write a log, and says so")
        with captured() as log_text:
            check.solve(problem, rel_gap=TIGHT, log=True)
        if log_text():  # a problem that needs no solver has nothing to log
            return
    raise Failure("with log=True it writes nothing to standard output")


def feasibility(check: Check, wanted: ProblemClass) -> None:
    """A tolerance of feasibility tighter or looser than the default is kept."""
    for tolerance in (1e-8, 1e-4):
        for rng in check.draws(2, 10):
            result = check.optimum(planted(rng, wanted, "max"), feasibility_tol=tolerance, rel_gap=1e-5)
            if result.residuals is None or result.residuals.worst > tolerance:
                raise Failure(f"residuals {result.residuals} with feasibility_tol={tolerance:g}")


def sample(rng: np.random.Generator, kind: Kind) -> Any:
    """Draw a small problem of this kind that takes a solver more than its presolve."""
    if kind in DRAWS:
        return DRAWS[str(kind)](rng)
    if kind in MARKETS:
        return planted_market(rng, str(kind)).market
    if kind == SEARCH:
        return schaffer_problem()
    if isinstance(kind, str):
        return window(rng, most_jobs=12, most_rounds=8)
    if kind in INTEGER:
        return knapsack(rng, kind, items=16).program
    return planted(rng, kind, "max").program


@contextmanager
def captured() -> Iterator[Callable[[], str]]:
    """Catch what this process and its libraries write to standard output; the value returns it afterwards."""
    with tempfile.TemporaryFile() as file:
        for stream in (sys.stdout, sys.__stdout__):
            if stream is not None:
                stream.flush()  # what was printed before must not count
        saved, text = os.dup(1), ""
        os.dup2(file.fileno(), 1)
        try:
            with os.fdopen(os.dup(1), "w", encoding="utf-8", errors="replace") as python, redirect_stdout(python):
                yield lambda: text
        finally:
            with suppress(OSError, TypeError, AttributeError):
                ctypes.CDLL(None).fflush(None)  # the C library writes what it holds back, where it can be asked
            os.dup2(saved, 1)
            os.close(saved)
            file.seek(0)
            text = file.read().decode(errors="replace").strip()
