"""Search problems whose fronts are known in closed form."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ...formulations.arrays import Floats
from ...formulations.search.objective import Objective, Variable
from ...formulations.search.problem import SearchProblem


@dataclass(frozen=True)
class KnownFront:
    """A search problem, the greatest hypervolume of any front of it, and the least mean of the objectives."""

    name: str
    problem: SearchProblem
    hypervolume: float
    least_mean: float

    def of(self, objectives: int | None) -> KnownFront:
        """Return the same for a search of so many objectives at most: with one, the search for the least mean."""
        if objectives != 1 or len(self.problem.objectives) == 1:
            return self
        problem = mean_problem(self.problem)
        ideal, reference = problem.ideal.item(), problem.reference.item()
        found = (reference - self.least_mean) / (reference - ideal)
        return KnownFront(f"mean of {self.name}", problem, found, self.least_mean)


def schaffer(x: Floats) -> Floats:
    """Scores of Schaffer's first problem, shape (B, 2): (x^2, (x - 2)^2); the front has x within [0, 2]."""
    return np.hstack((x**2, (x - 2.0) ** 2))


def zdt(front: Callable[[Floats, Floats], Floats], x: Floats) -> Floats:
    """Scores (x_0, g h(x_0, g)) of Zitzler, Deb and Thiele's problems, shape (B, 2); the front has g = 1."""
    g = 1.0 + 9.0 * x[:, 1:].mean(axis=1)
    return np.column_stack((x[:, 0], g * front(x[:, 0], g)))


def zdt1(f: Floats, g: Floats) -> Floats:
    """Shape of the convex front, 1 - sqrt(f)."""
    return np.asarray(1.0 - np.sqrt(f / g))


def zdt2(f: Floats, g: Floats) -> Floats:
    """Shape of the concave front, 1 - f^2."""
    return np.asarray(1.0 - (f / g) ** 2)


def zdt3(f: Floats, g: Floats) -> Floats:
    """Shape of the front of five pieces."""
    return np.asarray(1.0 - np.sqrt(f / g) - f / g * np.sin(10.0 * np.pi * f))


def constrained(least: float, x: Floats) -> Floats:
    """Scores of ZDT1 with the constraint x_0 >= least, shape (B, 2)."""
    return np.asarray(np.where(x[:, :1] < least, np.nan, zdt(zdt1, x)))


def fonseca_fleming(x: Floats) -> Floats:
    """Scores of Fonseca and Fleming's problem, shape (B, 2); the front has all x_i = t within [-1, 1]/sqrt(n)."""
    middle = 1.0 / math.sqrt(x.shape[1])
    distances = [((x + side * middle) ** 2).sum(axis=1) for side in (-1.0, 1.0)]
    return np.asarray(1.0 - np.exp(-np.column_stack(distances)))


def dtlz2(x: Floats) -> Floats:
    """Scores of DTLZ2 of three objectives, shape (B, 3); the front is the unit sphere's octant, with x_2.. = 1/2."""
    radius = 1.0 + ((x[:, 2:] - 0.5) ** 2).sum(axis=1)
    one, two = x[:, 0] * np.pi / 2.0, x[:, 1] * np.pi / 2.0
    parts = (np.cos(one) * np.cos(two), np.cos(one) * np.sin(two), np.sin(one))
    return np.column_stack([radius * part for part in parts])


def problem_of(
    evaluate_many: Callable[[Floats], Floats],
    *,
    variables: int = 1,
    bounds: tuple[float, float] = (0.0, 1.0),
    ideal: tuple[float, ...] = (0.0, 0.0),
    reference: tuple[float, ...] = (1.0, 1.0),
    starts: Mapping[str, list[float]] | None = None,
) -> SearchProblem:
    """Return the search of an evaluator whose variables all have the same bounds."""
    return SearchProblem(
        variables=tuple(Variable(f"x{i}", *bounds) for i in range(variables)),
        objectives=tuple(Objective(f"f{i}") for i in range(len(ideal))),
        evaluate_many=evaluate_many,
        ideal=np.array(ideal),
        reference=np.array(reference),
        starts={name: np.array(vector) for name, vector in (starts or {}).items()},
    )


