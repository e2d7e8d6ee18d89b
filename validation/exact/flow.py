"""Maximal flow from buyers to goods in whole numbers of any size, by shortest augmenting paths."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

Edge = tuple[int, int]


def max_flow(
    supply: Sequence[int], demand: Sequence[int], allowed: Sequence[set[int]], start: Mapping[Edge, int] | None = None
) -> dict[Edge, int]:
    """Return the most that buyers can send to goods, within what each has and each takes.

    Parameters
    ----------
    supply : sequence of int
        What each buyer has, at least 0.
    demand : sequence of int
        What each good takes, at least 0.
    allowed : sequence of set of int
        By buyer, the goods that it may send to, any amount.
    start : mapping of (buyer, good) to int, optional
        Positive amounts on allowed pairs to begin with, as far as supply and demand allow.

    Returns
    -------
    dict of (buyer, good) to int
        The positive amounts.

    Notes
    -----
    J. Edmonds and R. Karp, "Theoretical improvements in algorithmic efficiency for network flow problems", Journal of
    the ACM 19, 1972.
    """
    left, room = list(supply), list(demand)
    flow: dict[Edge, int] = {}
    senders: list[dict[int, None]] = [{} for _ in demand]  # buyers that send to a good, in a fixed order

    def send(buyer: int, good: int, amount: int) -> None:
        flow[buyer, good] = flow.get((buyer, good), 0) + amount
        senders[good][buyer] = None
        if not flow[buyer, good]:
            del flow[buyer, good], senders[good][buyer]

    for (buyer, good), wished in (start or {}).items():
        amount = min(wished, left[buyer], room[good])
        if amount > 0:
            send(buyer, good, amount)
            left[buyer] -= amount
            room[good] -= amount
    goods_of = [sorted(goods) for goods in allowed]
    while True:
        # Breadth first from every buyer with something left, to any good with room.
        from_good: dict[int, int | None] = {buyer: None for buyer, amount in enumerate(left) if amount}
        from_buyer: dict[int, int] = {}
        queue, end = deque(from_good), None
        while queue and end is None:
            buyer = queue.popleft()
            for good in goods_of[buyer]:
                if good in from_buyer:
                    continue
                from_buyer[good] = buyer
                if room[good]:
                    end = good
                    break
                for other in senders[good]:
                    if other not in from_good:
                        from_good[other] = good
                        queue.append(other)
        if end is None:
            return flow
        path, at = [], end
        while True:  # pairs that send more, and between them pairs that take back
            buyer = from_buyer[at]
            path.append((buyer, at))
            came = from_good[buyer]
            if came is None:
                break
            path.append((buyer, came))
            at = came
        amount = min([left[path[-1][0]], room[end], *(flow[pair] for pair in path[1::2])])
        left[path[-1][0]] -= amount
        room[end] -= amount
        for step, (buyer, good) in enumerate(path):
            send(buyer, good, amount if step % 2 == 0 else -amount)
