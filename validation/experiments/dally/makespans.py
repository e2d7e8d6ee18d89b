"""Figure 7: makespans of all policies on 2 to 16 racks."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..claims import at_least, at_most, below
from ..experiment import ExperimentOutcome, ExperimentSettings, PaperClaim
from ..plots import Bars
from .paper import MAKESPAN_BELOW_PCT, POLICIES, shown
from .run import ARRIVALS, DAY_S, Grid, grid, label

#: Makespans that differ by less than this part count as equal.
TIE = 0.02
_PUBLISHED = ("tiresias", "gandiva")


def figure_7(settings: ExperimentSettings) -> ExperimentOutcome:
    """Compare the makespans."""
    found = grid(settings)
    plots = tuple(
        Bars(
            title=f"Figure 7: {kind}", y_axis="makespan over that of Dally", reference=1.0,
            groups=[f"{racks} racks" for arrivals, racks in found.cases if arrivals == kind],
            series={policy: [found.mean("makespan", cluster, policy) / found.mean("makespan", cluster, "dally")
                             for cluster in found.cases if cluster[0] == kind] for policy in POLICIES},
        )
        for kind in ARRIVALS
    )  # fmt: skip
    return ExperimentOutcome(rows=makespan_rows(found), claims=makespan_claims(found), plots=plots)


def makespan_rows(found: Grid) -> list[dict[str, Any]]:
    """Return a row for each cluster and policy: the makespan, its spread over the seeds, and that over Dally's."""
    rows = []
    for cluster, policies in found.cases.items():
        own = [each.makespan_s / DAY_S for each in policies["dally"]]
        for policy, each in policies.items():
            values = [figures.makespan_s / DAY_S for figures in each]
            rows.append(
                {
                    "arrivals": cluster[0],
                    "racks": cluster[1],
                    "policy": policy,
                    "makespan d": float(np.mean(values)),
                    "least d": min(values),
                    "most d": max(values),
                    "over dally": float(np.mean(values) / np.mean(own)),
                    "below %": 100.0 * (1.0 - float(np.mean(own) / np.mean(values))),
                    "printed below % at most": MAKESPAN_BELOW_PCT.get(policy),
                }
            )
    return rows


def makespan_claims(found: Grid) -> tuple[PaperClaim, ...]:
    """Check the order of the makespans, on average over the seeds."""
    large = [cluster for cluster in found.cases if cluster[1] > 2]
    small = [cluster for cluster in found.cases if cluster[1] == 2]
    rivals = {name: dict[str, float]() for name in ("published", "variants")}
    for cluster in found.cases:
        own = found.mean("makespan", cluster, "dally")
        for part, names in (("published", _PUBLISHED), ("variants", [p for p in POLICIES if p not in _PUBLISHED])):
            least = min(found.mean("makespan", cluster, name) for name in names if name != "dally")
            rivals[part][label(cluster)] = own / least
    between = [f"dally-{name}" for name in ("manual", "consolidated")]
    below_pct = {name: found.below_pct("makespan", "dally", name) for name in _PUBLISHED}
    return (
        at_most(
            "Dally's makespan is no longer than those of Tiresias and Gandiva: over the least of them",
            rivals["published"],
            1.0,
        ),
        at_most(
            f"no variant's makespan is below Dally's by more than {100 * TIE:.0f}%: Dally's over the least of them",
            rivals["variants"],
            1.0 / (1.0 - TIE),
        ),
        *(
            below(
                f"the makespan of {name} is below that of Tiresias",
                found.pairs("makespan", name, "tiresias"),
                unit=" d",
            )
            for name in between
        ),
        *(
            below(
                f"the makespan of dally-nowait is {side} that of Tiresias on {which} racks",
                found.pairs("makespan", *order, where=where),
                unit=" d",
            )
            for side, which, order, where in (
                ("above", "more than 2", ("tiresias", "dally-nowait"), large),
                ("below", "2", ("dally-nowait", "tiresias"), small),
            )
            if where
        ),
        *(
            at_least(
                f"Dally's makespan is below that of {shown(name)} by at least half of what the paper prints, where by "
                "most",
                {"largest reduction": max(below_pct[name].values())},
                printed_pct / 2.0,
                unit="%",
                printed=f"up to {printed_pct:g}%",
            )
            for name, printed_pct in MAKESPAN_BELOW_PCT.items()
        ),
    )
