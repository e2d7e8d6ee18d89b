"""Search space of weighted fair queues: variables, the configurations that they give, and the named corners."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..arrays import Floats
from ..checks import as_flag, as_reals, store_checked
from ..errors import InvalidInput
from .objective import Variable
from .wfq_config import WfqConfig, as_weights, decayed, thresholds_of

#: Bounds of the variables of PCS but for the largest T, which depends on the sizes.
LEAST_VARIATION, LARGEST_DECAY, LEAST_DELTA, LARGEST_DELTA = 0.001, 3.0, 0.01, 0.9
#: Most queues of the direct space.
MOST_QUEUES = 5
#: Spaces by name.
SPACES = ("parameters", "direct")
#: Names of the corners.
CORNERS = ("fifo", "near_sjf", "near_max_min")
# Values of T among which the corners are chosen.
_STEPS = 40
# Weights of the direct space lie between this, the least that is not rounded to 0, and 1.
_LEAST_WEIGHT = 0.001


def largest_variation(sizes_s: Floats) -> float:
    """Return the largest squared coefficient of variation of the n smallest sizes, over all n."""
    ordered = np.sort(as_reals("sizes_s", sizes_s, above=0.0))
    # In units of the largest size, so that no square overflows.
    ordered = ordered / ordered[-1]
    count = np.arange(1, len(ordered) + 1)
    mean = np.cumsum(ordered) / count
    return float(max(0.0, (np.cumsum(ordered**2) / count / mean**2 - 1.0).max()))


@dataclass(frozen=True, kw_only=True, eq=False)
class WfqSpace:
    """Search space of PCS for a sample of sizes (OSDI 2024, Section 5).

    Parameters
    ----------
    sizes_s : array_like of float, shape (N,)
        Sizes of jobs, in seconds on one GPU.
    gpu_types : sequence of str
        GPU types with weights of their own; without them the weights are those of all types.
    name : {"parameters", "direct"}
        "parameters" is PCS's: the variables are T, the largest variation of sizes in a queue, the weight decay W or
        one for each GPU type, zeta and delta. "direct" has a number of queues up to 5, their thresholds and weights,
        zeta and delta: thresholds on a logarithmic scale from the least to the largest size, weights on one from
        0.001 to 1.
    caps : bool
        Whether zeta and delta are variables; otherwise zeta is 0.

    Raises
    ------
    InvalidInput
        If a size is not positive, or there is no such space.
    """

    sizes_s: Floats
    gpu_types: tuple[str, ...] = ()
    name: str = "parameters"
    caps: bool = True

    def __post_init__(self) -> None:
        store_checked(self, as_reals, "sizes_s", above=0.0)
        store_checked(self, as_flag, "caps")
        if self.name not in SPACES:
            raise InvalidInput("space", self.name, f"must be one of {', '.join(SPACES)}")

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """Variables with their bounds."""
        if self.name == "direct":
            found = [Variable("queues", 1.0, MOST_QUEUES + 1.0)]  # the whole part counts
            found += [Variable(f"threshold_{queue}", 0.0, 1.0) for queue in range(1, MOST_QUEUES)]
            numbers = range(1, MOST_QUEUES + 1)
            lower = math.log(_LEAST_WEIGHT)
            found += [Variable(f"ln_weight_{queue}{each}", lower, 0.0) for each in self._marks for queue in numbers]
        else:
            found = [Variable("T", LEAST_VARIATION, 1.0 + largest_variation(self.sizes_s))]
            found += [Variable(f"W{each}", -LARGEST_DECAY, LARGEST_DECAY) for each in self._marks]
        if self.caps:
            found += [Variable("zeta", 0.0, 1.0), Variable("delta", LEAST_DELTA, LARGEST_DELTA)]
        return tuple(found)

    @property
    def _marks(self) -> tuple[str, ...]:
        """Marks of the GPU types in the names of variables."""
        return tuple(f"[{each}]" for each in self.gpu_types) or ("",)

    def decode(self, vector: Floats) -> WfqConfig:
        """Return the configuration of a vector of values of the variables, shape (n,).

        Raises
        ------
        InvalidInput
            If the vector is infeasible: a weight rounds to 0, or thresholds of the direct space coincide.
        """
        values = [float(each) for each in vector]
        zeta, delta = values[-2:] if self.caps else (0.0, LARGEST_DELTA)
        if self.name == "direct":
            return self._decode_direct(values, zeta, delta)
        decays = values[1 : 1 + len(self._marks)]
        return WfqConfig.from_parameters(
            self.sizes_s,
            variation=values[0],
            decay=dict(zip(self.gpu_types, decays, strict=True)) if self.gpu_types else decays[0],
            zeta=zeta,
            delta=delta,
        )

    def _decode_direct(self, values: list[float], zeta: float, delta: float) -> WfqConfig:
        queues = min(int(values[0]), MOST_QUEUES)
        least, largest = math.log(self.sizes_s.min()), math.log(self.sizes_s.max())
        places = sorted(values[1:queues])
        thresholds = [math.exp(least + place * (largest - least)) for place in places]
        logs = np.array(values[MOST_QUEUES : MOST_QUEUES * (1 + len(self._marks))]).reshape(-1, MOST_QUEUES)
        by_mark = [
            as_weights(f"weights{mark}", np.exp(row[:queues])) for mark, row in zip(self._marks, logs, strict=True)
        ]
        weights = dict(zip(self.gpu_types, by_mark, strict=True)) if self.gpu_types else by_mark[0]
        return WfqConfig(thresholds=[*thresholds, math.inf], weights=weights, zeta=zeta, delta=delta)

    @cached_property
    def corners(self) -> Mapping[str, Floats]:
        """Vectors of the named corners.

        "fifo" is one queue without a cap. "near_sjf" has many queues of steep weights: as many as allow each queue e
        times the weight of the next one. "near_max_min" has as many queues as there are, of equal weights, and caps
        every job to the GPUs that it uses fully, at first.
        """
        loose, capped = ([zeta, delta] if self.caps else [] for zeta, delta in ((0.0, LARGEST_DELTA), (1.0, 0.1)))
        marks = len(self._marks)
        if self.name == "direct":
            even = [place / MOST_QUEUES for place in range(1, MOST_QUEUES)]
            equal, steep = [0.0] * MOST_QUEUES, np.linspace(0.0, math.log(_LEAST_WEIGHT), MOST_QUEUES).tolist()
            rows = [
                [1.0, *even, *equal * marks, *loose],
                [MOST_QUEUES, *even, *steep * marks, *loose],
                [MOST_QUEUES, *even, *equal * marks, *capped],
            ]
        else:
            largest = self.variables[0].upper
            bounds = np.geomspace(LEAST_VARIATION, largest, _STEPS).tolist()
            queues = [len(thresholds_of(self.sizes_s, variation=bound)) for bound in bounds]
            steepest = [steepest_decay(each) for each in queues]
            # The last bound gives one queue, whose decay is the largest.
            many, most = (next(row for row, decay in enumerate(steepest) if decay >= least) for least in (1.0, 0.0))
            rows = [
                [largest, *[0.0] * marks, *loose],
                [bounds[many], *[steepest[many]] * marks, *loose],
                [bounds[most], *[0.0] * marks, *capped],
            ]
        return dict(zip(CORNERS, map(np.array, rows), strict=True))


def steepest_decay(queues: int) -> float:
    """Return the largest weight decay, at most 3, that rounds no weight of so many queues to 0; -1 if there is none."""
    if not _feasible(queues, 0.0):
        return -1.0
    if _feasible(queues, LARGEST_DECAY):
        return LARGEST_DECAY
    low, high = 0.0, LARGEST_DECAY
    for _ in range(30):
        middle = (low + high) / 2.0
        low, high = (middle, high) if _feasible(queues, middle) else (low, middle)
    return low


def _feasible(queues: int, decay: float) -> bool:
    try:
        as_weights("decay", decayed(queues, decay))
    except InvalidInput:
        return False
    return True
