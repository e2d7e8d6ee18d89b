"""Statements on jobs that share GPUs: agreement of backends on pairs, the sign test, and groups against many delays."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from ...formulations.arrays import Floats
from ...formulations.errors import BackendUnavailable, UnsupportedProblem
from ...formulations.gpu_sharing.delay_problem import OBJECTIVES
from ...formulations.gpu_sharing.group import GroupSharing
from ...formulations.gpu_sharing.pair import PairSharing
from ...formulations.gpu_sharing.pair_rule import pair_ends, shares_at_once
from ...solvers.backend_table import backends
from ...solvers.result import Reason
from ...solvers.solve import solve
from ..contract.sharing import AGREEMENT, GAP, pair_trouble
from ..instances.sharing import measured_ratios, random_group, random_pair
from ..oracles.sharing import ends_over_delays
from .examples import text_of

# Examples of each statement for each example asked for; a backend that is not named here gets one in OTHER_SHARE.
PAIRS_PER_EXAMPLE = {"delay_candidates": 4, "highs": 4}
OTHER_SHARE = 10
# Pairs on which the sign test is compared with the rule, and pairs of times for each pair of measured ratios.
SIGN_TESTS, TIMES_PER_RATIOS = 20_000, 32
# Times in seconds, and ratios, from which the pairs of the sign test are drawn uniformly.
TIMES_S, RATIOS = (1.0, 100.0), (1.0, 3.0)
# Delays of the dense search over a group, in equal steps.
DELAYS = 400
# Two-sided quantile of the normal distribution for intervals of 95%.
QUANTILE = 1.959964

THEOREM_1 = "SJF-BSBF, Theorem 1, put right"


@dataclass
class SharingTally:
    """A statement and its examples: how many there were, on how many it held, and the first on which it did not.

    A statement that the theory has not promised is only reported; one without data is skipped, and the witness is the
    reason.
    """

    statement: str
    source: str
    promised: bool = True
    examples: int = 0
    held: int = 0
    witness: str = ""
    problem: str = ""

    def count(self, trouble: str, problem: object) -> None:
        """Add one example; `trouble` is empty where the statement holds."""
        self.examples += 1
        self.held += not trouble
        if trouble and not self.witness:
            self.witness, self.problem = trouble, text_of(problem)


def sharing_statements(examples: int, seed: int, interference: Path | None) -> list[Callable[[], SharingTally]]:
    """Return the checks of all statements, in order; each takes no argument and returns its tally.

    `interference` is a table of measured pairs, read at once; see
    :func:`~equipoise.validation.instances.sharing.measured_ratios`.
    """
    ratios = None if interference is None else measured_ratios(interference)
    probe = random_pair(np.random.default_rng(0))
    names = [row.name for row in backends(probe, usable=True)]
    checks = [partial(_agreement, name, _pairs_of(name, examples), seed) for name in names]
    checks += [partial(_drawn_sign_test, seed), partial(_measured_sign_test, ratios, seed)]
    return [*checks, *(partial(_dense_search, objective, examples, seed) for objective in OBJECTIVES)]


def _pairs_of(name: str, examples: int) -> int:
    return PAIRS_PER_EXAMPLE[name] * examples if name in PAIRS_PER_EXAMPLE else -(-examples // OTHER_SHARE)


def _agreement(name: str, count: int, seed: int) -> SharingTally:
    """Compare a backend on `count` pairs of all objectives with brute force over the delay."""
    tally = SharingTally(f"{name} agrees with brute force over the delay of a pair, to {AGREEMENT:g}", THEOREM_1)
    for k in range(count):
        problem = random_pair(np.random.default_rng([seed, k]))
        try:
            result = solve(problem, name, rel_gap=GAP, time_limit=20.0)
        except (BackendUnavailable, UnsupportedProblem) as error:
            tally.witness = str(error)
            break
        tally.count(pair_trouble(problem, result), problem)
    return tally


def _drawn_sign_test(seed: int) -> SharingTally:
    rng = np.random.default_rng([seed, 1])
    times, ratios = (rng.uniform(*span, (SIGN_TESTS, 2)) for span in (TIMES_S, RATIOS))
    spans = f"times uniform in {TIMES_S[0]:g} to {TIMES_S[1]:g} s, ratios in {RATIOS[0]:g} to {RATIOS[1]:g}"
    return _sign_test(f"the sign of the second slope picks the better end of a drawn pair: {spans}", times, ratios)


def _measured_sign_test(measured: Floats | None, seed: int) -> SharingTally:
    statement = "the sign of the second slope picks the better end of a measured V100 pair"
    if measured is None:
        reason = "needs a table of measured pairs: --interference FILE"
        return SharingTally(statement, "against SJF-BSBF, Theorem 1", promised=False, witness=reason)
    ratios = np.repeat(measured, TIMES_PER_RATIOS, axis=0)
    times = np.random.default_rng([seed, 2]).uniform(*TIMES_S, ratios.shape)
    spans = f"{TIMES_PER_RATIOS} times for each, uniform in {TIMES_S[0]:g} to {TIMES_S[1]:g} s"
    return _sign_test(f"{statement}: {len(measured)} pairs, {spans}", times, ratios)


def _sign_test(statement: str, times: Floats, ratios: Floats) -> SharingTally:
    """Count the pairs for which the sign test picks an end that is no worse than the other."""
    tally = SharingTally(statement, "against SJF-BSBF, Theorem 1", promised=False)
    shared = 0
    for (a, b), (x, y) in zip(times.tolist(), ratios.tolist(), strict=True):
        at_once = x + 2 * y - 2 * x * y >= 0
        best = shares_at_once(a, b, x, y)
        shared += best
        values = [sum(pair_ends(a, b, x, y, delay)) for delay in (0.0, a)]
        picked, other = values if at_once else values[::-1]
        # The rule is a comparison without the ends: both have to agree on which pick is wrong.
        wrong = picked > other and at_once != best
        tally.count(
            f"a mean JCT of {picked / 2:.4g} instead of {other / 2:.4g} s" if wrong else "",
            PairSharing(running_s=a, waiting_s=b, running_ratio=x, waiting_ratio=y) if wrong else None,
        )
    low, high = interval(tally.examples - tally.held, tally.examples)
    rate = 1 - tally.held / tally.examples
    summary = f"wrong for {rate:.1%} (95% interval {low:.1%} to {high:.1%}); sharing is best for"
    tally.witness = f"{summary} {shared / tally.examples:.1%}; first: {tally.witness}"
    return tally


def interval(count: int, total: int) -> tuple[float, float]:
    """Return Wilson's 95% interval of a rate of `count` in `total`."""
    rate, square = count / total, QUANTILE**2
    middle = (rate + square / (2 * total)) / (1 + square / total)
    half = QUANTILE * math.sqrt(rate * (1 - rate) / total + square / (4 * total**2)) / (1 + square / total)
    return middle - half, middle + half


