"""The proportional_response backend: markets by rounds of bids, or, where faster, by an interior path over prices."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....formulations.arrays import Floats
from ....formulations.checks import as_integer
from ....formulations.errors import InvalidInput
from ....formulations.markets.equilibrium import Equilibrium
from ....formulations.markets.fisher import FisherMarket
from ....formulations.markets.market import Market
from ...backend import Answer, OwnMethod, Progress, Task
from ...deadline import Deadline
from ...options import Options
from ...result import CLOSED_GAP, Limit
from ..blas_threads import blas_threads

VARIANTS = ("accelerated", "plain")
# Share of the gap requested of the rounds; the rest is a margin for rounding in the proof.
GAP_SHARE = 0.95
MAX_ROUNDS = {"linear": 20_000, "weighted": 1_000}
# Beyond this number of prices, the dense system of the path is too large (0.1 GB), and the plain rounds are run.
MOST_PRICES = 4_000
# Backend that "auto" prefers for linear markets (docs/backends/proportional_response.md, "Measured").
LINEAR_FIRST = "interior_point"
# Seconds before the first report of a plan; the next follow whenever that time has doubled, and while making the plan
# takes at most a tenth of the time.
FIRST_REPORT_S, REPORT_SHARE = 1.0, 0.1
# Shares of a good may exceed a sum of 1 by rounding; this reduction of all shares avoids another scaling of the plan.
WITHIN = 1.0 - 1e-12


class ProportionalResponse(OwnMethod):
    """Buyers split their budgets in proportion to the returns of goods; prices prove the gap."""

    name = "proportional_response"
    requires = ("numba", "scipy", "threadpoolctl")
    formulations = frozenset(
        {"FisherMarket", "VolatileFisherMarket:linear", "VolatileFisherMarket:ces", "VolatileFisherMarket:cobb-douglas"}
    )
    supported_options = frozenset({"threads", "seed", "warm_start", "log"})
    known_options = frozenset({"variant", "max_rounds"})

    def backend_options(self, options: Options) -> dict[str, Any]:
        """Return the variant and the largest number of rounds, checked, as far as they are given."""
        own = super().backend_options(options)
        field = f"backend_options[{self.name!r}]"
        if own.get("variant", "plain") not in VARIANTS:
            raise InvalidInput(f"{field}['variant']", own["variant"], f"must be one of {', '.join(VARIANTS)}")
        if own.get("max_rounds") is not None:
            own["max_rounds"] = as_integer(f"{field}['max_rounds']", own["max_rounds"], minimum=0)
        return own

    def skip_reason(self, problem: Any, options: Options) -> str:
        """Return why "auto" leaves linear markets to interior_point, which was faster in nearly all measurements.

        The table is in docs/backends/proportional_response.md; CES and Cobb-Douglas markets are solved here.
        """
        from ...registry import find_backend

        if problem.kind not in ("FisherMarket", "VolatileFisherMarket:linear"):
            large = problem.capacities.size > MOST_PRICES
            return f"slow beyond {MOST_PRICES:,} prices, here {problem.capacities.size:,}" if large else ""
        usable = find_backend(LINEAR_FIRST).probe().usable
        return f"{LINEAR_FIRST} is as a rule faster on linear markets" if usable else ""

    def solve(self, task: Task, options: Options, on_progress: Progress) -> Answer:
        """Solve the market; nothing is drawn, so the seed has no effect; threads apply to the path's Newton steps."""
        started, deadline = time.perf_counter(), Deadline.of(options)
        own = self.backend_options(options)
        market: Market = task.problem
        gap = max(options.rel_gap, options.abs_gap / market.total_budget)
        run = _Run(
            market=market, variant=own.get("variant", "accelerated"), max_rounds=own.get("max_rounds"),
            gap=max(GAP_SHARE * gap, 0.5 * CLOSED_GAP), deadline=deadline, started=started,
            warm=_Warm.of(market, options), options=options, on_progress=on_progress,
        )  # fmt: skip
        plan, limit, notes = run.weighted() if market.kind.endswith((":ces", ":cobb-douglas")) else run.linear()
        if run.warm is not None:
            plan = run.warm.improved(market, plan)
            notes.append(run.warm.note)
        elif options.warm_start is not None:
            notes.append("warm start rejected: it breaks the capacities")
        closed = (market.proved_bound(plan) - market.welfare(plan.utilities)) / market.total_budget <= gap
        return Answer.ended(None if closed else limit, plan=plan, notes=tuple(notes))


