"""Workloads of the SJF-BSBF experiments, runs of policies on them, and their rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....heuristics.registry import make_policy
from ....simulation import Cluster, Trace
from ....simulation.placement import (
    DrawnInterference,
    Interference,
    ModelSpeeds,
    ModelTable,
    PairTable,
    PlacementResult,
    PlacementRules,
    draw_cluster_jobs,
    simulate_placement,
)
from ..experiment import ExperimentSettings, OnStep
from .paper import MACHINE_GPUS, SMALL_GPUS, Printed, cluster_gpus

#: The policies that the paper compares.
POLICIES = ("fifo", "sjf", "tiresias", "pollux", "sjf-ffs", "sjf-bsbf")
#: Those under which jobs share GPUs; the others do not depend on ratios.
SHARING = ("sjf-ffs", "sjf-bsbf")
#: Generated jobs arrive in so many seconds, however many they are, as FIFO's queueing in both tables implies.
PERIOD_S = 6 * 3600.0
# Two jobs at most share a GPU; a job that is preempted or resized restarts in 30 s, as Pollux assumes.
_RULES = PlacementRules(jobs_per_gpu=2, restart_s=30.0)
# Ratios of the measured V100 pairs at 5, 25, 50, 75 and 95%.
_QUANTILES = (1.0, 1.19, 1.47, 2.07, 4.84)
# Gangs of the generated jobs and their probabilities, in percent.
_GANGS = MappingProxyType({1: 36, 2: 22, 4: 30, 8: 4, 16: 8})


@dataclass(frozen=True, kw_only=True)
class SharingCase:
    """One simulation: a workload on machines of 4 GPUs under a policy, with ratios of jobs that share."""

    trace: Trace
    gpus: int
    policy: str
    ratios: Interference
    options: Mapping[str, Any] = field(default_factory=dict)

    def run(self) -> PlacementResult:
        """Simulate it."""
        policy = make_policy(self.policy, "placement", **self.options)
        cluster = Cluster(gpus_by_type={"gpu": self.gpus}, gpus_per_machine=MACHINE_GPUS)
        return simulate_placement(
            self.trace, policy, cluster=cluster, speeds=model_speeds(), interference=self.ratios, rules=_RULES
        )


def run_cases(cases: Mapping[Any, SharingCase], on_step: OnStep | None) -> dict[Any, PlacementResult]:
    """Run every case and return its result under the same key."""
    results = {}
    for key, case in cases.items():
        results[key] = case.run()
        if on_step is not None:
            on_step(len(results), len(cases))
    return results


def model_speeds() -> ModelSpeeds:
    """Return the speeds of the built-in models on machines of 4 GPUs."""
    return ModelSpeeds(ModelTable.builtin(), MACHINE_GPUS)


def cluster_workload(settings: ExperimentSettings, jobs: int, seed: int) -> Trace:
    """Return generated jobs whose gangs fit the cluster; they arrive in `PERIOD_S` on average."""
    gangs = {gpus: share for gpus, share in _GANGS.items() if gpus <= cluster_gpus(settings)}
    return draw_cluster_jobs(
        np.random.default_rng(seed),
        num_jobs=jobs,
        mean_interarrival_s=PERIOD_S / jobs,
        gpu_counts=tuple(gangs),
        gpu_probabilities=tuple(share / sum(gangs.values()) for share in gangs.values()),
    )


def drawn_ratios(settings: ExperimentSettings, seed: int) -> DrawnInterference:
    """Return ratios drawn for each pair of models: of the measured V100 pairs, or of their quantiles without data."""
    file = None if settings.data is None else settings.data / "gavel" / "interference_1gpu.csv"
    if file is not None and file.is_file():
        return DrawnInterference(PairTable.read(file, gpu="v100"), seed)
    pairs = {(f"a{mine}", f"a{other}"): _QUANTILES[mine] for mine in range(5) for other in range(5)}
    return DrawnInterference(PairTable(ratios=pairs), seed)


def source_of_ratios(settings: ExperimentSettings) -> str:
    """Return where `drawn_ratios` come from."""
    return "quantiles" if len(drawn_ratios(settings, 0).pairs) == len(_QUANTILES) ** 2 else "measured pairs"


def compared(
    settings: ExperimentSettings, traces: Sequence[Trace], policies: Sequence[str], gpus: int, on_step: OnStep | None
) -> dict[tuple[str, int], PlacementResult]:
    """Run the policies on the workloads, with the ratios of the seeds; the results by policy and place.

    A workload that is the same object as the first one has only other ratios: policies that do not share run once.
    """
    cases = {
        (name, place): SharingCase(trace=trace, gpus=gpus, policy=name, ratios=drawn_ratios(settings, seed))
        for name in policies
        for place, (trace, seed) in enumerate(zip(traces, settings.seeds, strict=True))
        if not place or name in SHARING or trace is not traces[0]
    }
    return run_cases(cases, on_step)


def hours(results: Sequence[PlacementResult], column: str, which: str = "all") -> float:
    """Return the mean over workloads of a mean time ("jct" or "waited") of all, large or small jobs, in hours.

    Not a number if no workload has such a job.
    """
    found = []
    for result in results:
        mask = _chosen(result, which)
        if mask.any():
            found.append(float(result.of(mask)[f"avg_{column}_s"]) / 3600.0)
    return float(np.mean(found)) if found else float("nan")


def table_rows(
    results: Mapping[tuple[str, int], PlacementResult], printed: Mapping[str, Printed] | None = None
) -> list[dict[str, Any]]:
    """Return a row for each policy: JCT and queueing in hours, the spread of JCT, and the printed figures."""
    rows = []
    for name in dict.fromkeys(policy for policy, _ in results):
        mine = [result for (policy, _), result in results.items() if policy == name]
        each = [hours([result], "jct") for result in mine]
        row: dict[str, Any] = {"policy": name, "jct h": hours(mine, "jct")}
        row |= {"from": min(each), "to": max(each)}
        row |= {f"{which} h": hours(mine, "jct", which) for which in ("large", "small")}
        row |= {"queue h": hours(mine, "waited")}
        row |= {f"{which} queue h": hours(mine, "waited", which) for which in ("large", "small")}
        if printed is not None:
            row |= {f"printed {key.removesuffix('_h')}": value for key, value in printed[name]._asdict().items()}
        rows.append(row)
    return rows


def reduction(rows: Sequence[Mapping[str, Any]], rival: str, column: str = "jct h", own: str = "sjf-bsbf") -> float:
    """Return how far below a rival's figure the own one is, relative to the rival's; negative if it is above."""
    figures = {row["policy"]: float(row[column]) for row in rows}
    return 1.0 - figures[own] / figures[rival]


def _chosen(result: PlacementResult, which: str) -> NDArray[np.bool_]:
    large = result.trace.gang_gpus > SMALL_GPUS
    return np.asarray({"all": large | ~large, "large": large, "small": ~large}[which])
