"""Shockwave beside Pollux on Pollux's traces, with Pollux's batch sizes replayed: Figure 11."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ....heuristics.placement.elastic import best_configuration
from ....simulation import Profiles, RoundResult, RoundRules, SimulationResult, Trace, finish_time_fairness
from ....simulation.placement import ModelSpeeds, ModelTable
from ..experiment import ExperimentOutcome, ExperimentSettings, PaperClaim
from ..plots import Curves
from .batch_replay import MACHINE_GPUS, BatchStretch, replayed, run_pollux
from .policies import FAIR_RIVALS, bars_of
from .pollux import pollux_workloads
from .run import UNFAIR, SimulationCase, named, run_cases

# The paper's factors: Pollux's mean completion time is so many times shorter, and its GPU-hours are fewer.
PAPER_FACTORS = {"mean jct s": 3.0, "gpu hours": 2.4}
SHOWN = ("makespan s", "mean jct s", "gpu hours", "worst ftf")
# What is varied for Pollux and Shockwave, by label: arrivals so many times faster, and whether restarts take time.
LOADED = ", 4x arrivals"
VARIATIONS = {"": (1.0, True), LOADED: (4.0, True), ", no restarts": (1.0, False)}
# No limit of the run time: changes of the batch size come late, so that a short job may run longer than alone.
FOLLOWING = RoundRules(follow_schedules=True, overrun=None)
# Policies on Pollux's batch sizes: as they are; with the schedules known in advance; in shorter rounds.
REPLAYS = {
    "shockwave": (named("shockwave"), FOLLOWING),
    "shockwave, oracle": (named("shockwave", predictor="oracle"), FOLLOWING),
    "shockwave, 30 s rounds": (named("shockwave"), replace(FOLLOWING, round_s=30.0, restart_free_s=25.0)),
    **{name: (named(name), FOLLOWING) for name in FAIR_RIVALS},
}
# Batch sizes without Pollux, under Shockwave: those of the users, and those with the greatest goodput on the gang.
USERS, GANGS = "shockwave, users' sizes", "shockwave, best sizes"
DRAWN = ("pollux", "shockwave", USERS, GANGS)
# Runs of each trace: Pollux and Shockwave in each variation, the other replays, and the two above.
RUNS = 2 * len(VARIATIONS) + len(REPLAYS) - 1 + 2


def figure_11(settings: ExperimentSettings) -> ExperimentOutcome:
    """Pollux in the placement engine, and its batch sizes under Shockwave in the rounds engine, at the same speeds.

    Fairness divides by the time alone at the GPUs and the batch size that the user asked for, under every policy: of
    the jobs for which this is a round or more, and of all jobs beside it.
    """
    speeds = ModelSpeeds(ModelTable.builtin(), gpus_per_machine=MACHINE_GPUS)
    found, users = pollux_workloads(settings, speeds), pollux_workloads(settings)
    if isinstance(found, str) or isinstance(users, str):
        return ExperimentOutcome(rows=[], skipped=str(found))
    gpus = MACHINE_GPUS * -(-found[1] // MACHINE_GPUS)
    traces = {name: trace for name, (trace, _) in found[0].items()}
    results = _results(traces, users[0], speeds, gpus, settings)
    rows = [
        {"trace": name, "policy": policy} | _row(traces[name], result) for (name, policy), result in results.items()
    ]
    means: list[dict[str, Any]] = []
    for policy in dict.fromkeys(policy for _, policy in results):
        mine = [row for row in rows if row["policy"] == policy]
        columns = {column: float(np.mean([row[column] for row in mine])) for column in list(mine[0])[2:]}
        means.append({"trace": "mean", "policy": policy} | columns)
    least = float(np.mean([least_gpu_hours(trace, speeds, gpus) for trace in traces.values()]))
    compared = [row for policy in ("pollux", "shockwave") for row in rows if row["policy"] == policy]
    drawn = [row for row in means if row["policy"] in DRAWN]
    return ExperimentOutcome(
        rows=[_rounded(row) for row in [*means, *compared]],
        claims=_claims([*means, *compared], least),
        plots=(bars_of(drawn, f"Pollux's traces on {gpus} GPUs, means", SHOWN), _completion_times(results)),
    )


def _results(
    traces: Mapping[str, Trace],
    users: Mapping[str, tuple[Trace, Profiles]],
    speeds: ModelSpeeds,
    gpus: int,
    settings: ExperimentSettings,
) -> dict[tuple[str, str], SimulationResult]:
    """Return the result of every run by trace and policy: first those of Pollux, then those of the rounds engine."""
    results: dict[tuple[str, str], SimulationResult] = {}
    cases: dict[tuple[str, str], SimulationCase] = {}
    total, before = RUNS * sum(map(len, traces.values())), 0

    def on_jobs(completed: int) -> None:
        if settings.on_step is not None:
            settings.on_step(completed, total)

    for name, asked in traces.items():
        for label, (load, restarts) in VARIATIONS.items():
            trace = replace(asked, arrival_s=asked.arrival_s / load)

            def on_event(_call: int, _time_s: float, ended: int, _jobs: int, start: int = before) -> None:
                on_jobs(start + ended)

            results[name, f"pollux{label}"], stretches = run_pollux(
                trace, speeds, gpus, on_event, restart_s=30.0 if restarts else 0.0
            )
            before += len(trace)
            replay, profiles = replayed(trace, speeds, stretches)
            for policy, (maker, rules) in REPLAYS.items():
                if not label or policy == "shockwave":
                    cases[name, f"{policy}{label}"] = SimulationCase(
                        trace=replay,
                        gpus=gpus,
                        policy=maker,
                        profiles=profiles,
                        rules=rules if restarts else replace(rules, restart_s=0.0),
                    )
        alone, profiles = users[name]
        cases[name, USERS] = SimulationCase(trace=alone, gpus=gpus, policy=named("shockwave"), profiles=profiles)
        replay, profiles = replayed(asked, speeds, _best_sizes(asked, speeds))
        cases[name, GANGS] = SimulationCase(
            trace=replay, gpus=gpus, policy=named("shockwave"), profiles=profiles, rules=FOLLOWING
        )
    return results | run_cases(cases, lambda completed, _total: on_jobs(before + completed))


def _best_sizes(trace: Trace, speeds: ModelSpeeds) -> dict[int, list[BatchStretch]]:
    """Return one stretch for each job: the batch size with the greatest goodput on the gang."""
    stretches = {}
    for index, (model, gpus) in enumerate(zip(trace.model, trace.gang_gpus.tolist(), strict=True)):
        best = best_configuration(speeds, model, gpus, -(-gpus // MACHINE_GPUS))
        size = trace.batch_size[index] if best is None else best.batch_size
        stretches[index] = [BatchStretch(0.0, int(size) * gpus, gpus)]
    return stretches


def gpu_hours(result: SimulationResult) -> float:
    """Return the GPU-hours in which jobs trained or restarted."""
    if isinstance(result, RoundResult):
        gang_gpus = result.trace.gang_gpus
        return float(sum((run.run_s + run.restart_s) * gang_gpus[run.trace_index] for run in result.run_rows)) / 3600.0
    stretches = result.stretches
    assert stretches is not None, "the run was recorded"
    return float((stretches.end_s - stretches.start_s) @ stretches.gpus) / 3600.0


def least_gpu_hours(trace: Trace, speeds: ModelSpeeds, gpus: int) -> float:
    """Return the GPU-hours without restarts if each job always had the GPUs and the batch that need the fewest."""
    least = {}
    for model in set(trace.model):
        machines = {count: -(-count // MACHINE_GPUS) for count in range(1, gpus + 1)}
        best = {count: best_configuration(speeds, model, count, machines[count]) for count in machines}
        least[model] = min(count / found.goodput for count, found in best.items() if found is not None)
    return float(speeds.work(trace) @ [least[model] for model in trace.model]) / 3600.0


def _row(asked: Trace, result: SimulationResult) -> dict[str, float]:
    requested_s = asked.duration_s
    assert requested_s is not None, "the trace has durations"
    fairness = finish_time_fairness(result.jct_s, requested_s, jobs=len(asked), gpus=result.gpus)
    long = requested_s >= RoundRules().round_s
    return {
        "makespan s": result.metrics["makespan_s"],
        "mean jct s": result.metrics["avg_jct_s"],
        "gpu hours": gpu_hours(result),
        "worst ftf": float(fairness[long].max()),
        "unfair %": float(100 * np.mean(fairness[long] > UNFAIR)),
        "all worst ftf": float(fairness.max()),
        "alone s": float(result.exclusive_s.mean()),
    }


def _rounded(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row with whole seconds and GPU-hours."""
    return {name: round(value) if name.endswith((" s", " hours")) else value for name, value in row.items()}


