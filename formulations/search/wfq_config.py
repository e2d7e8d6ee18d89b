"""Configuration of weighted fair queues: thresholds of sizes, weights, and the cap on demands."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import partial
from numbers import Rational
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import Floats
from ..checks import as_real, as_reals, refuse, store_checked
from ..errors import InvalidInput
from ..files import written
from .configuration_text import file_text, json_object

# Weights that are rounded to three decimals add up to 1 within this.
_SUM_SLACK = Fraction(1, 1000)
#: Rules by which thresholds follow from sizes.
THRESHOLD_RULES = ("exact", "artifact")

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class WfqConfig:
    """Weighted fair queues of PCS (OSDI 2024, Section 4).

    Parameters
    ----------
    thresholds : sequence of float, length Q
        Largest size of each queue, in seconds on one GPU, ascending; the last one is infinite. A job joins the first
        queue whose threshold is at least its size.
    weights : sequence of Fraction, Decimal, int, str or float, length Q, or mapping of str to such sequences
        Positive weights of the queues, which add up to 1 within 0.001; or the weights on each GPU type. They are kept
        exactly; text such as "1/3" or "0.25" is read as written, and a float as it is printed.
    zeta : float
        Least speedup per GPU (zeta_min), within [0, 1]: a job is first given only so many GPUs that s(g)/g stays at
        least zeta; 0 caps nothing.
    delta : float
        Step by which the cap is relaxed while GPUs of the queue are left, positive.

    Raises
    ------
    InvalidInput
        If a field is out of range, or the lengths differ.

    Examples
    --------
    >>> config = WfqConfig(thresholds=[1000.0, float("inf")], weights=["2/3", "1/3"], zeta=0.5, delta=0.25)
    >>> config.queue_of(1000.0), config.queue_of(1000.5)
    (0, 1)
    >>> config.cap_levels
    (0.5, 0.25, 0.0)
    >>> by_type = {"v100": ["0.9", "0.1"], "k80": ["0.5", "0.5"]}
    >>> WfqConfig(thresholds=[1000.0, float("inf")], weights=by_type).weights_of("v100")
    (Fraction(9, 10), Fraction(1, 10))
    """

    thresholds: Sequence[float]
    # A mapping has no hash.
    weights: Sequence[Fraction] | Mapping[str, Sequence[Fraction]] = field(hash=False)
    zeta: float = 0.0
    delta: float = 0.1

    def __post_init__(self) -> None:
        object.__setattr__(self, "thresholds", _thresholds(self.thresholds))
        weights = each_type("weights", self.weights, partial(_weights, self.queues))
        object.__setattr__(self, "weights", MappingProxyType(weights) if isinstance(weights, Mapping) else weights)
        store_checked(self, as_real, "zeta", minimum=0.0, maximum=1.0)
        store_checked(self, as_real, "delta", above=0.0)
        if self.zeta / self.delta > 1e4:
            raise InvalidInput("delta", self.delta, f"relaxes zeta = {self.zeta:g} in more than 10,000 steps")

    @property
    def queues(self) -> int:
        """Number of queues (Q)."""
        return len(self.thresholds)

    @property
    def gpu_types(self) -> tuple[str, ...]:
        """GPU types that have weights of their own; none if the weights are those of all types."""
        return tuple(self.weights) if isinstance(self.weights, Mapping) else ()

    def weights_of(self, gpu_type: str | None = None) -> tuple[Fraction, ...]:
        """Return the weights of the queues on a GPU type, by default on the only type of a cluster.

        Raises
        ------
        InvalidInput
            If the configuration has weights by type, and none of this one; by default, if it names several types.
        """
        if not isinstance(self.weights, Mapping):
            return tuple(self.weights)
        if gpu_type is None and len(self.weights) == 1:
            (gpu_type,) = self.weights
        if gpu_type is None or gpu_type not in self.weights:
            raise InvalidInput("gpu_type", gpu_type, f"there are weights of GPU types {', '.join(self.weights)}")
        return tuple(self.weights[gpu_type])

    def __reduce__(self) -> tuple[object, ...]:
        # A mapping proxy cannot be pickled.
        return WfqConfig.from_json, (self.to_json(),)

    @property
    def cap_levels(self) -> tuple[float, ...]:
        """Cap levels in the order in which they are tried: zeta, zeta - delta, ...; the last one is at most 0."""
        levels = [self.zeta]
        while levels[-1] > 0.0:
            levels.append(levels[-1] - self.delta)
        return tuple(levels)

    def queue_of(self, size_s: float) -> int:
        """Return the queue of a job of this size."""
        return next(queue for queue, threshold in enumerate(self.thresholds) if size_s <= threshold)

    @classmethod
    def from_parameters(
        cls,
        sizes_s: ArrayLike,
        *,
        variation: float,
        decay: float | Mapping[str, float],
        zeta: float = 0.0,
        delta: float = 0.1,
        thresholds: str = "exact",
    ) -> WfqConfig:
        """Return the configuration of PCS's parameters for a sample of sizes.

        Parameters
        ----------
        sizes_s : array_like of float, shape (N,)
            Sizes of jobs, in seconds on one GPU.
        variation : float
            Greatest squared coefficient of variation of the sizes of a queue (T), positive.
        decay : float or mapping of str to float
            Weight decay (W), or that of each GPU type: the weight of queue i is proportional to exp(-W i), rounded to
            three decimals.
        zeta, delta : float
            As above.
        thresholds : {"exact", "artifact"}
            Rule of the thresholds; see `thresholds_of`.

        Raises
        ------
        InvalidInput
            If a parameter is out of range, or a weight rounds to zero.
        """
        found = thresholds_of(sizes_s, variation=variation, rule=thresholds)
        weights = each_type("decay", decay, partial(_decayed_weights, len(found)))
        return cls(thresholds=found, weights=weights, zeta=zeta, delta=delta)

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the configuration as JSON, and write it to `path` if one is given."""
        content = {
            "thresholds": ["inf" if math.isinf(each) else each for each in self.thresholds],
            "weights": each_type("weights", self.weights, lambda _, weights: [str(weight) for weight in weights]),
            "zeta": self.zeta,
            "delta": self.delta,
        }
        return written(json.dumps(content, indent=1) + "\n", path)

    @classmethod
    def from_json(cls, text: str) -> WfqConfig:
        """Read what `to_json` writes, or PCS's form: class_thresholds, class_rates, clip_demand_factor and delta.

        Raises
        ------
        InvalidInput
            If the text is no JSON of one of these forms, or a value is out of range.
        """
        content = json_object(text)
        names = ("class_thresholds", "class_rates", "clip_demand_factor", "delta")
        if names[0] not in content:
            names = ("thresholds", "weights", "zeta", "delta")
        for name in names:
            if name not in content:
                raise InvalidInput(name, None, "missing from the configuration")
        thresholds, weights, zeta, delta = (content[name] for name in names)
        if isinstance(thresholds, list):
            thresholds = [math.inf if each == "inf" else each for each in thresholds]
        return cls(thresholds=thresholds, weights=weights, zeta=zeta, delta=delta)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> WfqConfig:
        """Read a file in either form of `from_json`."""
        return cls.from_json(file_text(path))


