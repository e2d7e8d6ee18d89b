"""Sizes and printed results of the PCS paper's experiments."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from ..experiment import ExperimentSettings

#: Jobs of a sample of the workload, and GPUs of the simulated cluster and of the testbed.
PAPER_JOBS, PAPER_GPUS, TESTBED_GPUS = 1000, 64, 16
#: Load of the samples: run time on one GPU that arrives per second and GPU.
LOAD = 0.8
#: Evaluations of a search as published: 19 generations of 70 configurations.
PAPER_EVALUATIONS = 1330


class Printed(NamedTuple):
    """Results of one policy on one cluster: mean JCT over that of AFS, mean and 99th percentile of errors in %."""

    jct: float
    error_pct: float
    p99_error_pct: float


#: Figure 1: mean JCT in seconds, mean prediction error and largest unfairness in percent.
FIGURE_1: Mapping[str, tuple[float, float, float]] = MappingProxyType(
    {"srsf": (11.25, 46.0, 10.0), "themis": (13.5, 24.0, 0.0), "fifo": (15.75, 0.0, 500.0)}
)
# Figure 7: clusters in the order of the released figures; JCT, mean error and p99 error of each policy.
_FIGURE_7_COLUMNS = ("afs", "srsf", "themis", "fifo", "pcs-jct", "pcs-bal", "pcs-pred")
_FIGURE_7 = {
    "0e4a51": (
        (1.0, 1.064, 1.324, 9.301, 1.568, 2.372, 2.614),
        (25.632, 26.619, 47.967, 0.0, 5.568, 1.371, 0.8),
        (239.758, 313.503, 212.425, 0.0, 115.522, 14.914, 7.219),
    ),
    "b436b2": (
        (1.0, 1.316, 1.552, 59.979, 2.246, 3.33, 5.362),
        (83.816, 86.569, 43.32, 0.0, 1.272, 0.375, 0.172),
        (770.714, 791.598, 258.832, 0.0, 26.042, 9.634, 5.601),
    ),
    "6214e9": (
        (1.0, 1.102, 1.341, 92.017, 1.915, 2.701, 3.473),
        (77.429, 85.343, 38.49, 0.0, 10.536, 2.398, 0.437),
        (924.858, 1030.017, 273.523, 0.0, 250.193, 58.091, 11.922),
    ),
    "6c71a0": (
        (1.0, 1.073, 1.498, 31.521, 1.467, 2.021, 4.846),
        (16.963, 18.358, 40.007, 0.0, 4.935, 2.006, 1.446),
        (194.101, 216.328, 126.188, 0.0, 92.058, 69.316, 49.363),
    ),
    "2869ce": (
        (1.0, 1.428, 1.652, 4.857, 1.145, 1.459, 2.562),
        (9.027, 11.166, 33.82, 0.0, 4.045, 1.407, 0.4),
        (113.631, 241.127, 122.788, 0.0, 48.08, 22.211, 4.709),
    ),
    "ee9e8c": (
        (1.0, 1.557, 1.898, 14.553, 2.017, 2.735, 5.965),
        (29.431, 69.837, 54.048, 0.0, 8.504, 4.593, 0.975),
        (538.801, 1535.729, 510.721, 0.0, 207.113, 54.937, 5.185),
    ),
}
#: Figure 7 by cluster and policy.
FIGURE_7: Mapping[str, Mapping[str, Printed]] = MappingProxyType(
    {
        cluster: {name: Printed(*row) for name, *row in zip(_FIGURE_7_COLUMNS, *columns, strict=True)}
        for cluster, columns in _FIGURE_7.items()
    }
)
#: Figure 9: jobs and GPUs.
FIGURE_9_JOBS, FIGURE_9_GPUS = (512, 1024), (128, 256, 512, 1024)
#: Figure 9b: seconds of a search by jobs, for each number of GPUs.
FIGURE_9B_S: Mapping[int, tuple[float, ...]] = MappingProxyType(
    {512: (931.0, 1086.0, 1305.0, 2065.0), 1024: (1879.0, 2157.0, 2713.0, 3919.0)}
)
#: Figure 9c: Pareto-optimal points in percent by evaluations, with PCS's parameters and without.
FIGURE_9C: Mapping[int, tuple[float, float]] = MappingProxyType(
    {128: (30.0, 20.0), 256: (60.0, 46.0), 512: (70.0, 47.0), 1024: (95.0, 90.0)}
)
#: Figure 10a: mean error in percent of PCS and FIFO by the error of sizes in percent; Figure 10b: mean JCT of PCS and
#: AFS, each relative to its own without errors of sizes.
FIGURE_10A: Mapping[int, tuple[float, float]] = MappingProxyType(
    {0: (1.68, 0.0), 5: (3.53, 1.37), 10: (5.64, 2.72), 20: (9.52, 5.48), 30: (14.59, 8.32), 40: (19.64, 11.32)}
)
FIGURE_10B: Mapping[int, tuple[float, float]] = MappingProxyType(
    {0: (1.0, 1.0), 5: (1.006, 0.998), 10: (1.005, 0.999), 20: (0.996, 1.0), 30: (1.007, 1.0), 40: (1.013, 1.002)}
)


def cluster_gpus(settings: ExperimentSettings) -> int:
    """Return the number of GPUs of the simulated cluster: the given one, or the paper's."""
    return PAPER_GPUS if settings.gpus is None else settings.gpus
