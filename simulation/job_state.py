"""State of one job at one moment, as a scheduler observes it: progress, past regimes and epoch times."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from ..formulations.checks import as_flag, as_ids, as_integer, as_real, store_checked
from ..formulations.errors import InvalidInput
from .profiles.rules import MODES

# Relative tolerance of sums of epochs, which come from divisions of seconds.
_SUM_TOLERANCE = 1e-6


@dataclass(frozen=True, kw_only=True)
class JobState:
    """One unfinished job as observed at one moment.

    Parameters
    ----------
    id : str or int
    gpus : int
        GPUs that the job needs simultaneously (its gang).
    mode : str
        Mode of batch-size adaptation: "static", "accordion" or "gns".
    total_epochs, finished_epochs : float
        Epochs in all and epochs done, 0 <= finished_epochs < total_epochs.
    batch_sizes : tuple of int
        The batch sizes of the job's regimes so far, in order; the last is the current one. At least one.
    regime_epochs : tuple of float
        Epochs finished in each of those regimes; same length, sums to finished_epochs.
    epoch_s : mapping of int to float
        Seconds per epoch on the job's whole gang at each batch size that it can have.
    future : tuple of (int, float)
        True remaining regimes (batch size, epochs) in order, for the oracle predictor; they add up to
        total_epochs - finished_epochs, and the first continues the current regime unless that one has just ended.
        Empty if unknown.
    attained_s, waiting_s : float
        Seconds of service on the whole gang since arrival (L), and seconds waited (W).
    contention : float
        Mean, from the job's arrival on, of GPUs requested over GPUs present, at least 1 (N_avg).
    weight : float
        Priority B, positive.
    running : bool
        Whether the job held its GPUs in the preceding round.

    Raises
    ------
    InvalidInput
        If a field is out of range, or regimes, totals and epoch_s do not fit together.
    """

    id: str | int
    gpus: int
    mode: str
    total_epochs: float
    finished_epochs: float
    batch_sizes: tuple[int, ...]
    regime_epochs: tuple[float, ...]
    epoch_s: Mapping[int, float]
    future: tuple[tuple[int, float], ...]
    attained_s: float
    waiting_s: float
    contention: float = 1.0
    weight: float = 1.0
    running: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", as_ids("id", [self.id])[0])
        store_checked(self, as_integer, "gpus", minimum=1)
        if self.mode not in MODES:
            raise InvalidInput("mode", self.mode, f"must be one of {', '.join(MODES)}")
        store_checked(self, as_real, "total_epochs", "weight", above=0.0)
        store_checked(self, as_real, "finished_epochs", "attained_s", "waiting_s", minimum=0.0)
        store_checked(self, as_real, "contention", minimum=1.0)
        store_checked(self, as_flag, "running")
        if self.finished_epochs >= self.total_epochs:
            why = f"must be below total_epochs, {self.total_epochs}"
            raise InvalidInput("finished_epochs", self.finished_epochs, why)
        self._check_regimes()

    def _check_regimes(self) -> None:
        if not self.batch_sizes:
            raise InvalidInput("batch_sizes", "()", "must not be empty: a job has a current batch size")
        if len(self.regime_epochs) != len(self.batch_sizes):
            why = f"must have one value per batch size, {len(self.batch_sizes)}"
            raise InvalidInput("regime_epochs", self.regime_epochs, why)
        for size, seconds in self.epoch_s.items():
            as_integer("epoch_s", size, minimum=1)
            as_real(f"epoch_s[{size}]", seconds, above=0.0)
        for index, size in enumerate(self.batch_sizes):
            if size not in self.epoch_s:
                raise InvalidInput("batch_sizes", size, "epoch_s has no time for this size", index=index)
        for index, epochs in enumerate(self.regime_epochs):
            if not 0.0 <= epochs < math.inf:
                raise InvalidInput("regime_epochs", epochs, "must be finite and at least 0", index=index)
        self._check_sum("regime_epochs", math.fsum(self.regime_epochs), self.finished_epochs, "finished_epochs")
        for index, (size, epochs) in enumerate(self.future):
            if size not in self.epoch_s:
                raise InvalidInput("future", size, "epoch_s has no time for this size", index=index)
            if not 0.0 < epochs < math.inf:
                raise InvalidInput("future", epochs, "epochs must be finite and greater than 0", index=index)
        if self.future:
            left = self.total_epochs - self.finished_epochs
            self._check_sum("future", math.fsum(epochs for _, epochs in self.future), left, "the epochs left")

    def _check_sum(self, name: str, found: float, expected: float, meaning: str) -> None:
        if abs(found - expected) > _SUM_TOLERANCE * self.total_epochs:
            raise InvalidInput(name, found, f"must add up to {meaning}, {expected:.9g}")
