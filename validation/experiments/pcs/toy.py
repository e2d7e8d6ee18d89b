"""Figure 1: four jobs on one GPU, whose schedules the paper prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ....heuristics.registry import make_policy
from ....simulation.fluid import FluidRules, Speedups, simulate_fluid
from ....simulation.traces.trace import Trace
from ..claims import agrees
from ..experiment import ExperimentOutcome, ExperimentSettings, PaperClaim
from .paper import FIGURE_1

# The paper's Themis decides every second.
_OPTIONS: Mapping[str, Mapping[str, Any]] = {"themis": {"lease_s": 1.0}}


def figure_1(settings: ExperimentSettings) -> ExperimentOutcome:
    """Mean JCT, prediction error and unfairness of the printed instance; nothing is drawn."""
    trace = Trace(
        job_id=["J1", "J2", "J3", "J4"],
        model=["m"] * 4,
        gang_gpus=np.ones(4, dtype=np.int64),
        arrival_s=np.array([0.0, 0.0, 1.0, 10.0]),
        size_s=np.array([10.0, 8.0, 1.0, 8.0]),
    )
    rows: list[dict[str, Any]] = []
    for name, (jct_s, error_pct, unfair_pct) in FIGURE_1.items():
        policy = make_policy(name, "fluid", **_OPTIONS.get(name, {}))
        rules = FluidRules(predict=True)
        result = simulate_fluid(trace, policy, cluster=1, speedups=Speedups.linear(1), rules=rules)
        rows.append(
            {
                "policy": name,
                "jct s": float(result.jct_s.mean()),
                "printed jct s": jct_s,
                "error %": float(result.error_pct.mean()),
                "printed error %": error_pct,
                "most unfair %": float(100.0 * np.max(result.unfairness)),
                "printed unfair %": unfair_pct,
            }
        )
        if settings.on_step is not None:
            settings.on_step(len(rows), len(FIGURE_1))
    return ExperimentOutcome(rows=rows, claims=toy_claims(rows))


def toy_claims(rows: Sequence[Mapping[str, Any]]) -> tuple[PaperClaim, ...]:
    """Compare the rows with the printed numbers, to their digits."""

    def pairs(column: str) -> dict[str, tuple[float, float]]:
        printed = f"printed {column.removeprefix('most ')}"
        return {row["policy"]: (float(row[column]), float(row[printed])) for row in rows}

    return (
        agrees("mean JCT is as printed", pairs("jct s"), within=1e-6, unit=" s"),
        agrees("the mean prediction error is as printed", pairs("error %"), within=0.5, unit="%"),
        agrees("the largest unfairness is as printed", pairs("most unfair %"), within=0.5, unit="%"),
    )
