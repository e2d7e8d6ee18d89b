"""Models drawn by seed for jobs of traces that name none, such as Philly's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ....formulations.checks import as_generator
from ....formulations.errors import InvalidInput
from ....formulations.text import nearest_hint
from ...traces.trace import Trace
from ..speedups import Speedups

#: Group of speedups from which models are drawn by default.
REALISTIC = "realistic"


def draw_models(rng: np.random.Generator, trace: Trace, speedups: Speedups, group: str = REALISTIC) -> Trace:
    """Return the trace with a model for each job, drawn evenly from a group of the speedups.

    Demands (`gang_gpus`, and `min_gpus`) are cut to the model's table. A trace without `size_s` gets it: `duration_s`
    times the speedup at the demand. One draw is used for each job, in the order of the trace.

    Parameters
    ----------
    rng : numpy.random.Generator
    trace : Trace
        Jobs with `size_s` or `duration_s`.
    speedups : Speedups
    group : str
        Name of a group of the speedups.

    Raises
    ------
    InvalidInput
        If the speedups have no such group, the group is empty, or the trace has neither sizes nor durations.
    """
    if trace.size_s is None and trace.duration_s is None:
        raise InvalidInput("size_s", None, "the trace must have size_s or duration_s")
    model = pick_models(speedups, group, as_generator(rng).random(len(trace)))
    longest = longest_demands(speedups, model)
    changes: dict[str, Any] = {
        "model": model,
        "gang_gpus": np.minimum(trace.gang_gpus, longest),
        "min_gpus": np.minimum(trace.min_gpus, longest),
        "total_steps": None,
    }
    drawn = replace(trace, **changes)
    return replace(drawn, size_s=speedups.sizes_s(drawn))


def pick_models(speedups: Speedups, group: str, which: Any) -> list[str]:
    """Return the model of a group for each number of [0, 1), evenly; InvalidInput if there is none."""
    if group not in speedups.groups:
        known = ", ".join(speedups.groups) or "none"
        raise InvalidInput("group", group, f"{nearest_hint(group, speedups.groups)}the groups of speedups are: {known}")
    models = speedups.groups[group]
    if not models:
        raise InvalidInput("group", group, "must name at least one model of the speedups")
    return [models[index] for index in (which * len(models)).astype(np.int64).tolist()]


def longest_demands(speedups: Speedups, model: list[str]) -> Any:
    """Return the length of each model's table, shape (N,)."""
    return np.array([len(speedups.tables[name]) for name in model], dtype=np.int64)
