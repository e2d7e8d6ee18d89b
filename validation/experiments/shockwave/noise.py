"""The effect of wrong predictions on Shockwave's planner (Figure 13)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ....formulations.checks import as_real
from ....heuristics.registry import make_policy
from ....simulation.job_state import JobState
from ....simulation.rounds.policy import RoundJob, RoundPolicy, RoundState, Schedule, Shares
from ..experiment import ExperimentOutcome, ExperimentSettings, PaperClaim
from .planner import lines, listed
from .run import on_workloads

NOISES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


def figure_13(settings: ExperimentSettings) -> ExperimentOutcome:
    """Wrong foresight: the true regimes to come with noise on how many epochs each lasts, or on speeds too.

    A planner that never measures speeds is run beside, to show what measuring is worth.
    """
    kinds = {"regimes": (False, True), "speeds": (True, True), "speeds, not measured": (True, False)}
    cases = [(of, noise) for of in kinds for noise in NOISES]
    makers: dict[str, Callable[[], RoundPolicy]] = {
        f"{of} {noise:g}": partial(_misled, noise, settings.seed, *kinds[of]) for of, noise in cases
    }
    found, _ = on_workloads(settings, makers)
    rows: list[dict[str, Any]] = [
        {"noise on": of, "noise": noise} | {name: row[name] for name in row if name != "policy"}
        for (of, noise), row in zip(cases, found, strict=True)
    ]
    claims = []
    for of, where in (("regimes", "noise on regimes"), ("speeds", "noise on speeds too")):
        mine = [row for row in rows if row["noise on"] == of]
        for words, names in {"efficiency": ("makespan s", "mean jct s"), "fairness": ("worst ftf",)}.items():
            worse = {name: [row[name] / mine[0][name] for row in mine] for name in names}
            claims.append(
                PaperClaim(
                    statement=f"{where}: {words} suffers gently, by at most 10% at 40% noise and 30% at 100%",
                    holds=all(
                        value <= (1.1 if noise <= 0.4 else 1.3)
                        for values in worse.values()
                        for noise, value in zip(NOISES, values, strict=True)
                    ),
                    numbers="; ".join(f"{name} {listed(NOISES, values, 'x')}" for name, values in worse.items()),
                )
            )
    plots = [
        plot
        for place, of in enumerate(kinds)
        for plot in lines(rows[place * len(NOISES) : (place + 1) * len(NOISES)], NOISES, f"noise on {of}")
    ]
    return ExperimentOutcome(rows=rows, claims=tuple(claims), plots=tuple(plots))


def _misled(noise: float, seed: int, speeds: bool, measured: bool) -> RoundPolicy:
    return Misled(make_policy("shockwave", predictor="oracle", measured_speeds=measured), noise, seed, speeds)


@dataclass
class Misled:
    """A policy with an oracle, `JobState.future`, that is wrong by a known amount.

    With noise p each regime to come lasts ``1 + p u`` times as many epochs as it will, u uniform in [-1, 1], the same
    for a job's regime whenever it is asked; then epochs are scaled to add up. With `speeds` the seconds of all the
    job's epochs are wrong too, by a factor of its own of the same kind.
    """

    policy: RoundPolicy
    noise: float
    seed: int
    speeds: bool = False

    def __post_init__(self) -> None:
        self.noise = as_real("noise", self.noise, minimum=0.0, maximum=1.0)

    @property
    def name(self) -> str:
        """The policy's name, and that it is misled."""
        return f"{self.policy.name} misled by {self.noise:g}"

    def due(self, state: RoundState) -> bool:
        """Ask the policy."""
        return self.policy.due(state)

    def decide(self, state: RoundState) -> Shares | Schedule:
        """Ask the policy, with every job's future and speeds wrong."""
        wrong = tuple(replace(job, make_state=partial(self._believed, job)) for job in state.jobs)
        return self.policy.decide(replace(state, jobs=wrong))

    def _believed(self, job: RoundJob) -> JobState:
        true = job.state
        rng = np.random.default_rng([self.seed, job.trace_index])
        # Regimes are counted from the job's last: the last one's error is the same at every moment.
        factors = 1.0 + self.noise * rng.uniform(-1.0, 1.0, size=16)
        slower = max(1.0 + self.noise * rng.uniform(-1.0, 1.0), 1e-3) if self.speeds else 1.0
        left = true.total_epochs - true.finished_epochs
        wanted = [
            epochs * max(factors[place % 16], 1e-3)
            for place, (_, epochs) in zip(range(len(true.future) - 1, -1, -1), true.future, strict=True)
        ]
        scale = left / sum(wanted)
        future = tuple((size, epochs * scale) for (size, _), epochs in zip(true.future, wanted, strict=True))
        epoch_s = {size: seconds * slower for size, seconds in true.epoch_s.items()}
        return replace(true, future=future, epoch_s=epoch_s)
