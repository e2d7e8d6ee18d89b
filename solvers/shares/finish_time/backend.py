"""The finish_time backend: finish-time fairness by prices of GPU types, with a proved bound and a tie-break."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ....formulations.arrays import Floats
from ....formulations.shares.finish_time.problem import FinishTimeFairness
from ....formulations.shares.polytope import GpuShares
from ...backend import Answer, OwnMethod, Progress, Task
from ...deadline import Deadline
from ...options import Options
from ...result import CLOSED_GAP, Limit

# Prices kept as columns of the restricted master: more than the types and the steps until the basis is stable.
MOST_PRICES = 40
MOST_ROUNDS = 400
# Steps of the bisection over the price of one type.
HALVINGS = 60


class FinishTime(OwnMethod):
    """Raises the level that prices prove until shares of the whole cluster reach it; then breaks ties.

    At a level, each job needs a speed; the pricing problem finds its cheapest shares at prices of the GPU types. If all
    jobs together cost more than the cluster, the level is too low, and Newton's method on the cost finds the level that
    these prices prove. A restricted master over the shares found so far minimises the load of the fullest type; its
    duals are the next prices. With one type there is only one price, and the first level is the best.

    Where the best level leaves a choice, the plan is the one nearest to the isolated shares (`nearest_to_isolated`).
    """

    name = "finish_time"
    formulations = frozenset({"FinishTimeFairness"})
    supported_options = frozenset({"seed"})

    def solve(self, task: Task, options: Options, on_progress: Progress) -> Answer:
        """Solve the problem; nothing is drawn, so the seed has no effect."""
        self.backend_options(options)
        deadline = Deadline.of(options)
        search = _Search(task.problem, options, on_progress)
        limit = search.run(deadline)
        plan, notes = search.plan, []
        if plan is not None and limit is None:
            tied = nearest_to_isolated(task.problem, plan)
            worst, residuals = task.problem.evaluate(tied)
            if residuals.worst <= 1e-12 and search.closed_at(worst):
                plan, notes = tied, ["ties: the shares nearest to the isolated ones at this level"]
            else:
                notes = ["ties: unbroken, as breaking them would cost more than the requested gap"]
        return Answer.ended(limit, plan=plan, notes=tuple(notes))


@dataclass(frozen=True, eq=False)
class _Column:
    """The cheapest shares of a level at some prices, and the part of each type's GPUs that they use."""

    prices: Floats
    level: float
    shares: Floats
    used: Floats


class _Search:
    """Prices, the level they prove, and the best shares so far."""

    def __init__(self, problem: FinishTimeFairness, options: Options, on_progress: Progress) -> None:
        self.problem, self.levels, self.options, self.on_progress = problem, problem.levels, options, on_progress
        self.best_prices = self.levels.even_prices
        self.level = self.levels.proved(self.best_prices)
        self.columns = [self._column(self.best_prices)]
        self.plan: GpuShares | None = None
        self.worst = np.inf

    def closed_at(self, worst: float) -> bool:
        """Whether shares of this worst fairness are near enough to the proved level."""
        excess = worst - self.level
        return excess <= max(self.options.rel_gap, CLOSED_GAP) * abs(worst) or excess <= self.options.abs_gap

    def run(self, deadline: Deadline) -> Limit | None:
        """Continue until the gap is closed; return the limit that stopped it before."""
        for _ in range(MOST_ROUNDS):
            mix, prices = self._mixed()
            self._offer(sum((part * each.shares for part, each in zip(mix, self.columns, strict=True)), np.zeros(1)))
            if self.closed_at(self.worst):
                return None
            if deadline.passed:
                return Limit.TIME
            level = self.levels.proved(prices)
            if level > self.level:
                self.level, self.best_prices = level, prices
            elif any(each.level == self.level and np.array_equal(each.prices, prices) for each in self.columns):
                return Limit.METHOD  # the restricted master repeats itself: its own tolerance is reached
            # A column of a lower level still reaches this level; the columns in the combination are made cheaper.
            keep = sorted(np.argsort(-mix, kind="stable")[: MOST_PRICES - 1])
            self.columns = [
                self._column(each.prices) if mix[i] > 0 and each.level < self.level else each
                for i, each in ((i, self.columns[i]) for i in keep)
                if not np.array_equal(each.prices, prices)
            ] + [self._column(prices)]
        return Limit.METHOD

    def _column(self, prices: Floats) -> _Column:
        shares = self.levels.cheapest(self.level, prices)[2]
        return _Column(prices, self.level, shares, self.problem.used(shares) / self.problem.gpus)

    def _mixed(self) -> tuple[Floats, Floats]:
        """Combine the columns to minimise the fullest type; return their weights and the duals (prices)."""
        used = np.array([column.used for column in self.columns]).T
        types, count = used.shape
        if count == 1:
            return np.ones(1), (np.arange(types) == np.argmax(used)) / self.problem.gpus
        from scipy.optimize import linprog

        found: Any = linprog(
            np.append(np.zeros(count), 1.0),
            A_ub=np.hstack([used, -np.ones((types, 1))]),
            b_ub=np.zeros(types),
            A_eq=np.append(np.ones(count), 0.0)[None, :],
            b_eq=[1.0],
            method="highs-ds",
            options={"dual_feasibility_tolerance": 1e-10, "primal_feasibility_tolerance": 1e-10},
        )
        mix = np.maximum(found.x[:-1], 0.0)
        return mix / mix.sum(), np.maximum(-found.ineqlin.marginals, 0.0) / self.problem.gpus

    def _offer(self, shares: Floats) -> None:
        shares = self.problem.sound(shares)
        worst = float(self.problem.fairness_at(shares).max())
        if worst < self.worst:
            self.worst, self.plan = worst, GpuShares(shares, self.best_prices)
        elif self.plan is not None:
            self.plan = GpuShares(self.plan.shares, self.best_prices)
        # The shares are not reported: they would replace the plan of the tie-break, if better by a rounding error.
        self.on_progress(self.worst, self.level)


