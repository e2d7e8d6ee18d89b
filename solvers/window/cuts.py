"""Inequalities on rounds per job that every packed schedule satisfies and the total capacity alone does not imply."""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import NDArray

from ...formulations.arrays import Floats, Indices
from ...formulations.program.builder import ProgramBuilder
from ...formulations.window.problem import ScheduleWindow
from ...formulations.window.programs import Cut
from ..backend import Task
from ..external.highs import BACKEND as HIGHS
from ..options import Options

# Limit of the jobs that share a round, and of patterns: beyond it, capacity alone decides.
MOST_SIDE_BY_SIDE = 16
MOST_PATTERNS = 3000


def violated_cuts(window: ScheduleWindow, counts: Indices) -> list[Cut]:
    """Return cuts that the rounds `counts`, shape (N,), violate: for each pair of widths g < w the worst one.

    A round runs some pattern y of the jobs with gangs of w and wider (y_c of gang c), and beside it at most
    ``h(y) = min(|J|, floor((M - sum_c c y_c) / g))`` of a set J of jobs with gangs in [g, w). Whatever
    alpha, ``beta = max over patterns of h(y) - alpha @ y`` bounds a round, so T rounds give
    ``sum_J n_j <= beta T + sum_c alpha_c (rounds of jobs of gang c)``. The alpha that cuts deepest is the dual of
    mixing T rounds of patterns to the wide jobs' rounds. For one job beside gangs as wide as the cluster it states that
    they never share a round.
    """
    cuts: list[Cut] = []
    widths = np.unique(window.gang_gpus)
    for low, narrow in enumerate(widths[:-1]):
        for wide in range(low + 1, len(widths)):
            patterns = _patterns(widths[wide:], window.gpus)
            if patterns is None:
                continue
            worst, found = 1e-6, None
            beside = np.flatnonzero((window.gang_gpus >= narrow) & (window.gang_gpus < widths[wide]) & (counts > 0))
            beside = beside[np.argsort(-counts[beside], kind="stable")]
            rounds = np.array([counts[window.gang_gpus == width].sum() for width in widths[wide:]], dtype=float)
            spare = (window.gpus - patterns @ widths[wide:]) // narrow
            for size in range(1, min(len(beside), window.gpus // int(narrow), MOST_SIDE_BY_SIDE) + 1):
                most = np.minimum(size, spare).astype(float)
                alpha = _deepest(patterns, most, rounds, window.rounds)
                if alpha is None:
                    break
                upper = window.rounds * float((most - patterns @ alpha).max())
                coefficients = np.zeros(len(counts))
                for width, slope in zip(widths[wide:], alpha, strict=True):
                    coefficients[window.gang_gpus == width] = -slope
                coefficients[beside[:size]] = 1.0
                broken = float(coefficients @ counts) - upper
                if broken > worst:
                    worst, found = broken, Cut(coefficients, upper + 1e-9 * max(1.0, abs(upper)))
            if found is not None:
                cuts.append(found)
    return cuts


def _patterns(widths: Indices, gpus: int) -> NDArray[np.int64] | None:
    """Return all numbers of jobs of each width that fit one round, shape (patterns, widths); None if too many."""
    most = [range(gpus // int(width) + 1) for width in widths]
    if np.prod([len(counts) for counts in most], dtype=float) > 50 * MOST_PATTERNS:
        return None
    every = np.array(list(product(*most)), dtype=np.int64)
    every = every[every @ widths <= gpus]
    return every if len(every) <= MOST_PATTERNS else None


def _deepest(patterns: NDArray[np.int64], most: Floats, rounds: Floats, total: int) -> Floats | None:
    """Return the alpha that makes beta total + alpha @ rounds least; None if no mix of patterns has these rounds."""
    build = ProgramBuilder(sense="max")
    mix = build.add_columns("mix", (len(patterns),))
    build.add_rows("total", (1,), terms=[(0, mix, 1.0)], lower=total, upper=total)
    wide = build.add_rows(
        "wide", rounds.shape, terms=[(np.arange(len(rounds)), mix[:, None], patterns)], lower=rounds, upper=rounds
    )
    build.set_objective([(mix, most)])
    program = build.program()
    answer = HIGHS.solve(Task(problem=program, form="matrix", program=program), Options(), lambda *_: None)
    return None if answer.duals is None else answer.duals[wide]