@dataclass(frozen=True, kw_only=True)
class _Warm:
    """A start plan that passed the market's own check."""

    plan: Equilibrium
    welfare: float
    gap: float
    note: str

    @classmethod
    def of(cls, market: Market, options: Options) -> _Warm | None:
        given = options.warm_start
        if given is None:
            return None
        welfare, residuals = market.evaluate(given)
        if not residuals.worst <= options.feasibility_tol:
            return None
        gap = (market.proved_bound(given) - welfare) / market.total_budget
        plan = market.equilibrium(given.allocation, np.asarray(given.prices, dtype=np.float64))
        return cls(plan=plan, welfare=welfare, gap=gap, note=f"warm start accepted, objective {welfare:.12g}")

    def improved(self, market: Market, found: Equilibrium) -> Equilibrium:
        """Return the better allocation with the better prices of the two plans."""
        more = market.welfare(self.plan.utilities) > market.welfare(found.utilities)
        less = market.proved_bound(self.plan) < market.proved_bound(found)
        if not (more or less):
            return found
        return market.equilibrium((self.plan if more else found).allocation, (self.plan if less else found).prices)


@dataclass(frozen=True, kw_only=True)
class _Run:
    """One solve: the request, and the report of its results."""

    market: Any
    variant: Any
    max_rounds: int | None
    gap: float
    deadline: Deadline
    started: float
    warm: _Warm | None
    options: Options
    on_progress: Progress

    def linear(self) -> tuple[Equilibrium, Limit, list[str]]:
        """Solve a market of linear utilities, of one round or several."""
        from .bids import Lists, State, Table
        from .linear import respond

        market = self.market
        static = market if isinstance(market, FisherMarket) else market.static

        def plan_of(shares: Any, prices: Floats) -> Equilibrium:
            allocation = _allocation(static, shares)
            if market is not static:
                allocation = allocation.reshape(market.shape)
            with np.errstate(over="ignore"):
                return self._plan(allocation, prices.reshape(market.capacities.shape) / market.capacities)

        theta, weights = 1.0, np.zeros(static.num_goods)
        if self.warm is not None:
            shares = np.maximum(self.warm.plan.prices * market.capacities, 1e-30 * market.total_budget)
            theta = min(1e6, max(1.0, 1.0 / max(self.warm.gap, 1e-6)))
            weights = theta * np.log(shares.ravel() / market.total_budget)
        unit = math.fsum(market.budgets * (np.log(static.largest) + np.log(market.budgets / market.total_budget)))
        outcome = respond(
            Lists.of(static) if static.is_sparse else Table(static),
            State(theta, weights),
            variant=self.variant,
            gap=self.gap,
            deadline=self.deadline,
            max_rounds=MAX_ROUNDS["linear"] if self.max_rounds is None else self.max_rounds,
            report=self._reporter(plan_of, market.total_budget, unit),
        )
        notes = [f"{self.variant}: {outcome.rounds} rounds, {outcome.restarts} restarts of the momentum"]
        limit = Limit.TIME if outcome.out_of_time else Limit.ITERATIONS
        return plan_of(outcome.shares, outcome.prices), limit, notes

    def weighted(self) -> tuple[Equilibrium, Limit, list[str]]:
        """Solve a CES or Cobb-Douglas market."""
        from .plain import respond_rounds
        from .price_path import follow_prices

        market = self.market
        report = self._reporter(self._plan, 1.0, 0.0)
        plan = None if self.warm is None else self.warm.plan
        large = market.capacities.size > MOST_PRICES
        if self.variant == "plain" or large:
            start = None if plan is None else _mixed(market, np.asarray(plan.allocation) * plan.prices)
            rounds = MAX_ROUNDS["linear"] if self.max_rounds is None else self.max_rounds
            outcome = respond_rounds(
                market, start=start, gap=self.gap, deadline=self.deadline, max_rounds=rounds, report=report
            )
            why = f", as {market.capacities.size:,} prices are too many for the path" if large else ""
            notes = [f"plain: {outcome.steps} rounds{why}"]
        else:
            steps = MAX_ROUNDS["weighted"] if self.max_rounds is None else self.max_rounds
            slack = 1.0 if self.warm is None else min(1.0, max(self.warm.gap, 1e-6))
            with blas_threads(self.options.threads):
                outcome = follow_prices(
                    market, start=None if plan is None else plan.prices, slack=slack, gap=self.gap,
                    deadline=self.deadline, max_steps=steps, report=report,
                )  # fmt: skip
            notes = [f"accelerated: {outcome.steps} steps of the path over prices"]
        limit = Limit.TIME if outcome.out_of_time else Limit.METHOD if outcome.stuck else Limit.ITERATIONS
        return self._plan(outcome.allocation, outcome.prices), limit, notes

    def _plan(self, allocation: Any, prices: Floats) -> Equilibrium:
        plan: Equilibrium = self.market.equilibrium(allocation, prices)
        return plan

    def _reporter(self, plan_of: Callable[..., Equilibrium], scale: float, offset: float) -> Callable[..., None]:
        due = self.started + FIRST_REPORT_S

        def report(number: int, bound: float, welfare: float, found: Callable[[], tuple[Any, Floats]]) -> None:
            nonlocal due
            bound, welfare = scale * bound + offset, scale * welfare + offset
            now = time.perf_counter()
            plan = None
            if now >= due:
                plan = plan_of(*found())
                made = time.perf_counter()
                due = made + max(now - self.started, (made - now) / REPORT_SHARE)
            self.on_progress(welfare if math.isfinite(welfare) else None, bound, plan)
            if self.options.log:
                gap = (bound - welfare) / self.market.total_budget
                sys.stdout.write(f"round {number:6d}  welfare {welfare:.12g}  bound {bound:.12g}  gap {gap:.2e}\n")
                sys.stdout.flush()

        return report


def _allocation(market: FisherMarket, shares: Any) -> Any:
    """Return shares of goods as amounts: an array, or, in a sparse market, a csr_array."""
    if isinstance(shares, np.ndarray):
        shares *= WITHIN * market.capacities
        return shares
    from scipy.sparse import csr_array

    values, goods, starts = shares
    amounts = values * (WITHIN * market.capacities)[goods]
    if market.is_sparse:
        return csr_array((amounts, goods, starts), shape=(market.num_buyers, market.num_goods))
    dense = np.zeros((market.num_buyers, market.num_goods))
    dense[np.repeat(np.arange(market.num_buyers), np.diff(starts)), goods] += amounts
    return dense


def _mixed(market: Any, bids: Floats) -> Floats:
    """Return bids with a small part of every budget on every wanted good: a bid of 0 never grows."""
    wants = market.arithmetic.has_demand
    even = wants / wants.sum(axis=(1, 2), keepdims=True) * market.budgets[:, None, None]
    total = bids.sum(axis=(1, 2), keepdims=True)
    bids = np.where(wants, bids, 0.0) * (market.budgets[:, None, None] / np.where(total > 0, total, 1.0))
    return np.asarray(0.9 * bids + 0.1 * even)


BACKEND = ProportionalResponse()