def _dense_search(objective: str, count: int, seed: int) -> SharingTally:
    statement = f"no delay of {DELAYS} over the whole range beats that of a group: {objective}"
    tally = SharingTally(statement, "SJF-BSBF, Algorithm 1, over several running jobs")
    inside = strictly = 0
    for problem in _groups(objective, count, seed):
        result = solve(problem, "delay_candidates")
        if result.plan is None or result.objective is None or result.termination.reason is not Reason.OPTIMAL:
            tally.count(str(result.termination), problem)
            continue
        delay, last = result.plan.delay_s, problem.longest_s
        inside += 0 < delay < last
        strictly += delay not in (0.0, *problem.running_s.tolist())
        delays = np.append(np.linspace(0.0, last, DELAYS), delay)
        values = _objective(problem, delays)
        trouble = ""
        if abs(values[-1] - result.objective) > AGREEMENT * result.objective:
            trouble = f"the simulation gives {values[-1]:.12g} for its objective {result.objective:.12g}"
        elif values.min() < result.objective * (1 - AGREEMENT):
            trouble = f"{values.min():.12g} at {delays[values.argmin()]:.6g} s, not {result.objective:.12g}"
        tally.count(trouble, problem)
    if tally.held == tally.examples:
        ends = f"between two times of running jobs for {strictly}"
        tally.witness = f"the best delay is neither 0 nor the longest time for {inside} of {count}, and {ends}"
    return tally


def _groups(objective: str, count: int, seed: int) -> Iterator[GroupSharing]:
    for k in range(count):
        yield random_group(np.random.default_rng([seed, OBJECTIVES.index(objective), k]), objective)


def _objective(problem: GroupSharing, delays: Floats) -> Floats:
    """Return the objective at each delay, by the simulation in floats, shape (D,)."""
    data = (problem.running_s, problem.waiting_s, problem.running_ratios, problem.waiting_ratios)
    ends = ends_over_delays(*data, delays)
    if problem.objective == "makespan":
        return np.asarray(ends.max(axis=0))
    weights = np.ones(len(ends)) if problem.weights is None else problem.weights
    return np.asarray(weights @ ends / weights.sum())
