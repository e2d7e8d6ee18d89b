"""Scores of delay timers by the placement engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ...formulations.arrays import Floats
from ...formulations.checks import refuse
from ...formulations.errors import InvalidInput
from ...formulations.search.delay_timers import DelayTimers
from ...formulations.search.objective import Objective
from ...simulation.cluster import Cluster
from ...simulation.placement.compiled.rule import DelayRule
from ...simulation.placement.engine import simulate_placement
from ...simulation.placement.occupancy import Occupancy
from ...simulation.placement.result import PlacementResult
from ...simulation.placement.rules import PlacementRules
from ...simulation.placement.speeds import Running, Speeds, checked_exposed, checked_rate, work_and_rates
from ...simulation.placement.ticks import TICK_S
from ...simulation.results.interrupt import play
from ...simulation.traces.trace import Trace
from ..dally.policy import DallyManualPolicy

if TYPE_CHECKING:
    from ...simulation.placement.compiled.setup import PlacementSetup

#: Metrics, and what they are of a result: values by job, or one number.
VALUES: dict[str, Callable[[PlacementResult], Any]] = {
    "jct": lambda result: result.jct_s,
    "waited": lambda result: result.waited_s,
    "communication": lambda result: result.exposed_s,
    "makespan": lambda result: [result.end_s.max() - result.trace.arrival_s.min()],
}
# A job ends when almost no work is left, and times are exact to some ticks.
_DONE, _CLOCK_S = 1e-9, 4 * TICK_S


@dataclass(frozen=True, kw_only=True, eq=False)
class DelayScores:
    """Scores of delay timers on traces: means over the traces of measures over their jobs.

    Parameters
    ----------
    traces : tuple of Trace
    cluster : Cluster
    speeds : Speeds
    rules : PlacementRules
    lease_s, offer_s, keep
        Options of the policies; see `DelayPolicy`.
    objectives : tuple of Objective
        Of the metrics of `VALUES`.

    Raises
    ------
    InvalidInput
        If a trace does not fit the cluster or the speeds, or an option is out of range.
    """

    traces: tuple[Trace, ...]
    cluster: Cluster
    speeds: Speeds
    rules: PlacementRules
    lease_s: float
    offer_s: float | None
    keep: bool
    objectives: tuple[Objective, ...]

    def __post_init__(self) -> None:
        self.policy(DelayTimers.manual())
        if len(self.cluster.types) > 1:
            raise InvalidInput("cluster", ", ".join(self.cluster.types), "the placement engine takes GPUs of one type")
        if not isinstance(self.rules, PlacementRules):
            raise InvalidInput("rules", type(self.rules).__name__, "must be PlacementRules")
        if not all(callable(getattr(self.speeds, name, None)) for name in ("work", "rate", "exposed")):
            raise InvalidInput("speeds", type(self.speeds).__name__, "must be Speeds")
        for trace in self.traces:
            try:
                refuse("gang_gpus", trace.gang_gpus > self.cluster.gpus, trace.gang_gpus, self._too_wide)
                self._least(trace)
            except InvalidInput as error:
                raise trace.locate(error) from None

    @property
    def _too_wide(self) -> str:
        return f"the job is wider than the cluster of {self.cluster.gpus} GPUs"

    def policy(self, timers: DelayTimers) -> DallyManualPolicy:
        """Return the policy of these timers."""
        return DallyManualPolicy(timers=timers, lease_s=self.lease_s, offer_s=self.offer_s, keep=self.keep)

    def of(self, timers: DelayTimers) -> Floats:
        """Return the scores of timers, shape (m,)."""
        return self.of_policy(self.policy(timers))

    def of_policy(self, policy: Any) -> Floats:
        """Return the scores of any policy of the placement engine, shape (m,)."""
        rows = []
        for setup in self._setups:
            result = self._result(setup, policy)
            rows.append([each.of(VALUES[each.metric](result)) for each in self.objectives])
        return np.asarray(np.mean(rows, axis=0))

    def _result(self, setup: PlacementSetup, policy: Any) -> PlacementResult:
        from ...simulation.placement.compiled.run import CompiledRun

        rule = getattr(policy, "rule", None)
        if isinstance(rule, DelayRule):
            return play(CompiledRun(setup, policy, rule, record=False), len(setup.trace))
        return simulate_placement(
            setup.trace, policy, cluster=self.cluster, speeds=self.speeds, rules=self.rules, record=False
        )

    @cached_property
    def _setups(self) -> Sequence[PlacementSetup]:
        # Loading numba takes a second.
        from ...simulation.placement.compiled.setup import PlacementSetup

        return [PlacementSetup(trace, self.cluster, self.speeds, self.rules) for trace in self.traces]

    # -- Lower bounds --------------------------------------------------------------------------------------------------

    @property
    def gpu_s(self) -> Floats:
        """GPU-seconds that the jobs of all traces take alone at their fastest, shape (N,)."""
        return np.concatenate([trace.gang_gpus * self._least(trace)[0] for trace in self.traces])

    @property
    def ideal(self) -> Floats:
        """Scores that no timers fall below, shape (m,).

        No job runs for less than it takes at its fastest placement, nor has less exposed communication than where that
        has the least share of progress; measures over jobs do not fall when the value of a job rises. From any time on,
        the GPUs need at least the GPU-seconds of the jobs that arrive later.
        """
        rows = []
        for trace in self.traces:
            run_s, exposed_s = self._least(trace)
            least = {
                "jct": run_s,
                "waited": np.zeros(len(trace)),
                "communication": exposed_s,
                "makespan": np.array([self._least_makespan_s(trace, run_s)]),
            }
            rows.append([each.of(least[each.metric]) for each in self.objectives])
        return np.asarray(np.mean(rows, axis=0))

    def _least_makespan_s(self, trace: Trace, run_s: Floats) -> float:
        order = np.argsort(trace.arrival_s, kind="stable")
        arrival_s = trace.arrival_s[order] - trace.arrival_s.min()
        to_come_s = np.cumsum((trace.gang_gpus * run_s)[order][::-1])[::-1] / self.cluster.gpus
        return float(max((arrival_s + run_s[order]).max(), (arrival_s + to_come_s).max()))

    def _least(self, trace: Trace) -> tuple[Floats, Floats]:
        """Return the least run time and the least exposed communication of each job, in seconds, of shape (N,)."""
        work, _ = work_and_rates(trace, self._empty, self.speeds)
        found: dict[tuple[str, int, int], tuple[float, float]] = {}
        rows = []
        for index, model in enumerate(trace.model):
            gang, size = int(trace.gang_gpus[index]), int(trace.batch_size[index])
            if (model, gang, size) not in found:
                runs = [run._replace(trace_index=index) for run in self._placements(model, gang, size)]
                rates = [checked_rate(self.speeds, run) for run in runs]
                shares = [checked_exposed(self.speeds, run) / rate for run, rate in zip(runs, rates, strict=True)]
                found[model, gang, size] = 1.0 / max(rates), min(shares)
            rows.append(found[model, gang, size])
        run_s, exposed_s = (np.maximum(0.0, work * each * (1.0 - _DONE) - _CLOCK_S) for each in np.array(rows).T)
        return run_s, exposed_s

    def _placements(self, model: str, gang: int, size: int) -> Iterator[Running]:
        """Yield a job on all numbers of machines and racks that can hold it."""
        empty = self._empty
        most_machines = min(gang, self.cluster.machines or 1)
        fewest = empty.fewest_machines(gang)
        per_rack = (self.cluster.machines or 1) // (self.cluster.racks or 1)
        for machines in range(fewest, most_machines + 1):
            for racks in range(max(empty.fewest_racks(gang), -(-machines // per_rack)), machines + 1):
                if racks <= (self.cluster.racks or 1):
                    tier = 0 if machines == 1 else 1 if racks == 1 else 2
                    yield Running(0, model, gang, gang, machines, fewest, tier, size, size, racks)

    @cached_property
    def _empty(self) -> Occupancy:
        return Occupancy(self.cluster)
