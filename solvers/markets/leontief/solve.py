"""Leontief markets over rounds by an interior-point method whose linear systems use the market's structure."""

from __future__ import annotations

import math

import numpy as np

from ....formulations.markets.volatile import VolatileFisherMarket
from ...backend import Answer, Claim, Progress
from ...deadline import Deadline
from ...options import Options
from ...result import Limit
from .central_path import LeontiefPath
from .incumbent import BestPoint
from .scaling import ScaledLeontief

# Number of steps that must reduce the gap by a tenth; otherwise rounding limits the path, and it ends.
PATIENCE, IMPROVEMENT = 12, 0.9
MOST_STEPS = 500


def solve_leontief(
    market: VolatileFisherMarket,
    options: Options,
    on_progress: Progress,
    deadline: Deadline,
    most_steps: int = MOST_STEPS,
) -> Answer:
    """Solve a Leontief market over rounds.

    The variables are the rates of utility r_it of buyer i in round t. With prices p and w_i, the marginal utility of
    money, the optimum is where ``sum_i a_ijt r_it + s_jt = c_jt``, ``z_it = sum_j a_ijt p_jt - w_i``, ``U_i w_i =
    B_i``, ``r z = 0`` and ``p s = 0``. Newton steps follow ``r z = p s = mu`` down to 0. A step solves one system over
    the goods, or over the buyers where those are fewer; memory is that of a few copies of the data.

    Parameters
    ----------
    market : VolatileFisherMarket
        A market of the family "leontief".
    options : Options
        The gaps, the warm start (the first incumbent) and the log are honoured. Nothing is drawn, so the seed has no
        effect.
    on_progress : Progress
        Called after each step; only the last step gets a plan, as a large one takes time and memory.

    Returns
    -------
    Answer
        The plan holds the best rates and the best prices found, which need not be of the same step.

    Raises
    ------
    InvalidInput
        If the warm start does not have this market's shape.

    Notes
    -----
    Budgets enter as weighted complementarity, ``U_i w_i = B_i``, which leaves everything but the products linear; the
    steps are Mehrotra's predictor and corrector. Prices of a Leontief market are often not unique: these lie in the
    middle of those that are optimal.
    """
    best = BestPoint(market, options, on_progress)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
        limit = None if best.closed() else _followed(market, best, deadline, most_steps)
    if not math.isfinite(best.objective):  # there is no plan
        why = "requirements over capacities exceed the range of floats: state them in other units"
        return Answer(claim=Claim.FAILED, message=why)
    return best.answer(limit)


def _followed(market: VolatileFisherMarket, best: BestPoint, deadline: Deadline, most_steps: int) -> Limit | None:
    """Follow the path; return the limit that ended it, None if the gap is closed."""
    scaled = ScaledLeontief(market)
    if not scaled.representable:
        return Limit.METHOD
    best.begin(scaled)
    path: LeontiefPath | None = None
    marks = [best.gap]
    while not best.closed():
        if deadline.passed:
            return Limit.TIME
        if best.steps >= most_steps:
            return Limit.ITERATIONS
        try:
            path = path or LeontiefPath(scaled)
            path.step()
        except np.linalg.LinAlgError:
            return Limit.METHOD
        if not best.offer(path):
            return Limit.METHOD
        marks.append(best.gap)
        if len(marks) > PATIENCE and not marks[-1] <= IMPROVEMENT * marks[-1 - PATIENCE]:
            return Limit.METHOD
    return None
