"""Compiled form of one prediction: it fills the arrays with the jobs of a state, and plays them out."""

from __future__ import annotations

from typing import Any

import numpy as np

from .arrays import CHANGE, CIRCLE, MEMBERS, PENDING, SERVED, EngineArrays
from .job import FluidJob
from .loop_kernels import predict
from .policy import FluidRule, Turns
from .state import FluidState


def compiled_end_s(state: FluidState, rule: FluidRule, job: FluidJob) -> float:
    """Return the predicted end of a job of the state, in seconds; nan if it does not end."""
    jobs = sorted(state.jobs, key=lambda each: each.rank)
    made = EngineArrays(jobs, rule, state.gpus, microseconds=state.clock.microseconds, preemption_s=state.preemption_s)
    index_of = {each.trace_index: index for index, each in enumerate(jobs)}
    arrays, engine = made.jobs, made.state
    for name in ("rate", "pause_s", "gpus"):
        arrays[name] = [getattr(each, name if name == "gpus" else f"_{name}") for each in jobs]
    # The engine's counters count from now on: those at arrival are negative.
    arrays["seen"], arrays["events"] = [-each._seen for each in jobs], [-each._events for each in jobs]
    arrays["start_s"] = [each.start_s for each in jobs]
    # In the policy's last order: that of the list, and of ends at one time.
    last = np.array([index_of[each.trace_index] for each in state.jobs])
    for number, queue in enumerate(made.queues):
        present = last[arrays["queue"][last] == number]
        made.order[number, : len(present)] = present
        queue["tail"], queue["demand"] = len(present), arrays["max_gpus"][present].sum()
        made.sums[number] = made.caps[arrays["curve"][present]].sum(0)
    served = last[arrays["gpus"][last] > 0.0]
    idle = last[arrays["gpus"][last] == 0.0]
    done = idle[arrays["work_s"][idle] <= arrays["done_s"][idle]]
    made.lists[SERVED, : len(served)], made.lists[PENDING, : len(done)] = served, done
    engine["served"], engine["pending"] = len(served), len(done)
    engine["present"] = engine["arrived"] = engine["prefix"] = len(jobs)
    engine["now"], engine["timer"] = state._now, state._timer
    if rule.turns is not None:
        _fill_turns(made, rule.turns, index_of)
    # The arrays are their own copies.
    arguments: tuple[Any, ...] = (*made.moving, *made.moving, *made.fixed, np.zeros(0, CHANGE))
    return float(predict(index_of[job.trace_index], *arguments))


def _fill_turns(made: EngineArrays, turns: Turns, index_of: dict[int, int]) -> None:
    """Fill in the turns of jobs with fractions, as `begin_turns` and `next_turn` leave them."""
    members = [index_of[index] for index in turns.whole]
    made.lists[MEMBERS, : len(members)] = members
    made.jobs["b"][members] = list(turns.whole.values())
    circle = [index_of[index] for index, _ in turns.circle]
    made.lists[CIRCLE, : len(circle)] = circle
    made.jobs["a"][circle] = [fraction for _, fraction in turns.circle]
    made.turns["place"][: len(turns.places)], made.turns["left"][: len(turns.left)] = turns.places, turns.left
    made.state["members"], made.state["circle"], made.state["turns"] = len(members), len(circle), len(turns.places)
