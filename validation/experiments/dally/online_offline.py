"""How far the auto-tuner, which learns timers as jobs are placed, is from the best fixed timers found offline."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product
from types import MappingProxyType
from typing import Any

import numpy as np

from ....formulations.arrays import Floats
from ....formulations.search.front import ParetoFront
from ....heuristics.registry import make_policy
from ....heuristics.search.delay_tuning import DelayTuning
from ....solvers.solve import solve
from ..claims import below
from ..experiment import ExperimentOutcome, ExperimentSettings, PaperClaim
from ..pcs.run import Steps, spread_columns
from .run import ARRIVALS, DAY_S, LEASE_S, Case, label

#: Clusters on which they are compared.
RACKS = (8, 16)
#: Samples on which timers are tuned, and held-out ones on which everything is scored; none has the seed of another.
SAMPLES, HELD_OUT = 2, 2
#: Online tuners by label: options of `dally`.
ONLINE: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "dally": {},
        "dally, released": {"preset": "released", "history_s": 30.0 * DAY_S},
        "dally, patient": {"preset": "patient"},
        "dally, history 1 d": {"history_s": DAY_S},
        "dally, history 30 d": {"history_s": 30.0 * DAY_S},
        "dally, no wait without waits": {"empty_s": (0.0, 0.0)},
        "dally, endless without waits": {"empty_s": (math.inf, math.inf)},
        "dally, waits from 1 s on": {"least_wait_s": 1.0},
    }
)
#: Policies of fixed timers by label, the timers found on the samples, and the best found on the held-out ones.
FIXED: Mapping[str, str] = MappingProxyType(
    {"nowait": "dally-nowait", "manual": "dally-manual", "consolidated": "dally-consolidated"}
)
OFFLINE, OPTIMUM = "tuned offline", "offline optimum"

#: Average JCT in seconds by label, on the held-out samples of one seed.
Scores = Mapping[str, float]


def online_offline(settings: ExperimentSettings) -> ExperimentOutcome:
    """Score online tuners and fixed timers by the average JCT on held-out samples, beside the optimum found on these.

    The offline optimum is the best of all fixed timers that searches found: one on other samples, and one, from its
    result on, on the held-out samples themselves.
    """
    racks = RACKS if settings.racks is None else (settings.racks,)
    clusters = list(product(ARRIVALS, racks))
    steps = Steps(settings.on_step, 2 * len(clusters) * settings.repeats)
    found: dict[tuple[str, int], list[Scores]] = {}
    for cluster in clusters:
        found[cluster] = [_scores(cluster, seed, settings, steps) for seed in settings.seeds]
    rows = [row for cluster in clusters for row in _rows(cluster, found[cluster])]
    return ExperimentOutcome(rows=rows, claims=distance_claims(found))


def _scores(cluster: tuple[str, int], seed: int, settings: ExperimentSettings, steps: Steps) -> Scores:
    arrivals, racks = cluster
    cases = [
        Case(
            arrivals=arrivals, racks=racks, seed=(SAMPLES + HELD_OUT) * seed + place, policy="dally", jobs=settings.jobs
        )
        for place in range(SAMPLES + HELD_OUT)
    ]
    traces = [case.trace for case in cases]
    common: dict[str, Any] = {"cluster": cases[0].cluster, "objectives": ("jct:avg",), "lease_s": LEASE_S}
    tuning = DelayTuning(train=tuple(traces[:SAMPLES]), test=tuple(traces[SAMPLES:]), **common)
    tuned = _searched(tuning, settings, seed)
    steps.add()
    hindsight = DelayTuning(train=tuning.test, **common)
    # Fronts of the same variables alone can be warm starts: a sample may lack a demand.
    warm = tuned if tuned.variables == tuple(each.name for each in hindsight.variables) else None
    best = _searched(hindsight, settings, seed, warm)
    steps.add()

    def online(name: str, **options: Any) -> float:
        return float(tuning.scores_of_policy(make_policy(name, lease_s=LEASE_S, **options), held_out=True)[0])

    scores = {
        **{name: online("dally", **options) for name, options in ONLINE.items()},
        **{name: online(policy) for name, policy in FIXED.items()},
        OFFLINE: float(tuning.held_out_scores(tuned)[0, 0]),
    }
    fixed = [scores[name] for name in (*FIXED, OFFLINE)]
    return {**scores, OPTIMUM: min(*fixed, float(best.scores[0, 0]))}


def _searched(
    problem: DelayTuning, settings: ExperimentSettings, seed: int, warm: ParetoFront | None = None
) -> ParetoFront:
    backend = "differential_evolution"
    own = {backend: {"evaluations": settings.evaluations}}
    result = solve(problem, backend, seed=seed, threads=settings.threads, warm_start=warm, backend_options=own)
    return result.require_plan()


def _rows(cluster: tuple[str, int], scores: Sequence[Scores]) -> list[dict[str, Any]]:
    arrivals, racks = cluster
    return [
        {
            "arrivals": arrivals,
            "racks": racks,
            "timers": name,
            **spread_columns("jct d", [each[name] / DAY_S for each in scores]),
            **spread_columns("above optimum %", above_pct(scores, name)),
        }
        for name in scores[0]
    ]


def above_pct(scores: Sequence[Scores], name: str) -> Floats:
    """Return by how many percent the score of one exceeds the offline optimum, seed by seed."""
    return np.array([100.0 * (each[name] / each[OPTIMUM] - 1.0) for each in scores])


def distance_claims(found: Mapping[tuple[str, int], Sequence[Scores]]) -> tuple[PaperClaim, ...]:
    """Compare means over the seeds of the distances from the offline optimum."""

    def means(name: str) -> dict[str, float]:
        return {label(cluster): float(above_pct(scores, name).mean()) for cluster, scores in found.items()}

    def compared(ours: str, theirs: str) -> dict[str, tuple[float, float]]:
        return {name: (each, means(theirs)[name]) for name, each in means(ours).items()}

    return (
        below("timers tuned on other samples are nearer than the auto-tuner", compared(OFFLINE, "dally"), unit="%"),
        below("the auto-tuner is nearer than timers of 0", compared("dally", "nowait"), unit="%"),
        below("the patient auto-tuner is nearer than the paper's", compared("dally, patient", "dally"), unit="%"),
    )
