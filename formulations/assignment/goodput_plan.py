"""The answer of a goodput allocation, and the factor by which a restart lowers a job's goodput."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import Floats, Indices
from ..checks import as_integers, as_reals

if TYPE_CHECKING:
    import pandas as pd

    from .goodput import GoodputAllocation


@dataclass(frozen=True, eq=False)
class GoodputPlan:
    """How many GPUs of which type each job gets.

    Attributes
    ----------
    problem : GoodputAllocation
    type_of, count_of : ndarray of int, shape (N,)
        A count of 0: it does not run.
    """

    problem: GoodputAllocation
    type_of: Indices
    count_of: Indices

    def __post_init__(self) -> None:
        for name in ("type_of", "count_of"):
            object.__setattr__(self, name, as_integers(name, getattr(self, name)))

    @cached_property
    def speedups(self) -> Floats:
        """Of each job, shape (N,): the problem's `idle_speedup`, or 0 without one, where it does not run."""
        speed = self.problem.speedups[np.arange(len(self.type_of)), self.type_of, self.count_of]
        return np.where(self.count_of > 0, speed, self.problem.idle_speedup or 0.0)

    @cached_property
    def fitness(self) -> float:
        """The power mean of the speedups (Pollux)."""
        power, speed = self.problem.power, self.speedups
        if not (speed > 0).all():
            return 0.0 if power <= 0 else float(np.mean(speed**power) ** (1.0 / power))
        return float(np.exp(np.log(speed).mean()) if power == 0 else np.mean(speed**power) ** (1.0 / power))

    def to_frame(self) -> pd.DataFrame:
        """Return one row per job: type, GPUs, speedup."""
        import pandas as pd

        return pd.DataFrame(
            {"type": np.where(self.count_of > 0, self.type_of, -1), "gpus": self.count_of, "speedup": self.speedups},
            index=pd.Index(range(len(self.type_of)), name="job"),
        )

    def __repr__(self) -> str:
        running = int((self.count_of > 0).sum())
        return f"<GoodputPlan: {running} of {len(self.count_of)} jobs run on {int(self.count_of.sum())} GPUs>"


def restart_factors(age_s: ArrayLike, restarts: ArrayLike, restart_s: ArrayLike) -> Floats:
    """Return ``(age - restarts x restart_s) / (age + restart_s)``, at least 1e-3, shape (N,).

    The factor of Pollux and Sia by which a job's goodput falls if it is restarted once more: young jobs, and such as
    were often restarted, had better stay where they are.

    Parameters
    ----------
    age_s : array_like of float, shape (N,)
        Since arrival, at least 0.
    restarts : array_like of int, shape (N,)
        So far, at least 0.
    restart_s : array_like of float, shape (N,)
        What one costs, greater than 0.
    """
    age = as_reals("age_s", age_s, minimum=0.0)
    past = as_integers("restarts", restarts, minimum=0, shape=age.shape)
    cost = as_reals("restart_s", restart_s, above=0.0, shape=age.shape)
    return np.maximum(1e-3, (age - past * cost) / (age + cost))
