"""The dual of the window program: prices that bound every schedule, the rounds they suggest, and their rounding."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...formulations.arrays import Floats, Indices
from ...formulations.window.problem import ScheduleWindow

# The search over the split between the makespan's branches ends when the dual cannot fall by more than this share of
# the weights; this is far below any useful gap.
SPLIT_TOLERANCE = 1e-8
# Table cells that the search evaluates in all: large windows have so many jobs that branching on the longest one is
# cheaper than a finer split.
CELLS = 1_000_000
FEWEST_SPLITS, MOST_SPLITS = 4, 40
# Near-ties of a knapsack, and its largest sum of GPU-rounds: enough to fill almost any slack at almost no loss.
MOST_CHANGES = 400
SPAN = 96


@dataclass(frozen=True, kw_only=True, eq=False)
class Dual:
    """Multipliers of the window program, and the bound that they prove.

    Attributes
    ----------
    gpu_price : float
        pi, per GPU and round.
    rates : ndarray of float, shape (N,)
        mu_0 a_j / M + mu_j: the price of a round of remaining time.
    bound : float
        Bound on the objective of every schedule of the window.
    net : ndarray of float, shape (N, T + 1)
        f_j(n) - pi g_j n - rates_j R_j(n), less the restart that the first round of an idle job must cost.
    within, beyond : ndarray of int, shape (N,)
        Rounds per job that the prices suggest, within the cluster's total and at or beyond it.
    own_rates : ndarray of float, shape (N,)
        mu_j: positive for the jobs that set the horizon.
    sum_branch : float
        The sum branch of H at the dual's mixture.
    floor, ceiling : ndarray of int, shape (N,)
        Rounds that the bound's branch allows each job.
    """

    gpu_price: float
    rates: Floats
    bound: float
    net: Floats
    within: Indices
    beyond: Indices
    own_rates: Floats
    sum_branch: float
    floor: Indices
    ceiling: Indices

    def possible(self, objective: float) -> NDArray[np.bool_]:
        """Return the numbers of rounds that a schedule better than `objective` may use, shape (N, T + 1).

        Granting job j n rounds forgoes max net_j - net_j(n) of the bound; a number that forgoes the whole gap cannot be
        better.
        """
        forgone = self.net.max(axis=1, keepdims=True) - self.net
        gap = max(0.0, self.bound - objective)
        return np.asarray(forgone <= gap * (1 + 1e-9) + 1e-12 * max(1.0, abs(self.bound)))

    def nearest(self, count: int) -> NDArray[np.bool_]:
        """Return the `count` numbers of rounds that forgo least, for each job, shape (N, T + 1)."""
        if count >= self.net.shape[1]:
            return np.ones_like(self.net, dtype=np.bool_)
        least = np.partition(-self.net, count - 1, axis=1)[:, count - 1 : count]
        return np.asarray(-self.net <= least)


def solve_dual(window: ScheduleWindow, floor: Indices | None = None, ceiling: Indices | None = None) -> Dual:
    """Minimise the bound over the GPU price and the makespan's multipliers (spec: mu_0 + sum mu_j <= c).

    With `floor` and `ceiling`, shape (N,), the bound is on schedules that give each job rounds within them.
    """
    count = len(window.gang_gpus)
    if floor is None or ceiling is None:
        floor, ceiling = np.zeros(count, dtype=np.int64), np.full(count, window.rounds)
    search = _SplitSearch(window, floor, ceiling)
    return _certified(window, search, *search.run())


def branches(window: ScheduleWindow, dual: Dual) -> list[Dual]:
    """Split a dual where a job that sets the horizon mixes two numbers of rounds; empty if none does.

    Either the job runs long enough to end before the sum branch does, or it does not and sets the horizon. Every
    schedule is in one of the two, so the greater of their bounds bounds what `dual` bounded.
    """
    left = window.tables.remaining
    for j in np.argsort(-dual.own_rates, kind="stable")[: np.count_nonzero(dual.own_rates)]:
        enough = int((left[j] > dual.sum_branch).sum())
        if dual.floor[j] < enough <= dual.ceiling[j]:
            floor, ceiling = dual.floor.copy(), dual.ceiling.copy()
            floor[j], ceiling[j] = enough, enough - 1
            parts = [(floor, dual.ceiling), (dual.floor, ceiling)]
            # A part that needs more than the cluster is empty.
            fits = [part for part in parts if window.gang_gpus @ part[0] <= window.gpus * window.rounds]
            return [solve_dual(window, *part) for part in fits]
    return []


class _Point(NamedTuple):
    """The dual at one split: its best GPU price and value, the makespan's branches, own rates, and rounds per job."""

    gpu_price: float
    value: float
    horizon: float
    sum_branch: float
    own_rates: Floats
    within: Indices
    beyond: Indices

    @property
    def slope(self) -> float:
        """The change of the value per unit of the split."""
        return self.horizon - self.sum_branch


