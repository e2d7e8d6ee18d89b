"""CES and Cobb-Douglas markets as cone programs: power and exponential cones, and units that bring columns near 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ....formulations.arrays import Floats, Indices
from ....formulations.markets.volatile import VolatileFisherMarket
from .run import ConeProgram

# Nearer to 0, a CES utility is replaced by the Cobb-Douglas utility that touches it at the point of the previous solve:
# the error shrinks by rho each time, while power cones of such an exponent lose their digits.
SMALL_RHO = 0.03
# Least unit of columns and of a round's yield, as shares.
LEAST_UNIT = 1e-8


@dataclass(frozen=True, kw_only=True)
class MarketCones(ConeProgram):
    """A market as a program in cones.

    With f the share of each good's capacity, w the weights and s the productivity that go with shares, v what a round
    yields per s, and U_i the sum of s v over rounds:

    - ``b_i log(U_i / b_i) >= t_i``, b the shares of the budgets times N, by exponential cones; minimise ``-sum t_i``;
    - 0 < rho < 1: ``y_j <= f_j^rho v^(1-rho)`` by power cones, ``sum_j w_j y_j >= v``;
    - rho < 0: ``y_j >= v^(1-rho) f_j^rho``, or ``v <= y_j^(1/(1-rho)) f_j^(-rho/(1-rho))``, ``sum_j w_j y_j <= v``;
    - Cobb-Douglas: ``y_j <= v log(f_j / v)`` by exponential cones, ``sum_j w_j y_j >= 0``;
    - a round in which a buyer wants one resource alone has ``v = f``, and neither cone nor column.

    Columns are f by entry, v and y where several resources are wanted, and t; rows are capacities, sums of y and signs
    (not negative), logarithms, then powers.

    Attributes
    ----------
    entries : tuple of ndarray of int, each shape (E,)
        Buyer, resource and round of each wanted good; entries of one buyer and round are neighbours.
    units : ndarray of float, shape (E,)
        Units of the columns f.
    power : float
        rho; 0 for exponential cones.
    priced : ndarray of int
        Goods of the first rows, in C order.
    signs, sums, powers : int
        Numbers of sign rows, of sum rows and of power cones.
    """

    market: VolatileFisherMarket
    entries: tuple[Indices, Indices, Indices]
    units: Floats
    power: float
    priced: Indices
    signs: int
    sums: int
    powers: int

    @classmethod
    def of(cls, market: VolatileFisherMarket, around: Floats | None, *, scaled: bool = False) -> MarketCones:
        """State the market in cones; near rho = 0 around an allocation, and `scaled` in units of it."""
        from scipy.sparse import coo_array, csc_array

        buyers, rounds, resources = np.nonzero(market.arithmetic.has_demand.transpose(0, 2, 1))
        N, E = market.num_buyers, len(buyers)
        starts = np.flatnonzero(np.diff(buyers * market.num_rounds + rounds, prepend=-1))  # entries of a buyer's round
        counts = np.diff(starts, append=E)
        shares = None if around is None else (around / market.capacities)[buyers, resources, rounds]
        local = InShares.of(market, (buyers, resources, rounds), starts, counts, shares, scaled)
        power, several, owner = local.power, counts > 1, buyers[starts]
        part, alone, Q = np.flatnonzero(np.repeat(several, counts)), starts[~several], int(several.sum())
        Y = len(part)
        level = np.where(several, E + np.cumsum(several) - 1, starts)  # the column of v
        piece, log = E + Q + np.arange(Y), E + Q + Y + np.arange(N)
        mine = np.repeat(np.arange(len(starts)), counts)[part]  # the round of each piece
        units, ratios = local.units, (local.units / np.repeat(local.levels, counts))[part]

        priced, good = np.unique(resources * market.num_rounds + rounds, return_inverse=True)
        at_sum = len(priced) + level[mine] - E
        at_log = len(priced) + Q + len(alone) + 3 * np.arange(N)
        at_power = len(priced) + Q + len(alone) + 3 * N + 3 * np.arange(Y)
        sign = 1.0 if power >= 0 else -1.0
        blocks: list[tuple[Any, Any, Any]] = [
            (good, np.arange(E), units),
            (at_sum, piece, -sign * local.weights[part] * ratios**power),
            (len(priced) + Q + np.arange(len(alone)), alone, -1.0),
            (at_log, log, -1.0),
            (at_log[owner] + 2, level, -N * local.yields * local.levels),
        ]
        if power:
            blocks.append((len(priced) + np.arange(Q), E + np.arange(Q), sign))
        inside = [(part, 1.0 if power else ratios), (level[mine], 1.0), (piece, 1.0)]
        order = (0, 1, 2) if power > 0 else (2, 0, 1) if power < 0 else (2, 1, 0)
        blocks += [(at_power + k, inside[which][0], -1.0 * inside[which][1]) for k, which in enumerate(order)]
        rows, columns, values = (
            np.concatenate([np.broadcast_to(block[k], np.shape(block[1])) for block in blocks]) for k in range(3)
        )
        right = np.zeros(len(priced) + Q + len(alone) + 3 * N + 3 * Y)
        right[: len(priced)] = 1.0
        right[at_log + 1] = N * market.budgets / market.total_budget
        cost = np.zeros(E + Q + Y + N)
        cost[log] = -1.0
        matrix = csc_array(coo_array((values, (rows, columns)), shape=(len(right), len(cost))))
        return cls(
            market=market, entries=(buyers, resources, rounds), units=units, power=power, cost=cost, matrix=matrix,
            right=right, priced=priced, signs=len(alone), sums=Q, powers=Y,
        )  # fmt: skip

    def kinds(self) -> list[Any]:
        """Return the cones as objects of Clarabel."""
        import clarabel

        exponential = clarabel.ExponentialConeT()
        exponent = self.power if self.power > 0 else 1.0 / (1.0 - self.power)
        power = clarabel.PowerConeT(exponent) if self.power else exponential
        signs = clarabel.NonnegativeConeT(len(self.priced) + self.sums + self.signs)
        return [signs, *[exponential] * self.market.num_buyers, *[power] * self.powers]

    def read(self, solution: Any) -> tuple[Floats, Floats]:
        """Return the allocation and the prices of Clarabel's point; the unit of the prices is arbitrary."""
        buyers, resources, rounds = self.entries
        market = self.market
        shares, prices = np.zeros(market.shape), np.zeros(market.capacities.size)
        shares[buyers, resources, rounds] = np.asarray(solution.x)[: len(buyers)] * self.units
        prices[self.priced] = np.asarray(solution.z)[: len(self.priced)]
        return shares * market.capacities, prices.reshape(market.capacities.shape) / market.capacities


