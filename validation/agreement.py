"""All backends on the same random programs: each answer against a known optimum, and against all the others."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..formulations.checks import as_integer
from ..formulations.errors import InvalidInput, LicenseLimit, UnsupportedProblem
from ..formulations.program import ProblemClass, Program
from ..solvers.registry import backends, find_backend, reads
from ..solvers.result import CLOSED_GAP, Reason, Result
from ..solvers.solve import solve
from .contract_programs import Known, enumerated, planted, senses
from .contract_windows import window
from .window_enumeration import schedules

FEASIBILITY_TOL = 1e-6


def _planted(wanted: ProblemClass) -> Callable[[np.random.Generator], Known]:
    return lambda rng: planted(rng, wanted, str(rng.choice(senses(wanted))))  # type: ignore[arg-type]


def _enumerated(wanted: ProblemClass) -> Callable[[np.random.Generator], Known]:
    return lambda rng: enumerated(rng, wanted, str(rng.choice(senses(wanted))))  # type: ignore[arg-type]


def _time_indexed(rng: np.random.Generator) -> Known:
    drawn = window(rng)
    return Known(program=drawn.program("time_indexed"), optimum=schedules(drawn).best)


def _counts(rng: np.random.Generator) -> Known:
    # A relaxation of the window: its own optimum is known only from what the backends agree on.
    return Known(program=window(rng, most_jobs=6, most_rounds=6).program("counts"), optimum=math.nan)


#: What is drawn, by the name of its kind; the optimum is planted or enumerated, or nan: the best that was found.
KINDS: dict[str, Callable[[np.random.Generator], Known]] = {
    "planted LP": _planted(ProblemClass.LP),
    "planted MILP": _planted(ProblemClass.MILP),
    "enumerated MILP": _enumerated(ProblemClass.MILP),
    "window time_indexed": _time_indexed,
    "window counts": _counts,
    "planted LOG": _planted(ProblemClass.LOG),
    "planted MILOG": _planted(ProblemClass.MILOG),
    "enumerated MILOG": _enumerated(ProblemClass.MILOG),
}


@dataclass
class Tally:
    """One backend's record on one kind of program."""

    kind: str
    backend: str
    programs: int = 0
    agreed: int = 0
    refused: int = 0
    worst_gap: float = 0.0
    worst_residual: float = 0.0
    seconds: float = 0.0
    disagreements: list[str] = field(default_factory=list)

    def row(self) -> dict[str, Any]:
        """Return the record as one row of a table."""
        return {
            "kind": self.kind,
            "backend": self.backend,
            "programs": self.programs,
            "agreed": self.agreed,
            "refused": self.refused,
            "worst_gap": self.worst_gap,
            "worst_residual": self.worst_residual,
            "ms_each": 1e3 * self.seconds / max(1, self.programs),
            "first_disagreement": self.disagreements[0] if self.disagreements else "",
        }


def agreement(
    *,
    count: int,
    seed: int = 0,
    names: Sequence[str] | None = None,
    kinds: Sequence[str] | None = None,
    rel_gap: float = 1e-6,
    on_program: Callable[[int, int], None] | None = None,
) -> list[Tally]:
    """Solve `count` random programs of each kind with every backend that reads them, and compare.

    A backend agrees if its result is OPTIMAL within the gap (or INFEASIBLE where nothing is feasible), its residuals,
    recomputed from the program, are within the tolerance, and neither its objective nor its bound is on the wrong side
    of the optimum. The optimum is planted, enumerated, or else the best objective that any backend verified. A backend
    refuses what its method cannot state (unbounded columns on a grid) or its licence does not cover.

    Parameters
    ----------
    names : sequence of str, optional
        Backends; by default every general one that is usable here.
    kinds : sequence of str, optional
        Of :data:`KINDS`; all by default.
    on_program : callable, optional
        Called with (programs done, programs in all).

    Returns
    -------
    list of Tally
        One for each kind and backend that reads it.
    """
    as_integer("count", count, minimum=1)
    chosen = list(KINDS) if kinds is None else list(kinds)
    for kind in chosen:
        if kind not in KINDS:
            raise InvalidInput("kinds", kind, f"must be among {', '.join(KINDS)}")
    who = [row.name for row in backends(usable=True)] if names is None else list(names)
    general = [name for name in who if find_backend(name).classes]
    tallies: dict[tuple[str, str], Tally] = {}
    total = count * len(chosen)
    for done, (kind, known) in enumerate(_drawn(chosen, count, seed)):
        if on_program is not None:
            on_program(done, total)
        able = [name for name in general if reads(find_backend(name), known.program.problem_class)]
        results = {}
        for name in able:
            tally = tallies.setdefault((kind, name), Tally(kind, name))
            result = _solved(known.program, name, tally, rel_gap)
            if result is not None:
                results[name] = result
        best = _best(known, list(results.values()))
        for name, result in results.items():
            _compare(tallies[kind, name], result, known, best, rel_gap)
    return list(tallies.values())


def _drawn(kinds: Sequence[str], count: int, seed: int) -> Iterator[tuple[str, Known]]:
    for kind in kinds:
        for k in range(count):
            yield kind, KINDS[kind](np.random.default_rng([seed, list(KINDS).index(kind), k]))


def _solved(program: Program, name: str, tally: Tally, rel_gap: float) -> Result[Any] | None:
    started = time.perf_counter()
    try:
        return solve(program, name, rel_gap=rel_gap, feasibility_tol=FEASIBILITY_TOL, time_limit=60.0)
    except (LicenseLimit, UnsupportedProblem):
        tally.refused += 1
        return None
    finally:
        tally.programs += 1
        tally.seconds += time.perf_counter() - started


def _best(known: Known, results: list[Result[Any]]) -> float | None:
    if known.optimum is None or not math.isnan(known.optimum):
        return known.optimum
    best = max if known.program.sense == "max" else min
    return best((result.objective for result in results if result.objective is not None), default=None)


def _compare(tally: Tally, result: Result[Any], known: Known, best: float | None, rel_gap: float) -> None:
    program = known.program
    sign = 1.0 if program.sense == "max" else -1.0
    trouble = ""
    if best is None:
        if result.termination.reason is not Reason.INFEASIBLE:
            trouble = f"{result.termination}, though nothing is feasible"
    elif result.termination.reason is not Reason.OPTIMAL or result.objective is None or result.residuals is None:
        trouble = f"{result.termination}, optimum {best:.12g}"
    else:
        # What violating every row and bound by the tolerance can gain, and what sums of doubles cannot tell apart.
        allowed = (known.rate + 1.0) * FEASIBILITY_TOL + CLOSED_GAP * max(1.0, abs(best))
        gap = max(rel_gap, CLOSED_GAP) * program.gap_scale(result.objective)
        tally.worst_gap = max(tally.worst_gap, result.gap)
        tally.worst_residual = max(tally.worst_residual, result.residuals.worst)
        if sign * (best - result.objective) > gap + allowed:
            trouble = f"objective {result.objective:.12g} is worse than {best:.12g}"
        elif sign * (result.objective - best) > allowed:
            trouble = f"objective {result.objective:.12g} is better than the optimum {best:.12g}"
        elif sign * (best - result.bound) > allowed:
            trouble = f"bound {result.bound:.12g} is on the wrong side of {best:.12g}"
    if trouble:
        tally.disagreements.append(f"program {tally.programs - 1}: {trouble}")
    else:
        tally.agreed += 1
