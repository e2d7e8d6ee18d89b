"""Prices of GPU types by decomposition: jobs answer prices one by one, and a small program mixes their answers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...formulations.arrays import Floats
from ...formulations.shares.kernels import cheapest, margins, most_gained
from ...formulations.shares.levels import ROUNDING, level_bound
from ...formulations.shares.polytope import Groups, SharePolytope
from ..deadline import Deadline
from .restricted_master import NOTHING, Master

# Rounds of one search: 20 to 60 reach the last digits on a few types of GPU.
MOST_ROUNDS = 2000
# A level is final when the GPUs that it needs exceed those that there are by so many times the rounding of the sums.
EXACT = 10.0
# Of more groups than this, so many evenly spread ones are asked first: their prices are near.
SAMPLE = 2000
# The share of the groups that may change their choice after the sample, at first; four times as many if that is wrong.
UNDECIDED = 0.05


@dataclass(frozen=True, kw_only=True)
class Crowd:
    """Groups of jobs that are alike: G rows, with how many jobs each stands for.

    Attributes
    ----------
    worth : ndarray of float, shape (G, K)
        Of the whole time on a type.
    gangs, counts : ndarray of float, shape (G,)
    gpus : ndarray of float, shape (K,)
    """

    worth: Floats
    gangs: Floats
    counts: Floats
    gpus: Floats

    @staticmethod
    def in_groups(problem: SharePolytope, groups: Groups, worth: Floats) -> Crowd:
        """Return the jobs of a problem by groups; `worth` is that of each job, shape (N, K)."""
        return Crowd(
            worth=np.ascontiguousarray(worth[groups.first]),
            gangs=problem.gangs[groups.first].astype(np.float64),
            counts=groups.counts,
            gpus=problem.gpus.astype(np.float64),
        )

    def of(self, groups: Any, gpus: Floats) -> Crowd:
        """Return some of the groups on these GPUs."""
        return Crowd(
            worth=np.ascontiguousarray(self.worth[groups]),
            gangs=self.gangs[groups],
            counts=self.counts[groups],
            gpus=gpus,
        )

    def sample(self) -> tuple[Any, Crowd]:
        """Return SAMPLE evenly spread groups, with as many GPUs in proportion to what all groups could use."""
        some = slice(None, None, -(-len(self.counts) // SAMPLE))
        share = float((self.gangs * self.counts)[some].sum() / (self.gangs * self.counts).sum())
        return some, self.of(some, self.gpus * share)


@dataclass(frozen=True, kw_only=True)
class Mix:
    """What a search found: prices, and answers to several prices whose mix is feasible.

    Attributes
    ----------
    prices : ndarray of float, shape (K,)
    parts : list of (weight, prices)
        The mix: shares of the time for which every job takes its best answer to the prices. Their weights sum to at
        most 1.
    rounds : int
        How often the jobs were asked, a sample of them counted as well.
    finished : bool
        False if it ran out of time or rounds.
    """

    prices: Floats
    parts: list[tuple[float, Floats]]
    rounds: int
    finished: bool


def best_sum(crowd: Crowd, deadline: Deadline) -> Mix:
    """Find prices and shares of the largest sum of worth.

    Of many groups, a sample's prices decide for most groups beyond doubt which type they take; only the others are
    asked again and again. That this was right is checked by asking all at the final prices: their bound has to be the
    sum of what was decided and what was searched.
    """
    if len(crowd.gpus) == 1:
        return Mix(prices=np.array([_knapsack_price(crowd)]), parts=[], rounds=0, finished=True)
    if len(crowd.counts) <= 2 * SAMPLE:
        return _searched_sum(crowd, deadline)
    found = _searched_sum(crowd.sample()[1], deadline)
    rounds, undecided = found.rounds, UNDECIDED
    while undecided < 1.0 and found.finished:
        best, doubt = margins(crowd.worth, crowd.gangs, found.prices)
        open_ = doubt <= np.partition(doubt, int(undecided * len(doubt)))[int(undecided * len(doubt))]
        sure = ~open_ & (best >= 0)
        used = np.bincount(best[sure], weights=(crowd.gangs * crowd.counts)[sure], minlength=len(crowd.gpus))
        undecided *= 4.0
        if (used >= crowd.gpus).any():
            continue
        rest = crowd.of(open_, crowd.gpus - used)
        found = _searched_sum(rest, deadline)
        decided = float((crowd.worth[sure, best[sure]] * crowd.counts[sure]).sum())
        bound = _bound(crowd, found.prices)
        rounds += found.rounds + 1
        if found.finished and bound - decided - _bound(rest, found.prices) <= ROUNDING * bound:
            return replace(found, rounds=rounds)
    if deadline.passed:  # what was found for some of the groups does for all, scaled down to the GPUs
        return replace(found, rounds=rounds, finished=False)
    found = _searched_sum(crowd, deadline)
    return replace(found, rounds=rounds + found.rounds)


def _bound(crowd: Crowd, prices: Floats) -> float:
    gained, _ = most_gained(crowd.worth, crowd.gangs, crowd.counts, prices, np.zeros(len(prices)))
    return float(prices @ crowd.gpus) + float(gained)


def _searched_sum(crowd: Crowd, deadline: Deadline) -> Mix:
    """Decompose as Dantzig and Wolfe do: at prices each job takes the type that gains it most, if any does.

    Ends when no answer improves the mix by more than rounding; the prices are then optimal.
    """
    kinds = len(crowd.gpus)
    unit = float((crowd.worth.max(axis=1) * crowd.counts).sum())
    master, asked = Master(np.ones(kinds + 1)), []
    best, bound, prices = np.zeros(kinds), np.inf, np.zeros(kinds)
    finished, rounds = not unit > 0, 0
    while not finished and rounds < MOST_ROUNDS:
        rounds += 1
        usage = np.zeros(kinds)
        gained, reached = most_gained(crowd.worth, crowd.gangs, crowd.counts, prices, usage)
        found = float(prices @ crowd.gpus) + gained
        if found < bound:
            best, bound = prices, found
        proposal = np.append(usage / crowd.gpus, 1.0)
        finished = not master.gain(reached / unit, proposal) > NOTHING
        if finished:
            break
        asked.append(prices)
        master.add(reached / unit, proposal)
        if deadline.passed:
            break
        prices = master.prices[:-1] * unit / crowd.gpus
    return Mix(prices=best, parts=[(z, asked[s]) for s, z in master.parts], rounds=rounds, finished=finished)


def _knapsack_price(crowd: Crowd) -> float:
    """Return the price on one type: the worth per GPU of the job with which the GPUs are used up, 0 if none is."""
    ratio = crowd.worth[:, 0] / crowd.gangs
    order = np.argsort(-ratio, kind="stable")
    wanted = np.where(ratio > 0, crowd.gangs * crowd.counts, 0.0)[order]
    at = int(np.searchsorted(np.cumsum(wanted), crowd.gpus[0]))
    return float(ratio[order[at]]) if at < len(order) else 0.0


def best_level(crowd: Crowd, caps: Floats, deadline: Deadline, rounding: float = ROUNDING) -> tuple[float, Mix]:
    """Find the largest t that every group reaches, or its cap where that is lower, and the prices that prove it.

    At prices, t is at most what :func:`~.levels.level_bound` says; whether this t can be had is a small packing
    program over answers to prices at this t. Where it cannot, the program's own prices give a smaller t. Prices are
    scaled so that all GPUs together cost 1; they are 0 where the largest cap can be had. Of many groups a sample is
    asked first, for prices to start from.
    """
    kinds = len(crowd.gpus)
    prices = 1.0 / (kinds * crowd.gpus)
    if kinds == 1:
        level = level_bound(crowd.worth, crowd.gangs, crowd.counts, crowd.gpus, prices, caps, rounding)
        free = level >= caps.max()
        return level, Mix(prices=np.zeros(1) if free else prices, parts=[(1.0, prices)], rounds=1, finished=True)
    start, rounds = [prices], 0
    if len(crowd.counts) > 2 * SAMPLE:
        some, sample = crowd.sample()
        near = _Search(sample, caps[some], deadline, rounding).level(start)[1]
        rounds = near.rounds
        if near.prices.any():
            start = [near.prices * sample.gpus / crowd.gpus]
            start += [each * sample.gpus / crowd.gpus for _, each in near.parts]
    level, mix = _Search(crowd, caps, deadline, rounding).level(start)
    return level, replace(mix, rounds=rounds + mix.rounds)


@dataclass(frozen=True)
class _Search:
    crowd: Crowd
    caps: Floats
    deadline: Deadline
    rounding: float

    def bound(self, prices: Floats) -> float:
        """Return the largest level that prices allow."""
        crowd = self.crowd
        return level_bound(crowd.worth, crowd.gangs, crowd.counts, crowd.gpus, prices, self.caps, self.rounding)

    def answer(self, prices: Floats, least: Floats) -> tuple[float, Floats]:
        """Return what `least` costs at prices, and the share of each type's GPUs that it then takes."""
        crowd, usage = self.crowd, np.zeros(len(prices))
        paid, _, _ = cheapest(crowd.worth, crowd.gangs, crowd.counts, prices, 0.0, least, 0.0, usage)
        return float(paid), usage / crowd.gpus

    def level(self, start: list[Floats]) -> tuple[float, Mix]:
        """Lower the level until it can be had; `start` are prices, the first ones the best."""
        top, exact = float(self.caps.max()), EXACT * self.rounding
        best, rounds = start[0], 0
        level = self.bound(best)
        while True:
            least = np.minimum(level, self.caps)
            master, asked = Master(np.ones(len(best))), list(start)
            for each in start:
                master.add(1.0, self.answer(each, least)[1])
            rounds += len(start)
            while True:
                paying = np.where(master.prices > NOTHING * master.prices.max(), master.prices, 0.0)
                duals = paying / (paying.sum() * self.crowd.gpus)
                paid, proposal = self.answer(duals, least)
                rounds += 1
                needed = 1.0 / master.value  # of all GPUs, by the mix; no mix needs less than `paid`
                stop = self.deadline.passed or rounds >= MOST_ROUNDS
                too_high = paid > 1.0 + exact
                settled = needed - paid <= max(exact, 0.1 * (paid - 1.0))
                if needed <= 1.0 + exact or settled or stop or master.gain(1.0, proposal) <= exact:
                    break
                asked.append(duals)
                master.add(1.0, proposal)
            lower = self.bound(duals) if too_high else level
            if lower >= level * (1.0 - exact):
                break
            best = duals
            if stop:
                break
            level = lower
            start = [duals, *(asked[s] for s, _ in master.parts)]
        finished = needed <= 1.0 + 1e-9
        free = level >= top and finished
        parts = [(z * min(1.0, needed), asked[s]) for s, z in master.parts]
        mix = Mix(prices=np.zeros(len(best)) if free else best, parts=parts, rounds=rounds, finished=finished)
        return (level if finished else level / needed), mix
