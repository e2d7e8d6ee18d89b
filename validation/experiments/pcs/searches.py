"""SPEA2, NSGA-II, random search, and SPEA2 with distances in raw units as published, by hypervolume."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ....formulations.search.front import ParetoFront
from ....formulations.search.pareto import nondominated
from ....solvers.result import Result
from ..claims import at_most, below
from ..experiment import ExperimentOutcome, ExperimentSettings, PaperClaim
from ..plots import Curves
from .paper import cluster_gpus
from .run import Steps, interval, progress_of, rows_of, searched, spread_columns, tuning_of
from .workloads import generated_case

#: Searches by label: backend and its options.
SEARCHES: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "spea2": ("spea2", {}),
    "nsga2": ("nsga2", {}),
    "random": ("random", {}),
    "spea2, raw units": ("spea2", {"distances": "raw"}),
}
# At most ten seeds, and from three repeats on ten.
_MOST_SEEDS, _TIMES = 10, 4
# Shares of the evaluations at which hypervolumes are compared.
_PARTS = (0.2, 0.5, 1.0)


def compare_searches(settings: ExperimentSettings) -> ExperimentOutcome:
    """Run every search from the same ten seeds on one sample of AutoML jobs, to the same number of evaluations."""
    gpus = cluster_gpus(settings)
    seeds = range(settings.seed, settings.seed + min(_MOST_SEEDS, _TIMES * settings.repeats))
    case = generated_case(settings, "automl", gpus=gpus, seed=settings.seed)
    problem = tuning_of(case)
    steps = Steps(settings.on_step, len(SEARCHES) * len(seeds))
    grid = np.linspace(0.0, settings.evaluations, 41)[1:]
    curves: dict[str, tuple[list[float], list[float]]] = {}
    reached: dict[str, list[list[float]]] = {}
    fronts: list[ParetoFront] = []
    rows: list[dict[str, Any]] = []
    for label, (backend, options) in SEARCHES.items():
        results = []
        for seed in seeds:
            results.append(searched(problem, settings, seed=seed, backend=backend, **options))
            steps.add()
        by_count = np.array([hypervolume_after(result, grid) for result in results])
        curves[label] = (grid.tolist(), by_count.mean(axis=0).tolist())
        counts = [part * settings.evaluations for part in _PARTS]
        reached[label] = [hypervolume_after(result, counts) for result in results]
        plans = [result.plan for result in results if result.plan is not None]
        fronts += plans
        row: dict[str, Any] = {"search": label, "seeds": len(seeds)}
        for place, count in enumerate(counts):
            row |= spread_columns(f"after {count:.0f}", [each[place] for each in reached[label]])
        rows.append(row | {"points": float(np.mean([len(plan) for plan in plans]))})
    plot = Curves(
        title=f"means over {len(seeds)} seeds", x_axis="evaluations", y_axis="hypervolume of the front", curves=curves
    )
    return ExperimentOutcome(
        rows=rows_of(case, rows), claims=(*search_claims(reached), front_claim(fronts)), plots=(plot,)
    )


def hypervolume_after(result: Result[ParetoFront], counts: Sequence[float] | Any) -> list[float]:
    """Return the hypervolume of a search after numbers of evaluations; 0 before its first front."""
    known = progress_of(result)
    return [max((value for _, done, value in known if done <= count), default=0.0) for count in counts]


def search_claims(reached: Mapping[str, Sequence[Sequence[float]]]) -> tuple[PaperClaim, ...]:
    """Compare hypervolumes at the end of the searches, seed by seed: a difference must exceed half its interval."""
    last = {label: np.array([each[-1] for each in values]) for label, values in reached.items()}

    def ahead(winner: str, loser: str) -> PaperClaim:
        mean, half = interval(last[winner] - last[loser])
        statement = f"{winner} dominates more than {loser} at the end, by more than half the interval of the difference"
        return below(statement, {f"half interval of {winner} less {loser}": (half, mean)})

    return (ahead("spea2", "random"), ahead("nsga2", "random"), ahead("spea2", "spea2, raw units"))


def front_claim(fronts: Sequence[ParetoFront]) -> PaperClaim:
    """Count points that another one dominates, and configurations that a front has twice."""
    wrong = {"dominated points": 0, "repeated configurations": 0}
    for front in fronts:
        wrong["dominated points"] += int(np.count_nonzero(~nondominated(front.scores)))
        texts = [each.to_json() for each in front.configurations]
        wrong["repeated configurations"] += len(texts) - len(set(texts))
    statement = f"no point of {len(fronts)} fronts is dominated, and all configurations of a front differ"
    return at_most(statement, {name: float(count) for name, count in wrong.items()} if fronts else {}, 0.0)
