"""Table 1 and Figure 1 of Shockwave: three jobs under Themis's filter, in a small model in exact arithmetic."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

from ....formulations.errors import InvalidInput

# The model: three GPUs, and three jobs that can use any number of them with linear slowdown. Work in GPU-rounds.
GPUS = 3
SERIAL_ROUNDS = {"A": Fraction(9), "B": Fraction(6), "C": Fraction(9, 2)}
FRACTIONS = (Fraction(1, 3), Fraction(2, 3), Fraction(1))
# What the paper prints: finishes of A, B, C; worst finish-time fairness; mean completion; makespan.
PAPER = {
    "adaptive": ("7/5/3", "0.83", "5.0", "7"),
    "1/3": ("7/6/4", "1.0", "5.7", "7"),
    "2/3": ("7/5/5", "1.1", "5.7", "7"),
    "1": ("7/6/5", "1.1", "6.0", "7"),
}


@dataclass(frozen=True, kw_only=True)
class FilterRun:
    """What three jobs went through.

    Attributes
    ----------
    fractions : tuple of Fraction
        The filter's fraction f in each round.
    rounds : tuple of mapping
        GPUs of each job, by round; who has none is not there.
    finishes : mapping of str to int
        The round after which each job is done.
    """

    fractions: tuple[Fraction, ...]
    rounds: tuple[dict[str, int], ...]
    finishes: dict[str, int]

    @property
    def fairness(self) -> dict[str, Fraction]:
        """Finish over egalitarian time, ``serial time x N/M`` under linear slowdown."""
        return {job: end / egalitarian_rounds(job) for job, end in self.finishes.items()}

    @property
    def worst(self) -> Fraction:
        """The largest finish-time fairness."""
        return max(self.fairness.values())

    @property
    def mean_completion(self) -> Fraction:
        """Mean finish, in rounds."""
        return Fraction(sum(self.finishes.values()), len(self.finishes))

    @property
    def makespan(self) -> int:
        """The last finish."""
        return max(self.finishes.values())


def egalitarian_rounds(job: str) -> Fraction:
    """Return the rounds a job takes with 1/N of the GPUs: 9, 6 and 4.5."""
    return SERIAL_ROUNDS[job] * len(SERIAL_ROUNDS) / GPUS


def play(fractions: Sequence[Fraction]) -> FilterRun:
    """Run the three jobs under a filter; the last fraction holds for all rounds after.

    Notes
    -----
    Each round: unfairness of a job is ``(t + rest x N/M) / egalitarian time``, the finish-time fairness it heads for
    with an equal share from now on. The filter keeps the ``ceil(f m)`` of the m unfinished jobs that are furthest from
    fairness, ties to less work (C before B before A). Under linear slowdown every choice that idles no GPU is equally
    fast; of these the one of most Nash welfare is taken: GPUs go one at a time to the kept job that has fewest, ties to
    the less fair. A job takes no more GPUs than it has work for. What is left goes to the other jobs, least work first.
    """
    if not fractions or any(not 0 < fraction <= 1 for fraction in fractions):
        raise InvalidInput("fractions", [str(fraction) for fraction in fractions], "must be above 0 and at most 1")
    rest = dict(SERIAL_ROUNDS)
    rounds: list[dict[str, int]] = []
    used: list[Fraction] = []
    finishes: dict[str, int] = {}
    while rest:
        fraction = fractions[min(len(rounds), len(fractions) - 1)]
        given = _share(rest, len(rounds), fraction)
        rounds.append(given)
        used.append(fraction)
        for job, gpus in given.items():
            rest[job] -= gpus
            if rest[job] <= 0:
                del rest[job]
                finishes[job] = len(rounds)
    return FilterRun(
        fractions=tuple(used), rounds=tuple(rounds), finishes={job: finishes[job] for job in SERIAL_ROUNDS}
    )


def _share(rest: dict[str, Fraction], now: int, fraction: Fraction) -> dict[str, int]:
    def unfairness(job: str) -> Fraction:
        return (now + rest[job] * len(SERIAL_ROUNDS) / GPUS) / egalitarian_rounds(job)

    ranked = sorted(rest, key=lambda job: (-unfairness(job), SERIAL_ROUNDS[job]))
    kept = ranked[: math.ceil(fraction * len(ranked))]
    given = dict.fromkeys(ranked, 0)
    free = GPUS
    while free and (hungry := [job for job in kept if given[job] < rest[job]]):
        given[min(hungry, key=lambda job: (given[job], ranked.index(job)))] += 1
        free -= 1
    for job in sorted(ranked[len(kept) :], key=lambda job: rest[job]):
        given[job] = min(free, math.ceil(rest[job]))
        free -= given[job]
    return {job: gpus for job, gpus in given.items() if gpus}


@cache
def adaptive() -> FilterRun:
    """Return the best run over every sequence of fractions: least worst fairness, then mean completion, then order."""
    # What can come after a round depends on the work left and on who has finished, not on how it came to that.
    reached: dict[Any, tuple[Fraction, ...]] = {(tuple(SERIAL_ROUNDS.items()), ()): ()}
    ended: list[tuple[Fraction, ...]] = []
    now = 0
    while reached:
        following: dict[Any, tuple[Fraction, ...]] = {}
        for (rest, finishes), fractions in reached.items():
            if not rest:
                ended.append(fractions)
                continue
            for fraction in FRACTIONS:
                given = _share(dict(rest), now, fraction)
                left = tuple((job, work - given.get(job, 0)) for job, work in rest if work > given.get(job, 0))
                done = tuple((job, now + 1) for job, work in rest if work <= given.get(job, 0))
                following.setdefault((left, (*finishes, *done)), (*fractions, fraction))
        reached, now = following, now + 1
    return min((play(fractions) for fractions in ended), key=lambda run: (run.worst, run.mean_completion))


def filter_runs() -> dict[str, FilterRun]:
    """Return the runs of Table 1: adaptive, and each fixed fraction."""
    return {"adaptive": adaptive()} | {str(fraction): play([fraction]) for fraction in FRACTIONS}


def filter_rows() -> list[dict[str, str | float | int | bool]]:
    """Return Table 1 as ours and as printed: filter, finish and fairness of each job, worst, mean, makespan, equal."""
    rows: list[dict[str, str | float | int | bool]] = []
    for name, run in filter_runs().items():
        printed = PAPER[name]
        worst, mean = (
            f"{float(value):.{len(text.partition('.')[2])}f}"
            for value, text in zip((run.worst, run.mean_completion), printed[1:3], strict=True)
        )
        ours = ("/".join(str(end) for end in run.finishes.values()), worst, mean, str(run.makespan))
        rows.append(
            {
                "filter": name,
                "fractions": " ".join(str(fraction) for fraction in run.fractions),
                **{f"finish {job}": end for job, end in run.finishes.items()},
                **{f"ftf {job}": float(value) for job, value in run.fairness.items()},
                "worst ftf": float(run.worst),
                "mean jct": float(run.mean_completion),
                "makespan": run.makespan,
                "paper": " ".join(printed),
                "equal": ours == printed,  # to the digits printed
            }
        )
    return rows