def _claims(rows: Sequence[Mapping[str, Any]], least: float) -> tuple[PaperClaim, ...]:
    """Return the claims; `least` is the mean over the traces of the fewest GPU-hours of any policy."""
    found = {(row["trace"], row["policy"]): row for row in rows}

    def factor(column: str, trace: str = "mean", label: str = "") -> float:
        pollux, shockwave = (found[trace, f"{name}{label}"][column] for name in ("pollux", "shockwave"))
        return float(shockwave / pollux)

    def claim(statement: str, column: str, more: str = "") -> PaperClaim:
        factors = [factor(column, trace) for trace in dict.fromkeys(trace for trace, _ in found) if trace != "mean"]
        paper = f" (paper: {PAPER_FACTORS[column]:g}x)" if column in PAPER_FACTORS else ""
        numbers = (
            f"{factor(column):.2f}x on average{paper}, {min(factors):.2f}x to {max(factors):.2f}x; at four times the "
            f"arrivals {factor(column, label=LOADED):.2f}x{more}"
        )
        return PaperClaim(statement=f"{statement}, on every trace", holds=min(factors) > 1.0, numbers=numbers)

    most = found["mean", "shockwave"]["gpu hours"] / least
    return (
        claim("Pollux's mean completion time is shorter than Shockwave's with its batch sizes", "mean jct s"),
        claim("Pollux uses fewer GPU-hours", "gpu hours", f"; no policy could reach more than {most:.2f}x"),
        claim("Pollux's worst finish-time fairness is better", "worst ftf"),
        claim("Pollux's makespan is shorter", "makespan s"),
    )


def _completion_times(results: Mapping[tuple[str, str], SimulationResult]) -> Curves:
    """Return the distributions of completion times over all traces."""
    curves = {}
    for policy in DRAWN:
        times = np.sort(np.concatenate([result.jct_s for (_, name), result in results.items() if name == policy]))
        curves[policy] = times.tolist(), ((np.arange(len(times)) + 1) / len(times)).tolist()
    return Curves(title="Completion times", x_axis="s", y_axis="share of jobs", curves=curves, steps=True, log_x=True)
