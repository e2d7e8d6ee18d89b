"""Proportional response in a market of linear utilities: plain, or with momentum and the relevant bids only."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ....formulations.arrays import Floats
from ...deadline import Deadline
from .bids import LEAST_SHARE, Entries, Lists, State
from .price_path import Report

Variant = Literal["accelerated", "plain"]
VARIANTS: tuple[Variant, ...] = ("accelerated", "plain")
# Momentum: a round starts k / (k + LAG) of the last move further on; k counts rounds since the last restart.
LAG = 3.0
# Largest rise of the potential by rounding between two rounds; exact arithmetic lowers it.
ROUNDING = 1e-14
# Lists are used below this share of the table: a listed bid costs about six in a row.
LIST_SHARE = 0.12
# Increase of sharpness, since the first round or the last lists, after which lists are made anew.
FIRST_LISTED, LIST_GROWTH = 16.0, 2.0
# Rounds between two checks of the gap: at least 10, and 10 per cent of all rounds so far.
CHECK_ROUNDS, CHECK_SHARE = 10, 0.1


@dataclass(frozen=True, kw_only=True, eq=False)
class Outcome:
    """The outcome of the rounds: prices of the least bound, shares of the most welfare, and the number of rounds.

    Attributes
    ----------
    prices : ndarray of float, shape (K,)
        Prices of the whole capacity of each good; they sum to 1.
    shares : ndarray of float, shape (N, K), or tuple
        Shares as `Entries.shares` returns them.
    bound, welfare : float
        Bound and welfare, short of ``sum B log B`` and for budgets of sum 1.
    """

    prices: Floats
    shares: Any
    bound: float
    welfare: float
    rounds: int
    restarts: int
    out_of_time: bool

    @property
    def gap(self) -> float:
        """Return (D - P) / sum B by the method's own numbers."""
        return self.bound - self.welfare


def respond(
    entries: Entries, start: State, *, variant: Variant, gap: float, deadline: Deadline, max_rounds: int, report: Report
) -> Outcome:
    """Run rounds until the gap, the time or the rounds end.

    Parameters
    ----------
    entries : Table or Lists
        All goods that buyers want.
    start : State
        State that determines the first bids.
    variant : {"accelerated", "plain"}
        "plain" is proportional response as published: every buyer bids on a good what it adds to the buyer's
        utility; it never raises the potential ``sum p log p - sum b log u``. "accelerated" takes the same step from a
        point further on, along the last move of `State` (Nesterov's momentum in the logarithms of bids), starts its
        momentum anew when the potential rises, and omits irrelevant bids from most rounds.
    gap : float
        Tolerance of (D - P) / sum B.
    report : callable
        Called at every check with (round, bound, welfare, found), bound and welfare short of ``sum B log B`` and for
        budgets of sum 1; found() returns the best shares and the best prices.

    Notes
    -----
    Plain rounds are mirror descent with unit steps on the program of Shmyrev (Birnbaum, Devanur and Xiao, EC 2011).
    No rate is proved for the accelerated rounds; they end by the gap of the whole market.
    """
    return _Rounds(entries, start, variant, report).run(gap, deadline, max_rounds)


class _Rounds:
    def __init__(self, entries: Entries, start: State, variant: Variant, report: Report) -> None:
        self.all, self.entries = entries, entries
        self.accelerated = variant == "accelerated"
        self.report = report
        self.state = self.last = start
        self.listed_at = FIRST_LISTED
        self.bound, self.welfare = math.inf, -math.inf
        self.prices: Floats = np.zeros(0)
        self.shares: Callable[[], Any] = tuple
        self.restarts = 0

    def run(self, gap: float, deadline: Deadline, max_rounds: int) -> Outcome:
        point, potential, run, next_check = self.state, math.inf, 0, 0
        prices, log_prices = self._answer(point)
        late = False
        for number in range(max_rounds + 1):
            if number:
                prices, log_prices = self._answer(point)
            now = float(prices @ log_prices) - self.linear
            if self.accelerated and run > 1 and now > potential + ROUNDING and number < max_rounds:
                # The step was too long: continue without momentum, from a point that is no worse than any before.
                self.restarts += 1
                run, potential = 0, math.inf
                point = self.last = self.state
                continue
            potential, last = now, self.last
            late = deadline.passed
            if number >= next_check or late or number == max_rounds:
                wait = max(CHECK_ROUNDS, int(CHECK_SHARE * number)) if number >= CHECK_ROUNDS else 5
                next_check = number + wait
                self._check_gap(point, prices, log_prices, gap, number, last=late or number == max_rounds)
                if self.bound - self.welfare <= gap or late:
                    break
            if self.accelerated and point.theta >= LIST_GROWTH * self.listed_at:
                self.entries = self.all.narrowed(point, log_prices, LIST_SHARE) or self.all
                self.listed_at, potential = point.theta, math.inf
            self.last = State(point.theta + 1.0, point.weights + log_prices)
            self.state = point
            point = self.last
            if self.accelerated:
                point = self.last.moved(last, run / (run + LAG)) if run else self.last
            run += 1
        shares, prices = self.found()
        return Outcome(
            prices=prices,
            shares=shares,
            bound=self.bound,
            welfare=self.welfare,
            rounds=number,
            restarts=self.restarts,
            out_of_time=late,
        )

    def found(self) -> tuple[Any, Floats]:
        return self.shares(), self.prices

    def _answer(self, point: State) -> tuple[Floats, Floats]:
        prices, self.linear = self.entries.respond(point)
        prices = np.maximum(prices, LEAST_SHARE)
        return prices, np.log(prices)

    def _check_gap(
        self, point: State, prices: Floats, log_prices: Floats, gap: float, number: int, *, last: bool
    ) -> None:
        """Evaluate the round; use all goods if the lists close the gap or the round is the last."""
        entries = self.entries
        bound, welfare = entries.bound_and_welfare(point, log_prices)
        if welfare > self.welfare:
            self.welfare = welfare
            bids = entries.bids.copy() if isinstance(entries, Lists) else None
            self.shares = lambda: _shares(entries, point, prices, bids)
        if entries is not self.all and bound < self.bound and (last or bound - self.welfare <= gap):
            bound = self.all.bound(log_prices)
            if bound - self.welfare > gap:
                self.listed_at = 0.0  # a good that is not listed would be better
        elif entries is not self.all:
            bound = math.inf
        if bound < self.bound or not self.prices.size:
            self.bound, self.prices = bound, prices
        self.report(number, self.bound, self.welfare, self.found)


def _shares(entries: Entries, point: State, prices: Floats, bids: Floats | None) -> Any:
    if bids is not None and isinstance(entries, Lists):
        entries.bids[:] = bids
    return entries.shares(point, prices)
