"""Evolutionary searches by pymoo: a population that mates, mutates and survives by its scores."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from ...formulations.arrays import Floats
from ...formulations.search.problem import SearchProblem
from .backend import Batches, SearchBackend
from .settings import LIMITS, SearchSettings

# Distribution index of crossover and mutation, as PCS sets them (OSDI 2024, Section 5).
ETA = 20.0


class EvolutionarySearch(SearchBackend):
    """An evolutionary algorithm of pymoo.

    The first population is the problem's starts, the warm start, and vectors drawn uniformly. Scores are counted from
    the ideal point in units of the box; an infeasible vector violates a constraint.
    """

    requires = ("pymoo>=0.6.2",)
    version = ""
    extra = "search"
    known_options = LIMITS | {"population"}

    @abstractmethod
    def algorithm(self, settings: SearchSettings, variables: int, **common: Any) -> Any:
        """Return pymoo's algorithm for so many variables, with the arguments that are common to all."""

    def identity(self, settings: SearchSettings) -> dict[str, Any]:
        """Return the size of the population."""
        return {"population": settings.population}

    def batches(self, problem: SearchProblem, first: Floats, settings: SearchSettings, seed: int) -> Batches:
        """Yield one generation after the other."""
        from pymoo.config import Config
        from pymoo.core.evaluator import Evaluator
        from pymoo.core.problem import Problem
        from pymoo.core.termination import NoTermination
        from pymoo.problems.static import StaticProblem

        Config.warnings["not_compiled"] = False  # it prints to standard output
        n, m = len(problem.variables), len(problem.objectives)
        rng = np.random.default_rng(seed)
        drawn = rng.uniform(problem.lower, problem.upper, (max(0, settings.population - len(first)), n))
        stated = Problem(n_var=n, n_obj=m, n_ieq_constr=1, xl=problem.lower, xu=problem.upper)
        algorithm = self.algorithm(settings, n, pop_size=settings.population, sampling=np.vstack((first, drawn)))
        algorithm.setup(stated, termination=NoTermination(), seed=seed)
        raw = settings.distances == "raw"
        origin, unit = (0.0, 1.0) if raw else (problem.ideal, problem.reference - problem.ideal)
        while True:
            generation = algorithm.infill()
            if generation is None or not len(generation):
                return
            scores = yield np.clip(generation.get("X").astype(np.float64), problem.lower, problem.upper)
            infeasible = np.asarray(np.isnan(scores).any(axis=1))
            values = np.where(infeasible[:, None], 0.0, (scores - origin) / unit)
            static = StaticProblem(stated, F=values, G=infeasible[:, None].astype(np.float64))
            Evaluator().eval(static, generation)
            with np.errstate(invalid="ignore"):  # the extent of a front of one point is zero
                algorithm.advance(infills=generation)


def genetic_operators(variables: int) -> dict[str, Any]:
    """Return simulated binary crossover (eta 20, p 1) and polynomial mutation (eta 20, p 1/n) of pymoo."""
    from pymoo.operators.crossover.sbx import SBX
    from pymoo.operators.mutation.pm import PM

    return {"crossover": SBX(prob=1.0, eta=ETA), "mutation": PM(prob=1.0, prob_var=1.0 / variables, eta=ETA)}