def mean_problem(problem: SearchProblem) -> SearchProblem:
    """Return the search for the least mean of the objectives."""
    return replace(
        problem,
        objectives=(Objective("mean"),),
        evaluate_many=partial(_means, problem.evaluate_many),
        ideal=problem.ideal.mean(keepdims=True),
        reference=problem.reference.mean(keepdims=True),
    )


def _means(evaluate_many: Callable[[Floats], Floats], x: Floats) -> Floats:
    return np.asarray(evaluate_many(x).mean(axis=1, keepdims=True))


def schaffer_problem(starts: Mapping[str, list[float]] | None = None) -> SearchProblem:
    """Return Schaffer's problem in the box from 0 to 4: its front dominates 5/6."""
    return problem_of(schaffer, bounds=(-1.0, 3.0), reference=(4.0, 4.0), starts=starts)


def easy_fronts() -> list[KnownFront]:
    """Return fronts of one or two variables, of which a search without a direction finds the most part."""
    return [
        KnownFront("Schaffer", schaffer_problem(), 5.0 / 6.0, 1.0),
        # The area over 1 - sqrt(f) is 2/3; without f < 1/4 it is 3/4 - (3/4 - 2/3 (1 - 1/8)).
        KnownFront("ZDT1 of two variables", problem_of(partial(zdt, zdt1), variables=2), 2.0 / 3.0, 0.375),
        KnownFront("constrained ZDT1", problem_of(partial(constrained, 0.25), variables=2), 7.0 / 12.0, 0.375),
        KnownFront(
            "Fonseca-Fleming of two variables",
            problem_of(fonseca_fleming, variables=2, bounds=(-2.0, 2.0)),
            *_fonseca(),
        ),
    ]


def hard_fronts() -> list[KnownFront]:
    """Return fronts of many variables, near which a search must move."""
    line = np.linspace(0.0, 1.0, 200_001)
    lowest = np.minimum.accumulate(zdt3(line, np.ones_like(line)))
    filled = float((1.0 - lowest).mean()) / 2.0  # the box of ZDT3 is two high
    lowest_mean = float((line + lowest).min()) / 2.0
    return [
        KnownFront("ZDT1", problem_of(partial(zdt, zdt1), variables=5), 2.0 / 3.0, 0.375),
        KnownFront("ZDT2", problem_of(partial(zdt, zdt2), variables=3), 1.0 / 3.0, 0.5),
        KnownFront("ZDT3", problem_of(partial(zdt, zdt3), variables=5, ideal=(0.0, -1.0)), filled, lowest_mean),
        KnownFront("constrained ZDT1", problem_of(partial(constrained, 0.25), variables=5), 7.0 / 12.0, 0.375),
        KnownFront("Fonseca-Fleming", problem_of(fonseca_fleming, variables=4, bounds=(-4.0, 4.0)), *_fonseca()),
        # A ball of radius 1 fills pi/6 of the unit cube that it touches with an octant; the mean is least on the axes.
        KnownFront(
            "DTLZ2",
            problem_of(dtlz2, variables=6, ideal=(0.0,) * 3, reference=(1.0,) * 3),
            1.0 - math.pi / 6.0,
            1.0 / 3.0,
        ),
    ]


def _fonseca() -> tuple[float, float]:
    """Return the area that the front dominates, and the least mean of the objectives.

    The front is f_1 = 1 - exp(-(s - 1)^2), f_2 = 1 - exp(-(s + 1)^2), |s| <= 1.
    """
    s = np.linspace(1.0, -1.0, 200_001)
    one, two = 1.0 - np.exp(-((s - 1.0) ** 2)), 1.0 - np.exp(-((s + 1.0) ** 2))
    rest = (1.0 - one[-1]) * (1.0 - two[-1])  # beyond the end of the curve, where f_2 is 0
    area = float((np.diff(one) * (1.0 - (two[1:] + two[:-1]) / 2.0)).sum() + rest)
    return area, float((one + two).min()) / 2.0
