"""CES and Cobb-Douglas markets by an interior path over log prices: a Newton step in J x T unknowns.

With ``q`` the logarithms of what whole capacities cost and ``f_it(q)`` those of what a unit of utility costs in a
round, the dual of the market is: minimise ``sum exp(q) - sum_i B_i l_i`` with ``l_i <= f_it(q)``. Its multipliers
``b_it`` are what buyer i spends in round t, and its conditions say that budgets are spent (``sum_t b_it = B_i``), that
goods are sold out (``sum_i b_it s_ijt = exp(q_jt)``, with ``s`` the share of each good in the spending of a round, the
slope of f) and that money goes to the cheapest rounds (``b_it (f_it - l_i) = 0``). The path holds the last to
``mu B_i``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....formulations.arrays import Floats
from ....formulations.markets.volatile import VolatileFisherMarket
from ...deadline import Deadline

# Share of the way to the first bid or slack of 0 that a step goes.
NEARLY = 0.995
# Largest step in a log price, times the sharpness of spending: beyond it, the slopes change.
FARTHEST = 4.0
# The path keeps mu above this share of the misplaced money, until the goods sell out.
WAIT = 1e-2
# Newton's matrix is scaled to a diagonal of 1; its shift grows from here by factors of 100 until it is definite.
RIDGE = 1e-15
# Least money on a good, and largest size of a log price: all budgets sum to 1.
TINY = 1e-280
LARGEST_LOG = 640.0
# Called with (round, bound, welfare, found); found() returns the best allocation and the best prices so far.
Report = Callable[[int, float, float, Callable[[], tuple[Any, Floats]]], None]


@dataclass(frozen=True, kw_only=True, eq=False)
class PathOutcome:
    """The outcome of the path: its best allocation and its best prices.

    Attributes
    ----------
    allocation : ndarray of float, shape (N, J, T)
    prices : ndarray of float, shape (J, T)
    gap : float
        Gap (D - P) / sum B.
    stuck : bool
        Whether rounding permitted no further step.
    """

    allocation: Floats
    prices: Floats
    gap: float
    steps: int
    out_of_time: bool
    stuck: bool = False


def follow_prices(
    market: VolatileFisherMarket,
    *,
    start: Floats | None,
    slack: float,
    gap: float,
    deadline: Deadline,
    max_steps: int,
    report: Report,
) -> PathOutcome:
    """Follow the path until the gap is closed, the time or the steps end, or rounding permits no further step.

    Parameters
    ----------
    market : VolatileFisherMarket
        A market of family "ces" or "cobb-douglas".
    start : ndarray of float, shape (J, T), or None
        Prices to start from; those of equal shares by default.
    slack : float
        Initial distance of a buyer's level below the log cost of its cheapest round: 1, or less near the optimum.
    gap : float
        Tolerance of the proved gap (D - P) / sum B.
    report : callable
        Called with (step, bound, welfare, found); found() returns the best allocation and the best prices.
    """
    path = _Path(market, start, slack)
    late, stuck = False, False
    for number in range(max_steps + 1):
        late = deadline.passed
        if path.gap_may_be_closed(gap) or late or stuck or number in (0, max_steps):
            path.evaluate_bounds()
            report(number, path.bound, path.welfare, path.found)
        if path.gap <= gap or late or stuck or number == max_steps:
            break
        stuck = not path.step(gap)
    return PathOutcome(
        allocation=path.allocation, prices=path.prices, gap=path.gap, steps=number, out_of_time=late, stuck=stuck
    )


class _Path:
    """The point of the path: log prices q of whole capacities (T, J), spending b and slacks s (T, N), levels l (N,)."""

    def __init__(self, market: VolatileFisherMarket, start: Floats | None, slack: float) -> None:
        self.market = market
        self.costs = RoundCosts(market)
        self.served, self.wanted = self.costs.served, self.costs.wanted
        self.budgets = market.budgets / market.total_budget
        self.capacities = np.ascontiguousarray(market.capacities.T)
        self.log_capacities = np.log(self.capacities)
        even = np.where(self.served, self.budgets / self.served.sum(axis=0), 0.0)
        worth = self.costs.spent(even, self.costs.weights)
        if start is not None:
            worth = start.T * self.capacities / market.total_budget
        self.q = np.log(np.where(self.wanted, np.maximum(worth, TINY), 1.0))
        self.f, self.shares = self.costs.at(self.q - self.log_capacities)
        self.levels = self.f.min(axis=0) - slack
        self._set_slacks()
        inverse = np.where(self.served, 1.0 / self.slacks, 0.0)
        self.bids = inverse * (self.budgets / inverse.sum(axis=0))
        self.bound, self.welfare = math.inf, -math.inf
        self.allocation: Floats = np.zeros(0)
        self.prices: Floats = np.zeros(0)

    @property
    def gap(self) -> float:
        return (self.bound - self.welfare) / self.market.total_budget

    def found(self) -> tuple[Floats, Floats]:
        return self.allocation, self.prices

    def _set_slacks(self) -> None:
        with np.errstate(invalid="ignore"):
            slacks = np.maximum(self.f - self.levels, 1e-15 * (1.0 + np.abs(self.levels)))
        self.slacks = np.where(self.served, slacks, 1.0)

    def gap_may_be_closed(self, gap: float) -> bool:
        """Whether the gap may be closed: money spent off the cheapest rounds and on unsold goods is small."""
        spent = self.costs.spent(self.bids, self.shares)
        adrift = float(np.abs(spent - self._worth()).sum())
        return float((self.bids * self.slacks).sum()) <= 4.0 * gap and adrift <= 10.0 * max(gap, 1e-12)

    def evaluate_bounds(self) -> None:
        """Sell all goods to the present bids; keep the allocation or the prices if they are the best so far."""
        spent = self.costs.spent(self.bids, self.shares)
        rates = np.where(spent > TINY, 1.0 / np.where(spent > TINY, spent, 1.0), 0.0)
        allocation = np.moveaxis(self.bids[:, :, None] * self.shares * rates[:, None, :], 0, 2) * self.market.capacities
        welfare = self.market.welfare(self.market.utilities_at(allocation))
        if welfare > self.welfare or not self.allocation.size:
            self.welfare, self.allocation = welfare, allocation
        with np.errstate(over="ignore", under="ignore"):
            prices = np.where(self.wanted, np.exp(self.q - self.log_capacities), 0.0).T
        bound = self.market.bound_at(prices)
        if bound < self.bound or not self.prices.size:
            self.bound, self.prices = bound, prices

    def _worth(self) -> Floats:
        return np.where(self.wanted, np.exp(self.q), 0.0)

    def step(self, gap: float) -> bool:
        """Take one predictor-corrector step; return False if rounding permits none."""
        served, b, s, B = self.served, self.bids, self.slacks, self.budgets
        worth = self._worth()
        mu = float((b * s * served).sum() / (B * served.sum(axis=0)).sum())
        newton = _Newton(self, worth)
        if newton.factor is None:
            return False
        _, _, ds, db = newton.solve(-b * s)
        far, long = self._longest(b, db), self._longest(s, ds)
        after = float(((b + far * db) * (s + long * ds) * served).sum() / (B * served.sum(axis=0)).sum())
        target = max(min(1.0, (after / mu) ** 3) * mu, WAIT * newton.adrift, WAIT * gap)
        dq, dl, ds, db = newton.solve(target * B - b * s - db * ds)
        if not (np.isfinite(dq).all() and np.isfinite(db).all()):
            return False
        length = min(1.0, NEARLY * self._longest(b, db), NEARLY * self._longest(s, ds))
        most = self._reach(dq)
        length = min(length, FARTHEST / most) if most > 0 else length
        self.bids = b + length * db
        self.q = np.clip(self.q + length * dq, -LARGEST_LOG, LARGEST_LOG)
        predicted = np.where(served, s + length * ds, 0.0)
        self.f, self.shares = self.costs.at(self.q - self.log_capacities)
        # f is not linear: a level gives way where its slack would be under a tenth of the prediction.
        self.levels = np.minimum(self.levels + length * dl, (self.f - 0.1 * predicted).min(axis=0))
        self._set_slacks()
        return length > 1e-10

    def _longest(self, values: Floats, move: Floats) -> float:
        falling = self.served & (move < 0)
        return min(1.0, float((values[falling] / -move[falling]).min(initial=1.0)))

    def _reach(self, dq: Floats) -> float:
        """Return the largest move of a log price, weighted by the curvature of the costs."""
        if self.costs.power <= 0.0:
            return float(np.abs(dq).max()) * max(1.0, -self.costs.power)
        # The price of a complement that falls and is no part of any cost may fall without limit.
        parts = np.minimum(1.0, 10.0 * self.shares.max(axis=1))
        return float(np.where(dq < 0, -dq * parts, dq).max())


class _Newton:
    """Newton's equations at a point of the path, reduced to the log prices of wanted goods."""

    def __init__(self, path: _Path, worth: Floats) -> None:
        from scipy.linalg import LinAlgError, cho_factor

        self.path = path
        bids, shares, elasticity = path.bids, path.shares, path.costs.elasticity
        rounds, count, resources = shares.shape
        self.ratio = np.where(path.served, bids / path.slacks, 0.0)
        # Each buyer's first round, where bids respond most, is the reference of the others: with the sums of the
        # others in place of differences of large numbers, little is lost to rounding near the end of the path.
        self.first = (self.ratio.argmax(axis=0), np.arange(count))
        self.others = self.ratio.copy()
        self.others[self.first] = 0.0
        self.besides = self.others.sum(axis=0)
        self.total = self.besides + self.ratio[self.first]
        spent = path.costs.spent(bids, shares)
        self.adrift = float(np.abs(spent - worth).sum())
        # The balance of goods is stated in logarithms, in which a price that is far too high falls to its level.
        spent = np.where(path.wanted, np.maximum(spent, TINY), 1.0)
        self.missing = np.where(path.wanted, spent * (np.log(spent) - np.log(np.maximum(worth, TINY))), 0.0)
        self.rest = path.budgets - bids.sum(axis=0)
        size = rounds * resources
        pull = self.others - (elasticity - 1.0) * bids
        pull[self.first] += self.besides
        blocks = np.matmul((pull[:, :, None] * shares).transpose(0, 2, 1), shares)
        matrix: NDArray[Any] = np.zeros((rounds, resources, rounds, resources))
        matrix[np.arange(rounds), :, np.arange(rounds), :] = blocks
        rows = np.ascontiguousarray((self.others[:, :, None] * shares).transpose(1, 0, 2))
        for t in range(rounds):
            here = self.first[0] == t
            cross = np.tensordot(rows[here], shares[t, here], axes=(0, 0))
            matrix[:, :, t, :] -= cross
            matrix[t] -= cross.transpose(2, 0, 1)
        rows[self.first[1], self.first[0]] -= self.besides[:, None] * shares[self.first]
        rows = rows.reshape(count, size)
        matrix = matrix.reshape(size, size)
        matrix -= (rows / self.total[:, None]).T @ rows
        matrix[np.arange(size), np.arange(size)] += elasticity * spent.ravel()
        self.kept = np.flatnonzero(path.wanted.ravel())
        matrix = matrix[np.ix_(self.kept, self.kept)]
        self.factor: Any = None
        if not np.isfinite(matrix).all():
            return
        self.scale = 1.0 / np.sqrt(np.maximum(np.diag(matrix), 1e-300))
        matrix *= self.scale[:, None] * self.scale
        ridge = RIDGE
        while self.factor is None and ridge < 1.0:
            try:
                self.factor = cho_factor(matrix + ridge * np.eye(len(matrix)), check_finite=False)
            except LinAlgError:
                ridge *= 100.0

    def solve(self, push: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Return the moves of log prices, levels, slacks and bids for ``b ds + s db = push``."""
        from scipy.linalg import cho_solve

        path = self.path
        pushed = np.where(path.served, push / path.slacks, 0.0)
        elsewhere = pushed.sum(axis=0) - pushed[self.first]
        level = (self.rest - elsewhere - pushed[self.first]) / self.total
        drawn = pushed + self.ratio * level
        share = self.besides / self.total
        drawn[self.first] = pushed[self.first] * share + (self.rest - elsewhere) * (1.0 - share)
        right = self.missing + path.costs.spent(drawn, path.shares)
        moves = np.zeros(right.size)
        moves[self.kept] = self.scale * cho_solve(
            self.factor, self.scale * right.ravel()[self.kept], check_finite=False
        )
        dq = moves.reshape(right.shape)
        df = np.matmul(path.shares, dq[:, :, None])[:, :, 0]
        dl = level + (self.ratio * df).sum(axis=0) / self.total
        ds = df - dl
        db = np.where(path.served, (push - path.bids * ds) / path.slacks, 0.0)
        db[self.first] += self.rest - db.sum(axis=0)  # budgets are spent, to the last digit
        return dq, dl, ds, db


class RoundCosts:
    """Logarithms of unit costs and spending shares at log prices, by round: arrays are (T, N), (T, N, J) and (T, J).

    Attributes
    ----------
    weights : ndarray of float, shape (T, N, J)
        Utility weights; 0 where a good is not wanted.
    served : ndarray of bool, shape (T, N)
    wanted : ndarray of bool, shape (T, J)
    elasticity : float
        Elasticity of substitution between the resources of a round; 1 in a Cobb-Douglas market.
    """

    def __init__(self, market: VolatileFisherMarket) -> None:
        wants: NDArray[np.bool_] = market.arithmetic.has_demand
        self.weights = np.ascontiguousarray(np.moveaxis(np.where(wants, market.utilities, 0.0), 2, 0))
        self.served = np.ascontiguousarray(market.active.T)
        self.wanted = np.ascontiguousarray(market.in_demand.T)
        rho = market.rho
        self.power = 0.0 if rho is None else -rho / (1.0 - rho)  # 1 - elasticity
        self.elasticity = 1.0 - self.power
        with np.errstate(divide="ignore"):
            self._log_weights = np.where(self.weights > 0, np.log(self.weights), 0.0)
            self._log_yield = np.where(self.served, np.log(market.productivity.T), 0.0)

    def at(self, log_prices: Floats) -> tuple[Floats, Floats]:
        """Return log unit costs (infinite where nothing is served) and each good's share of spending."""
        relative = log_prices[:, None, :] - self._log_weights
        if self.power == 0.0:
            costs = (self.weights * relative).sum(axis=2) - self._log_yield
            return np.where(self.served, costs, np.inf), self.weights
        powers = np.where(self.weights > 0, self.power * relative, -np.inf)
        most = powers.max(axis=2, keepdims=True)
        most = np.where(np.isfinite(most), most, 0.0)
        parts = self.weights * np.exp(powers - most)
        total = parts.sum(axis=2, keepdims=True)
        total = np.where(total > 0, total, 1.0)
        costs = (np.log(total) + most)[:, :, 0] / self.power - self._log_yield
        return np.where(self.served, costs, np.inf), parts / total

    def spent(self, bids: Floats, shares: Floats) -> Floats:
        """Return the money spent on each good, shape (T, J), when `bids`, shape (T, N), are split by `shares`."""
        return np.asarray(np.matmul(bids[:, None, :], shares)[:, 0, :])
