"""Figure 6: communication of a job over time under static penalties and under the all-reduce model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....simulation.network import AllReduceSpeeds, PenaltySpeeds, RatioSpeeds, placement_at
from ....simulation.placement import PlacementResult
from ....simulation.placement.occupancy import Occupancy
from ....simulation.placement.pictures.communication import ExposedShares, communication_picture, exposed_shares
from ..claims import at_least, at_most
from ..experiment import ExperimentOutcome, ExperimentSettings, PaperClaim
from .paper import MACHINE_GPUS
from .run import DAY_S, Case, run_cases

_RACKS = 8
_PENALTIES, _MODEL = "penalties", "all-reduce"


@dataclass(frozen=True)
class Picture:
    """A finished picture."""

    document: str

    def svg(self) -> str:
        """Return the picture as an SVG document."""
        return self.document


def figure_6(settings: ExperimentSettings) -> ExperimentOutcome:
    """Run Dally's jobs under the model and under penalties, and follow one job of the first run."""
    racks = _RACKS if settings.racks is None else settings.racks
    cases = {
        (speeds, seed): Case(
            arrivals="batch", racks=racks, seed=seed, policy="dally", jobs=settings.jobs, speeds=speeds
        )
        for speeds in (_MODEL, _PENALTIES)
        for seed in settings.seeds
    }
    found = run_cases(cases.values(), settings)
    first = cases[_MODEL, settings.seed]
    result = first.run(record=True)
    speeds: dict[str, RatioSpeeds] = {
        _PENALTIES: PenaltySpeeds(cluster=first.cluster), _MODEL: AllReduceSpeeds(cluster=first.cluster)
    }  # fmt: skip
    job = travelled_job(result)
    along = {name: exposed_shares(result, job, each) for name, each in speeds.items()}
    rows = [_tier_row(model, first, speeds) for model in dict.fromkeys(result.trace.model)]
    exposed_d = {
        name: float(np.mean([found[cases[name, seed]].exposed_s.mean() for seed in settings.seeds])) / DAY_S
        for name in speeds
    }
    rows = [*rows, {"model": "all jobs of a run, days", **{f"{name} mean": exposed_d[name] for name in speeds}}]
    picture = communication_picture(result, job, speeds)
    return ExperimentOutcome(rows=rows, claims=model_claims(rows, along, exposed_d), plots=(Picture(picture),))


def travelled_job(result: PlacementResult) -> int:
    """Return the job that ran for the longest time above the lowest tier of its gang."""
    assert result.stretches is not None
    gpus = Occupancy(result.cluster)
    above_s = np.zeros(len(result.trace))
    found = result.stretches
    for index, ids, start_s, end_s in zip(found.trace_index, found.ids(), found.start_s, found.end_s, strict=True):
        if result.cluster.tier(ids) > gpus.least_tier(len(ids)):
            above_s[index] += end_s - start_s
    return int(above_s.argmax())


def _tier_row(model: str, case: Case, speeds: Mapping[str, RatioSpeeds]) -> dict[str, Any]:
    """Return the shares of exposed communication of a job of 8 GPUs at each tier, under both."""
    row: dict[str, Any] = {"model": model}
    for name, each in speeds.items():
        for tier, tier_name in enumerate(("machine", "rack", "network")):
            run = placement_at(tier, model, MACHINE_GPUS, case.cluster)
            row[f"{name} {tier_name}"] = None if run is None else each.exposed(run)
    return row


def model_claims(
    rows: Sequence[Mapping[str, Any]], along: Mapping[str, ExposedShares], exposed_d: Mapping[str, float]
) -> tuple[PaperClaim, ...]:
    """Check the claims on the shares of each model and tier, along one job's run, and on whole runs."""

    def spread(name: str) -> dict[str, float]:
        found = {}
        for tier in ("machine", "rack", "network"):
            shares = [row[f"{name} {tier}"] for row in rows if row.get(f"{name} {tier}") is not None]
            if shares:
                found[tier] = max(shares) - min(shares)
        return found

    lengths = {name: each.end_s - each.start_s for name, each in along.items()}
    means = {name: float(each.share @ lengths[name] / lengths[name].sum()) for name, each in along.items()}
    levels = {name: len(set(np.round(each.share, 9).tolist())) for name, each in along.items()}
    larger, smaller = max(exposed_d.values()), min(exposed_d.values())
    return (
        at_most("penalties give all models the same share of communication at a tier: the difference",
                spread(_PENALTIES), 0.0),
        at_least("under the model they differ: by so much of the run time at some tier",
                 {"largest": max(spread(_MODEL).values())}, 0.1),
        at_least("the communication of a job changes with its placement: different shares along its run", levels, 2),
        at_least("penalties misstate the communication of the job: difference of the shares of its run time",
                 {"difference": abs(means[_PENALTIES] - means[_MODEL])}, 0.05),
        at_least("and that of all jobs: the larger mean over the smaller, each in a run of its own",
                 {"factor": larger / smaller if smaller else np.inf}, 1.2),
    )  # fmt: skip
