"""Benchmark of markets: every backend on the same random markets, each solve in a fresh process of one thread."""

from __future__ import annotations

import ctypes
import json
import os
import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg import cho_factor

from ...formulations.checks import as_integer, as_real, as_reals
from ...formulations.errors import EquipoiseError, InvalidInput
from ...formulations.markets.market import Market
from ...solvers.backend_table import backends
from ...solvers.registry import find_backend
from ...solvers.solve import solve
from ..instances.markets import KINDS, random_fisher_market, random_leontief_market

SIZES = ("1000x60", "1000x600", "100x10000", "10000x60", "10000x600", "10000x3x20")
GAPS = (1e-3, 1e-6)
# The backend that the others are measured against.
OURS = "interior_point"
# A peer gets this many times as long as OURS, and no less than SHORTEST seconds; then it has lost.
PATIENCE, SHORTEST = 10.0, 2.0
# A solve is timed so many times in its process, on a market made anew, unless the first took longer than this.
REPEATS, REPEATED_S = 5, 1.0
# Seconds for OURS, and what any process may take beyond its limit, to start and to make its market, before it is ended.
LONGEST, GRACE = 60.0, 20.0
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA", "RAYON")}


def market_of(size: str, kind: str, seed: int) -> Market:
    """Return the market of a size: "NxK" linear of one of the kinds, "NxJxT" Leontief over rounds."""
    _check_size(size)
    buyers, width, *rounds = (int(text) for text in size.split("x"))
    if rounds:
        return random_leontief_market(buyers, width, rounds[0], seed)
    return random_fisher_market(kind, buyers, width, seed)  # type: ignore[arg-type]  # an unknown kind is refused there


def market_rows(
    *,
    sizes: Sequence[str] = SIZES,
    kinds: Sequence[str] = KINDS,
    gaps: Sequence[float] = GAPS,
    names: Sequence[str] | None = None,
    seed: int = 0,
    patience: float = PATIENCE,
    on_solve: Callable[[int, int], None] | None = None,
) -> Iterator[dict[str, Any]]:
    """Solve random markets by every backend and yield one row each; OURS first, then its peers, in one run.

    Each backend has a process of its own with one thread, in which a small market of the same kind is solved first
    (which loads what is compiled). Times cover `solve` with its verification, not the making of the market. What takes
    at most a second is solved five times, the market made anew each time.

    Sizes are "NxK" for linear markets of every kind, "NxJxT" for Leontief ones; gaps are relative, (D - P)/sum B.
    Backends are all usable ones by default. A peer is stopped after `patience` times the seconds that the first backend
    took. `on_solve` is called with (done, total).

    Yields
    ------
    dict
        size, kind, asked, backend, wall_s and cpu_s (the least of the solves), first_s (the first one, for which the
        process has yet to get its memory), gap (certified by duality), state (how the solve ended; "ended": its process
        was; "crashed"; or the name of the error, such as "LicenseLimit"), reached, ratio (wall_s by that of the
        first backend, at least that where it was stopped), peak_by_data (peak memory of the first solve, the market's
        data included, by the size of that data). What was not measured is None.

    Raises
    ------
    InvalidInput, BackendNotFound
        Before anything runs.
    """
    for size in sizes:
        _check_size(size)
    for kind in kinds:
        if kind not in KINDS:
            raise InvalidInput("kinds", kind, f"must be one of {', '.join(KINDS)}")
    as_reals("gaps", gaps, minimum=0.0)
    as_integer("seed", seed, minimum=0)
    as_real("patience", patience, above=0.0)
    for name in names or ():
        find_backend(name)
    runs = [
        (size, kind, gap)
        for size in sizes
        for kind in (kinds if size.count("x") == 1 else ["leontief"])
        for gap in gaps
    ]
    small = {kind: market_of("6x2x3" if kind == "leontief" else "6x4", kind, 0) for _, kind, _ in runs}
    usable = {kind: [row.name for row in backends(market, usable=True)] for kind, market in small.items()}
    solvers = list(dict.fromkeys(name for found in usable.values() for name in found))
    for name in names or ():
        if name not in solvers:
            raise InvalidInput("backends", name, f"solves none of these markets here: {', '.join(solvers)} do")
    wanted = {kind: [name for name in found if names is None or name in names] for kind, found in usable.items()}
    able = {kind: sorted(found, key=lambda name: name != OURS) for kind, found in wanted.items()}
    total, done = sum(len(able[kind]) for _, kind, _ in runs), 0
    for size, kind, gap in runs:
        first: float | None = None
        for name in able[kind]:
            limit = LONGEST if first is None else max(SHORTEST, patience * first)
            row = _measured({"size": size, "kind": kind, "gap": gap, "name": name, "seed": seed, "limit": limit})
            if first is None and row["reached"]:
                first = row["wall_s"]
            row["ratio"] = None if first is None or row["wall_s"] is None else row["wall_s"] / first
            done += 1
            if on_solve is not None:
                on_solve(done, total)
            yield row


