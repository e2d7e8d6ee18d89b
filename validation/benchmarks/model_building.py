"""Benchmark of the cost of handing a large program to HiGHS, and of importing the package."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...formulations.checks import as_integer
from ...formulations.program.builder import ProgramBuilder
from ...solvers.external.highs import pass_program

# The child says its own CPU time: the operating system's count of a child's comes in whole ticks.
CHILD = "import sys, time; {load}; sys.stdout.write(repr(time.process_time()))"


@dataclass(frozen=True, kw_only=True)
class HandoffData:
    """The raw numbers of the program: which job runs in which round, ``grant[j, t]`` binary, at greatest total worth.

    A row per round keeps the gangs, shape (N,), within `gpus`; one per job its rounds within `most`, shape (N,). The
    worth has shape (N, T).
    """

    gang_gpus: NDArray[np.int64]
    most: NDArray[np.int64]
    worth: NDArray[np.float64]
    gpus: int


def handoff_data(rng: np.random.Generator, *, jobs: int, rounds: int) -> HandoffData:
    """Draw the numbers of one program; a quarter of what the jobs ask for fits."""
    gang_gpus = rng.choice([1, 2, 4, 8], size=jobs, p=[0.6, 0.2, 0.1, 0.1]).astype(np.int64)
    return HandoffData(
        gang_gpus=gang_gpus,
        most=rng.integers(1, rounds + 1, size=jobs),
        worth=rng.uniform(0.1, 1.0, size=(jobs, rounds)),
        gpus=max(8, int(gang_gpus.sum()) // 4),
    )


def handoff_rows(*, jobs: int = 1500, rounds: int = 20, repeats: int = 5, seed: int = 0) -> list[dict[str, Any]]:
    """Measure hand-off and import of this package, pyomo and cvxpy in one run, taking turns.

    The program has jobs x rounds binaries, and a row per round and per job. Medians are over `repeats` runs, after one
    that is not counted.

    Returns
    -------
    list of dict
        what ("hand-off" or "import"), peer, cpu_s and wall_s (medians; of an import, beyond what a bare interpreter
        takes), ratio (CPU time over ours), note. For a peer that is not installed the figures are None, and the note
        says why.
    """
    as_integer("repeats", repeats, minimum=1)
    data = handoff_data(
        np.random.default_rng(as_integer("seed", seed, minimum=0)),
        jobs=as_integer("jobs", jobs, minimum=1),
        rounds=as_integer("rounds", rounds, minimum=1),
    )
    by_peer = {
        peer: f"{peer} is not installed: pip install {peer}" if peer != OURS and find_spec(peer) is None else ""
        for peer in PEERS
    }
    runs = {peer: partial(_timed, load, data) for peer, (load, _) in PEERS.items() if not by_peer[peer]}
    notes = {peer: by_peer[peer] or f"{jobs * rounds} binaries, {note}" for peer, (_, note) in PEERS.items()}
    rows = _rows("hand-off", _medians(runs, repeats), notes)

    imports = {peer: partial(_imported, load) for peer, load in IMPORTS.items() if not by_peer[peer]}
    imports[""] = partial(_imported, "pass")
    times = _medians(imports, repeats)
    bare_cpu, bare_wall = times.pop("")
    beyond = {peer: (cpu - bare_cpu, wall - bare_wall) for peer, (cpu, wall) in times.items()}
    notes = {peer: by_peer[peer] or load for peer, load in IMPORTS.items()}
    return rows + _rows("import", beyond, notes)


def load_equipoise(data: HandoffData) -> Any:
    """Bring the program to a new `highspy.Highs` by this package's own way; return that."""
    import highspy

    jobs, rounds = data.worth.shape
    build = ProgramBuilder(sense="max")
    grant = build.add_binaries("grant", (jobs, rounds))
    build.add_rows("capacity", (rounds,), terms=[(np.arange(rounds), grant, data.gang_gpus[:, None])], upper=data.gpus)
    build.add_rows("most", (jobs,), terms=[(np.arange(jobs)[:, None], grant, 1.0)], upper=data.most)
    build.set_objective([(grant, data.worth)])
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    pass_program(solver, build.program())
    return solver


