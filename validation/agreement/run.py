"""Agreement of all backends on random programs and markets: each answer against the known one and all others."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...formulations.checks import as_integer
from ...formulations.errors import InvalidInput, LicenseLimit, UnsupportedProblem
from ...formulations.markets.market import Market
from ...formulations.program.data import ProblemClass
from ...solvers.backend_table import backends
from ...solvers.registry import find_backend
from ...solvers.result import CLOSED_GAP, Reason, Result
from ...solvers.selection import ProblemInfo, accepts
from ...solvers.solve import solve
from ..certificates.certify import certify
from ..contract.market_draws import FAMILY_OF, STATIC, KnownMarket, planted_market, random_market
from ..contract.programs import Known, enumerated, planted, senses
from ..contract.windows import window
from ..exact.certificate import exact_certificate
from ..oracles.window import schedules

FEASIBILITY_TOL = 1e-6
# One market in four is planted around an equilibrium, half of these with budgets over twelve orders of magnitude.
PLANTED, ORDERS = 0.25, 12
# Kinds whose equilibria are rational.
EXACT = ("FisherMarket", "VolatileFisherMarket:linear")
#: Backends that start a program of their own for every step of a solve see one market in so many.
ONE_IN = {"pyomo:highs": 10, "pyomo:cbc": 20, "pyomo:glpk": 20, "pyomo:ipopt": 20}
PLANNED = (Reason.OPTIMAL, Reason.FEASIBLE)
# The share of badly scaled markets that a backend may leave open if it claims no optimum.
OPEN_SHARE = 0.01


def _drawn_by(draw: Callable[..., Known], wanted: ProblemClass) -> Callable[[np.random.Generator], Known]:
    return lambda rng: draw(rng, wanted, str(rng.choice(senses(wanted))))


def _time_indexed(rng: np.random.Generator) -> Known:
    drawn = window(rng)
    return Known(program=drawn.program("time_indexed"), optimum=schedules(drawn).best)


def _counts(rng: np.random.Generator) -> Known:
    # A relaxation of the window: its own optimum is known only from what the backends agree on.
    return Known(program=window(rng, most_jobs=6, most_rounds=6).program("counts"), optimum=math.nan)


def _market(kind: str) -> Callable[[np.random.Generator], KnownMarket]:
    def draw(rng: np.random.Generator) -> KnownMarket:
        if rng.random() < PLANTED:
            return planted_market(rng, kind, orders=int(rng.choice([0, ORDERS])))
        return KnownMarket(market=random_market(rng, kind), optimum=math.nan)

    return draw


MARKET_KINDS = {"fisher": _market(STATIC)} | {f"volatile-{name}": _market(kind) for kind, name in FAMILY_OF.items()}
#: What is drawn, by the name of its kind; the optimum is planted or enumerated, or nan: the best that was found.
KINDS: dict[str, Callable[[np.random.Generator], Known | KnownMarket]] = {
    "planted LP": _drawn_by(planted, ProblemClass.LP),
    "planted MILP": _drawn_by(planted, ProblemClass.MILP),
    "enumerated MILP": _drawn_by(enumerated, ProblemClass.MILP),
    "window time_indexed": _time_indexed,
    "window counts": _counts,
    "planted LOG": _drawn_by(planted, ProblemClass.LOG),
    "planted MILOG": _drawn_by(planted, ProblemClass.MILOG),
    "enumerated MILOG": _drawn_by(enumerated, ProblemClass.MILOG),
    **MARKET_KINDS,
}


@dataclass
class Tally:
    """One backend's record on one kind of program or market.

    `drawn` is the number of the last one that it was given. A market is left open by a plan and a bound that agree with
    all others, but not within the gap asked for, and say so. Of linear markets, `exact` counts the plans beside which
    an exact equilibrium was found, in rationals, and `inexact` says why the others have none.
    """

    kind: str
    backend: str
    programs: int = 0
    drawn: int = -1
    agreed: int = 0
    left_open: int = 0
    exact: int = 0
    inexact: list[str] = field(default_factory=list)
    refused: int = 0
    worst_gap: float = 0.0
    worst_residual: float = 0.0
    seconds: float = 0.0
    disagreements: list[str] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        """Whether there was a disagreement, or more than one in a hundred, and than one, was left open or inexact."""
        most = max(1.0, OPEN_SHARE * self.programs)
        return bool(self.disagreements) or max(self.left_open, len(self.inexact)) > most

    def row(self) -> dict[str, Any]:
        """Return the record as one row of a table."""
        own = ("kind", "backend", "programs", "agreed", "left_open", "exact", "refused", "worst_gap", "worst_residual")
        return {name: getattr(self, name) for name in own} | {
            "exact": self.exact if self.exact or self.inexact else None,
            "ms_each": 1e3 * self.seconds / max(1, self.programs),
            "first_disagreement": self.disagreements[0] if self.disagreements else "",
            "first_inexact": self.inexact[0] if self.inexact else "",
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
    """Solve `count` random programs or markets of each kind with every backend that reads them, and compare.

    A backend agrees if its result is OPTIMAL within the gap (or INFEASIBLE where nothing is feasible), its residuals,
    recomputed from the problem, are within the tolerance, and neither its objective nor its bound is on the wrong side
    of the optimum. The optimum is planted, enumerated, or else the best objective that any backend verified. A backend
    refuses what its method cannot state (unbounded columns on a grid) or its licence does not cover.

    Markets go to special backends as they are, and to general ones as programs; backends that start processes get a
    share of them (:data:`ONE_IN`).

    By default every backend that is usable here (`names`) solves all of :data:`KINDS`. `on_program` is called with the
    programs done, and with their number. The tallies are one for each kind and backend that reads it.
    """
    as_integer("count", count, minimum=1)
    chosen = list(KINDS) if kinds is None else list(kinds)
    for kind in chosen:
        if kind not in KINDS:
            raise InvalidInput("kinds", kind, f"must be among {', '.join(KINDS)}")
    who = [row.name for row in backends(usable=True)] if names is None else list(names)
    for name in who:
        find_backend(name)
    tallies: dict[tuple[str, str], Tally] = {}
    total = count * len(chosen)
    drawn = (
        (kind, KINDS[kind](np.random.default_rng([seed, list(KINDS).index(kind), k])))
        for kind in chosen
        for k in range(count)
    )
    for done, (kind, known) in enumerate(drawn):
        if on_program is not None:
            on_program(done, total)
        problem = known.market if isinstance(known, KnownMarket) else known.program
        results = {}
        for name in who:
            if not accepts(find_backend(name), ProblemInfo(problem)):
                continue
            if isinstance(known, KnownMarket) and not takes_part(name, done % count):
                continue
            tally = tallies.setdefault((kind, name), Tally(kind, name))
            tally.drawn = done % count
            result = _solved(problem, name, tally, rel_gap)
            if result is not None:
                results[name] = result
        best = known.optimum
        if best is not None and math.isnan(best):
            reached = (result.objective for result in results.values() if result.objective is not None)
            best = max(reached, key=lambda objective: problem.sign * objective, default=None)
        for name, result in results.items():
            _compare(tallies[kind, name], result, known, best, rel_gap)
    return list(tallies.values())


def _solved(problem: Any, name: str, tally: Tally, rel_gap: float) -> Result[Any] | None:
    started = time.perf_counter()
    try:
        return solve(problem, name, rel_gap=rel_gap, feasibility_tol=FEASIBILITY_TOL, time_limit=60.0)
    except (LicenseLimit, UnsupportedProblem):
        tally.refused += 1
        return None
    finally:
        tally.programs += 1
        tally.seconds += time.perf_counter() - started


def _compare(tally: Tally, result: Result[Any], known: Known | KnownMarket, best: float | None, rel_gap: float) -> None:
    if isinstance(known, KnownMarket):
        best = -math.inf if best is None else best
        trouble = market_trouble(result, known.market, best, rel_gap, FEASIBILITY_TOL)
        reason = exact_trouble(result, known.market)
        tally.exact += reason == ""
        if reason:
            tally.inexact.append(f"program {tally.drawn}: {reason}")
    else:
        trouble = _trouble(result, known, best, rel_gap)
    if result.residuals is not None and result.termination.reason is Reason.OPTIMAL:
        tally.worst_gap = max(tally.worst_gap, result.gap)
        tally.worst_residual = max(tally.worst_residual, result.residuals.worst)
    if trouble:
        tally.disagreements.append(f"program {tally.drawn}: {trouble}")
    elif result.termination.reason is Reason.FEASIBLE:
        tally.left_open += 1
    else:
        tally.agreed += 1


def _trouble(result: Result[Any], known: Known, best: float | None, rel_gap: float) -> str:
    """Return what is wrong with a result of a program; empty if nothing is."""
    program = known.program
    sign = program.sign
    if best is None:
        wrong = result.termination.reason is not Reason.INFEASIBLE
        return f"{result.termination}, though nothing is feasible" if wrong else ""
    if result.termination.reason is not Reason.OPTIMAL or result.objective is None or result.residuals is None:
        return f"{result.termination}, optimum {best:.12g}"
    # What violating every row and bound by the tolerance can gain, and what sums of doubles cannot tell apart.
    allowed = (known.rate + 1.0) * FEASIBILITY_TOL + CLOSED_GAP * max(1.0, abs(best))
    gap = max(rel_gap, CLOSED_GAP) * program.gap_scale(result.objective)
    if sign * (best - result.objective) > gap + allowed:
        return f"objective {result.objective:.12g} is worse than {best:.12g}"
    if sign * (result.objective - best) > allowed:
        return f"objective {result.objective:.12g} is better than the optimum {best:.12g}"
    if sign * (best - result.bound) > allowed:
        return f"bound {result.bound:.12g} is on the wrong side of {best:.12g}"
    return ""


def takes_part(name: str, which: int) -> bool:
    """Whether a backend is given the market of this number."""
    return which % ONE_IN.get(name, 1) == 0


def market_trouble(result: Result[Any], market: Market, best: float, rel_gap: float, tolerance: float) -> str:
    """Return what is wrong with a result, given the best welfare that is known; empty if nothing is.

    A plan keeps the capacities within the tolerance, and its welfare is within the gap asked for of the best, or within
    its own if that is said to be open: two objectives differ by no more than the sum of their gaps. No bound is below
    the best welfare. What exceeding the capacities can gain is its share of the sum of the budgets, which is what all
    goods cost. The plan holds every certificate of an equilibrium within that gap.
    """
    if result.objective is None or result.residuals is None or result.termination.reason not in PLANNED:
        return f"{result.termination}, optimum {best:.12g}"
    unit = market.total_budget
    allowed = CLOSED_GAP * unit
    gap = max(rel_gap if result.termination.reason is Reason.OPTIMAL else result.gap, CLOSED_GAP)
    if not math.isfinite(gap):
        return f"{result.termination}, optimum {best:.12g}"
    if best - result.objective > gap * unit + allowed:
        return f"objective {result.objective:.12g} is worse than {best:.12g}"
    if result.objective - best > allowed + result.residuals.worst * unit:
        return f"objective {result.objective:.12g} is better than the optimum {best:.12g}"
    if best - result.bound > allowed:
        return f"bound {result.bound:.12g} is on the wrong side of {best:.12g}"
    if result.residuals.worst > tolerance:
        return f"the plan violates the market by {result.residuals.worst:.3g}"
    failures = certify(market, result.plan, gap=gap).failures
    return str(failures[0]) if failures else ""


def exact_trouble(result: Result[Any], market: Market) -> str | None:
    """Return why no exact equilibrium was found beside the plan, empty if one was; None if the market is not linear."""
    if market.kind not in EXACT or result.plan is None:
        return None
    return exact_certificate(market, result.plan).reason
