"""Benchmark of the decisions of policies that share GPUs in pairs: CPU time by GPUs, jobs and batch size."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ...formulations.checks import as_integer
from ...heuristics.registry import make_policy
from ...simulation.cluster import Cluster
from ...simulation.placement.actions import Action
from ...simulation.placement.engine import simulate_placement
from ...simulation.placement.interference import PairTable
from ...simulation.placement.model_speeds import ModelSpeeds
from ...simulation.placement.model_table import ModelTable
from ...simulation.placement.policy import PlacementState
from ...simulation.placement.rules import PlacementRules
from ...simulation.results.interrupt import SimulationInterrupted
from ...simulation.traces.trace import Trace

#: GPUs, jobs that run at first, jobs that arrive afterwards, and batch size per GPU.
SIZES = ((16, 8, 20, 64), (64, 32, 100, 64), (256, 125, 100, 64), (1024, 500, 100, 64), (4096, 2000, 100, 64))
#: Ends of jobs after which a run stops.
ENDS = 30


class _Call(NamedTuple):
    cpu_s: float
    waiting: int
    running: int
    ended: int


class _Timed:
    """A policy, with the CPU time of each of its calls without the engine's part."""

    def __init__(self, policy: Any) -> None:
        self.policy, self.name, self.knows = policy, policy.name, policy.knows
        self.calls: list[_Call] = []

    def decide(self, state: PlacementState) -> Iterator[Action]:
        seconds, actions = 0.0, self.policy.decide(state)
        waiting, running = len(state.waiting), len(state.running)
        while True:
            began = time.process_time()
            action = next(actions, None)
            seconds += time.process_time() - began
            if action is None:
                break
            yield action
        self.calls.append(_Call(seconds, waiting, running, len(state.ended)))


def decision_rows(
    *, sizes: Sequence[tuple[int, int, int, int]] = SIZES, repeat: int = 5, seed: int = 0, **options: Any
) -> Iterator[dict[str, Any]]:
    """Time the calls of `sjf-bsbf` on full clusters; yield one row for each size.

    Jobs of six models, with ratios of pairs of 1.6 to 3.5, hold all GPUs of machines of 8; others arrive
    one by one, and then jobs end one by one. Each run is repeated, and the least CPU time of each call counts.

    Parameters
    ----------
    sizes : sequence of (int, int, int, int)
        GPUs (a multiple of 8), jobs that run at first, jobs that arrive, and batch size per GPU.
    repeat, seed : int
        Runs of each size, at least 1, and the seed of the jobs.
    **options
        Options of the policy.

    Yields
    ------
    dict
        gpus, running and waiting (at the first end), batch_size, and in milliseconds the median and the largest time of
        calls at which jobs end (end_ms, worst_end_ms) and arrive (arrival_ms, worst_arrival_ms).
    """
    for gpus, running, arriving, batch_size in sizes:
        runs = [
            _calls(gpus, running, arriving, batch_size, seed, options)
            for _ in range(as_integer("repeat", repeat, minimum=1))
        ]
        calls = [same[0]._replace(cpu_s=min(call.cpu_s for call in same)) for same in zip(*runs, strict=True)]
        ends = [call for call in calls if call.ended]
        row = {"gpus": gpus, "running": ends[0].running, "waiting": ends[0].waiting, "batch_size": batch_size}
        for name, some in (("end", ends), ("arrival", [call for call in calls[1:] if not call.ended])):
            seconds = [1e3 * call.cpu_s for call in some]
            row |= {f"{name}_ms": float(np.median(seconds)), f"worst_{name}_ms": max(seconds)}
        yield row


def _calls(gpus: int, running: int, arriving: int, batch_size: int, seed: int, options: dict[str, Any]) -> list[_Call]:
    """Return the calls of one run."""
    rng, jobs, ends = np.random.default_rng(seed), running + arriving, min(ENDS, running // 2)
    builtin = ModelTable.builtin()
    # Any batch fits, so that all sub-batches are looked up.
    table = ModelTable(
        replace(
            row,
            min_gpu_batch=1,
            max_gpu_batch=1 << 20,
            memory_gb=1.0,
            memory_gb_per_sample=1e-6,
            memory_source="none",
        )
        for row in builtin.rows
    )
    held = np.ones(running, dtype=int)
    while held.sum() < gpus:
        held[rng.choice(np.flatnonzero((held <= gpus - held.sum()) & (held < 16)))] *= 2
    duration_s = rng.uniform(3000, 20000, jobs)
    duration_s[:ends] = 500 + np.arange(ends)
    pairs = [(one, other) for one in builtin.models for other in builtin.models]
    ratios = PairTable(ratios=dict(zip(pairs, rng.uniform(1.6, 3.5, len(pairs)).tolist(), strict=True)))
    trace = Trace(
        job_id=list(range(jobs)),
        model=rng.choice(builtin.models, jobs).tolist(),
        gang_gpus=np.concatenate((held, rng.choice([1, 2, 4, 8], arriving))),
        batch_size=np.maximum(1, batch_size >> rng.integers(0, 2, jobs)),
        arrival_s=np.concatenate((np.zeros(running), np.linspace(1.0, 400.0, arriving))),
        duration_s=duration_s,
    )
    policy = _Timed(make_policy("sjf-bsbf", "placement", **options))

    def stop_after_ends(*_: object) -> None:
        if sum(call.ended for call in policy.calls) >= ends:
            raise KeyboardInterrupt

    with suppress(SimulationInterrupted):
        simulate_placement(
            trace,
            policy,
            cluster=Cluster(gpus_by_type={"gpu": gpus}, gpus_per_machine=8),
            speeds=ModelSpeeds(table, 8),
            interference=ratios,
            rules=PlacementRules(jobs_per_gpu=2),
            on_event=stop_after_ends,
        )
    return policy.calls
