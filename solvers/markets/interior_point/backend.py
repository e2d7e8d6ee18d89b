"""Interior-point backend: linear markets with sifting; Leontief markets are passed to the Leontief method."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from ....formulations.arrays import Floats
from ....formulations.checks import as_integer
from ....formulations.errors import InvalidInput
from ....formulations.markets.equilibrium import Equilibrium
from ....formulations.markets.fisher import FisherMarket
from ....formulations.markets.volatile import VolatileFisherMarket
from ...backend import Answer, OwnMethod, Progress, Task
from ...deadline import Deadline
from ...options import Options
from ...result import CLOSED_GAP
from ..blas_threads import blas_threads
from .pairs import Edges
from .pricing import NormalizedMarket
from .sifting import Sifting, Watch

MOST_STEPS = 500
# Seconds between incumbents reported on the way: each has the size of the utilities, and is checked.
INCUMBENT_S = 2.0
# The search aims a little below the requested gap: the check sums in another order.
MARGIN = 0.99


class InteriorPointBackend(OwnMethod):
    """A primal-dual interior point on the pairs of buyer and good that may trade, certified on all of them."""

    name = "interior_point"
    requires = ("scipy", "threadpoolctl")
    formulations = frozenset({"FisherMarket", "VolatileFisherMarket:linear", "VolatileFisherMarket:leontief"})
    supported_options = frozenset({"threads", "seed", "warm_start", "log"})
    covered_options: ClassVar = {"tol": "rel_gap", "tolerance": "rel_gap", "max_time": "time_limit", "print": "log"}
    known_options = frozenset({"max_steps"})

    def solve(self, task: Task, options: Options, on_progress: Progress) -> Answer:
        """Solve the market; nothing is drawn, so the seed has no effect."""
        own = self.backend_options(options)
        field = f"backend_options[{self.name!r}]['max_steps']"
        most_steps = as_integer(field, own.get("max_steps", MOST_STEPS), minimum=0)
        deadline = Deadline.of(options)
        market = task.problem
        with blas_threads(options.threads):
            if isinstance(market, VolatileFisherMarket) and market.family == "leontief":
                from ..leontief.solve import solve_leontief

                return solve_leontief(market, options, on_progress, deadline, most_steps)
            with np.errstate(all="ignore"):  # entries that are not finite are searched for
                return _Linear(market, options, on_progress, deadline, most_steps).solve()


class _Linear:
    """One solve of a linear market, static or over rounds."""

    def __init__(
        self,
        given: FisherMarket | VolatileFisherMarket,
        options: Options,
        on_progress: Progress,
        deadline: Deadline,
        most_steps: int,
    ) -> None:
        self.given, self.options, self.on_progress = given, options, on_progress
        self.market = given.static if isinstance(given, VolatileFisherMarket) else given
        self.total = self.market.total_budget
        self.normalized = NormalizedMarket(self.market)
        # Welfare is measured where budgets sum to 1 and a buyer's best good has utility 1.
        self.shift = float(self.normalized.budgets @ np.log(self.market.largest))
        gap = max(options.rel_gap, CLOSED_GAP, options.abs_gap / self.total)
        watch = Watch(tolerance=MARGIN * gap, deadline=deadline, most_steps=most_steps, report=self._report)
        self.sifting = Sifting(self.normalized, watch)
        self.notes: list[str] = []
        self.start: Equilibrium | None = None
        self.reported_at_s = time.perf_counter()

    def solve(self) -> Answer:
        """Search from the warm start, if there is one, and return the best allocation with the best prices."""
        sifting = self.sifting
        if self.options.warm_start is not None:
            self.start = self._warm_start(self.options.warm_start)
        if self.start is not None:
            welfare = self.market.welfare(self.start.utilities) / self.total - self.shift
            worth = self.market.normal_prices(self.start.prices) * self.market.capacities / self.total
            sifting.start(welfare, np.asarray(worth[self.normalized.goods]))
        closed = sifting.best.gap <= sifting.watch.tolerance
        limit = None if closed else sifting.run()
        pairs = ", ".join(f"{count:,}" for count in sifting.selections) or "no"
        every = f"{self.normalized.num_pairs:,} pairs of buyer and good"
        self.notes.append(f"{sifting.watch.steps} steps on {pairs} of {every}")
        return Answer.ended(limit, plan=self._plan(), notes=tuple(self.notes))

    def _plan(self) -> Equilibrium:
        """Return the best allocation with the best prices, as a plan of the original market."""
        plan = self._static_plan()
        if self.given is self.market:
            return plan
        given: Any = plan.allocation
        goods = self.given.capacities.shape
        allocation = given.reshape(self.market.num_buyers, *goods)
        return replace(plan, allocation=allocation, prices=plan.prices.reshape(goods))

    def _static_plan(self) -> Equilibrium:
        best, market = self.sifting.best, self.market
        prices = None
        if best.proof is not None:
            prices = np.zeros(market.num_goods)
            prices[self.normalized.goods] = best.proof
            prices = market.normal_prices(prices / market.capacities)
        if best.solution is not None:
            allocation = self._allocation(*best.solution)
            if prices is None:
                prices = market.normal_prices(market.implied_prices(allocation))
            spending, utilities = market.spending_at(allocation, prices), market.utilities_at(allocation)
            return Equilibrium(allocation=allocation, prices=prices, spending=spending, utilities=utilities)
        if self.start is not None:
            return market.equilibrium(self.start.allocation, self.start.prices if prices is None else prices)
        return market.equilibrium(self._by_budget(), prices)

    def _allocation(self, edges: Edges, shares: Floats) -> Any:
        """Return shares of the capacities as an allocation of the market's own type."""
        goods = self.normalized.goods[edges.good]
        amounts = shares * self.market.capacities[goods]
        shape = (self.market.num_buyers, self.market.num_goods)
        if self.market.is_sparse:
            from scipy.sparse import csr_array

            return csr_array((amounts, (edges.buyer, goods)), shape=shape)
        allocation = np.zeros(shape)
        allocation[edges.buyer, goods] = amounts
        return allocation

    def _by_budget(self) -> Any:
        """Return every good divided by budgets among the buyers who want it: the plan if no time is left for another.

        In a dense market every buyer gets a share of every good.
        """
        market, budgets = self.market, self.normalized.budgets
        if not market.is_sparse:
            return budgets[:, None] * market.capacities
        allocation: Any = market.utilities.copy()
        buyer, good = self.normalized.everything()
        per_budget = market.capacities / np.bincount(good, budgets[buyer], market.num_goods)
        allocation.data = budgets[buyer] * per_budget[good]
        return allocation

    def _warm_start(self, plan: Any) -> Equilibrium | None:
        """Return the warm start as a plan of the static market, or None, with a note, if it breaks the market."""
        welfare, residuals = self.given.evaluate(plan)
        prices = np.asarray(plan.prices, dtype=np.float64)
        if prices.shape != self.given.capacities.shape:
            raise InvalidInput("warm_start.prices", prices.shape, f"must have shape {self.given.capacities.shape}")
        if not residuals.worst <= self.options.feasibility_tol:
            self.notes.append(f"warm start rejected: it violates the market by {residuals.worst:.3g}")
            return None
        if not np.isfinite(welfare):
            self.notes.append("warm start rejected: a buyer gets nothing")
            return None
        self.notes.append(f"warm start accepted, welfare {welfare:.12g}")
        allocation = plan.allocation
        if allocation.ndim == 3:
            allocation = allocation.reshape(self.market.num_buyers, -1)
        return self.market.equilibrium(allocation, prices.ravel())

    def _report(self, steps: int, welfare: float, bound: float, pairs: int) -> None:
        objective, proved = self.total * (welfare + self.shift), self.total * (bound + self.shift)
        if self.options.log:
            values = f"welfare {objective:.10g}  bound {proved:.10g}  gap {bound - welfare:.2e}"
            sys.stdout.write(f"step {steps:3d}  {values}  pairs {pairs}\n")
        incumbent = None
        if time.perf_counter() - self.reported_at_s > INCUMBENT_S:
            incumbent, self.reported_at_s = self._plan(), time.perf_counter()
        self.on_progress(objective if np.isfinite(objective) else None, proved, incumbent)


BACKEND = InteriorPointBackend()
