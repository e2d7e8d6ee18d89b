"""Data of a window: its jobs as columns and its settings, checked together."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..checks import LARGEST_INTEGER, refuse
from ..errors import InvalidInput
from .jobs import LONGEST_REGIME, JobColumns, WindowJob, WindowSettings, marked, named_as_jobs
from .tables import Tables, tabulate

MOST_CELLS = 200_000_000  # jobs x rounds; the tables of more would not fit a machine's memory
MOST_WORTH = 1e300  # of each part of the objective, so that sums and differences of them are finite


@dataclass(frozen=True, eq=False)
class WindowData(WindowSettings, JobColumns):
    """Jobs and settings of one window, with the data derived from both.

    `is_running`, shape (N,), marks the jobs among `running`. `skipped` has the ids of jobs that need more GPUs than the
    cluster has, left out with `skip_wide`.
    """

    is_running: NDArray[np.bool_] = field(init=False)
    skipped: tuple[str | int, ...] = field(init=False)

    def __post_init__(self, jobs: Sequence[WindowJob] | JobColumns) -> None:
        JobColumns.__post_init__(self, jobs)
        try:
            self._check_settings()
            self._check_together()
        except InvalidInput as error:
            raise error if isinstance(jobs, JobColumns) else named_as_jobs(error, self.regime_starts) from None
        if self.skipped:
            text = f"{len(self.skipped)} job(s) wider than {self.gpus} GPUs left out: {self.skipped[:5]}"
            # The warning names the caller's line: one level above the generated __init__, three above `from_columns`.
            warnings.warn(text, stacklevel=5 if isinstance(jobs, JobColumns) else 3)

    def _check_together(self) -> None:
        """Check conditions on jobs and settings together, and store the derived data."""
        seconds = self.regime_epochs * self.regime_epoch_s
        too_long = ~(seconds / self.round_s < LONGEST_REGIME)
        refuse("regime_epoch_s", too_long, self.regime_epoch_s, "the regime is too long")
        with np.errstate(over="ignore"):
            powers = self.weight * self.ftf**self.ftf_power
            out_of_range = ~(-powers * np.log(self.utility_floor) <= MOST_WORTH) | (powers <= 0)
        refuse("ftf", out_of_range, self.ftf, f"its power {self.ftf_power:g} is out of range")
        kept, skipped = self._without_wide(self.gpus, self.skip_wide)
        count = len(kept["gang_gpus"])
        if count * (self.rounds + 1) > MOST_CELLS:
            raise InvalidInput("rounds", self.rounds, f"{count} jobs x {self.rounds} rounds exceed {MOST_CELLS} cells")
        self.__dict__.update(kept, skipped=skipped, is_running=marked(self.running, kept["ids"], skipped))
        price_field = "makespan_scale"
        if vars(self)["makespan_scale"] is None:
            price_field = "makespan_weight"
            vars(self)["makespan_scale"] = float(self.regime_epochs @ self.regime_epoch_s) or 1.0
        self._refuse_overflow(price_field)

    def _refuse_overflow(self, price_field: str) -> None:
        """Raise InvalidInput if GPU-rounds are no exact integers, or a part of the objective exceeds `MOST_WORTH`."""
        all_gpus = max(float(self.gpus), float(self.gang_gpus.sum(dtype=np.float64)))
        if all_gpus * self.rounds > LARGEST_INTEGER:
            why = f"GPUs of the cluster or of all jobs, times {self.rounds} rounds, exceed {LARGEST_INTEGER}"
            raise InvalidInput("gpus", self.gpus, why)
        if self.restart_penalty * len(self.gang_gpus) * self.rounds > MOST_WORTH:
            why = f"times {len(self.gang_gpus)} jobs x {self.rounds} rounds it exceeds {MOST_WORTH:g}"
            raise InvalidInput("restart_penalty", self.restart_penalty, why)
        seconds = float((self.regime_epochs * self.regime_epoch_s).sum())
        price = self.makespan_weight * self.round_s / self.makespan_scale
        # The makespan is at most the sum of all run times, because every gang fits the cluster.
        if not price * max(1.0, seconds / self.round_s) <= MOST_WORTH:
            why = f"makespan_weight * round_s / makespan_scale = {price:g} per round of makespan: too large"
            raise InvalidInput(price_field, getattr(self, price_field), why)

    @cached_property
    def tables(self) -> Tables:
        """Utilities and remaining run times after n = 0..T rounds, and the weights (see :class:`Tables`)."""
        return tabulate(self, self)