class _SplitSearch:
    """The dual as a convex function of mu_0, the sum branch's share of the makespan's price."""

    def __init__(self, window: ScheduleWindow, floor: Indices, ceiling: Indices) -> None:
        tables = window.tables
        self.window, self.floor, self.ceiling = window, floor, ceiling
        self.value = tables.value.copy()
        if window.restart_penalty:  # the least cost of any schedule: one restart for every idle job that runs
            self.value[:, 1:] -= window.restart_penalty * ~window.is_running[:, None]
        self.left, self.branch, self.price = tables.remaining, tables.branch_weights, tables.makespan_price
        rows = np.arange(len(floor))
        least = self.left[rows, ceiling]
        # Only jobs that may exceed the least possible horizon can ever set it.
        self.long = np.flatnonzero(self.left[rows, floor] > least.max()) if self.price else rows[:0]
        if self.price and not len(self.long):
            self.long = np.array([int(least.argmax())])
        is_free = np.ones(len(floor), dtype=np.bool_)
        is_free[self.long] = False
        self.free = np.flatnonzero(is_free)
        self.supply = float(window.gpus * window.rounds)
        # A round of remaining time that the sum branch prices costs a GPU about split / M per round.
        self.guess = max(tables.weight_sum, np.finfo(float).tiny) / self.supply
        self.near = 0.0

    def at(self, split: float) -> _Point:
        """Return the dual at mu_0 = split."""
        from .kernels import best_price

        worth = self.value if not split else self.value - (split * self.branch)[:, None] * self.left
        guess = max(self.guess + (split - self.near) / self.window.gpus, 0.01 * self.guess)
        jobs = (self.left, self.window.gang_gpus, self.branch, self.free, self.long)
        found = _Point(*best_price(worth, *jobs, self.supply, self.price - split, guess, self.floor, self.ceiling))
        if found.gpu_price > 0:
            self.guess, self.near = found.gpu_price, split
        return found

    def run(self) -> tuple[float, _Point]:
        """Return the best split and the dual at it."""
        split, best = self.price, self.at(self.price)
        if not self.price or best.slope <= 0:
            return split, best
        # The longest job outlasts the sum: the max branch has a share.
        low, at_low, high, at_high = 0.0, self.at(0.0), self.price, best
        if at_low.value <= best.value:
            split, best = low, at_low
        shared = at_low.slope < 0  # the sum outlasts the longest there: both branches have a share
        steps = min(MOST_SPLITS, max(FEWEST_SPLITS, CELLS // self.value.size))
        for step in range(steps if shared else 0):
            middle = at_low.value - at_high.value + at_high.slope * high - at_low.slope * low
            middle /= at_high.slope - at_low.slope
            floor = at_low.value + at_low.slope * (middle - low)
            if best.value - floor <= SPLIT_TOLERANCE * self.window.tables.weight_sum:
                break
            if step % 3 == 2 or not low < middle < high:
                middle = 0.5 * (low + high)
            found = self.at(middle)
            if found.value <= best.value:
                split, best = middle, found
            if found.slope < 0:
                low, at_low = middle, found
            else:
                high, at_high = middle, found
        return split, best


def _certified(window: ScheduleWindow, search: _SplitSearch, split: float, found: _Point) -> Dual:
    """Evaluate the bound anew from the multipliers: it holds for these, independently of the search."""
    tables, gpu_price = window.tables, found.gpu_price
    own = np.maximum(found.own_rates, 0.0)
    total = split + math.fsum(own.tolist())
    if total > tables.makespan_price:  # rounding in the search
        shrink = tables.makespan_price / total * (1 - 1e-15)
        split, own = split * shrink, own * shrink
    rates = split * tables.branch_weights + own
    net = search.value - rates[:, None] * tables.remaining
    net -= (gpu_price * window.gang_gpus)[:, None] * np.arange(window.rounds + 1)
    if search.floor.any() or (search.ceiling < window.rounds).any():
        n = np.arange(window.rounds + 1)
        net[(n < search.floor[:, None]) | (n > search.ceiling[:, None])] = -np.inf
    terms = net.max(axis=1)
    supply = gpu_price * window.gpus * window.rounds
    # A few units in the last place per term, so that rounding never puts the bound on the wrong side.
    slack = 8 * np.finfo(float).eps * (supply + float(np.abs(terms).sum()) + float(rates @ tables.remaining[:, 0]))
    bound = math.fsum([supply, slack, *terms.tolist()])
    return Dual(
        gpu_price=gpu_price, rates=rates, bound=min(bound, 0.0), net=net, within=found.within, beyond=found.beyond,
        own_rates=own, sum_branch=found.sum_branch, floor=search.floor, ceiling=search.ceiling,
    )  # fmt: skip


def rounded(window: ScheduleWindow, dual: Dual) -> Indices:
    """Return rounds per job, shape (N,), within the cluster's total; the better of two treatments of the longest jobs.

    In the dual the jobs that set the horizon may mix two numbers of rounds so that they end just with the sum branch.
    Whole rounds either leave them longer, or make them shorter than the sum branch.
    """
    tables, plain = window.tables, dual.within
    left, rows = tables.remaining, np.arange(len(plain))
    options = [_fitted(window, dual, plain)]
    after = left[rows, plain]
    horizon = float(tables.branch_weights @ after)
    late = np.flatnonzero((after > horizon) & (after > left[:, -1].max()))
    if tables.makespan_price and len(late):
        raised = plain.copy()
        raised[late] = np.minimum((left[late] > max(horizon, float(left[:, -1].max()))).sum(axis=1), dual.ceiling[late])
        options.append(_fitted(window, dual, raised, fixed=late))

    def worth(counts: Indices) -> float:
        return float(tables.value[rows, counts].sum()) - tables.makespan_price * tables.makespan(counts)

    return max(options, key=worth)


def _fitted(window: ScheduleWindow, dual: Dual, start: Indices, fixed: Indices | None = None) -> Indices:
    """Drop the cheapest rounds until the rest fits, add the price's ties, then fill the slack exactly."""
    from .kernels import best_fit, nearest_change

    counts, gang_gpus = start.copy(), window.gang_gpus
    rows, supply = np.arange(len(start)), window.gpus * window.rounds
    movable = dual.own_rates == 0
    if fixed is not None:
        movable[fixed] = False
    slack = supply - int(gang_gpus @ counts)
    while slack < 0:
        fall = dual.net[rows, counts] - dual.net[rows, np.maximum(counts - 1, 0)]
        loss = np.where((counts > dual.floor) & movable, fall, np.inf)
        order = np.argsort(loss / gang_gpus, kind="stable")
        order = order[np.isfinite(loss[order])]
        if not len(order):
            return counts  # nothing but the longest jobs; packing shortens them
        drop = order[: 1 + int(np.searchsorted(np.cumsum(gang_gpus[order]), -slack))]
        counts[drop] -= 1
        slack = supply - int(gang_gpus @ counts)
    for j in np.flatnonzero((dual.beyond > counts) & movable):
        if slack <= SPAN // 2:
            break
        more = min(int(dual.beyond[j] - counts[j]), slack // int(gang_gpus[j]))
        counts[j] += more
        slack -= more * int(gang_gpus[j])
    if slack == 0 or dual.gpu_price == 0.0:
        return counts
    to, loss = nearest_change(
        dual.net, counts, gang_gpus, movable, dual.floor, dual.ceiling, window.tables.needs, SPAN // 2
    )
    open_jobs = np.flatnonzero(loss < dual.gpu_price * slack)
    if len(open_jobs) > MOST_CHANGES:
        open_jobs = np.sort(open_jobs[np.argpartition(loss[open_jobs], MOST_CHANGES)[:MOST_CHANGES]])
    chosen = open_jobs[best_fit((gang_gpus * (to - counts))[open_jobs], loss[open_jobs], slack, dual.gpu_price, SPAN)]
    counts[chosen] = to[chosen]
    return counts