def nearest_to_isolated(problem: FinishTimeFairness, plan: GpuShares) -> GpuShares:
    """Return the shares nearest to the isolated ones at the plan's level, up to rounding.

    The difference is ``sum_j (g_j / c_j) |x_j - s_j|^2``, c_j the sum of a job's isolated shares: in GPU time, relative
    to the job's own. So where GPUs are short all jobs lose the same part of their isolated shares; without weights wide
    jobs, whose shares are small, would lose most. At prices of the types (duals of the capacities) each job's nearest
    shares are a projection of their own; the prices are then found by bisection (one type) or a quasi-Newton method on
    the concave dual.
    """
    target = np.where(problem.rates > 0, problem.isolated_shares, 0.0)
    least = problem.levels.demands(float(problem.fairness_at(plan.shares).max())) / problem.levels.fastest
    relative = problem.rates / problem.levels.fastest[:, None]
    least = np.minimum(least, relative.max(axis=1))
    own = problem.isolated_shares.sum(axis=1, keepdims=True)
    prices = _clearing(problem, target, relative, least, own)
    shares = _nearest(target - own * prices, relative, least)
    # The fastest type makes up for the speed that the projection lacks by rounding or by its tolerance.
    short = np.maximum(0.0, least - (relative * shares).sum(axis=1))
    rows = np.arange(len(shares))
    shares[rows, relative.argmax(axis=1)] += short
    return GpuShares(problem.sound(shares), plan.prices)


def _clearing(problem: FinishTimeFairness, target: Floats, relative: Floats, least: Floats, own: Floats) -> Floats:
    """Return the prices at which no type is oversubscribed by the jobs' nearest shares, shape (K,)."""

    def excess(prices: Floats) -> Floats:
        return np.asarray(problem.gang_gpus @ _nearest(target - own * prices, relative, least) - problem.gpus)

    none = np.zeros(len(problem.gpus))
    if (excess(none) <= 1e-9 * np.maximum(problem.gpus, 1)).all():
        return none
    if len(none) == 1:
        low, high = none, none + 2.0  # at 2 every job has its least share
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if excess(middle)[0] > 0 else (low, middle)
        return high
    from scipy.optimize import minimize

    def dual(prices: Floats) -> tuple[float, Floats]:
        shares = _nearest(target - own * prices, relative, least)
        used = problem.gang_gpus @ shares - problem.gpus
        far = float(problem.gang_gpus @ ((shares - target) ** 2 / own).sum(axis=1)) / 2
        return -(far + float(prices @ used)), -np.asarray(used, dtype=np.float64)

    found = minimize(
        dual, none, jac=True, method="L-BFGS-B", bounds=[(0.0, None)] * len(none), options={"ftol": 1e-15, "gtol": 1e-9}
    )
    return np.asarray(found.x)


def _nearest(points: Floats, relative: Floats, least: Floats) -> Floats:
    """Project each row of `points` on {x >= 0, sum x <= 1, relative . x >= least}, 0 where `relative` is 0."""
    if points.shape[1] == 1:
        return np.where(relative > 0, np.clip(points, least[:, None], 1.0), 0.0)
    from .kernels import nearest_rows

    shares = np.zeros(points.shape)
    nearest_rows(points, relative, least, shares)
    return shares


BACKEND = FinishTime()
