"""Linear markets in rationals: exact data, prices fixed by a forest of purchases, and the conditions of equilibrium."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from typing import Any

from ...formulations.errors import InvalidInput
from ...formulations.markets.fisher import FisherMarket
from .flow import Edge, max_flow

#: Trees of buyers and goods along purchases: in each, the utilities fix the ratios of prices.
Forest = tuple[tuple[Edge, ...], ...]


@dataclass(frozen=True, kw_only=True)
class ExactMarket:
    """A linear market in rationals.

    `utilities` has by buyer the goods it wants, with whole numbers in proportion to their utility: each buyer's unit is
    its own.
    """

    utilities: tuple[dict[int, int], ...]
    budgets: tuple[Fraction, ...]
    capacities: tuple[Fraction, ...]

    @property
    def wanted(self) -> set[int]:
        """Goods that somebody wants."""
        return {good for row in self.utilities for good in row}

    def tight(self, prices: Sequence[Fraction]) -> list[set[int]]:
        """Return, by buyer, the goods of the most utility per money at positive prices."""
        rough = [float(price) for price in prices]
        safe = all(1e-250 < rough[good] < 1e250 for good in self.wanted)
        found = []
        for row in self.utilities:
            goods = list(row)
            if safe and max(row.values()).bit_length() < 800:
                rates = [row[good] / rough[good] for good in goods]
                near = max(rates) * (1.0 - 1e-12)  # three roundings are far less
                goods = [good for good, rate in zip(goods, rates, strict=True) if rate >= near]
            best, ties = goods[0], {goods[0]}
            for good in goods[1:]:
                left, right = row[good] * prices[best], row[best] * prices[good]
                if left > right:
                    best, ties = good, {good}
                elif left == right:
                    ties.add(good)
            found.append(ties)
        return found


def exact_market(
    market: FisherMarket, utilities: Any = None, budgets: Any = None, capacities: Any = None
) -> ExactMarket:
    """Return the market's data as rationals: a float is one, whatever it was rounded from.

    The numbers that the market's floats are roundings of may be given as whole numbers or Fractions; InvalidInput if
    one is not within rounding of the market's.
    """
    rows: list[dict[int, int]] = []
    table: Any = market.utilities
    for buyer in range(market.num_buyers):
        if market.is_sparse:
            entries = slice(table.indptr[buyer], table.indptr[buyer + 1])
            pairs = zip(table.indices[entries].tolist(), table.data[entries].tolist(), strict=True)
        else:
            pairs = zip(range(market.num_goods), table[buyer].tolist(), strict=True)
        row = {}
        for good, value in pairs:
            exact = _exact("utilities", value, None if utilities is None else utilities[buyer][good], (buyer, good))
            if exact:
                row[good] = exact
        unit = math.lcm(*(value.denominator for value in row.values()))
        whole = {good: int(value * unit) for good, value in row.items()}
        common = math.gcd(*whole.values())
        rows.append({good: value // common for good, value in whole.items()})
    columns = {"budgets": (market.budgets, budgets), "capacities": (market.capacities, capacities)}
    numbers = {
        name: tuple(
            _exact(name, value, None if given is None else given[index], (index,))
            for index, value in enumerate(values.tolist())
        )
        for name, (values, given) in columns.items()
    }
    return ExactMarket(utilities=tuple(rows), **numbers)


def _exact(name: str, value: float, given: Any, index: tuple[int, ...]) -> Fraction:
    if given is None:
        return Fraction(value)
    try:
        exact = Fraction(given)
    except (TypeError, ValueError):
        raise InvalidInput(name, given, "must be a whole number or a Fraction", index=index) from None
    if float(exact) != value:
        raise InvalidInput(name, given, f"the market has {value!r} there", index=index)
    return exact


def forest(edges: Iterable[Edge], num_buyers: int) -> Forest:
    """Return the trees that pairs (buyer, good) form, taken in their order without those that close a cycle."""
    parent: dict[int, int] = {}

    def root(node: int) -> int:
        while parent.setdefault(node, node) != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    kept: list[Edge] = []
    for buyer, good in edges:
        one, other = root(buyer), root(num_buyers + good)
        if one != other:
            parent[one] = other
            kept.append((buyer, good))
    trees: dict[int, list[Edge]] = {}
    for edge in kept:
        trees.setdefault(root(edge[0]), []).append(edge)
    return tuple(tuple(tree) for tree in trees.values())


def prices_of(market: ExactMarket, given: Forest) -> list[Fraction] | None:
    """Return the prices at which each buyer of a tree is indifferent between its goods, and each tree sells out.

    None if a wanted good is in no tree. Along a tree ``p_k/p_l = u_ik/u_il``; its goods cost what its buyers have.
    """
    prices = [Fraction(0)] * len(market.capacities)
    for tree in given:
        around: dict[int, list[Edge]] = {}
        goods_around: dict[int, list[Edge]] = {}
        for edge in tree:
            around.setdefault(edge[0], []).append(edge)
            goods_around.setdefault(edge[1], []).append(edge)
        start = tree[0][1]
        prices[start] = Fraction(1)
        queue, reached, seen = deque([start]), [start], {start}
        while queue:
            good = queue.popleft()
            for buyer, _ in goods_around[good]:
                for _, other in around[buyer]:
                    if other not in seen:
                        row = market.utilities[buyer]
                        prices[other] = prices[good] * Fraction(row[other], row[good])
                        seen.add(other)
                        reached.append(other)
                        queue.append(other)
        cost = sum((prices[good] * market.capacities[good] for good in reached), Fraction(0))
        money = sum((market.budgets[buyer] for buyer in around), Fraction(0))
        for good in reached:
            prices[good] *= money / cost
    return prices if all(prices[good] for good in market.wanted) else None


def purchases(
    market: ExactMarket, given: Forest, prices: Sequence[Fraction], tight: Sequence[set[int]]
) -> dict[Edge, Fraction] | None:
    """Return what each buyer pays for each good if all can spend everything on tight goods and all sell out, else None.

    First along the trees, where the amounts are unique; if one is negative, by a maximal flow over all tight pairs.
    """
    paid = payments(market, given, prices)
    if all(amount >= 0 for amount in paid.values()):
        return {edge: amount for edge, amount in paid.items() if amount}
    unit = math.lcm(
        *(budget.denominator for budget in market.budgets),
        *((price * size).denominator for price, size in zip(prices, market.capacities, strict=True)),
    )
    supply = [int(budget * unit) for budget in market.budgets]
    demand = [int(price * size * unit) for price, size in zip(prices, market.capacities, strict=True)]
    start = {edge: int(amount * unit) for edge, amount in paid.items() if amount > 0}
    flow = max_flow(supply, demand, tight, start)
    if sum(flow.values()) != sum(supply):
        return None
    return {edge: Fraction(amount, unit) for edge, amount in flow.items() if amount}


def payments(market: ExactMarket, given: Forest, prices: Sequence[Fraction]) -> dict[Edge, Fraction]:
    """Return the one way to spend all budgets along the trees so that all goods sell out; amounts may be negative.

    From the leaves of the trees inwards: a node with one pair left determines it.
    """
    count = len(market.budgets)
    left: dict[int, Fraction] = {}
    neighbours: dict[int, set[int]] = {}
    for buyer, good in chain.from_iterable(given):
        left[buyer], left[count + good] = market.budgets[buyer], prices[good] * market.capacities[good]
        neighbours.setdefault(buyer, set()).add(count + good)
        neighbours.setdefault(count + good, set()).add(buyer)
    leaves = [node for node, others in neighbours.items() if len(others) == 1]
    paid: dict[Edge, Fraction] = {}
    while leaves:
        node = leaves.pop()
        if not neighbours[node]:
            continue
        other = neighbours[node].pop()
        neighbours[other].remove(node)
        amount = left[node]
        left[other] -= amount
        paid[(node, other - count) if node < count else (other, node - count)] = amount
        if len(neighbours[other]) == 1:
            leaves.append(other)
    return paid
