"""Stochastic markets by exhaustion: every deterministic policy's outcome, and the programs that mix them.

The oracle of the occupancy programs, which share no line with it: a randomised Markov policy attains exactly what
lotteries over deterministic ones attain, so the best lottery over all outcomes is the optimum.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np

from equipoise.formulations.arrays import Floats
from equipoise.formulations.errors import InvalidInput
from equipoise.formulations.markets.stochastic.chain import JobChain
from equipoise.formulations.markets.stochastic.market import StochasticMarket
from equipoise.formulations.program.builder import ProgramBuilder, Term
from equipoise.formulations.program.model import Program

MOST_OUTCOMES = 200_000

State = tuple[int, ...]
Outcome = tuple[float, ...]


def outcomes(chains: Sequence[JobChain], capacities: Floats) -> Floats:
    """Return what the deterministic policies of these jobs together can bring about, shape (outcomes, N + J * T).

    A policy picks, in each round and for each combination of states, one action per job that together fit the
    capacity, shape (J, T). An outcome is each job's expected utility, then the expected use of each resource in each
    round. Outcomes that coincide to 12 digits count once.

    Raises
    ------
    InvalidInput
        If there are more than 200,000 of them on the way.
    """
    rounds = capacities.shape[1]
    after: dict[State, set[Outcome]] = {}
    states = list(itertools.product(*(range(chain.num_states) for chain in chains)))
    nothing: Outcome = (0.0,) * (len(chains) + capacities.size)
    for t in reversed(range(rounds)):
        now: dict[State, set[Outcome]] = {}
        for state in states:
            found = now.setdefault(state, set())
            for actions in itertools.product(*(range(chain.num_actions) for chain in chains)):
                use = np.sum([chain.demands[a] for chain, a in zip(chains, actions, strict=True)], axis=0)
                if (use > capacities[:, t] * (1 + 1e-9)).any():
                    continue
                gain = np.array(nothing)
                gain[: len(chains)] = [c.utilities[a, s] for c, a, s in zip(chains, actions, state, strict=True)]
                gain[len(chains) + t :: rounds] = use
                rows = [c.transitions[a, s] for c, a, s in zip(chains, actions, state, strict=True)]
                found.update(_mixed(gain, rows, after, nothing))
        after = now
    start = _mixed(np.array(nothing), [chain.initial for chain in chains], after, nothing)
    return np.array(sorted(set(start)))


def mixing_program(market: StochasticMarket, form: str) -> Program:
    """Return the program of the best lottery over all outcomes: of the jobs together, or of each job by itself.

    `form` is "joint" or "decoupled"; the latter keeps the capacity in expectation.
    """
    together = form == "joint"
    groups = [list(range(len(market.chains)))] if together else [[job] for job in range(len(market.chains))]
    build = ProgramBuilder(sense="max")
    inside: list[Term] = []
    use: list[Term] = []
    for number, jobs in enumerate(groups):
        table = outcomes([market.chains[job] for job in jobs], market.capacities)
        chance = build.add_columns(f"chance_{number}", (len(table),), upper=1.0)
        build.add_rows(f"lottery_{number}", (1,), terms=[(0, chance, 1.0)], lower=1.0, upper=1.0)
        inside += [(job, chance, table[:, place]) for place, job in enumerate(jobs)]
        use.append((np.arange(market.capacities.size), chance[:, None], table[:, len(jobs) :]))
    if not together:
        build.add_rows("capacity", (market.capacities.size,), terms=use, upper=market.capacities.ravel())
    build.add_logs(market.budgets, terms=inside)
    return build.program(gap_unit=market.total_budget)


def best_deterministic(market: StochasticMarket, form: str) -> float:
    """Return the best objective of the deterministic policies, -inf if none gives something to every job.

    `form` is "joint-deterministic" or "decoupled-deterministic".
    """
    count = len(market.chains)
    if form == "joint-deterministic":
        return max(market.welfare(row[:count]) for row in outcomes(market.chains, market.capacities))
    tables = [outcomes([chain], market.capacities) for chain in market.chains]
    if math.prod(map(len, tables)) > MOST_OUTCOMES:
        raise InvalidInput("market", market, f"more than {MOST_OUTCOMES:,} combinations of policies")
    best = -math.inf
    for rows in itertools.product(*tables):
        use = np.sum([row[1:] for row in rows], axis=0)
        if (use <= market.capacities.ravel() * (1 + 1e-9) + 1e-9).all():
            best = max(best, market.welfare(np.array([row[0] for row in rows])))
    return best


def _mixed(
    gain: Floats, rows: Sequence[Floats], after: dict[State, set[Outcome]], nothing: Outcome
) -> Iterator[Outcome]:
    """Yield the gain plus the mean of what follows, for every choice of what follows in each next state."""
    nexts = [
        (math.prod(float(row[s]) for row, s in zip(rows, state, strict=True)), state)
        for state in itertools.product(*(np.flatnonzero(row).tolist() for row in rows))
    ]
    follow = [sorted(after.get(state, {nothing})) for _, state in nexts]
    if math.prod(map(len, follow)) > MOST_OUTCOMES:
        raise InvalidInput("market", f"{len(rows)} jobs", f"more than {MOST_OUTCOMES:,} policies on the way")
    chances = np.array([chance for chance, _ in nexts])
    for choice in itertools.product(*follow):
        yield tuple(np.round(gain + chances @ np.array(choice), 12).tolist())
