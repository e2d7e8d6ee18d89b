"""Benchmark of the overhead of `solve` beside the bare solver on one window, and of an isolated process."""

from __future__ import annotations

import copy
import importlib
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from statistics import median
from typing import Any
from unittest.mock import patch

import numpy as np

from ...formulations.checks import as_integer, as_real
from ...formulations.errors import InvalidInput
from ...formulations.program.model import Program
from ...solvers.backend import Task
from ...solvers.options import Options
from ...solvers.reductions.run import raised, raising_factor
from ...solvers.registry import find_backend
from ...solvers.solve import solve
from ...solvers.verification.checked_solution import ProgressRecorder
from ..instances.window import random_window

# Each solver is measured in a process of its own: ortools and highspy cannot share one.
CHILD = (
    "import json, sys; from equipoise.validation.benchmarks.solve_overhead import measured;"
    "sys.stdout.write(json.dumps(measured(*json.loads(sys.argv[1]))))"
)
#: Jobs of the window that a size-limited licence of Gurobi can hold.
LIMITED_JOBS = 30


@dataclass
class TimeInside:
    """Seconds spent inside a solver, and inside the callback of progress."""

    solver: float = 0.0
    listener: float = 0.0


def bare_highs(program: Program, options: Options) -> float:
    """Solve through highspy alone; return the seconds inside its `run`."""
    import highspy

    from ...solvers.external.highs import pass_program, program_options

    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    for name, value in program_options(program, options).items():
        solver.setOptionValue(name, value)
    pass_program(solver, program)
    seconds = _seconds(solver.run)
    np.array(solver.getSolution().col_value)
    return seconds


def bare_scip(program: Program, options: Options) -> float:
    """Solve through pyscipopt alone; return the seconds inside its `optimize`."""
    from ...solvers.external.scip.backend import _parameters
    from ...solvers.external.scip.model import ScipModel

    limit = {} if options.time_limit is None else {"limits/time": options.time_limit}
    scip = ScipModel(program, {**_parameters(program, options), **limit}, {})
    seconds = _seconds(scip.model.optimizeNogil)
    scip.values()
    scip.free()
    return seconds


def bare_ortools(program: Program, options: Options) -> float:
    """Solve through CP-SAT alone, given whole numbers; return the seconds inside its `solve`."""
    from ortools.sat.python import cp_model

    from ...solvers.external.ortools.backend import _set_parameters, pass_program
    from ...solvers.external.ortools.scaling import whole_program

    whole = whole_program(program, options, None)
    model, solver = cp_model.CpModel(), cp_model.CpSolver()
    pass_program(model.proto, program.sense, whole)
    _set_parameters(solver.parameters, program, whole, options, {})
    return _seconds(lambda: list(solver.response_proto.solution) if solver.solve(model) else None)


def bare_gurobi(program: Program, options: Options) -> float:
    """Solve through gurobipy's matrix interface alone; return the seconds inside its `optimize`."""
    from ...formulations.program.to_gurobi import gurobi_model
    from ...solvers.external.gurobi.backend import _environment

    with _environment(program, options, {}) as env, gurobi_model(program, env, names=False) as model:
        seconds = _seconds(model.optimize)
        if model.SolCount:
            np.array(model.getAttr("X", model.getVars()))
    return seconds


#: By backend: the bare way, and the function of ours that does nothing but run the solver.
SOLVERS: dict[str, tuple[Callable[[Program, Options], float], str, str]] = {
    "highs": (bare_highs, "highspy:Highs", "run"),
    "scip": (bare_scip, "equipoise.solvers.external.scip.model:ScipModel", "optimize"),
    "ortools": (bare_ortools, "ortools.sat.python.cp_model:CpSolver", "solve"),
    "gurobi": (bare_gurobi, "equipoise.solvers.external.gurobi.run", "_optimize"),
}


def overhead_rows(
    *, jobs: int = 1500, gpus: int = 256, repeats: int = 5, time_limit: float = 3.0, seed: int = 0
) -> list[dict[str, Any]]:
    """Time `solve` and the bare solver on one time-indexed window, taking turns; then isolation on the same window.

    What counts is the time outside the solver: stating the model, checking the answer, listening to incumbents. It is
    the whole time less that inside the solver's own call, so that a search that varies from run to run is left out. The
    window has 20 rounds, and 30 jobs for a size-limited Gurobi; medians are over `repeats` runs after one that is not
    counted; `time_limit` is in seconds for each solve.

    Returns
    -------
    list of dict
        what (of `solve`, or "isolation"), solver, binaries, bare_s (all of it), bare_own_ms, own_ms, overhead_ms,
        overhead_pct (of bare_s), note. For isolation, first_ms and later_ms beyond the same solve in the process.
    """
    for name, value in (("jobs", jobs), ("gpus", gpus), ("repeats", repeats)):
        as_integer(name, value, minimum=1)
    as_real("time_limit", time_limit, above=0.0)
    rows: list[dict[str, Any]] = []
    for name in SOLVERS:
        found = find_backend(name).probe()
        if not found.usable:
            rows.append({"what": "solve", "solver": name, "note": found.reason})
            continue
        count = min(jobs, LIMITED_JOBS) if found.limit else jobs
        arguments = json.dumps([name, count, gpus, repeats, time_limit, seed])
        run = subprocess.run([sys.executable, "-c", CHILD, arguments], check=True, capture_output=True, text=True)
        rows += json.loads(run.stdout)
    return rows