def load_pyomo(data: HandoffData) -> Any:
    """Bring the program to HiGHS by pyomo's persistent interface; return (that interface, the model)."""
    # By name: a peer is optional, and what it lacks in annotations is no concern of this package's.
    pyo = import_module("pyomo.environ")
    solver = import_module("pyomo.contrib.appsi.solvers").Highs()
    jobs, rounds = data.worth.shape
    gang_gpus, most, worth = data.gang_gpus.tolist(), data.most.tolist(), data.worth.tolist()
    model = pyo.ConcreteModel()
    model.grant = pyo.Var(range(jobs), range(rounds), domain=pyo.Binary)
    model.capacity = pyo.Constraint(
        range(rounds), rule=lambda m, t: pyo.quicksum(gang_gpus[j] * m.grant[j, t] for j in range(jobs)) <= data.gpus
    )
    model.most = pyo.Constraint(
        range(jobs), rule=lambda m, j: pyo.quicksum(m.grant[j, t] for t in range(rounds)) <= most[j]
    )
    model.worth = pyo.Objective(
        expr=pyo.quicksum(worth[j][t] * model.grant[j, t] for j in range(jobs) for t in range(rounds)),
        sense=pyo.maximize,
    )
    solver.set_instance(model)
    return solver, model


def load_cvxpy(data: HandoffData) -> Any:
    """Reduce the program to the arrays that cvxpy gives HiGHS, by whole matrices; return the problem."""
    cp = import_module("cvxpy")
    grant = cp.Variable(data.worth.shape, boolean=True)
    rows = [data.gang_gpus @ grant <= data.gpus, cp.sum(grant, axis=1) <= data.most]
    problem = cp.Problem(cp.Maximize(cp.sum(cp.multiply(data.worth, grant))), rows)
    # Before it had an interface of its own, cvxpy reached HiGHS through scipy.
    problem.get_problem_data("HIGHS" if "HIGHS" in cp.installed_solvers() else "SCIPY")
    return problem


PEERS: dict[str, tuple[Callable[[HandoffData], Any], str]] = {
    "equipoise": (load_equipoise, "to a loaded model"),
    "pyomo": (load_pyomo, "to a loaded model, by appsi"),
    "cvxpy": (load_cvxpy, "to its arrays, not yet in HiGHS"),
}
# What a program and its solve need: names of equipoise are imported on first use.
IMPORTS = {
    "equipoise": "from equipoise import ProgramBuilder, solve",
    "pyomo": "import pyomo.environ",
    "cvxpy": "import cvxpy",
}
OURS = "equipoise"


def _medians(runs: Mapping[str, Callable[[], tuple[float, float]]], repeats: int) -> dict[str, tuple[float, float]]:
    """Return the median CPU and wall seconds of each run; they take turns, so that a busy machine slows all alike."""
    for run in runs.values():
        run()
    times: dict[str, list[tuple[float, float]]] = {peer: [] for peer in runs}
    for _ in range(repeats):
        for peer, run in runs.items():
            times[peer].append(run())
    return {peer: (median(cpu for cpu, _ in seen), median(wall for _, wall in seen)) for peer, seen in times.items()}


def _timed(load: Callable[[HandoffData], Any], data: HandoffData) -> tuple[float, float]:
    gc.collect()  # what another left behind is not this one's to sweep
    wall, cpu = time.perf_counter(), time.process_time()
    loaded = load(data)
    taken = time.process_time() - cpu, time.perf_counter() - wall
    del loaded
    return taken


def _imported(load: str) -> tuple[float, float]:
    command = [sys.executable, "-c", CHILD.format(load=load)]
    # The child finds each package where this process did.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    started = time.perf_counter()
    child = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return float(child.stdout), time.perf_counter() - started


def _rows(what: str, times: dict[str, tuple[float, float]], notes: dict[str, str]) -> list[dict[str, Any]]:
    ours = times[OURS][0]
    rows: list[dict[str, Any]] = []
    for peer, note in notes.items():
        cpu, wall = times.get(peer, (None, None))
        ratio = cpu / ours if cpu is not None and ours > 0 else None
        rows.append({"what": what, "peer": peer, "cpu_s": cpu, "wall_s": wall, "ratio": ratio, "note": note})
    return rows