@dataclass(frozen=True, kw_only=True)
class InShares:
    """Data of a market over shares of capacities, in units that bring the columns of the cone program near 1.

    Attributes
    ----------
    power : float
        rho; 0 for Cobb-Douglas utilities and for CES utilities with rho near 0, which a touching Cobb-Douglas
        utility replaces.
    weights, units : ndarray of float, shape (E,)
        Weights and units by entry; the weights of a round sum to 1.
    yields, levels : ndarray of float
        Productivity relative to the buyer's largest, and the unit of the round's yield, by buyer and round.
    """

    power: float
    weights: Floats
    units: Floats
    yields: Floats
    levels: Floats

    @classmethod
    def of(
        cls,
        market: VolatileFisherMarket,
        entries: tuple[Indices, Indices, Indices],
        starts: Indices,
        counts: Indices,
        shares: Floats | None,
        scaled: bool,
    ) -> InShares:
        """Weigh the entries; `starts` and `counts` delimit the entries of one buyer's round."""
        buyers, resources, rounds = entries
        rho = market.rho or 0.0

        def summed(values: Floats) -> Floats:
            return np.asarray(np.add.reduceat(values, starts))

        def spread(values: Floats) -> Floats:
            return np.repeat(values, counts)

        def total(logs: Floats) -> Floats:
            most = np.maximum.reduceat(logs, starts)
            return np.asarray(most + np.log(summed(np.exp(logs - spread(most)))))

        weights = market.utilities[entries]
        log_capacity = np.log(market.capacities[resources, rounds])
        yields = np.log(market.productivity[buyers[starts], rounds[starts]])
        clipped = np.ones(len(buyers)) if shares is None else np.clip(shares, LEAST_UNIT, 1.0)
        logs, power = np.log(clipped), rho
        if rho:
            terms = np.log(weights) + rho * log_capacity
            yields = yields + total(terms) / rho
            weights = np.exp(terms - spread(total(terms)))
            level = total(np.log(np.maximum(weights, np.finfo(float).tiny)) + rho * logs) / rho
            if abs(rho) < SMALL_RHO:
                power = 0.0
                weights = weights * np.exp(rho * (logs - spread(level)))
                weights = weights / spread(summed(weights))
                yields = yields + level - summed(weights * logs)
        else:
            yields = yields + summed(weights * log_capacity)
            level = summed(weights * logs)
        if scaled and power:
            units, levels = clipped, np.exp(level)
        else:
            units, levels = np.ones_like(clipped), np.ones_like(level)
            if power < 0:
                # A resource of little weight is needed in small amounts: in these units all pieces of a round are of
                # like size.
                units = np.maximum(weights ** min(1.0, -1.0 / power), LEAST_UNIT)
        owner = buyers[starts]
        best = np.maximum.reduceat(yields, np.flatnonzero(np.diff(owner, prepend=-1)))
        return cls(power=power, weights=weights, units=units, yields=np.exp(yields - best[owner]), levels=levels)
