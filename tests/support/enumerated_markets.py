"""Linear markets by enumeration, in rationals: a slow oracle for the methods and their certificates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from equipoise.formulations.errors import InvalidInput
from equipoise.formulations.markets.fisher import FisherMarket

#: Supports are subsets of the wanted pairs: 4,096 of them at most.
MOST_PAIRS = 12

Pair = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class EnumeratedEquilibrium:
    """The equilibrium of a linear market, exactly.

    Attributes
    ----------
    prices : tuple of Fraction
        By good, per unit; 0 for a good that no buyer wants.
    utilities : tuple of Fraction
        By buyer. Prices and utilities are the same in every equilibrium of a linear market.
    spending : dict of (buyer, good) to Fraction
        Who pays how much for what in one equilibrium; there may be others.
    """

    prices: tuple[Fraction, ...]
    utilities: tuple[Fraction, ...]
    spending: dict[Pair, Fraction]


def enumerated_equilibrium(market: FisherMarket) -> EnumeratedEquilibrium:
    """Return the equilibrium of a tiny linear market by trying every support without cycles.

    Some equilibrium spends along a forest of pairs (buyer, good). In a tree of it, the utilities fix the ratios of
    prices and the budgets their level; then there is one way to spend all. It is the equilibrium if no buyer spends
    less than nothing or would rather have another good.

    Parameters
    ----------
    market : FisherMarket
        Of at most :data:`MOST_PAIRS` pairs of a buyer and a good that it wants.

    Raises
    ------
    InvalidInput
        If there are more.
    """
    table: Any = market.utilities.toarray() if market.is_sparse else market.utilities  # type: ignore[union-attr]
    worth = {
        (i, k): Fraction(value) for i, row in enumerate(table.tolist()) for k, value in enumerate(row) if value > 0
    }
    if len(worth) > MOST_PAIRS:
        raise InvalidInput("utilities", f"{len(worth)} wanted pairs", f"at most {MOST_PAIRS} can be enumerated")
    budgets, capacities = ([Fraction(value) for value in each.tolist()] for each in (market.budgets, market.capacities))
    goods = {good for _, good in worth}
    for support in _forests(sorted(worth)):
        if {buyer for buyer, _ in support} != set(range(len(budgets))) or {good for _, good in support} != goods:
            continue
        prices: dict[int, Fraction] = {}
        for tree in _trees(support):
            prices.update(_prices(tree, worth, budgets, capacities))
        rates = {pair: worth[pair] / prices[pair[1]] for pair in worth}
        best = [max(rate for pair, rate in rates.items() if pair[0] == buyer) for buyer in range(len(budgets))]
        if any(rates[pair] < best[pair[0]] for pair in support):
            continue
        spending = _spending(support, budgets, {good: prices[good] * capacities[good] for good in goods})
        if all(amount >= 0 for amount in spending.values()):
            return EnumeratedEquilibrium(
                prices=tuple(prices.get(good, Fraction(0)) for good in range(len(capacities))),
                utilities=tuple(budget * rate for budget, rate in zip(budgets, best, strict=True)),
                spending=spending,
            )
    raise AssertionError("every linear market has an equilibrium that spends along a forest")


def _forests(pairs: Sequence[Pair]) -> Iterator[list[Pair]]:
    """Yield every subset of the pairs that closes no cycle."""

    def grown(at: int, chosen: list[Pair], tree_of: dict[tuple[str, int], int]) -> Iterator[list[Pair]]:
        if at == len(pairs):
            yield chosen
            return
        buyer, good = pairs[at]
        one, other = tree_of[("buyer", buyer)], tree_of[("good", good)]
        if one != other:
            joined = {node: (one if tree == other else tree) for node, tree in tree_of.items()}
            yield from grown(at + 1, [*chosen, pairs[at]], joined)
        yield from grown(at + 1, chosen, tree_of)

    nodes = sorted({("buyer", buyer) for buyer, _ in pairs} | {("good", good) for _, good in pairs})
    yield from grown(0, [], {node: number for number, node in enumerate(nodes)})


def _trees(support: Sequence[Pair]) -> Iterator[list[Pair]]:
    """Yield the pairs of each connected part, each but the first after one that it shares a buyer or a good with."""
    left = list(support)
    while left:
        tree = [left.pop(0)]
        while True:
            near = [(i, k) for i, k in left if any(i == buyer or k == good for buyer, good in tree)]
            if not near:
                break
            tree.append(near[0])
            left.remove(near[0])
        yield tree


def _prices(
    tree: Sequence[Pair], worth: dict[Pair, Fraction], budgets: Sequence[Fraction], capacities: Sequence[Fraction]
) -> dict[int, Fraction]:
    """Return the prices at which each buyer of a tree likes its goods alike, and all of them cost what it holds."""
    rates: dict[int, Fraction] = {tree[0][0]: Fraction(1)}  # utility per money, up to a common factor
    prices: dict[int, Fraction] = {}
    for buyer, good in tree:
        if buyer in rates:
            prices[good] = worth[buyer, good] / rates[buyer]
        else:
            rates[buyer] = worth[buyer, good] / prices[good]
    held = sum((budgets[buyer] for buyer in rates), Fraction(0))
    cost = sum((price * capacities[good] for good, price in prices.items()), Fraction(0))
    return {good: price * held / cost for good, price in prices.items()}


def _spending(support: Sequence[Pair], budgets: Sequence[Fraction], costs: dict[int, Fraction]) -> dict[Pair, Fraction]:
    """Return the one way to spend all budgets on all goods along a forest: a node with one pair left decides it."""
    money, left = dict(enumerate(budgets)), list(support)
    owed = dict(costs)
    spending: dict[Pair, Fraction] = {}
    while left:
        for buyer, good in left:
            if sum(other == buyer for other, _ in left) == 1:
                amount = money[buyer]
            elif sum(other == good for _, other in left) == 1:
                amount = owed[good]
            else:
                continue
            spending[buyer, good] = amount
            money[buyer] -= amount
            owed[good] -= amount
            left.remove((buyer, good))
            break
    return spending