def thresholds_of(sizes_s: ArrayLike, *, variation: float, rule: str = "exact") -> tuple[float, ...]:
    """Return thresholds that divide sizes into queues of bounded squared coefficient of variation, ascending.

    Both rules take the sizes in ascending order and begin a new queue where the variation of the present one would
    exceed the bound (population variance over squared mean).

    Parameters
    ----------
    sizes_s : array_like of float, shape (N,)
    variation : float
        Bound (T), positive.
    rule : {"exact", "artifact"}
        "exact" begins the new queue at the size that exceeds the bound, between distinct sizes: no queue of the sample
        exceeds it. "artifact" is the released code's: the threshold is the size before, rounded down, and the new
        queue's variation counts from the size after.

    Raises
    ------
    InvalidInput
        If a parameter is out of range, or thresholds of the artifact's rule coincide.
    """
    sizes = as_reals("sizes_s", sizes_s, above=0.0)
    variation = as_real("variation", variation, above=0.0)
    if rule not in THRESHOLD_RULES:
        raise InvalidInput("rule", rule, f"must be one of {', '.join(THRESHOLD_RULES)}")
    if rule == "artifact":
        ordered, repeats = np.sort(sizes), np.ones(len(sizes), dtype=np.int64)
    else:
        ordered, repeats = np.unique(sizes, return_counts=True)
    found: list[float] = []
    # Number, mean and sum of squared differences from the mean of the sizes of the present queue.
    count, mean, squares, before = 0, 0.0, 0.0, 0.0
    for size, repeat in zip(ordered.tolist(), repeats.tolist(), strict=True):
        total = count + repeat
        nearer = mean + (size - mean) * repeat / total
        spread = squares + (size - mean) ** 2 * count * repeat / total
        if spread / total <= variation * nearer**2:
            count, mean, squares = total, nearer, spread
        elif rule == "artifact":
            found.append(float(math.floor(before)))
            count, mean, squares = 0, 0.0, 0.0
        else:
            found.append(before)
            count, mean, squares = repeat, size, 0.0
        before = size
    return (*found, math.inf)


