"""Figure 1 and Table I: communication of six models by tier, and how weakly the skew of a model predicts it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import permutations

import numpy as np
from scipy.stats import rankdata

from ....formulations.arrays import Floats
from ....simulation import Cluster
from ....simulation.network import TIERS, AllReduceSpeeds, CommunicationTable, placement_at
from ....simulation.network.communication_table import MEASURED_GPUS
from ..claims import at_least, at_most, below
from ..experiment import ExperimentOutcome, ExperimentSettings, PaperClaim
from ..plots import Bars
from .paper import MACHINE_GPUS, RACK_MACHINES


def figure_1(settings: ExperimentSettings) -> ExperimentOutcome:
    """Compare the measured communication of each model with its skew, and with the calibrated all-reduce model."""
    table = CommunicationTable.builtin()
    modelled = {model: _modelled(model) for model in table.models}
    slowdowns = {row.model: (1.0 + row.network) / (1.0 + row.machine) for row in table.rows}
    by_skew, by_slowdown = (
        dict(zip(values, (len(values) + 1 - rankdata(list(values.values()))).astype(int).tolist(), strict=True))
        for values in (table.skews, slowdowns)
    )
    rows = [
        {
            "model": row.model,
            **{f"printed {tier}": ratio for tier, ratio in zip(TIERS, row.ratios, strict=True)},
            **{f"modelled {tier}": ratio for tier, ratio in zip(TIERS, modelled[row.model], strict=True)},
            "network over machine": slowdowns[row.model],
            "skew": row.skew,
            "rank by network": by_slowdown[row.model],
            "rank by skew": by_skew[row.model],
        }
        for row in table.rows
    ]
    plots = tuple(
        Bars(
            title=f"Figure 1: {tier}", y_axis="communication over computation", groups=table.models,
            series={"measured": [row.ratios[place] for row in table.rows],
                    "modelled": [modelled[model][place] for model in table.models]},
        )
        for place, tier in enumerate(TIERS)
    )  # fmt: skip
    return ExperimentOutcome(rows=rows, claims=tier_claims(table, modelled), plots=plots)


def _modelled(model: str) -> list[float]:
    """Return the ratios of the all-reduce model on 8 GPUs at each tier of two racks."""
    gpus = 2 * RACK_MACHINES * MACHINE_GPUS
    cluster = Cluster(gpus_by_type={"gpu": gpus}, gpus_per_machine=MACHINE_GPUS, racks=2)
    speeds = AllReduceSpeeds(cluster=cluster)
    runs = [placement_at(tier, model, MEASURED_GPUS, cluster) for tier in range(len(TIERS))]
    return [speeds.ratio(run) for run in runs if run is not None]


def tier_claims(table: CommunicationTable, modelled: Mapping[str, Sequence[float]]) -> tuple[PaperClaim, ...]:
    """Check the claims on the printed ratios, and on those of the model at the same tiers."""
    ratios = {row.model: row.ratios for row in table.rows}
    skew = [row.skew for row in table.rows]
    slowdown = [(1.0 + row.network) / (1.0 + row.machine) for row in table.rows]
    correlation, chance = rank_correlation(skew, slowdown)
    skewed = max(table.rows, key=lambda row: row.skew)
    off = {
        f"{model} {tier}": max(modelled[model][place] / printed[place], printed[place] / modelled[model][place])
        for model, printed in ratios.items()
        for place, tier in enumerate(TIERS)
        if place
    }
    return (
        below(
            "communication takes no less on a rack than in a machine, and across racks than on a rack (Figure 1)",
            {
                f"{model} {tier}": (found[place - 1], found[place])
                for model, found in ratios.items()
                for place, tier in enumerate(TIERS)
                if place
            },
            equal=True,
        ),
        at_least(
            "across racks the most sensitive model communicates at least 1,000 times as long as the least, per "
            "computation",
            {"most over least": max(r[2] for r in ratios.values()) / min(r[2] for r in ratios.values())},
            1000.0,
            printed=f"{max(r[2] for r in ratios.values()):g} and {min(r[2] for r in ratios.values()):g}",
        ),
        at_least(
            "the ranks of six models by skew and by slowdown across racks are independent at the 5% level (Table I): "
            "the share of orders that agree, or disagree, as much",
            {f"at a rank correlation of {correlation:.3f}": chance},
            0.05,
        ),
        at_most(
            "the most skewed model is the least sensitive one: its slowdown across racks over the least of all",
            {skewed.model: (1.0 + skewed.network) / (1.0 + skewed.machine) / min(slowdown)},
            1.0,
        ),
        at_least(
            "advertised bandwidths do not reproduce the measurements on racks and across them: factor between the two",
            {"largest": max(off.values()), "median": float(np.median(list(off.values())))},
            2.0,
        ),
    )


def rank_correlation(one: Sequence[float], other: Sequence[float]) -> tuple[float, float]:
    """Return Spearman's rank correlation, and the share of all orders for which it is as far from 0."""
    ranks, others = rankdata(one), rankdata(other)
    found = _correlation(ranks, others)
    orders = [abs(_correlation(ranks, np.array(order))) for order in permutations(others.tolist())]
    return found, float(np.mean([each >= abs(found) - 1e-12 for each in orders]))


def _correlation(one: Floats, other: Floats) -> float:
    return float(np.corrcoef(one, other)[0, 1])
