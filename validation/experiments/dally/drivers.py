"""What the order of the makespans depends on: one setting changed at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..claims import at_least, at_most, below
from ..experiment import ExperimentOutcome, ExperimentSettings, PaperClaim
from .paper import POLICIES, VARIANTS
from .run import ARRIVALS, DAY_S, Case, run_cases

# No run lasts as long.
NO_LEASES_S = 1e12
_HOUR_S = 3600.0
_RACKS = 8


@dataclass(frozen=True, kw_only=True)
class Change:
    """Fields of `Case` that differ from the other experiments, and options of policies."""

    fields: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # by policy

    def case(self, arrivals: str, racks: int, seed: int, policy: str, jobs: int) -> Case:
        """Return the simulation with the change."""
        own = tuple(sorted(self.options.get(policy, {}).items()))
        return Case(arrivals=arrivals, racks=racks, seed=seed, policy=policy, jobs=jobs, options=own, **self.fields)


def _variants(**options: Any) -> Change:
    return Change(options=dict.fromkeys(VARIANTS, options))


#: Changes by name; the first is none.
CHANGES: Mapping[str, Change] = {
    "as in the other experiments": Change(),
    "leases of 1 h": _variants(lease_s=_HOUR_S),
    "leases of 7 d": _variants(lease_s=7.0 * DAY_S),
    "no leases": _variants(lease_s=NO_LEASES_S),
    "GPUs lost at the end of a lease": _variants(keep=False),
    "offers every hour": _variants(offer_s=_HOUR_S),
    "tuner of the released code": Change(
        options={
            "dally": {"preset": "released", "lease_s": _HOUR_S},
            **{policy: {"lease_s": _HOUR_S} for policy in VARIANTS[1:]},
        }
    ),
    "empty lists mean no delay": Change(options={"dally": {"empty_s": (0.0, 0.0)}}),
    "short runs alike (sigma 0.75)": Change(fields={"sigma": 0.75}),
    "ten times the durations": Change(fields={"median_s": 10.0 * DAY_S}),
    "load 1.5": Change(fields={"load": 1.5}),
    "load 3": Change(fields={"load": 3.0}),
    "all-reduce model": Change(fields={"speeds": "all-reduce"}),
    "static penalties": Change(fields={"speeds": "penalties"}),
    "Tiresias consolidates from a skew of 0.3": Change(options={"tiresias": {"skew_threshold": 0.3}}),
    "Tiresias migrates": Change(options={"tiresias": {"migrate": True}}),
    "Gandiva migrates to lower tiers": Change(options={"gandiva": {"consolidate": "tier"}}),
}


def drivers(settings: ExperimentSettings) -> ExperimentOutcome:
    """Run every change on one cluster, and compare the makespans with Dally's."""
    racks = _RACKS if settings.racks is None else settings.racks
    keys = [
        (name, arrivals, policy, seed)
        for name, change in CHANGES.items()
        for arrivals in ARRIVALS
        if arrivals == "poisson" or "load" not in change.fields
        for policy in POLICIES
        for seed in settings.seeds
    ]
    cases = {key: CHANGES[key[0]].case(key[1], racks, key[3], key[2], settings.jobs) for key in keys}
    found = run_cases(cases.values(), settings)
    makespans: dict[tuple[str, str], dict[str, float]] = {}
    for name, arrivals in dict.fromkeys(key[:2] for key in keys):
        makespans[name, arrivals] = {
            policy: float(np.mean([found[cases[name, arrivals, policy, seed]].makespan_s for seed in settings.seeds]))
            for policy in POLICIES
        }
    rows = [
        {
            "change": name,
            "arrivals": arrivals,
            "racks": racks,
            "dally d": each["dally"] / DAY_S,
            **{f"{policy} over dally": each[policy] / each["dally"] for policy in POLICIES if policy != "dally"},
        }
        for (name, arrivals), each in makespans.items()
    ]
    return ExperimentOutcome(rows=rows, claims=driver_claims(rows))


def driver_claims(rows: Sequence[Mapping[str, Any]]) -> tuple[PaperClaim, ...]:
    """Check what explains the differences from the paper."""
    by = {(row["change"], row["arrivals"]): row for row in rows}
    kinds = sorted({row["arrivals"] for row in rows})
    base, none = next(iter(CHANGES)), "no leases"

    def over(change: str, policy: str) -> dict[str, float]:
        return {kind: by[change, kind][f"{policy} over dally"] for kind in kinds}

    def pairs(change: str, one: str, other: str) -> dict[str, tuple[float, float]]:
        first, second = over(change, one), over(change, other)
        return {kind: (first[kind], second[kind]) for kind in kinds}

    return (
        at_least("without leases dally-nowait's makespan is at least twice that of dally-consolidated: no job leaves "
                 "the GPUs that it accepted",
                 {kind: by[none, kind]["dally-nowait over dally"] / by[none, kind]["dally-consolidated over dally"]
                  for kind in kinds}, 2.0),
        at_most("with leases of 1 h dally-nowait's makespan is within 10% of Dally's: a job leaves them within an hour",
                over("leases of 1 h", "dally-nowait"), 1.1),
        below("Tiresias's makespan is shorter if models from a skew of 0.3 on are consolidated: MobileNetV3, which is "
              "not skewed, has the slowest network",
              {kind: (by["Tiresias consolidates from a skew of 0.3", kind]["tiresias over dally"],
                      by[base, kind]["tiresias over dally"]) for kind in kinds}),
        at_most("Gandiva's makespan is within 25% of Dally's if spread jobs migrate to fewer racks",
                over("Gandiva migrates to lower tiers", "gandiva"), 1.25),
        at_most("under static penalties all variants of Dally are within 25% of each other",
                {f"{kind} {policy}": by["static penalties", kind][f"{policy} over dally"]
                 for kind in kinds for policy in VARIANTS[1:]}, 1.25),
        below("without leases dally-nowait's makespan is above that of Tiresias",
              pairs(none, "tiresias", "dally-nowait")),
    )  # fmt: skip
