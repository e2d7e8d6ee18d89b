"""Run one policy, and measure its time."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .config import SimulationConfig
from .policy_spec import PolicySpec

if TYPE_CHECKING:
    from ...simulation import SimulationResult
    from ...simulation.results.interrupt import OnStep


@dataclass(frozen=True, kw_only=True)
class FinishedRun:
    """The run of one policy that came to its end.

    Attributes
    ----------
    spec : PolicySpec
    result : SimulationResult
    wall_s, cpu_s : float
        Seconds of the whole run, on the clock and of the processor.
    """

    spec: PolicySpec
    result: SimulationResult
    wall_s: float
    cpu_s: float


def run_policy(config: SimulationConfig, spec: PolicySpec, on_step: OnStep | None = None) -> FinishedRun:
    """Run one policy.

    Raises
    ------
    EquipoiseError
        If the trace cannot run on the cluster, naming column and line, or the policy fails.
    """
    from ...simulation import Cluster, simulate

    start, cpu = time.perf_counter(), time.process_time()
    result = simulate(
        config.trace,
        spec.make(config.seed),
        engine=config.engine_name,
        cluster=Cluster.of(config.gpus),
        speeds=config.profiles,
        rules=config.rules,
        on_step=on_step,
    )
    wall_s, cpu_s = time.perf_counter() - start, time.process_time() - cpu
    return FinishedRun(spec=spec, result=result, wall_s=wall_s, cpu_s=cpu_s)
