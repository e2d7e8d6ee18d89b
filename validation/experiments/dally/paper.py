"""Sizes and printed results of the Dally paper's experiments."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from ..experiment import ExperimentSettings

#: Numbers of racks of the paper's clusters, machines of a rack, and GPUs of a machine.
PAPER_RACKS, RACK_MACHINES, MACHINE_GPUS = (2, 4, 8, 16), 8, 8
#: Jobs that arrive at once; there are four fifths as many of Poisson arrivals.
PAPER_JOBS, POISSON_SHARE = 500, 0.8
#: The variants of Dally, and all policies that the paper compares.
VARIANTS = ("dally", "dally-manual", "dally-nowait", "dally-consolidated")
POLICIES = (*VARIANTS, "tiresias", "gandiva")


class Printed(NamedTuple):
    """Average and 99th percentile of the job completion times under one policy on 8 racks, in seconds."""

    avg_jct_s: float
    p99_jct_s: float


#: Tables II (all jobs at once) and III (Poisson arrivals), on 8 racks.
TABLES: Mapping[str, Mapping[str, Printed]] = MappingProxyType(
    {
        "batch": MappingProxyType(
            {
                "gandiva": Printed(5.83e6, 39.2e6),
                "tiresias": Printed(4.46e6, 25.7e6),
                "dally-manual": Printed(3.13e6, 8.87e6),
                "dally": Printed(2.83e6, 8.40e6),
            }
        ),
        "poisson": MappingProxyType(
            {
                "gandiva": Printed(17.4e6, 209e6),
                "tiresias": Printed(4.33e6, 15.4e6),
                "dally-manual": Printed(4.96e6, 39.8e6),
                "dally": Printed(2.83e6, 16.7e6),
            }
        ),
    }
)
#: By how many percent Dally's makespan is below that of others at most, as the abstract and Section V print it.
MAKESPAN_BELOW_PCT: Mapping[str, float] = MappingProxyType({"tiresias": 69.0, "gandiva": 92.0})
#: By how many percent Dally's average JCT and its communication are below those of Tiresias: least and most.
JCT_BELOW_PCT, COMMUNICATION_BELOW_PCT = (19.0, 36.0), (53.0, 83.0)
#: By how many percent Gandiva's average JCT is below Dally's, all jobs at once on 2 racks.
GANDIVA_BELOW_PCT = 39.0


def shown(policy: str) -> str:
    """Return the name of a policy in claims: that of a system, or of a variant."""
    return policy if policy.startswith("dally") else policy.capitalize()


def cluster_gpus(settings: ExperimentSettings) -> int:
    """Return the number of GPUs of the largest cluster."""
    return max(racks_of(settings)) * RACK_MACHINES * MACHINE_GPUS


def racks_of(settings: ExperimentSettings) -> tuple[int, ...]:
    """Return the numbers of racks of the clusters: the given one, or the paper's."""
    return PAPER_RACKS if settings.racks is None else (settings.racks,)
