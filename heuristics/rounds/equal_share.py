"""Policies that share by a rule: Isolated, Gandiva-Fair and Proportional."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from ...formulations.arrays import Floats
from ...formulations.checks import as_real
from ...formulations.errors import InvalidInput
from ...simulation.rounds.policy import RoundState, Schedule, Shares, due_on_events
from .queue import fit_in_order

#: Seconds between two calls of a policy of shares (Gavel's and the Shockwave artifact's reset interval).
INTERVAL_S = 1000.0


def usable_rates(state: RoundState) -> Floats:
    """Return steps per second on each GPU type, shape (m, K); 0 also where the cluster has too few for the gang."""
    return np.where(state.gangs[:, None] <= state.gpus, state.rates, 0.0)


def equal_shares(usable: Floats, counted_gpus: Floats, gpus: Floats) -> Floats:
    """Return the shares of time of jobs that each own an equal slice of every GPU type they can use, shape (m, K).

    ``x_jk = M_k / (m w_j)``, scaled down where they add up to more than all the time: ``min(1, M / (m w_j))`` in all
    with one type.
    """
    shares = np.where(usable > 0, gpus / (len(usable) * counted_gpus[:, None]), 0.0)
    return np.asarray(shares / np.maximum(1.0, shares.sum(axis=1, keepdims=True)))


def isolated_shares(state: RoundState) -> Floats:
    """Return the shares of time on 1/m of the cluster, shape (m, K): in P."""
    return equal_shares(usable_rates(state), state.gangs.astype(np.float64), state.gpus.astype(np.float64))


@dataclass(kw_only=True, eq=False)
class IsolatedPolicy:
    """Every job gets the time that 1/m of the cluster could give it: ``min(1, M / (m g_j))`` on one GPU type.

    Parameters
    ----------
    interval_s : float
        Least seconds between two calls.

    Notes
    -----
    D. Narayanan et al., "Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads", OSDI 2020,
    Section 4.1 (the isolated allocation). The shares are in P; nothing is solved.
    """

    interval_s: float = INTERVAL_S
    name: str = field(default="isolated", init=False)

    def __post_init__(self) -> None:
        self.interval_s = as_real("interval_s", self.interval_s, minimum=0.0)

    def due(self, state: RoundState) -> bool:
        """Whether jobs arrived, ended or were rescaled, and the last call is `interval_s` ago."""
        return due_on_events(state, self.interval_s)

    def decide(self, state: RoundState) -> Shares:
        """Return the isolated shares."""
        return Shares(isolated_shares(state))


@dataclass(kw_only=True, eq=False)
class ProportionalPolicy:
    """Every job on every GPU type in proportion to how many there are: ``x_jk = M_k / sum_k M_k``.

    As with Gavel's normalisation, the width of the job and the number of jobs do not matter: with one type every
    share is 1, and since the engine runs first who is furthest behind its share, time is divided evenly.

    Parameters
    ----------
    interval_s : float
        Least seconds between two calls.

    Notes
    -----
    Narayanan et al., OSDI 2020, Section 4.1 (``X^equal``). A type that a job cannot use goes to its other types; the
    shares of all jobs together exceed P once they need more GPUs than there are.
    """

    interval_s: float = INTERVAL_S
    name: str = field(default="proportional", init=False)

    def __post_init__(self) -> None:
        self.interval_s = as_real("interval_s", self.interval_s, minimum=0.0)

    def due(self, state: RoundState) -> bool:
        """Whether jobs arrived, ended or were rescaled, and the last call is `interval_s` ago."""
        return due_on_events(state, self.interval_s)

    def decide(self, state: RoundState) -> Shares:
        """Return each job's types by their numbers of GPUs."""
        present = np.where(usable_rates(state) > 0, state.gpus, 0)
        return Shares(present / present.sum(axis=1, keepdims=True))


@dataclass(kw_only=True, eq=False)
class GandivaFairPolicy:
    """Gandiva-Fair's tickets: every job the same share of time, whatever its width.

    Parameters
    ----------
    tickets : {"job", "width"}
        "job": a ticket for each job, priorities ``min(1, M / m)``, as in the Shockwave artifact; for wide jobs they
        add up to more than the cluster, and the engine's deficits make of them what fits. "width": a ticket for each
        GPU that a job needs, so that all run ``min(1, M / sum_j g_j)`` of the time, by stride scheduling on one GPU
        type: each round goes to the jobs that have run least since they came.
    interval_s : float
        Least seconds between two calls with tickets by job; a stride is decided every round.

    Notes
    -----
    S. Chaudhary et al., "Balancing Efficiency and Fairness in Heterogeneous GPU Clusters for Deep Learning", EuroSys
    2020, Section 4 (gang-aware split stride). A job that comes later starts level with the one that has run least, as
    C. Waldspurger and W. Weihl ask of stride scheduling (MIT 1995), so it cannot claim the time before it came. Ties
    go to the job that is running, then to the wider one, then by the order of the trace.
    """

    tickets: Literal["job", "width"] = "job"
    interval_s: float = INTERVAL_S
    name: str = field(default="gandiva-fair", init=False)
    # A job's pass is this and what it has attained: level, when it came, with who had run least.
    _offsets: dict[str | int, float] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.tickets not in ("job", "width"):
            raise InvalidInput("tickets", self.tickets, "must be 'job' or 'width'")
        self.interval_s = as_real("interval_s", self.interval_s, minimum=0.0)

    def due(self, state: RoundState) -> bool:
        """Whether jobs arrived, ended or were rescaled and the last call is `interval_s` ago; by width always."""
        return self.tickets == "width" or due_on_events(state, self.interval_s)

    def decide(self, state: RoundState) -> Shares | Schedule:
        """Return the shares, or who runs in the next round."""
        if self.tickets == "width":
            return self._stride(state)
        return Shares(equal_shares(usable_rates(state), np.ones(len(state.jobs)), state.gpus.astype(np.float64)))

    def _stride(self, state: RoundState) -> Schedule:
        if len(state.gpus) > 1:
            raise InvalidInput("tickets", "width", f"is a rule for one GPU type, and there are {len(state.gpus)}")
        passes = {job.id: self._offsets[job.id] + job.attained_s for job in state.jobs if job.id in self._offsets}
        least = min(passes.values(), default=0.0)
        for job in state.jobs:
            passes.setdefault(job.id, least)
        self._offsets = {job.id: passes[job.id] - job.attained_s for job in state.jobs}
        order = sorted(state.jobs, key=lambda job: (passes[job.id], not job.running, -job.gpus, job.trace_index))
        return Schedule([fit_in_order(state, order)])
