"""Sizes and printed results of the SJF-BSBF paper's experiments."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from ..experiment import ExperimentSettings

PAPER_JOBS, PAPER_GPUS = 240, 64
#: GPUs of each machine, in the testbed and in the simulations.
MACHINE_GPUS = 4
#: Jobs with more GPUs are large.
SMALL_GPUS = 4


class Printed(NamedTuple):
    """Results of one policy in hours: mean JCT of all, of large and of small jobs, and mean queueing time of all."""

    jct_h: float
    large_h: float | None = None
    small_h: float | None = None
    queue_h: float | None = None


#: Table II: makespan and mean JCT in seconds, 30 jobs on 4 machines.
TABLE_2: Mapping[str, tuple[float, float]] = MappingProxyType(
    {
        "fifo": (2317.0, 663.0),
        "sjf": (2319.0, 610.0),
        "tiresias": (2398.0, 665.0),
        "sjf-ffs": (2176.0, 530.0),
        "sjf-bsbf": (2129.0, 483.0),
    }
)
#: Table III: 240 jobs on 16 machines.
TABLE_3: Mapping[str, Printed] = MappingProxyType(
    {
        "fifo": Printed(2.34, 3.92, 2.13, 1.65),
        "sjf": Printed(1.25, 3.50, 0.94, 0.56),
        "tiresias": Printed(1.51, 3.48, 1.23, 0.81),
        "pollux": Printed(1.04, 1.96, 0.91, 1.00),
        "sjf-ffs": Printed(1.23, 4.29, 0.81, 0.18),
        "sjf-bsbf": Printed(1.01, 3.38, 0.68, 0.14),
    }
)
#: Table IV: 480 jobs. The printed queueing time under FIFO copies that under SJF-FFS (docs/errata.md).
TABLE_4: Mapping[str, Printed] = MappingProxyType(
    {
        "fifo": Printed(7.52),
        "sjf": Printed(2.55, queue_h=1.87),
        "tiresias": Printed(5.09, queue_h=4.41),
        "pollux": Printed(4.69, queue_h=4.41),
        "sjf-ffs": Printed(1.89, queue_h=0.73),
        "sjf-bsbf": Printed(1.57, queue_h=0.69),
    }
)


def cluster_gpus(settings: ExperimentSettings) -> int:
    """Return the number of GPUs of the cluster: the given one, or as many per job as in the paper, at least 8."""
    machines = max(2, round(settings.jobs * PAPER_GPUS / PAPER_JOBS / MACHINE_GPUS))
    return machines * MACHINE_GPUS if settings.gpus is None else settings.gpus
