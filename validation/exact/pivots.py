"""Pivots of a forest of purchases, in rationals: from approximate purchases to exact ones, one pair at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from fractions import Fraction

from .flow import Edge
from .market import ExactMarket, Forest, forest, payments, prices_of


def pivoted(market: ExactMarket, given: Forest, most: int) -> Forest | None:
    """Return the forest of an equilibrium, if pivots from the one given lead there; None after `most` pivots.

    As the simplex method moves through trees of a transport problem: a pair for which a buyer would have to be paid is
    dropped, which parts its tree in two; if there is none, a buyer takes up the good that it likes best and does not
    have. That joins two trees, or closes a cycle, along which money moves until a purchase ends. Nothing promises that
    this ends, but near an equilibrium, where only ties and small purchases are in doubt, it takes a few steps.
    """
    edges = [edge for tree in given for edge in tree]
    for _ in range(most):
        support = forest(edges, len(market.budgets))
        prices = prices_of(market, support)
        if prices is None:
            return None
        paid = payments(market, support, prices)
        worst = min(paid, key=lambda edge: paid[edge])
        if paid[worst] < 0:
            edges.remove(worst)
            continue
        better = _best_change(market, prices, edges)
        if better is None:
            return support
        path = _path(edges, better)
        if path:
            # Money moves to the new pair, from the first of the path, to the second, from the third, ...
            edges.remove(min(path[::2], key=lambda edge: paid[edge]))
        edges.append(better)
    return None


def _best_change(market: ExactMarket, prices: Sequence[Fraction], edges: Sequence[Edge]) -> Edge | None:
    """Return the pair that gains a buyer most per money over what it has, as a ratio; None if none gains."""
    held = dict(edges)
    tight = market.tight(prices)
    best, most = None, Fraction(1)
    for buyer, good in held.items():
        other = min(tight[buyer])
        row = market.utilities[buyer]
        ratio = row[other] * prices[good] / (row[good] * prices[other])
        if ratio > most:
            best, most = (buyer, other), ratio
    return best


def _path(edges: Sequence[Edge], ends: Edge) -> list[Edge]:
    """Return the pairs that lead from a buyer to a good, in order; none if they are in different trees."""
    goods_of: dict[int, list[int]] = {}
    buyers_of: dict[int, list[int]] = {}
    for buyer, good in edges:
        goods_of.setdefault(buyer, []).append(good)
        buyers_of.setdefault(good, []).append(buyer)
    start, end = ends
    came: dict[int, Edge] = {}  # the pair by which a good was reached
    before: dict[int, Edge | None] = {start: None}  # and a buyer
    queue = deque([start])
    while queue:
        buyer = queue.popleft()
        for good in goods_of.get(buyer, ()):
            if good not in came:
                came[good] = (buyer, good)
                for other in buyers_of[good]:
                    if other not in before:
                        before[other] = (other, good)
                        queue.append(other)
    if end not in came:
        return []
    path = [came[end]]
    while (back := before[path[-1][0]]) is not None:
        path += [back, came[back[1]]]
    return path[::-1]