def measured(name: str, jobs: int, gpus: int, repeats: int, time_limit: float, seed: int) -> list[dict[str, Any]]:
    """Return the rows of one solver, measured in this process; see `overhead_rows`."""
    if name not in SOLVERS:
        raise InvalidInput("name", name, f"must be one of {', '.join(SOLVERS)}")
    window = random_window(np.random.default_rng(seed), jobs=jobs, gpus=gpus)
    program = window.program("time_indexed")
    bare, owner, attribute = SOLVERS[name]
    task = Task(problem=program, form="matrix", program=program)
    larger, options = raised(task, Options(time_limit=time_limit), raising_factor(task))  # as every solver is given it
    assert larger.program is not None
    backend = copy.copy(find_backend(name))
    isolated, backend.isolated = backend.isolated, False  # here it has the process for itself
    bares: list[tuple[float, float]] = []
    timed_solves: list[tuple[float, float]] = []
    for _ in range(repeats + 1):
        wall = time.perf_counter()
        inner = bare(larger.program, options)
        whole = time.perf_counter() - wall
        bares.append((whole, whole - inner))
        with _watched(owner, attribute) as inside:
            wall = time.perf_counter()
            solve(program, backend, time_limit=time_limit)
            whole = time.perf_counter() - wall
        timed_solves.append((whole, whole - inside.solver + inside.listener))
    bare_s, bare_own = (median(each) for each in zip(*bares[1:], strict=True))
    own = median(each for _, each in timed_solves[1:])
    row: dict[str, Any] = {"what": "solve", "solver": name, "binaries": int(program.integer.sum()), "bare_s": bare_s}
    row |= {"bare_own_ms": 1e3 * bare_own, "own_ms": 1e3 * own, "overhead_ms": 1e3 * (own - bare_own)}
    row |= {"overhead_pct": 100 * (own - bare_own) / bare_s, "note": ""}
    return [row, *_isolation(name, program, repeats, isolated)]


def _isolation(name: str, program: Program, repeats: int, always: bool) -> Iterator[dict[str, Any]]:
    """Yield the time that an isolated process adds to a trivial program of this size."""
    free = np.full(program.num_rows, np.inf)
    upper = np.where(np.isinf(program.upper), program.lower + 1.0, program.upper)
    easy = replace(program, row_lower=-free, row_upper=free, upper=upper)
    inside = copy.copy(find_backend(name))
    inside.isolated = False

    _, *here = [_seconds(lambda: solve(easy, inside, isolate=False)) for _ in range(repeats + 1)]
    first, *later = [_seconds(lambda: solve(easy, name, isolate=True)) for _ in range(repeats + 1)]
    row: dict[str, Any] = {"what": "isolation", "solver": name, "binaries": int(program.integer.sum())}
    row |= {"first_ms": 1e3 * (first - median(here)), "later_ms": 1e3 * (median(later) - median(here))}
    yield row | {"note": "always isolated" if always else ""}


@contextmanager
def _watched(owner: str, attribute: str) -> Iterator[TimeInside]:
    """Count the seconds inside a solver's own call, and inside the listener that it calls back."""
    module, _, member = owner.partition(":")
    holder: Any = importlib.import_module(module)
    holder = getattr(holder, member) if member else holder
    inside = TimeInside()

    def timed(run: Callable[..., Any], field: str) -> Callable[..., Any]:
        def call(*args: Any, **more: Any) -> Any:
            began = time.perf_counter()
            try:
                return run(*args, **more)
            finally:
                setattr(inside, field, getattr(inside, field) + time.perf_counter() - began)

        return call

    run, listen = getattr(holder, attribute), ProgressRecorder.__call__
    with (
        patch.object(holder, attribute, timed(run, "solver")),
        patch.object(ProgressRecorder, "__call__", timed(listen, "listener")),
    ):
        yield inside


def _seconds(call: Callable[[], Any]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began
