"""The trade-off between JCT and predictability: existing policies at its ends, weighted fair queues between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ....formulations.arrays import Floats
from ..claims import at_least, at_most
from ..experiment import ExperimentOutcome, ExperimentSettings, PaperClaim
from ..plots import Curves
from .paper import cluster_gpus
from .run import Figures, Steps, rows_of, simulated, spread_columns, tuned
from .workloads import generated_case

_POLICIES = ("fifo", "srsf", "las", "fs", "afs", "themis")
#: Mean JCT of a point of a front over that of AFS: where its least error is read.
LEVELS = (1.1, 1.5, 2.0, 4.0)


def trade_off(settings: ExperimentSettings) -> ExperimentOutcome:
    """Run the policies and search on the jobs of workload-3: mean JCT and mean error of both."""
    gpus = cluster_gpus(settings)
    steps = Steps(settings.on_step, settings.repeats * (len(_POLICIES) + 1))
    found: list[dict[str, Figures]] = []
    fronts: list[Floats] = []
    for seed in settings.seeds:
        case = generated_case(settings, "continuous", gpus=gpus, seed=seed)
        found.append({})
        for name in _POLICIES:
            found[-1][name] = simulated(case, name)
            steps.add()
        fronts.append(tuned(case, settings, seed=seed).scores)
        steps.add()
    rows: list[dict[str, Any]] = []
    for name in _POLICIES:
        row: dict[str, Any] = {"policy": name}
        row |= spread_columns("jct / afs", [each[name].jct_s / each["afs"].jct_s for each in found])
        rows.append(row | spread_columns("error %", [each[name].error_pct for each in found]))
    for level in LEVELS:
        errors = [least_error(front, level * each["afs"].jct_s) for front, each in zip(fronts, found, strict=True)]
        rows.append({"policy": "front", "jct / afs": level} | spread_columns("error %", errors))
    afs_s = found[0]["afs"].jct_s
    curves = {"front": (fronts[0][:, 1].tolist(), (fronts[0][:, 0] / afs_s).tolist())}
    curves |= {name: ([each.error_pct], [each.jct_s / afs_s]) for name, each in found[0].items()}
    plot = Curves(
        title=f"{settings.jobs} jobs on {gpus} GPUs, seed {settings.seed}", x_axis="mean prediction error in percent",
        y_axis="mean JCT over that of AFS", curves=curves,
    )  # fmt: skip
    return ExperimentOutcome(rows=rows_of(case, rows), claims=trade_off_claims(found, fronts), plots=(plot,))


def least_error(scores: Floats, most_jct_s: float) -> float:
    """Return the least error (the second score) of the points with at most this JCT (the first); nan without one."""
    within = scores[:, 0] <= most_jct_s
    return float(scores[within, 1].min()) if within.any() else float("nan")


def trade_off_claims(found: Sequence[Mapping[str, Figures]], fronts: Sequence[Floats]) -> tuple[PaperClaim, ...]:
    """Check that the policies are at the ends of the trade-off, and the fronts between."""
    fast, share, dominated = {}, {}, {}
    for seed, (policies, front) in enumerate(zip(found, fronts, strict=True)):
        shortest = min(policies, key=lambda name, of=policies: of[name].jct_s)  # type: ignore[misc]
        fast[f"{shortest}, workload {seed}"] = policies[shortest].error_pct
        share[f"workload {seed}"] = least_error(front, 1.5 * policies["afs"].jct_s) / policies["afs"].error_pct
        points = np.array([[each.jct_s, each.error_pct] for each in policies.values()])
        beaten = [bool(((points <= point).all(axis=1) & (points < point).any(axis=1)).any()) for point in front]
        dominated[f"workload {seed}"] = 100.0 * float(np.mean(beaten))
    return (
        at_least("the policy of the shortest JCT predicts badly, by at least 10%", fast, 10.0, unit="%"),
        at_most(
            "FIFO predicts exactly",
            {f"workload {seed}": each["fifo"].error_pct for seed, each in enumerate(found)},
            1e-6,
            unit="%",
        ),
        at_most("within 1.5 times AFS's JCT a front has at most a quarter of its error", share, 0.25),
        at_most("no more than a tenth of the points of a front are dominated by a policy", dominated, 10.0, unit="%"),
    )
