"""The pairs of buyer and good of an interior-point method, and the sums over them."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ....formulations.arrays import Floats, Indices

# Seconds per product of two entries, summed pair by pair, and per product inside a dense block; they decide which is
# used.
PAIR_S = 4e-9
BLOCK_S = 1.3e-11
# Entries of a dense block of rows.
BLOCK_ENTRIES = 1 << 16
# A system of more unknowns is kept sparse, unless its dense form is smaller than the pairs' own arrays.
MOST_DENSE = 1000
DENSE_ENTRIES = 16


class Edges:
    """Pairs of buyer and good, sorted by the larger of the two sides; every buyer and every good has one.

    Parameters
    ----------
    buyer, good : ndarray of int, shape (E,)
    worth : ndarray of float, shape (E,)
        Utility of the whole capacity of the good to the buyer.
    """

    def __init__(self, buyer: Indices, good: Indices, worth: Floats, num_buyers: int, num_goods: int) -> None:
        self.num_buyers, self.num_goods = num_buyers, num_goods
        self.by_buyer = num_buyers >= num_goods
        # Short integers are sorted by radix, which takes a tenth of the time.
        digits = np.uint16 if max(num_buyers, num_goods) <= 1 << 16 else np.int64
        order = np.argsort((buyer if self.by_buyer else good).astype(digits), kind="stable")
        self.buyer, self.good, self.worth = buyer[order], good[order], worth[order]
        self.large, self.small = (self.buyer, self.good) if self.by_buyer else (self.good, self.buyer)
        self.num_large, self.num_small = max(num_buyers, num_goods), min(num_buyers, num_goods)
        counts = np.bincount(self.large, minlength=self.num_large)
        self.starts = np.concatenate([[0], np.cumsum(counts)])
        num_pairs = int((counts * (counts - 1) // 2).sum())
        squares = self.num_small**2
        self.is_sparse = self.num_small > MOST_DENSE and squares > DENSE_ENTRIES * len(worth)
        self.in_blocks = not self.is_sparse and self.num_large * squares * BLOCK_S < num_pairs * PAIR_S

    def __len__(self) -> int:
        return len(self.worth)

    def only(self, kept: NDArray[np.bool_]) -> Edges:
        """Return the kept pairs alone."""
        return Edges(self.buyer[kept], self.good[kept], self.worth[kept], self.num_buyers, self.num_goods)

    def by_buyers(self, entries: Floats) -> Floats:
        """Return the sum over each buyer's pairs, shape (N,)."""
        return self._by_large(entries) if self.by_buyer else self._by_small(entries)

    def by_goods(self, entries: Floats) -> Floats:
        """Return the sum over each good's pairs, shape (K,)."""
        return self._by_small(entries) if self.by_buyer else self._by_large(entries)

    def most(self, entries: Floats) -> Floats:
        """Return each buyer's largest entry, shape (N,)."""
        return self._most_of_large(entries) if self.by_buyer else self._most_of_small(entries)

    def most_by_goods(self, entries: Floats) -> Floats:
        """Return each good's largest entry, shape (K,)."""
        return self._most_of_small(entries) if self.by_buyer else self._most_of_large(entries)

    def apart(self, entries: Floats, totals: Floats, extra: Floats) -> Floats:
        """Return the share of its row's total that each entry leaves, rows being the larger side; shape (E,).

        Parameters
        ----------
        entries : ndarray of float, shape (E,)
            At least 0.
        totals, extra : ndarray of float, shape (max(N, K),)
            The sum of each row's entries and its extra, and the extra alone.

        Notes
        -----
        Near the solution one entry may be nearly all of its row. The other entries are then summed, as a difference
        from the total would consist of rounding errors.
        """
        total = totals[self.large]
        main = entries > 0.5 * total
        others = extra + self._by_large(np.where(main, 0.0, entries))
        return np.where(main, others[self.large], total - entries) / total

    def gram(self, entries: Floats, divisors: Floats, total: Floats) -> Floats:
        """Return ``V' diag(1/divisors) V`` of the matrix of entries, its rows the larger side, in `total`.

        Only its upper triangle is filled; the caller sets the diagonal.
        """
        size = self.num_small
        total.fill(0.0)
        if not self.in_blocks:
            first, second, cell = self._pairs
            shares = entries / divisors[self.large]
            np.add.at(total.ravel(), cell, shares[first] * entries[second])
            return total
        root = entries / np.sqrt(divisors)[self.large]
        step = max(1, BLOCK_ENTRIES // size)
        for start in range(0, self.num_large, step):
            stop = min(self.num_large, start + step)
            part = slice(self.starts[start], self.starts[stop])
            block = np.zeros((stop - start, size))
            block[self.large[part] - start, self.small[part]] = root[part]
            total += block.T @ block
        return total

    def _most_of_large(self, entries: Floats) -> Floats:
        return np.asarray(np.maximum.reduceat(entries, self.starts[:-1]))

    def _most_of_small(self, entries: Floats) -> Floats:
        largest = np.full(self.num_small, -np.inf)
        np.maximum.at(largest, self.small, entries)
        return largest

    def _by_large(self, entries: Floats) -> Floats:
        return np.add.reduceat(entries, self.starts[:-1])

    def _by_small(self, entries: Floats) -> Floats:
        return np.asarray(np.bincount(self.small, weights=entries, minlength=self.num_small), dtype=np.float64)

    @cached_property
    def _pairs(self) -> tuple[Indices, Indices, Indices]:
        """Return both entries of each pair within one row of the larger side, and the cell it adds to."""
        entry = np.arange(len(self))
        after = self.starts[1:][self.large] - 1 - entry
        first = np.repeat(entry, after)
        second = first + 1 + np.arange(len(first)) - np.repeat(np.cumsum(after) - after, after)
        one, other = self.small[first], self.small[second]
        return first, second, np.minimum(one, other) * self.num_small + np.maximum(one, other)