def _check_size(size: str) -> None:
    if not re.fullmatch(r"[1-9]\d*x[1-9]\d*(x[1-9]\d*)?", size):
        raise InvalidInput("size", size, "must be BUYERSxGOODS, or BUYERSxRESOURCESxROUNDS for a Leontief market")


def _measured(run: dict[str, Any]) -> dict[str, Any]:
    row = {"size": run["size"], "kind": run["kind"], "asked": run["gap"], "backend": run["name"]}
    try:
        command, environment = [sys.executable, "-m", __name__, json.dumps(run)], {**os.environ, **ONE_THREAD}
        child = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=run["limit"] + GRACE, check=True
        )
        measured: dict[str, Any] = json.loads(child.stdout.splitlines()[-1])
        return row | measured
    except subprocess.TimeoutExpired:
        wall, state = run["limit"], "ended"  # it did not heed its limit
    except (subprocess.CalledProcessError, ValueError, IndexError):
        wall, state = None, "crashed"
    return row | _unsolved(wall, state)


def _unsolved(wall: float | None, state: str) -> dict[str, Any]:
    nothing = dict.fromkeys(("cpu_s", "first_s", "gap", "peak_by_data"))
    return nothing | {"wall_s": wall, "state": state, "reached": False}


def measure(run: dict[str, Any]) -> dict[str, Any]:
    """Solve one market in this process; return the time and the memory that it took."""
    options = {"backend": run["name"], "rel_gap": run["gap"]}
    small = "60x3x4" if run["size"].count("x") == 2 else "60x20"
    solve(market_of(small, run["kind"], run["seed"]), time_limit=10.0, **options)
    _wake_linear_algebra()
    before = _memory("VmRSS")
    market = market_of(run["size"], run["kind"], run["seed"])
    table = market.requirements if market.kind.endswith(":leontief") else market.utilities  # type: ignore[attr-defined]
    data = int(table.nbytes)
    _forget_peak()
    times: list[tuple[float, float]] = []
    while not times or (len(times) < REPEATS and times[0][0] <= REPEATED_S):
        if times:
            market = market_of(run["size"], run["kind"], run["seed"])
        wall, cpu = time.perf_counter(), time.process_time()
        try:
            result = solve(market, time_limit=run["limit"], **options)
        except EquipoiseError as error:  # a licence too small, a program too large
            return _unsolved(None, type(error).__name__)
        times.append((time.perf_counter() - wall, time.process_time() - cpu))
        if len(times) == 1:
            peak = (_memory("VmHWM") - before) / data
    least = min(times)
    return {
        "wall_s": least[0],
        "cpu_s": least[1],
        "first_s": times[0][0],
        "gap": result.gap if result.gap < float("inf") else None,
        "state": result.termination.reason.name,
        "reached": bool(result.gap <= run["gap"]),
        "peak_by_data": peak,
    }


def _wake_linear_algebra() -> None:
    """Multiply and factor once: BLAS then holds its buffers, which belong to the process and not to a solve."""
    ones = np.ones((600, 600))
    cho_factor(ones @ ones.T + 600.0 * np.eye(600))
    del ones
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:  # glibc: what is free goes back, or a solve would have it for nothing
        trim(0)


def _memory(field: str) -> float:
    """Return bytes resident now (VmRSS) or at most (VmHWM), as the kernel counts them."""
    try:
        found = re.search(rf"{field}:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="ascii"))
        return 1024.0 * int(found[1]) if found else 0.0
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1.0 if sys.platform == "darwin" else 1024.0)


def _forget_peak() -> None:
    """Set the peak back to what is resident now, so that the making of the market does not count."""
    with suppress(OSError):  # not Linux: the peak then covers the making as well
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


if __name__ == "__main__":
    sys.stdout.write(json.dumps(measure(json.loads(sys.argv[1]))) + "\n")
