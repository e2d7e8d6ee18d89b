"""Prediction of a job's end: the policy is played out on a copy of the state into which no job arrives."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from typing import NamedTuple

from ...formulations.checks import as_integer
from ...formulations.errors import EquipoiseError, InvalidInput
from .clock import ARRIVAL, END, NEAR_S, TIMER
from .job import FluidJob
from .policy import FluidPolicy
from .state import FluidState


class Completion(NamedTuple):
    """Predicted end of a job, and the time by which it ends whatever arrives later (nan: no guarantee), in seconds."""

    end_s: float
    bound_s: float


def predict_completion(state: FluidState, policy: FluidPolicy, job: int) -> Completion:
    """Predict when a job ends, and by when it ends at the latest.

    Compiled loops play the policy out if it has a rule for them, or at least a `present_rule`: one that holds while no
    job arrives. See `play_out` for the plain form.

    Parameters
    ----------
    state : FluidState
        State after the policy's last answer; it stays as it is.
    policy : FluidPolicy
        Policy of the simulation; it stays as it is.
    job : int
        Trace index of a job in the state.

    Raises
    ------
    InvalidInput
        If the state has no such job.
    EquipoiseError
        If the policy leaves the job without GPUs for ever.
    """
    job = as_integer("job", job)
    found = next((each for each in state.jobs if each.trace_index == job), None)
    if found is None:
        raise InvalidInput("job", job, "no such job has arrived and not ended")
    rule = getattr(policy, "rule", None) or getattr(policy, "present_rule", None)
    if rule is None:
        return play_out(state, policy, found)
    # Loading numba takes a second, which the plain form does not need.
    from .compiled_prediction import compiled_end_s

    end_s = compiled_end_s(state, rule, found)
    if math.isnan(end_s):
        raise _stuck(policy, len(state.jobs))
    return Completion(end_s, policy.guaranteed_s(state, found))


def play_out(state: FluidState, policy: FluidPolicy, job: FluidJob) -> Completion:
    """Predict the end of a job of the state by calls of the policy; see `predict_completion`."""
    bound_s = policy.guaranteed_s(state, job)
    copied, policy = state.as_estimated(), copy.deepcopy(policy)
    while True:
        ended = next_event(copied, policy, None)
        if ended is not None and ended.trace_index == job.trace_index:
            return Completion(ended.end_s, bound_s)
        divide(copied, policy, policy.allocate(copied))


def _stuck(policy: FluidPolicy, jobs: int) -> EquipoiseError:
    return EquipoiseError(f"{policy.name} leaves {jobs} jobs without GPUs, and no event is to come")


def next_event(state: FluidState, policy: FluidPolicy, arriving: FluidJob | None) -> FluidJob | None:
    """Advance the state to its next event; return the job that ended there, if one did. The GPUs are not divided anew.

    `arriving` is the next job to arrive, if there is one. At one time ends come first, then timers, then arrivals.
    """
    end, ending = state._next_end()
    timer, near = state._timer, NEAR_S * state.clock.per_s
    arrival = math.inf if arriving is None else arriving._arrival
    # Rounding must not decide which of two events comes first.
    if arrival - near <= end <= arrival + near:
        end = arrival
    if end <= timer + near:
        timer = math.inf
    elif arrival - near <= timer <= arrival + near:
        timer = arrival
    time, kind = min((end, END), (timer, TIMER), (arrival, ARRIVAL))
    if time == math.inf:
        raise _stuck(policy, len(state.jobs))
    state._advance(time, ("end", "timer", "arrival")[kind])
    ended = None
    if kind == END:
        assert ending is not None
        state._leave(ending)
        ended = ending
    elif kind == ARRIVAL:
        assert arriving is not None
        state._join(arriving)
    return ended


def divide(state: FluidState, policy: FluidPolicy, answer: Mapping[int, float]) -> None:
    """Divide the GPUs as a policy answered, and set its timer."""
    state._divide(policy.name, answer)
    state._timer = state._now + state.clock.ticks(policy.timer_s(state) if state.jobs else math.inf)
