"""The published front of the cluster 2869ce, re-simulated, beside fronts of our own; and seconds of searches."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any

import numpy as np

from ....formulations.arrays import Floats
from ....formulations.search.pareto import nondominated
from ....formulations.search.wfq_config import WfqConfig
from ....heuristics.search.wfq_tuning import WfqTuning
from ..claims import at_most, below
from ..experiment import ExperimentOutcome, ExperimentSettings, PaperClaim
from ..plots import Curves
from .paper import PAPER_EVALUATIONS, PAPER_GPUS
from .run import Steps, searched, spread_columns, tuning_of
from .workloads import Case, published_case

CLUSTER = "2869ce"
#: Seconds of our searches that are compared with the published front; of the demanded whole search.
LIMIT_S, MOST_S = 60.0, 240.0
# Samples of the jobs that neither front has seen.
_HELD_OUT = 3


def published_front(settings: ExperimentSettings) -> ExperimentOutcome:
    """Search on the jobs that the published front was tuned on; compare both there and on samples of these jobs."""
    case = published_case(settings, CLUSTER, PAPER_GPUS)
    file = None if settings.data is None else settings.data / "pcs" / "pareto" / f"trace_{CLUSTER}.json"
    if case is None or file is None or not file.is_file():
        return ExperimentOutcome(
            rows=[], skipped=f"needs pcs/pareto/trace_{CLUSTER}.json and the trace: give the folder by --data"
        )
    solutions = json.loads(file.read_text(encoding="utf-8"))["solutions"]
    configs = [published_config(each) for each in solutions if each["feasible"]]
    printed = np.array([list(each["objectives"].values()) for each in solutions if each["feasible"]])
    steps = Steps(settings.on_step, 1 + settings.repeats + 2)
    drawn = WfqTuning.from_history(
        case.trace, gpus=case.gpus, speedups=case.speedups, samples=1, held_out=_HELD_OUT, jobs=len(case.trace),
        seed=settings.seed,
    )  # fmt: skip
    problem = tuning_of(case, held_out=[_with_trace(case, trace) for trace in drawn.test])
    theirs = {"tuned on": problem.scores_of(configs), "held out": problem.scores_of(configs, held_out=True)}
    steps.add()
    volumes: dict[str, list[float]] = {"tuned on": [], "held out": []}
    first: dict[str, Floats] = {}
    for seed in settings.seeds:
        front = searched(problem, settings, seed=seed, time_limit=LIMIT_S, evaluations=PAPER_EVALUATIONS).plan
        assert front is not None  # the corners are feasible
        ours = {"tuned on": front.scores, "held out": problem.held_out_scores(front)}
        first = first or ours
        for where, scores in ours.items():
            volumes[where].append(problem.hypervolume(scores))
        steps.add()
    rows: list[dict[str, Any]] = []
    for where in theirs:
        row: dict[str, Any] = {"jobs": where, "published points": len(configs)}
        row |= {"published, not dominated": int(nondominated(theirs[where]).sum())}
        row |= {"published hypervolume": problem.hypervolume(theirs[where])}
        rows.append(row | spread_columns("our hypervolume", volumes[where]))
    exact = float(np.abs(problem.scores_of(configs)[:, 0] / printed[:, 0] - 1.0).max())
    seconds = _seconds(case, settings, steps)
    for samples, taken in seconds.items():
        jobs = f"{samples} sample(s) of {settings.jobs}"
        rows.append({"jobs": jobs, "evaluations": PAPER_EVALUATIONS, "seconds": taken})
    plot = Curves(
        title="on the jobs that both were tuned on", x_axis="mean prediction error in percent",
        y_axis="mean JCT in seconds", curves={
            "published": _sorted(theirs["tuned on"]), "ours": _sorted(first["tuned on"]),
        },
    )  # fmt: skip
    published = {where: problem.hypervolume(scores) for where, scores in theirs.items()}
    return ExperimentOutcome(rows=rows, claims=front_claims(published, volumes, exact, seconds), plots=(plot,))


def published_config(solution: Mapping[str, Any]) -> WfqConfig:
    """Return the configuration of a solution of the published front."""
    thresholds = [np.inf if each == "inf" else float(each) for each in solution["class_thresholds"]]
    return WfqConfig(
        thresholds=thresholds, weights=solution["class_rates"], zeta=solution["zeta"], delta=solution["delta"]
    )


def front_claims(
    published: Mapping[str, float], ours: Mapping[str, Sequence[float]], exact: float, seconds: Mapping[int, float]
) -> tuple[PaperClaim, ...]:
    """Check the hypervolumes of every seed, the re-simulated JCT, and the seconds of searches by samples."""
    return (
        at_most("the published points have the published mean JCT, up to 1e-9", {"largest difference": exact}, 1e-9),
        *(
            below(
                f"our front after {LIMIT_S:g} s dominates at least as much as the published one ({where})",
                {f"seed {place}": (published[where], value) for place, value in enumerate(values)},
                equal=True,
            )
            for where, values in ours.items()
        ),
        at_most(
            f"{PAPER_EVALUATIONS} evaluations of one sample take less than 4 minutes",
            {f"{samples} sample(s)": taken for samples, taken in seconds.items() if samples == 1},
            MOST_S,
            unit=" s",
        ),
    )


def _seconds(case: Case, settings: ExperimentSettings, steps: Steps) -> dict[int, float]:
    """Return the seconds of a whole search with one and with three samples."""
    found = {}
    for samples in (1, 3):
        problem = WfqTuning.from_history(
            case.trace, gpus=case.gpus, speedups=case.speedups, samples=samples, held_out=0, jobs=settings.jobs,
            seed=settings.seed,
        )  # fmt: skip
        started_s = perf_counter()
        searched(problem, settings, seed=settings.seed, evaluations=PAPER_EVALUATIONS)
        found[samples] = perf_counter() - started_s
        steps.add()
    return found


def _with_trace(case: Case, trace: Any) -> Case:
    return Case(trace=trace, gpus=case.gpus, speedups=case.speedups, source=case.source)


def _sorted(scores: Floats) -> tuple[list[float], list[float]]:
    """Return errors and JCT by ascending error, for a curve."""
    order = np.argsort(scores[:, 1])
    return scores[order, 1].tolist(), scores[order, 0].tolist()
