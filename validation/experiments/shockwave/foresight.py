"""Late re-prioritising of jobs that change (Figure 2), and the errors of the predictors (Figure 5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from ....heuristics.prediction.estimators import planned_ftf
from ....heuristics.prediction.predictors import Predictor, predict
from ....heuristics.registry import make_policy
from ....simulation.rounds.policy import RoundPolicy, RoundState, Schedule, Shares
from ...benchmarks.prediction import prediction_rows
from ..experiment import ExperimentOutcome, ExperimentSettings, PaperClaim
from ..plots import Curves
from .paper import cluster_gpus
from .run import UNFAIR, SimulationCase, named, run_cases, workload

WATCHED: tuple[Predictor, ...] = ("greedy", "restatement", "oracle")


@dataclass
class Watched:
    """A policy beside which every job's planned fairness is noted each time it decides, by each predictor.

    `seen` has by job (time, changes to come, planned fairness by greedy, restatement, oracle), at each decision.
    """

    policy: RoundPolicy
    seen: dict[str | int, list[tuple[float, ...]]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The policy's own."""
        return self.policy.name

    def due(self, state: RoundState) -> bool:
        """Ask the policy."""
        return self.policy.due(state)

    def decide(self, state: RoundState) -> Shares | Schedule:
        """Record the prediction of each predictor, and call the policy."""
        for job in state.jobs:
            known = job.state
            foreseen = (predict(known, predictor).remaining_s for predictor in WATCHED)
            fairness = (planned_ftf(known.attained_s, known.waiting_s, left_s, known.contention) for left_s in foreseen)
            self.seen.setdefault(job.id, []).append((state.time_s, len(known.future) - 1.0, *fairness))
        return self.policy.decide(state)


def figure_2(settings: ExperimentSettings) -> ExperimentOutcome:
    """When a reactive scheduler sees that a job that will speed up is behind, and when an oracle does."""
    gpus = cluster_gpus(settings)
    traces = {seed: workload(settings.jobs, seed, gpus=gpus) for seed in settings.seeds}
    watched = {seed: Watched(make_policy("themis-filter")) for seed in settings.seeds}
    makers = {("greedy", seed): partial(watched.__getitem__, seed) for seed in traces} | {
        (name, seed): named("themis-filter", predictor=name) for name in WATCHED[1:] for seed in traces
    }
    cases = {key: SimulationCase(trace=traces[key[1]], gpus=gpus, policy=maker) for key, maker in makers.items()}
    results = run_cases(cases, settings.on_step)
    rows: list[dict[str, Any]] = [
        {"seed": seed, "job": job} | alarm
        for seed, each in watched.items()
        for job, history in each.seen.items()
        if (alarm := late_alarms(np.array(history))) is not None
    ]
    if not rows:
        no_case = "no job fell behind before a change: try another --seed, or more --jobs"
        return ExperimentOutcome(rows=[], skipped=no_case)
    late = {name: float(np.mean([row[f"{name} late s"] for row in rows])) for name in WATCHED[:2]}
    missed = {name: float(np.mean([row[f"{name} missed %"] for row in rows])) for name in WATCHED[:2]}
    unfair = {
        name: float(np.mean([_unfair_dynamic(results[name, seed].jobs) for seed in settings.seeds])) for name in WATCHED
    }
    claims = (
        PaperClaim(
            statement="today's speed shows late that a job is behind which will yet speed up",
            holds=late["greedy"] > 0,
            numbers=f"{late['greedy']:.0f} s after its true course on average over {len(rows)} jobs, and not in "
            f"{missed['greedy']:.0f}% of the rounds in which that does",
        ),
        PaperClaim(
            statement="the predictor shows it sooner",
            holds=late["restatement"] < late["greedy"],
            numbers=f"{late['restatement']:.0f} s late, not in {missed['restatement']:.0f}% of the rounds",
        ),
        PaperClaim(
            statement="so fewer of the jobs that change end unfair when the filter knows their course",
            holds=unfair["oracle"] < unfair["greedy"],
            numbers=", ".join(f"{name} {share:.1f}%" for name, share in unfair.items()),
        ),
    )
    shown = max(rows, key=lambda row: row["greedy late s"])
    history = np.array(watched[shown["seed"]].seen[shown["job"]])
    curves: dict[str, tuple[list[float], list[float]]] = {
        name: (history[:, 0].tolist(), history[:, 2 + place].tolist()) for place, name in enumerate(WATCHED)
    }
    title = f"Job {shown['job']} of seed {shown['seed']} as it is foreseen"
    plot = Curves(title=title, x_axis="s", y_axis="planned fairness", curves=curves, reference=UNFAIR)
    return ExperimentOutcome(rows=rows, claims=claims, plots=(plot,))


