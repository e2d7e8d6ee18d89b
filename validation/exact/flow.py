"""Maximal flow from buyers to goods in whole numbers of any size, by shortest augmenting paths."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence

Edge = tuple[int, int]


def max_flow(
    supply: Sequence[int], demand: Sequence[int], allowed: Sequence[set[int]], start: Mapping[Edge, int] | None = None
) -> dict[Edge, int]:
    """Return a maximal flow from buyers to goods, within the supply of each buyer and the demand of each good.

    `allowed` has the goods that each buyer may send to, any amount. To begin with, the positive amounts of `start` on
    allowed pairs are sent, as far as supply and demand allow. Only positive amounts are returned.

    J. Edmonds and R. Karp, "Theoretical improvements in algorithmic efficiency for network flow problems", Journal of
    the ACM 19, 1972.
    """
    left, unmet = list(supply), list(demand)
    flow: dict[Edge, int] = {}
    senders: list[dict[int, None]] = [{} for _ in demand]  # buyers that send to a good, in a fixed order

    def send(buyer: int, good: int, amount: int) -> None:
        flow[buyer, good] = flow.get((buyer, good), 0) + amount
        senders[good][buyer] = None
        if not flow[buyer, good]:
            del flow[buyer, good], senders[good][buyer]

    for (buyer, good), wished in (start or {}).items():
        amount = min(wished, left[buyer], unmet[good])
        if amount > 0:
            send(buyer, good, amount)
            left[buyer] -= amount
            unmet[good] -= amount
    goods_of = [sorted(goods) for goods in allowed]
    while path := _augmenting_path(left, unmet, goods_of, senders):
        (_, end), (origin, _) = path[0], path[-1]
        amount = min([left[origin], unmet[end], *(flow[pair] for pair in path[1::2])])
        left[origin] -= amount
        unmet[end] -= amount
        for step, (buyer, good) in enumerate(path):
            send(buyer, good, amount if step % 2 == 0 else -amount)
    return flow


def _augmenting_path(
    left: Sequence[int], unmet: Sequence[int], goods_of: Sequence[Sequence[int]], senders: Sequence[Iterable[int]]
) -> list[Edge]:
    """Return a shortest path from a buyer with supply left to a good with unmet demand; empty if there is none.

    The path goes backwards from the good: pairs that send more, and between them pairs that take back.
    """
    from_good: dict[int, int | None] = {buyer: None for buyer, amount in enumerate(left) if amount}
    from_buyer: dict[int, int] = {}
    queue = deque(from_good)
    while queue:
        buyer = queue.popleft()
        for good in goods_of[buyer]:
            if good in from_buyer:
                continue
            from_buyer[good] = buyer
            if unmet[good]:
                return _traced(good, from_buyer, from_good)
            for other in senders[good]:
                if other not in from_good:
                    from_good[other] = good
                    queue.append(other)
    return []


def _traced(end: int, from_buyer: Mapping[int, int], from_good: Mapping[int, int | None]) -> list[Edge]:
    """Return the path that reached a good, from its end to its beginning."""
    path: list[Edge] = []
    good: int | None = end
    while good is not None:
        buyer = from_buyer[good]
        path.append((buyer, good))
        good = from_good[buyer]
        if good is not None:
            path.append((buyer, good))
    return path
