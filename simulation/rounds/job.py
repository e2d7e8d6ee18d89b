"""Progress of one job through the rounds: steps of a run, restarts, rescaling and completion."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from ...formulations.arrays import Floats
from .adaptation import Adaptation
from .cluster import RoundCluster
from .rules import RoundRules


@dataclass(slots=True, kw_only=True, eq=False)
class RoundProgress:
    """Admitted job and the quantities that its runs change; `order` is its rank by arrival and id.

    The arithmetic follows the order of operations of the released simulator, since ties of its priorities depend on
    the last bit: run time is the difference of two clock times, not steps over rate.
    """

    cluster: RoundCluster
    adaptation: Adaptation
    id: str | int
    trace_index: int
    order: int
    gang_gpus: int
    model: str
    mode: str
    weight: float
    arrival_s: float
    batch_size: int
    total_steps: int
    initial_batch_size: int = field(init=False)
    next_batch_size: int = field(init=False)
    steps_per_epoch: int = field(init=False)
    rates: Floats = field(init=False)
    steps_run: int = 0
    # Past regimes as (batch size, epochs finished by its end).
    regimes: tuple[tuple[int, float], ...] = ()
    attained_s: float = 0.0
    start_s: float = math.nan
    end_s: float = math.nan
    ended_by: str = ""
    last_round: int = -1
    rounds: int = 0
    restarts: int = 0
    waited_rounds: int = 0
    without_steps: int = 0
    contention_integral_at_arrival_s: float = 0.0

    def __post_init__(self) -> None:
        self.initial_batch_size = self.next_batch_size = self.batch_size
        self.steps_per_epoch = self.cluster.profiles[0].steps_per_epoch(self.model, self.batch_size)
        self.rates = self.cluster.rates(self.model, self.batch_size, self.gang_gpus)

    @property
    def finished_epochs(self) -> float:
        """Finished epochs, counted in steps of the current batch size."""
        return self.steps_run / self.steps_per_epoch

    def run(
        self, round_number: int, start_s: float, rate: float, most_run_s: float, rules: RoundRules
    ) -> tuple[int, float, float, float]:
        """Run one round; return the steps run, the seconds run, the end time, and the seconds lost to a restart.

        The run may change the batch size, and sets `ended_by` if the job ends. `most_run_s` is the limit of its run
        time.
        """
        steps = max(0, min(int(rate * rules.round_s), self.total_steps - self.steps_run))
        end_s = start_s + steps / rate
        run_s = end_s - start_s
        lost_s = self.restart_s(round_number, run_s, rules)
        if lost_s:
            steps = int(steps * (run_s - lost_s) / run_s)
            run_s -= lost_s
        self.restarts += self.rounds > 0 and self.last_round != round_number - 1
        if not self.rounds:
            self.start_s = start_s
        self.last_round = round_number
        self.rounds += 1
        self.steps_run += steps
        self.attained_s += run_s
        self._conclude(steps, end_s, most_run_s, rules)
        return steps, run_s, end_s, lost_s

    def run_length_s(self, rate: float, rules: RoundRules) -> float:
        """Return the seconds for which the next run holds the GPUs."""
        return max(0, min(int(rate * rules.round_s), self.total_steps - self.steps_run)) / rate

    def restart_s(self, round_number: int, run_s: float, rules: RoundRules) -> float:
        """Return the seconds that a start costs a run of this length: 0 if the job continues, and in round 0."""
        starts = round_number > 0 and self.last_round != round_number - 1
        return rules.restart_s if starts and run_s > rules.restart_free_s else 0.0

    def _conclude(self, steps: int, end_s: float, most_run_s: float, rules: RoundRules) -> None:
        self.without_steps = 0 if steps else self.without_steps + 1
        if steps and self.steps_run >= self.total_steps:
            self.ended_by = "completed"
        elif self.attained_s > most_run_s:
            self.ended_by = "overrun"
        elif self.without_steps >= rules.stalled_rounds:
            self.ended_by = "stalled"
        if self.ended_by:
            self.end_s = end_s
        # A run without a step changes no batch size; a requested change is applied even if the job completes.
        if not steps:
            return
        if self.next_batch_size != self.batch_size:
            self._rescale()
        # The rule is applied at the new size in the same round: a second doubling may follow one round later.
        epochs_begun = -(-self.steps_run // self.steps_per_epoch)
        self.next_batch_size = self.adaptation.requested(self.batch_size, epochs_begun)

    def _rescale(self) -> None:
        """Apply the next batch size: convert the steps and keep the number of whole epochs."""
        before, epochs = self.steps_per_epoch, -(-self.total_steps // self.steps_per_epoch)
        begun = -(-self.steps_run // before)
        self.regimes = (*self.regimes, (self.batch_size, float(begun)))
        after = self.cluster.profiles[0].steps_per_epoch(self.model, self.next_batch_size)
        total = math.ceil(self.total_steps / (self.next_batch_size / self.batch_size))
        self.total_steps = total if -(-total // after) == epochs else epochs * after
        self.steps_run = begun * after
        self.steps_per_epoch = after
        self.batch_size = self.next_batch_size
        self.rates = self.cluster.rates(self.model, self.batch_size, self.gang_gpus)