def late_alarms(history: np.ndarray[Any, Any]) -> dict[str, float] | None:
    """Return how late each predictor shows a job to be unfair, and how often it does not; None if an oracle never does.

    The history, shape (rounds, 5), is that of `Watched.seen`. Only rounds in which a change is yet to come count as the
    oracle's alarms. By Eq. 9 an estimate R of the run time left that is too long pulls fairness towards 1: where a job
    is behind, it seems less so. Lateness runs from the oracle's first alarm to the predictor's first one from then on.
    """
    true = (history[:, 1] > 0) & (history[:, 4] > UNFAIR)
    if not true.any():
        return None
    first = int(np.flatnonzero(true)[0])
    alarm = {"alarm s": float(history[first, 0])}
    for place, name in enumerate(WATCHED[:2]):
        unfair = history[first:, 2 + place] > UNFAIR
        when = history[first + int(np.argmax(unfair)), 0] if unfair.any() else history[-1, 0]
        alarm[f"{name} late s"] = float(when - history[first, 0])
        alarm[f"{name} missed %"] = float(100 * np.mean(history[true, 2 + place] <= UNFAIR))
    return alarm


def _unfair_dynamic(jobs: Any) -> float:
    return float(100 * np.mean(jobs.loc[jobs["mode"] != "static", "ftf"] > UNFAIR))


def figure_5(settings: ExperimentSettings) -> ExperimentOutcome:
    """The predictors' errors against progress."""
    measured = []
    for place, seed in enumerate(settings.seeds):
        measured.append(
            prediction_rows(jobs=settings.jobs, seed=seed, points=10, predictors=("restatement", "bayes", "greedy"))
        )
        if settings.on_step is not None:
            settings.on_step(place + 1, settings.repeats)
    rows: list[dict[str, Any]] = [
        same[0] | {name: float(np.mean([float(row[name] or 0.0) for row in same])) for name in ("duration", "runtime")}
        for same in zip(*measured, strict=True)
    ]
    means: Mapping[str, Mapping[str, Any]] = {row["predictor"]: row for row in rows if row["progress"] is None}
    error = {name: float(row["duration"]) for name, row in means.items()}
    accuracy = {name: 1 - float(row["runtime"]) for name, row in means.items()}
    claims = (
        PaperClaim(
            statement="the restatement rule errs less over regime durations than Bayes and than today's speed",
            holds=error["restatement"] < min(error["bayes"], error["greedy"]),
            numbers=", ".join(f"{name} {error[name]:.3f}" for name in ("restatement", "bayes", "greedy"))
            + " (paper: 0.06)",
        ),
        PaperClaim(
            statement="run times are foreseen to 84% or better",
            holds=accuracy["restatement"] >= 0.84,
            numbers=", ".join(f"{name} {accuracy[name]:.3f}" for name in ("restatement", "bayes", "greedy")),
        ),
    )
    curves: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in means}
    for row in rows:
        if row["progress"] is not None:
            curves[row["predictor"]][0].append(row["progress"])
            curves[row["predictor"]][1].append(row["duration"])
    plot = Curves(title="Prediction", x_axis="progress", y_axis="error of regime durations", curves=curves)
    return ExperimentOutcome(rows=rows, claims=claims, plots=(plot,))
