"""Figure 10c: configurations that were tuned at another load than the one at which they run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ....formulations.arrays import Floats
from ..experiment import ExperimentOutcome, ExperimentSettings, PaperClaim
from ..plots import Curves
from .claims import at_least
from .paper import cluster_gpus
from .run import Steps, searched, spread_columns, tuning_of
from .workloads import generated_case

#: Load at which configurations are tuned, and the one at which they run.
TUNED_LOAD, LOAD = 0.6, 0.8
#: What "within 10%" means, and the share of the points that the paper finds there.
NEAR, SHARE = 0.1, 0.75


def figure_10c(settings: ExperimentSettings) -> ExperimentOutcome:
    """Tune at load 0.6, run the points of the front at load 0.8, and compare with the front tuned there."""
    gpus = cluster_gpus(settings)
    steps = Steps(settings.on_step, 2 * settings.repeats)
    shares: dict[str, list[float]] = {"relative": [], "of the box": []}
    rows: list[dict[str, Any]] = []
    curves: dict[str, tuple[list[float], list[float]]] = {}
    for seed in settings.seeds:
        # The same jobs, which arrive faster.
        cases = {load: generated_case(settings, "automl", gpus=gpus, seed=seed, load=load) for load in (0.6, 0.8)}
        problems = {load: tuning_of(case) for load, case in cases.items()}
        fronts = {}
        for load, problem in problems.items():
            fronts[load] = searched(problem, settings, seed=seed).plan
            steps.add()
        other, own = fronts[TUNED_LOAD], fronts[LOAD]
        assert other is not None  # the corners are feasible
        assert own is not None
        problem = problems[LOAD]
        scores = problem.scores_of(other.configurations)
        near = {
            "relative": within_relative(scores, own.scores, NEAR),
            "of the box": within_box(scores, own.scores, NEAR * (problem.reference - problem.ideal)),
        }
        for name, each in near.items():
            shares[name].append(float(each.mean()))
        rows.append(
            {"seed": seed, "points": len(other), "points of the front": len(own)}
            | {f"within 10% ({name}) %": 100.0 * values[-1] for name, values in shares.items()}
            | {"hypervolume": problem.hypervolume(scores), "of the front": problem.hypervolume(own.scores)}
        )
        if not curves:
            curves = {
                "tuned at load 0.8": (own.scores[:, 1].tolist(), own.scores[:, 0].tolist()),
                "tuned at load 0.6": (scores[:, 1].tolist(), scores[:, 0].tolist()),
            }
    total: dict[str, Any] = {"seed": "all"}
    for name, values in shares.items():
        total |= spread_columns(f"within 10% ({name}) %", [100.0 * each for each in values])
    plot = Curves(
        title=f"Figure 10c at load 0.8, seed {settings.seed}", x_axis="mean prediction error in percent",
        y_axis="mean JCT in seconds", curves=curves,
    )  # fmt: skip
    return ExperimentOutcome(rows=[*rows, total], claims=load_claims(shares), plots=(plot,))


def within_relative(scores: Floats, front: Floats, share: float) -> Floats:
    """Return which points some point of a front exceeds by no more than a share of its scores, shape (P,)."""
    near = scores[:, None, :] <= (1.0 + share) * front[None, :, :]
    return np.asarray(np.any(np.all(near, axis=2), axis=1), dtype=np.float64)


def within_box(scores: Floats, front: Floats, slack: Floats) -> Floats:
    """Return which points exceed some point of a front by no more than `slack` in each score, shape (P,)."""
    near = scores[:, None, :] <= front[None, :, :] + slack
    return np.asarray(np.any(np.all(near, axis=2), axis=1), dtype=np.float64)


def load_claims(shares: Mapping[str, Sequence[float]]) -> tuple[PaperClaim, ...]:
    """Check that three quarters of the points lie near the front, by both measures."""
    where = {"relative": "10% in each score", "of the box": "a tenth of the range of each score"}
    return tuple(
        at_least(
            f"three quarters of the points that were tuned at load 0.6 are within {where[name]} of the front at 0.8",
            {"mean": float(np.mean(values)), "least": float(np.min(values))} if len(values) else {},
            SHARE,
            printed="0.75",
        )
        for name, values in shares.items()
    )
