"""Table 1 and Figures 1 and 15 of Shockwave: the printed example of Themis's filter, in exact arithmetic."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from ....formulations.errors import InvalidInput

# The instance as printed: GPUs; rounds of each job on one GPU, under linear slowdown its GPU-rounds of work; the most
# GPUs that a job can use at once.
GPUS = 4
SERIAL_ROUNDS = {"A": 12, "B": 8, "C": 6}
REQUESTS = {"A": 3, "B": 2, "C": 2}
FRACTIONS = (Fraction(1, 3), Fraction(2, 3), Fraction(1))
# Order among jobs that have attained the same: the one with which the rounds at f = 2/3 come out as printed.
TIES = "BAC"

# Work left in GPU-rounds, or GPUs of a round, of A, B and C.
Triple = tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Printed:
    """A row of Table 1 as text: the digits that the paper prints, empty where it prints none.

    In order: rounds after which A, B and C are done, worst finish-time fairness, mean completion, last completion,
    finish-time fairness of A, B and C, and the jobs that hold the GPUs of each round.
    """

    finishes: str
    worst: str
    mean: str
    makespan: str = "7"
    fairness: str = ""
    rounds: str = ""

    def __str__(self) -> str:
        parts = (self.rounds, self.finishes, self.fairness, self.worst, self.mean, self.makespan)
        return " ".join(filter(None, parts))


PRINTED = {
    "adaptive": Printed(finishes="7/5/3", worst="0.83", mean="5"),
    "1/3": Printed(finishes="7/6/4", worst="1.0", mean="5.7"),
    "2/3": Printed(
        finishes="7/5/5", worst="1.1", mean="5.7", fairness="0.78/0.83/1.11", rounds="AABB BBCC AACC AABB BBCC AAA AAA"
    ),
    "1": Printed(finishes="7/6/5", worst="1.1", mean="6.0"),
}


@dataclass(frozen=True, kw_only=True)
class FilterRun:
    """A schedule of the three jobs until all are done: the GPUs of A, B and C, by round."""

    gpus: tuple[Triple, ...]

    @property
    def rounds(self) -> tuple[dict[str, int], ...]:
        """GPUs of each job that runs, by round."""
        return tuple({job: gpus for job, gpus in zip(SERIAL_ROUNDS, given, strict=True) if gpus} for given in self.gpus)

    @property
    def grid(self) -> str:
        """The jobs that hold the GPUs of each round, such as ``AABB BBCC``."""
        return " ".join("".join(job * gpus for job, gpus in given.items()) for given in self.rounds)

    @property
    def finishes(self) -> dict[str, int]:
        """The round after which each job is done."""
        return {job: 1 + max(t for t, given in enumerate(self.rounds) if job in given) for job in SERIAL_ROUNDS}

    @property
    def fairness(self) -> dict[str, Fraction]:
        """Finish-time fairness: finish over egalitarian time."""
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
    """Return the rounds that a job takes with 1/N of the GPUs, serial time x N/M: 9, 6 and 4.5."""
    return Fraction(SERIAL_ROUNDS[job] * len(SERIAL_ROUNDS), GPUS)


def play(fractions: Sequence[Fraction]) -> FilterRun:
    """Run the three jobs under a filter; the last fraction holds for all rounds after.

    The one rule that gives the printed rounds and all three printed rows of fixed fractions: the filter keeps the
    ``ceil(f m)`` of the m unfinished jobs that have attained the fewest GPU-rounds, ties in the order B, A, C. They are
    dealt GPUs one at a time in that order, up to their requests and their work left. What remains goes to the other
    jobs, least work left first.
    """
    if not fractions or any(not 0 < fraction <= 1 for fraction in fractions):
        raise InvalidInput("fractions", [str(fraction) for fraction in fractions], "must be above 0 and at most 1")
    left: Triple = tuple(SERIAL_ROUNDS.values())
    gpus: list[Triple] = []
    while any(left):
        unfinished = sum(work > 0 for work in left)
        given = _filtered(left, math.ceil(fractions[min(len(gpus), len(fractions) - 1)] * unfinished))
        gpus.append(given)
        left = _after(left, given)
    return FilterRun(gpus=tuple(gpus))


def _after(left: Triple, given: Triple) -> Triple:
    return tuple(work - gpus for work, gpus in zip(left, given, strict=True))


def _wanted(left: Triple) -> Triple:
    """Return the most GPUs that each job can use in the next round."""
    return tuple(min(request, work) for request, work in zip(REQUESTS.values(), left, strict=True))


def _filtered(left: Triple, kept: int) -> Triple:
    """Return the GPUs of a round in which the filter keeps so many jobs."""
    serial, jobs, wanted = tuple(SERIAL_ROUNDS.values()), tuple(SERIAL_ROUNDS), _wanted(left)
    unfinished = (place for place, work in enumerate(left) if work)
    ranked = sorted(unfinished, key=lambda place: (serial[place] - left[place], TIES.index(jobs[place])))
    given, free = [0] * len(left), GPUS
    while free and (short := [place for place in ranked[:kept] if given[place] < wanted[place]]):
        given[min(short, key=lambda place: (given[place], ranked.index(place)))] += 1
        free -= 1
    for place in sorted(ranked[kept:], key=lambda place: left[place]):
        given[place] = min(free, wanted[place])
        free -= given[place]
    return tuple(given)


@cache
def best_sequence() -> FilterRun:
    """Return the best run of `play` over every sequence of fractions."""
    return _best(lambda left: (_filtered(left, kept) for kept in range(1, sum(work > 0 for work in left) + 1)))


@cache
def adaptive() -> FilterRun:
    """Return the best of all schedules that leave no GPU idle which a job could use.

    Under linear slowdown all of them are equally efficient, so a filter that keeps every job may choose any.
    """

    def efficient(left: Triple) -> Iterable[Triple]:
        wanted = _wanted(left)
        grids = itertools.product(*(range(most + 1) for most in wanted))
        return (given for given in grids if sum(given) == min(GPUS, sum(wanted)))

    return _best(efficient)


def _best(choices: Callable[[Triple], Iterable[Triple]]) -> FilterRun:
    """Return the run of least worst fairness, then mean completion, over all ways to choose the GPUs of each round."""
    # What can come after a round depends on the work left and on who has finished when, not on how it came to that.
    reached: dict[tuple[Triple, Triple], tuple[Triple, ...]] = {(tuple(SERIAL_ROUNDS.values()), (0, 0, 0)): ()}
    ended: list[FilterRun] = []
    while reached:
        following: dict[tuple[Triple, Triple], tuple[Triple, ...]] = {}
        for (left, ends), gpus in reached.items():
            for given in choices(left):
                after, now = _after(left, given), len(gpus) + 1
                done = tuple(end or (0 if work else now) for end, work in zip(ends, after, strict=True))
                if any(after):
                    following.setdefault((after, done), (*gpus, given))
                else:
                    ended.append(FilterRun(gpus=(*gpus, given)))
        reached = following
    return min(ended, key=lambda run: (run.worst, run.mean_completion))


def filter_runs() -> dict[str, FilterRun]:
    """Return the runs of Table 1, adaptive and with each fixed fraction, and the best sequence of fractions."""
    fixed = {str(fraction): play([fraction]) for fraction in FRACTIONS}
    return {"adaptive": adaptive()} | fixed | {"best sequence": best_sequence()}


def filter_rows() -> list[dict[str, str | float | int | bool | None]]:
    """Return Table 1 as ours and as printed: rounds, finishes, fairness, worst, mean, makespan, paper, equal."""
    rows: list[dict[str, str | float | int | bool | None]] = []
    for name, run in filter_runs().items():
        printed = PRINTED.get(name)
        finishes = {f"finish {job}": end for job, end in run.finishes.items()}
        fairness = {f"ftf {job}": float(value) for job, value in run.fairness.items()}
        over_all = {"worst ftf": float(run.worst), "mean jct": float(run.mean_completion), "makespan": run.makespan}
        paper, equal = (str(printed), equal_to_print(run, printed)) if printed else (None, None)
        rows.append(
            {"filter": name, "rounds": run.grid, **finishes, **fairness, **over_all, "paper": paper, "equal": equal}
        )
    return rows


def equal_to_print(run: FilterRun, printed: Printed) -> bool:
    """Return whether a run has all that is printed of it, to the digits printed."""
    pairs: list[tuple[str, Sequence[Fraction | int]]] = [
        (printed.finishes, list(run.finishes.values())),
        (printed.fairness, list(run.fairness.values())),
        (printed.worst, [run.worst]),
        (printed.mean, [run.mean_completion]),
        (printed.makespan, [run.makespan]),
    ]
    return printed.rounds in ("", run.grid) and all(text == _like(text, values) for text, values in pairs if text)


def _like(text: str, values: Sequence[Fraction | int]) -> str:
    """Return values with as many decimals as the numbers of a text have, divided by slashes."""
    digits = [len(number.partition(".")[2]) for number in text.split("/")]
    return "/".join(f"{float(value):.{count}f}" for count, value in zip(digits, values, strict=True))