def as_wfq_config(name: str, value: Any) -> WfqConfig:
    """Return a configuration, or the one in the file at this path; InvalidInput for a bad type or file."""
    if isinstance(value, str | os.PathLike):
        return WfqConfig.read(value)
    if not isinstance(value, WfqConfig):
        raise InvalidInput(name, type(value).__name__, "must be a WfqConfig or the path of its file")
    return value


def decayed(queues: int, decay: float) -> Floats:
    """Return weights proportional to exp(-decay i) for the queues i = 0, 1, ..., the largest 1, shape (queues,)."""
    exponents = -decay * np.arange(queues)
    return np.asarray(np.exp(exponents - exponents.max()))


def each_type(name: str, given: Any, check: Callable[[str, Any], T]) -> T | dict[str, T]:
    """Return `check(name, given)`; for a mapping by GPU type, that of each value, named such as "weights[v100]".

    Raises
    ------
    InvalidInput
        If the mapping is empty or a key is no name, and whatever the check raises.
    """
    if not isinstance(given, Mapping):
        return check(name, given)
    if not given:
        raise InvalidInput(name, "{}", "must name at least one GPU type")
    for gpu_type in given:
        if not isinstance(gpu_type, str) or not gpu_type:
            raise InvalidInput(name, gpu_type, "a GPU type must have a name")
    return {gpu_type: check(f"{name}[{gpu_type}]", value) for gpu_type, value in given.items()}


def _thresholds(values: Any) -> tuple[float, ...]:
    if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray) or not len(values):
        raise InvalidInput("thresholds", values, "must be a sequence of numbers, the last one infinite")
    found = [float(each) if isinstance(each, int | float | np.number) else each for each in values]
    if not isinstance(found[-1], float) or found[-1] != math.inf:
        raise InvalidInput("thresholds", found[-1], "the last threshold must be infinite", index=len(found) - 1)
    finite: Floats = as_reals("thresholds", found[:-1], above=0.0, empty=True)
    refuse("thresholds", np.diff(finite, prepend=0.0) <= 0.0, finite, "thresholds must ascend")
    return (*finite.tolist(), math.inf)


def _weights(queues: int, name: str, values: Any) -> tuple[Fraction, ...]:
    if isinstance(values, str | Mapping) or not isinstance(values, Sequence | np.ndarray) or not len(values):
        raise InvalidInput(name, values, "must be a sequence of numbers")
    found = []
    for index, value in enumerate(values):
        if isinstance(value, bool) or not isinstance(value, str | Rational | Decimal | float | np.number):
            raise InvalidInput(name, value, "must be a number", index=index)
        try:
            weight = Fraction(value) if isinstance(value, Rational | Decimal) else Fraction(str(value))
        except (ValueError, ZeroDivisionError, OverflowError):
            raise InvalidInput(name, value, 'must be a number such as 0.25 or "1/4"', index=index) from None
        if weight <= 0:
            raise InvalidInput(name, value, "must be greater than 0", index=index)
        found.append(weight)
    total = sum(found, Fraction(0))
    if abs(total - 1) > _SUM_SLACK:
        raise InvalidInput(name, float(total), "must add up to 1")
    if len(found) != queues:
        raise InvalidInput(name, f"{len(found)} values", f"there are {queues} thresholds")
    return tuple(found)


def as_weights(name: str, raw: Floats) -> list[Fraction]:
    """Return weights in these proportions, each rounded to three decimals and divided by their sum.

    Raises
    ------
    InvalidInput
        If a weight rounds to zero.
    """
    total = sum(raw.tolist())
    rounded = [round(1000.0 * each / total) for each in raw.tolist()]
    if 0 in rounded:
        queue = rounded.index(0)
        raise InvalidInput(name, float(raw[queue]), f"gives queue {queue} of {len(raw)} a weight below 0.0005")
    return [Fraction(each, sum(rounded)) for each in rounded]


def _decayed_weights(queues: int, name: str, decay: Any) -> list[Fraction]:
    decay = as_real(name, decay)
    try:
        return as_weights(name, decayed(queues, decay))
    except InvalidInput as error:
        raise InvalidInput(name, decay, error.why) from None
