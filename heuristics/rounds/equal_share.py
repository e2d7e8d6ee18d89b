"""Policies with shares by a fixed rule: Isolated, Gandiva-Fair and Proportional."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from ...formulations.arrays import Floats
from ...formulations.checks import as_real, store_checked
from ...formulations.errors import InvalidInput
from ...simulation.rounds.policy import RoundState, Schedule, Shares, due_on_events
from .queue import fit_in_order

#: Seconds between two calls of a policy of shares (Gavel's and the Shockwave artifact's reset interval).
INTERVAL_S = 1000.0


def usable_rates(state: RoundState) -> Floats:
    """Return steps per second on each GPU type, shape (m, K); 0 also where the type has fewer GPUs than the gang."""
    return np.where(state.gang_gpus[:, None] <= state.gpus, state.rates, 0.0)


def equal_shares(usable: Floats, counted_gpus: Floats, gpus: Floats) -> Floats:
    """Return the shares of time if each job owns an equal part of every GPU type that it can use, shape (m, K).

    ``x_jk = M_k / (m w_j)``, scaled down to a sum of 1 where the sum exceeds 1; with one type ``min(1, M / (m w_j))``.
    `counted_gpus` is w_j, the number of GPUs that job j counts for.
    """
    shares = np.where(usable > 0, gpus / (len(usable) * counted_gpus[:, None]), 0.0)
    return np.asarray(shares / np.maximum(1.0, shares.sum(axis=1, keepdims=True)))


def isolated_shares(state: RoundState) -> Floats:
    """Return the isolated shares, i.e. the time on 1/m of the cluster, shape (m, K); they are feasible in P."""
    return equal_shares(usable_rates(state), state.gang_gpus.astype(np.float64), state.gpus.astype(np.float64))


@dataclass(kw_only=True, eq=False)
class CalledOnEvents:
    """Base of policies that set shares anew after events.

    Parameters
    ----------
    interval_s : float
        Least time between two calls, in seconds.
    """

    interval_s: float = INTERVAL_S

    def __post_init__(self) -> None:
        store_checked(self, as_real, "interval_s", minimum=0.0)

    def due(self, state: RoundState) -> bool:
        """Return whether a job arrived, ended or was rescaled, and the last call is at least `interval_s` ago."""
        return due_on_events(state, self.interval_s)


@dataclass(kw_only=True, eq=False)
class IsolatedPolicy(CalledOnEvents):
    """Every job gets the time of 1/m of the cluster: ``min(1, M / (m g_j))`` on one GPU type.

    Notes
    -----
    D. Narayanan et al., "Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads", OSDI 2020,
    Section 4.1 (the isolated allocation). The shares are feasible in P; no program is solved.
    """

    name: str = field(default="isolated", init=False)

    def decide(self, state: RoundState) -> Shares:
        """Return the isolated shares."""
        return Shares(isolated_shares(state))


@dataclass(kw_only=True, eq=False)
class ProportionalPolicy(CalledOnEvents):
    """Every job runs on every GPU type in proportion to the type's GPUs: ``x_jk = M_k / sum_k M_k``.

    As in Gavel's normalisation, the gang and the number of jobs do not matter: with one type every share is 1, and time
    is divided evenly, since the engine first runs the jobs that are furthest behind their shares.

    Notes
    -----
    Narayanan et al., OSDI 2020, Section 4.1 (``X^equal``). The share of a type that a job cannot use goes to its
    other types. The shares are infeasible in P if the jobs need more GPUs than the cluster has.
    """

    name: str = field(default="proportional", init=False)

    def decide(self, state: RoundState) -> Shares:
        """Return shares of each job's types in proportion to their GPUs."""
        present = np.where(usable_rates(state) > 0, state.gpus, 0)
        return Shares(present / present.sum(axis=1, keepdims=True))


@dataclass(kw_only=True, eq=False)
class GandivaFairPolicy:
    """Gandiva-Fair's tickets: every job gets the same share of time, regardless of its gang.

    Parameters
    ----------
    tickets : {"job", "width"}
        "job": one ticket per job, with shares ``min(1, M / m)``, as in the Shockwave artifact. With wide jobs these
        shares may exceed the cluster, and the engine's deficits reduce them. "width": one ticket per GPU of the gang,
        so that all jobs run ``min(1, M / sum_j g_j)`` of the time, by stride scheduling on one GPU type: each round
        goes to the jobs that have run least since their arrival.
    interval_s : float
        Least time between two calls with tickets by job, in seconds; stride scheduling decides every round.

    Notes
    -----
    S. Chaudhary et al., "Balancing Efficiency and Fairness in Heterogeneous GPU Clusters for Deep Learning", EuroSys
    2020, Section 4 (gang-aware split stride). A job that arrives later starts with the pass of the job that has run
    least, as in stride scheduling by C. Waldspurger and W. Weihl (MIT 1995), so the time before its arrival does not
    count. Ties go to the running job, then to the larger gang, then by the order of the trace.
    """

    tickets: Literal["job", "width"] = "job"
    interval_s: float = INTERVAL_S
    name: str = field(default="gandiva-fair", init=False)
    # A job's pass is this offset plus its attained time; at its arrival it equals the least pass of the other jobs.
    _offsets: dict[str | int, float] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.tickets not in ("job", "width"):
            raise InvalidInput("tickets", self.tickets, "must be 'job' or 'width'")
        store_checked(self, as_real, "interval_s", minimum=0.0)

    def due(self, state: RoundState) -> bool:
        """Return whether an event occurred and the last call is `interval_s` ago; True with tickets by width."""
        return self.tickets == "width" or due_on_events(state, self.interval_s)

    def decide(self, state: RoundState) -> Shares | Schedule:
        """Return the shares, or a schedule of the next round."""
        if self.tickets == "width":
            return self._stride(state)
        return Shares(equal_shares(usable_rates(state), np.ones(len(state.jobs)), state.gpus.astype(np.float64)))

    def _stride(self, state: RoundState) -> Schedule:
        if len(state.gpus) > 1:
            raise InvalidInput("tickets", "width", f"supports one GPU type, and there are {len(state.gpus)}")
        passes = {job.id: self._offsets[job.id] + job.attained_s for job in state.jobs if job.id in self._offsets}
        least = min(passes.values(), default=0.0)
        for job in state.jobs:
            passes.setdefault(job.id, least)
        self._offsets = {job.id: passes[job.id] - job.attained_s for job in state.jobs}
        order = sorted(state.jobs, key=lambda job: (passes[job.id], not job.running, -job.gpus, job.trace_index))
        return Schedule([fit_in_order(state, order)])
