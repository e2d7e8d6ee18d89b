"""Prices of GPU types by Dantzig-Wolfe decomposition: a pricing problem per job, and a restricted master."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from ...formulations.arrays import Floats
from ...formulations.shares.kernels import add_cheapest, cheapest, margins, most_gained
from ...formulations.shares.levels import ROUNDING, level_bound, risen
from ...formulations.shares.polytope import Groups, SharePolytope
from ..deadline import Deadline
from .restricted_master import REDUCED_COST_TOLERANCE, RestrictedMaster

# Rounds of one search: 20 to 60 reach the last digits on a few types of GPU.
MOST_ROUNDS = 2000
# A level is final when it needs more GPUs than exist by this multiple of the rounding of the sums.
EXACT = 10.0
# Beyond this number of groups, this many evenly spread ones are priced first: their prices are close.
SAMPLE = 2000
# Initial share of the groups that may change their choice after the sample; four times as many if that is too few.
UNDECIDED = 0.05


@dataclass(frozen=True, kw_only=True)
class JobGroups:
    """Groups of identical jobs: G rows, with the number of jobs of each.

    Attributes
    ----------
    worth : ndarray of float, shape (G, K)
        Value of the whole time on a type.
    gang_gpus, counts : ndarray of float, shape (G,)
    gpus : ndarray of float, shape (K,)
    """

    worth: Floats
    gang_gpus: Floats
    counts: Floats
    gpus: Floats

    @staticmethod
    def in_groups(problem: SharePolytope, groups: Groups, worth: Floats) -> JobGroups:
        """Return the groups of a problem's jobs; `worth` is by job, shape (N, K)."""
        worth = np.ascontiguousarray(worth[groups.first])
        gang_gpus, gpus = problem.gang_gpus[groups.first].astype(np.float64), problem.gpus.astype(np.float64)
        return JobGroups(worth=worth, gang_gpus=gang_gpus, counts=groups.counts, gpus=gpus)

    def of(self, groups: Any, gpus: Floats) -> JobGroups:
        """Return some of the groups on these GPUs."""
        worth = np.ascontiguousarray(self.worth[groups])
        return JobGroups(worth=worth, gang_gpus=self.gang_gpus[groups], counts=self.counts[groups], gpus=gpus)

    def sample(self) -> tuple[Any, JobGroups]:
        """Return SAMPLE evenly spread groups, with GPUs in proportion to their share of all groups' largest usage."""
        some = slice(None, None, -(-len(self.counts) // SAMPLE))
        share = float((self.gang_gpus * self.counts)[some].sum() / (self.gang_gpus * self.counts).sum())
        return some, self.of(some, self.gpus * share)


@dataclass(frozen=True, kw_only=True)
class ConvexCombination:
    """The outcome of a search: prices, and pricing solutions whose convex combination is feasible.

    Attributes
    ----------
    prices : ndarray of float, shape (K,)
    parts : list of (weight, prices)
        Weights and prices of the combination: for each share of the time, every job takes its best answer to the
        prices. The weights sum to at most 1.
    rounds : int
        Number of pricing problems solved, those of the sample included.
    finished : bool
        False if it ran out of time or rounds.
    """

    prices: Floats
    parts: list[tuple[float, Floats]]
    rounds: int
    finished: bool

    def shares(self, job_groups: JobGroups, reward: float, least: Floats) -> Floats:
        """Return the shares of the combination, shape (G, K), if every job reaches its rate in `least`."""
        shares = np.zeros_like(job_groups.worth)
        for weight, prices in self.parts:
            add_cheapest(job_groups.worth, job_groups.gang_gpus, prices, reward, least, weight, shares)
        return shares


class LevelSearch(Protocol):
    """A method that finds one level, such as `best_level`."""

    def __call__(
        self, job_groups: JobGroups, caps: Floats, starts: Floats, deadline: Deadline, rounding: float
    ) -> tuple[float, ConvexCombination]:
        """Return the largest level at which the rates that have `risen` are attainable, and prices that prove it."""


def best_sum(job_groups: JobGroups, deadline: Deadline) -> ConvexCombination:
    """Find prices and shares of the largest sum of worth.

    With many groups, a sample's prices fix the type of most groups; only the others are priced repeatedly. A pricing of
    all groups at the final prices verifies this: the bound has to equal the sum of the fixed and the searched parts.
    """
    if len(job_groups.gpus) == 1:
        return ConvexCombination(prices=np.array([_knapsack_price(job_groups)]), parts=[], rounds=0, finished=True)
    if len(job_groups.counts) <= 2 * SAMPLE:
        return _searched_sum(job_groups, deadline)
    found = _searched_sum(job_groups.sample()[1], deadline)
    rounds, undecided = found.rounds, UNDECIDED
    while undecided < 1.0 and found.finished:
        best, doubt = margins(job_groups.worth, job_groups.gang_gpus, found.prices)
        open_ = doubt <= np.partition(doubt, int(undecided * len(doubt)))[int(undecided * len(doubt))]
        sure = ~open_ & (best >= 0)
        wanted = (job_groups.gang_gpus * job_groups.counts)[sure]
        used = np.bincount(best[sure], weights=wanted, minlength=len(job_groups.gpus))
        undecided *= 4.0
        if (used >= job_groups.gpus).any():
            continue
        rest = job_groups.of(open_, job_groups.gpus - used)
        found = _searched_sum(rest, deadline)
        decided = float((job_groups.worth[sure, best[sure]] * job_groups.counts[sure]).sum())
        bound = _bound(job_groups, found.prices)
        rounds += found.rounds + 1
        if found.finished and bound - decided - _bound(rest, found.prices) <= ROUNDING * bound:
            return replace(found, rounds=rounds)
    if deadline.passed:  # the solution for some of the groups serves for all, scaled down to the GPUs
        return replace(found, rounds=rounds, finished=False)
    found = _searched_sum(job_groups, deadline)
    return replace(found, rounds=rounds + found.rounds)


def _bound(job_groups: JobGroups, prices: Floats) -> float:
    gained, _ = most_gained(job_groups.worth, job_groups.gang_gpus, job_groups.counts, prices, np.zeros(len(prices)))
    return float(prices @ job_groups.gpus) + float(gained)


def _searched_sum(job_groups: JobGroups, deadline: Deadline) -> ConvexCombination:
    """Decompose by Dantzig and Wolfe: at prices each job takes the type with its largest gain, if one is positive.

    The search ends when no column improves the combination by more than rounding; the prices are then optimal.
    """
    kinds = len(job_groups.gpus)
    unit = float((job_groups.worth.max(axis=1) * job_groups.counts).sum())
    master, columns = RestrictedMaster(np.ones(kinds + 1)), []
    best, bound, prices = np.zeros(kinds), np.inf, np.zeros(kinds)
    finished, rounds = not unit > 0, 0
    while not finished and rounds < MOST_ROUNDS:
        rounds += 1
        usage = np.zeros(kinds)
        gained, reached = most_gained(job_groups.worth, job_groups.gang_gpus, job_groups.counts, prices, usage)
        found = float(prices @ job_groups.gpus) + gained
        if found < bound:
            best, bound = prices, found
        proposal = np.append(usage / job_groups.gpus, 1.0)
        finished = not master.gain(reached / unit, proposal) > REDUCED_COST_TOLERANCE
        if finished:
            break
        columns.append(prices)
        master.add(reached / unit, proposal)
        if deadline.passed:
            break
        prices = master.prices[:-1] * unit / job_groups.gpus
    parts = [(z, columns[s]) for s, z in master.parts]
    return ConvexCombination(prices=best, parts=parts, rounds=rounds, finished=finished)


def _knapsack_price(job_groups: JobGroups) -> float:
    """Return the price on one type: the value per GPU of the job that exhausts the GPUs, 0 if none does."""
    ratio = job_groups.worth[:, 0] / job_groups.gang_gpus
    order = np.argsort(-ratio, kind="stable")
    wanted = np.where(ratio > 0, job_groups.gang_gpus * job_groups.counts, 0.0)[order]
    at = int(np.searchsorted(np.cumsum(wanted), job_groups.gpus[0]))
    return float(ratio[order[at]]) if at < len(order) else 0.0


def best_level(
    job_groups: JobGroups, caps: Floats, starts: Floats, deadline: Deadline, rounding: float = ROUNDING
) -> tuple[float, ConvexCombination]:
    """Find the largest t at which all rates that have `risen` are attainable, and the prices that prove it.

    At prices, :func:`~.levels.level_bound` bounds t; a small packing program over pricing solutions at this t decides
    whether it is attainable. Otherwise the program's own prices give a smaller t. Prices are scaled so that all GPUs
    together cost 1; they are 0 where all caps are attainable. With many groups a sample is searched first, for initial
    prices.
    """
    kinds, search = len(job_groups.gpus), _PriceSearch(job_groups, caps, starts, deadline, rounding)
    prices = 1.0 / (kinds * job_groups.gpus)
    if kinds == 1:
        level = search.bound(prices)
        proof = np.zeros(1) if level >= search.top else prices
        return level, ConvexCombination(prices=proof, parts=[(1.0, prices)], rounds=1, finished=True)
    start, rounds = [prices], 0
    if len(job_groups.counts) > 2 * SAMPLE:
        some, sample = job_groups.sample()
        near = _PriceSearch(sample, caps[some], starts[some], deadline, rounding).level(start)[1]
        rounds = near.rounds
        if near.prices.any():
            start = [near.prices * sample.gpus / job_groups.gpus]
            start += [each * sample.gpus / job_groups.gpus for _, each in near.parts]
    level, mix = search.level(start)
    return level, replace(mix, rounds=rounds + mix.rounds)


def afforded(job_groups: JobGroups, level: float, caps: Floats, starts: Floats, prices: Floats) -> float:
    """Return the level, lowered by the excess of its cost that a search tolerates: a later level costs it many times.

    One step of Newton's method does not pass the levels that cost the same and are attainable.
    """
    least, rising = risen(level, caps, starts), (starts < level) & (level <= starts + caps)
    jobs, usage = (job_groups.worth, job_groups.gang_gpus, job_groups.counts), np.zeros(len(prices))
    paid, slope, _ = cheapest(*jobs, prices, 0.0, least, rising, usage)
    excess = paid - math.fsum(prices * job_groups.gpus)
    return level - excess / slope if excess > 0 and slope > 0 else level


@dataclass(frozen=True)
class _PriceSearch:
    job_groups: JobGroups
    caps: Floats
    starts: Floats
    deadline: Deadline
    rounding: float

    @property
    def top(self) -> float:
        """The level at which all jobs are at their caps."""
        return float((self.starts + self.caps).max())

    def bound(self, prices: Floats) -> float:
        """Return the largest level that prices allow."""
        jobs = self.job_groups
        data = jobs.worth, jobs.gang_gpus, jobs.counts, jobs.gpus
        return level_bound(*data, prices, self.caps, self.starts, self.rounding)

    def pricing_problem(self, prices: Floats, least: Floats) -> tuple[float, Floats]:
        """Return the least cost of the rates `least` at prices, and the share of each type's GPUs that they use."""
        job_groups, usage = self.job_groups, np.zeros(len(prices))
        jobs = job_groups.worth, job_groups.gang_gpus, job_groups.counts
        paid, _, _ = cheapest(*jobs, prices, 0.0, least, least > 0, usage)
        return float(paid), usage / job_groups.gpus

    def level(self, start: list[Floats]) -> tuple[float, ConvexCombination]:
        """Lower the level until it is attainable; `start` are prices, the first ones the best."""
        top, exact = self.top, EXACT * self.rounding
        best, rounds = start[0], 0
        level = self.bound(best)
        while True:
            least = risen(level, self.caps, self.starts)
            master, columns = RestrictedMaster(np.ones(len(best))), list(start)
            for each in start:
                master.add(1.0, self.pricing_problem(each, least)[1])
            rounds += len(start)
            while True:
                paying = np.where(master.prices > REDUCED_COST_TOLERANCE * master.prices.max(), master.prices, 0.0)
                duals = paying / (paying.sum() * self.job_groups.gpus)
                paid, proposal = self.pricing_problem(duals, least)
                rounds += 1
                needed = 1.0 / master.value  # of all GPUs, by the combination; none needs less than `paid`
                stop = self.deadline.passed or rounds >= MOST_ROUNDS
                too_high = paid > 1.0 + exact
                settled = needed - paid <= max(exact, 0.1 * (paid - 1.0))
                if needed <= 1.0 + exact or settled or stop or master.gain(1.0, proposal) <= exact:
                    break
                columns.append(duals)
                master.add(1.0, proposal)
            lower = self.bound(duals) if too_high else level
            if lower >= level * (1.0 - exact):
                break
            best = duals
            if stop:
                break
            level = lower
            start = [duals, *(columns[s] for s, _ in master.parts)]
        finished = needed <= 1.0 + 1e-9
        proof = np.zeros(len(best)) if level >= top and finished else best
        parts = [(z * min(1.0, needed), columns[s]) for s, z in master.parts]
        mix = ConvexCombination(prices=proof, parts=parts, rounds=rounds, finished=finished)
        return (level if finished else level / needed), mix
