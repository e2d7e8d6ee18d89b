"""Checks of the theory's statements on one problem, solved by `solve` and checked by the certificates and oracles."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from ...formulations.arrays import Floats, Indices
from ...formulations.errors import BackendUnavailable, UnsupportedProblem
from ...formulations.markets.market import Market
from ...formulations.markets.stochastic.market import StochasticMarket
from ...formulations.window.check import schedule_faults
from ...formulations.window.problem import ScheduleWindow
from ...solvers.result import Reason, Result
from ...solvers.solve import solve
from ..certificates.certify import certify
from ..certificates.check_result import CheckResult, Witness
from ..exact.certificate import exact_certificate
from ..oracles.window import schedules

#: The gap that problems are solved to, and that tolerances follow from.
REL_GAP = 1e-6
LIMITS: dict[str, Any] = {"rel_gap": REL_GAP, "time_limit": 20.0}
# Sampled runs of a stochastic plan, and the probability of rejecting a true mean.
RUNS = 20_000
FALSE_ALARM = 1e-9
# The relative rounding error allowed for sums of floats.
ROUNDING = 1e-9

NOT_PROMISED = "not promised; docs/errata.md, against Shockwave, Appendix G.1"


@dataclass(frozen=True, kw_only=True)
class CheckedStatement:
    """The result of checking one statement on one problem.

    A statement that the theory has not promised is only reported. One that could not be checked is skipped, and its
    witness gives the reason.
    """

    result: CheckResult
    promised: bool = True
    skipped: bool = False

    @property
    def violation(self) -> str:
        """The size and place of a violation, as text."""
        size = f"off by {self.result.violation:.2g}, {self.result.tolerance:.1g} allowed"
        where = str(self.result.witness or "")
        return f"{where} ({size})" if where else size


T = TypeVar("T")
Check = Callable[[T], Iterator[CheckedStatement]]


def _or_skipped(check: Check[T]) -> Check[T]:
    """Return the check with one skipped statement instead where no installed solver can solve the problem."""

    @wraps(check)
    def checked(problem: T) -> Iterator[CheckedStatement]:
        try:
            yield from check(problem)
        except (BackendUnavailable, UnsupportedProblem) as error:
            missing = _checked("can be solved here", "equipoise.solve", math.inf, 0.0, str(error))
            yield replace(missing, skipped=True)

    return checked


@_or_skipped
def check_market(market: Market) -> Iterator[CheckedStatement]:
    """Solve a market and check every property of an equilibrium on the plan."""
    result = solve(market, **LIMITS)
    yield _solved_to_the_gap(result)
    if result.plan is None:
        return
    for each in certify(market, result.plan, gap=REL_GAP):
        yield CheckedStatement(result=each)
    if market.kind in ("FisherMarket", "VolatileFisherMarket:linear"):
        # The purchases of an approximate plan need not determine the exact ones: then there is no exact certificate.
        exact = exact_certificate(market, result.plan)
        yield CheckedStatement(result=exact.check_result, promised=False)


@_or_skipped
def check_stochastic(market: StochasticMarket) -> Iterator[CheckedStatement]:
    """Solve both programs of a market of chains, compare their optima, and sample runs under their policies."""
    from ...simulation.stochastic_runs import sample_runs

    joint, decoupled = (solve(market, form=form, **LIMITS) for form in ("joint", "decoupled"))
    yield _solved_to_the_gap(joint, "the joint program ")
    yield _solved_to_the_gap(decoupled, "the decoupled program ")
    if joint.plan is None or decoupled.plan is None:
        return
    assert joint.objective is not None
    scale = market.gap_scale(joint.objective)
    statement = "decoupled is a relaxation: its bound is no less than the joint optimum"
    source = "Shockwave, Appendix F, Eq. 6 (the joint program), relaxed"
    yield _checked(statement, source, joint.objective - decoupled.bound, ROUNDING * scale)
    for name, plan in (("joint", joint.plan), ("decoupled", decoupled.plan)):
        runs = sample_runs(plan, RUNS, np.random.default_rng(0))
        reach = np.array([chain.utilities.max() for chain in market.chains]) * market.rounds
        # Hoeffding's inequality: a mean of R runs within [0, reach] is so far off with this chance only.
        tolerance = reach * math.sqrt(math.log(2 / FALSE_ALARM) / (2 * RUNS))
        off = np.abs(runs.mean_utilities - plan.utilities)
        job = int(np.argmax(off / tolerance))
        witness = Witness(buyer=job, words=f"{runs.mean_utilities[job]:.4g} against {plan.utilities[job]:.4g}")
        statement, source = f"sampled runs earn what the {name} plan expects", "Shockwave, Appendix F, Eq. 6"
        yield _checked(statement, source, float(off[job]), float(tolerance[job]), witness)
        share = float(runs.exceeded.any(axis=(1, 2)).mean())
        words = Witness(words=f"{share:.1%} of the runs exceed it")
        promised = name == "joint"
        source = "by construction" if promised else "not promised: kept in expectation only"
        yield _checked(f"the {name} plan keeps the capacity on every run", source, share, 0.0, words, promised)


@_or_skipped
def check_window(window: ScheduleWindow) -> Iterator[CheckedStatement]:
    """Plan a window and check the plan against all schedules; market properties are only reported."""
    result = solve(window, **LIMITS)
    yield _solved_to_the_gap(result)
    plan = result.plan
    if plan is None:
        return
    faults = {fault.kind: fault for fault in schedule_faults(window, plan.grants, plan.regime_of)}
    for kind, statement, source in (
        ("capacity", "no round uses more GPUs than there are", "Shockwave, Appendix G, constraint 3"),
        ("completed", "no job runs after its end", "Shockwave, Eq. 7"),
        ("regime order", "regimes run in order", "Shockwave, Appendix G, constraint 1"),
        ("work conservation", "no GPU idles that a waiting job fits", "Shockwave, Appendix G, constraint 2"),
    ):
        fault = faults.get(kind) or faults.get("shape")
        yield _checked(statement, source, fault.size if fault else 0.0, 0.0, str(fault or ""))
    every = schedules(window)
    scale = window.gap_scale(0.0)
    assert result.objective is not None
    same = (every.grants == plan.grants).all(axis=(1, 2))
    own = float(every.objective[same].max()) if same.any() else math.nan
    off, equation = abs(own - result.objective), "Shockwave, Eq. 11"
    statement = "the objective is that of the schedule, recomputed in fractions"
    yield _checked(statement, equation, off, ROUNDING * (1 + abs(own)))
    best = float(every.objective.max())
    rounding = ROUNDING * (scale + abs(best))
    yield _checked("no schedule beats the bound, of all there are", equation, best - result.bound, rounding)
    yield _checked("conserving work costs nothing", "Shockwave, Appendix G", best - every.best, rounding)
    yield from _window_as_market(window, plan.rounds_granted, every.grants.sum(axis=2))


def _window_as_market(window: ScheduleWindow, granted: Indices, others: Indices) -> Iterator[CheckedStatement]:
    """Report the properties of an equilibrium of GPU-rounds, in whole rounds, rounded down.

    `others` has the rounds granted by every schedule, shape (S, N).
    """
    jobs = np.arange(len(granted))
    utility = window.tables.utility
    have = utility[jobs, granted]
    budgets = window.weight * window.ftf**window.ftf_power
    offered = window.gpus * window.rounds

    def of(gpu_rounds: Floats) -> Floats:
        rounds = np.minimum(np.floor(gpu_rounds / window.gang_gpus * (1 + ROUNDING)), window.rounds).astype(np.int64)
        return np.asarray(utility[jobs, rounds])

    fairs = {
        "sharing incentive: as much done as with 1/N of the GPU-rounds": of(np.full(len(jobs), offered / len(jobs))),
        "proportionality: as much done as with a part of the weight's size": of(offered * budgets / budgets.sum()),
    }
    held = window.gang_gpus * granted
    fairs["no envy: as much done as with another's GPU-rounds, scaled by weights"] = np.max(
        [of(held[j] * budgets / budgets[j]) for j in jobs], axis=0
    )
    for statement, fair in fairs.items():
        lacks = fair - have
        job = int(np.argmax(lacks))
        witness = f"job {job} has done {have[job]:.3g} of its epochs, and would have {fair[job]:.3g}"
        yield _checked(statement, NOT_PROMISED, float(lacks[job]), ROUNDING, witness, promised=False)
    gains = utility[jobs, others] - have
    better = (gains >= -ROUNDING).all(axis=1) & (gains > ROUNDING).any(axis=1)
    most = float(gains[better].max(initial=0.0)) if better.any() else 0.0
    witness = f"another schedule does {most:.3g} more of a job's epochs and no less of any"
    yield _checked("Pareto optimality of what is done", NOT_PROMISED, most, ROUNDING, witness, promised=False)


def _solved_to_the_gap(result: Result[Any], what: str = "") -> CheckedStatement:
    gap = result.gap if result.termination.reason is Reason.OPTIMAL else max(result.gap, 2 * REL_GAP)
    return _checked(
        f"{what}solved to a proven gap of {REL_GAP:g}", "equipoise.solve", gap, REL_GAP, str(result.termination)
    )


def _checked(
    statement: str, source: str, violation: float, tolerance: float, witness: Any = None, promised: bool = True
) -> CheckedStatement:
    violation = max(violation, 0.0) if not math.isnan(violation) else math.inf
    result = CheckResult(
        statement=statement, source=source, holds=violation <= tolerance, violation=violation, witness=witness,
        tolerance=tolerance,
    )  # fmt: skip
    return CheckedStatement(result=result, promised=promised)
