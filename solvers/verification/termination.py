"""The termination of a solve, concluded from verified results; a claim counts only where there is no plan."""

from __future__ import annotations

import math

from ..backend import Answer, Claim
from ..options import Options
from ..result import CLOSED_GAP, Limit, Termination, TerminationReason

# Description of the limit that stopped a solve, and advice; other limits are the backend's own.
ADVICE = {
    Limit.TIME: ("it ran out of time", "a longer time_limit or a warm_start may help"),
    Limit.MEMORY: ("it ran out of memory", "a smaller problem, or with isolate a larger memory_gb, may help"),
    Limit.INTERRUPTED: ("it was interrupted", "solve again to go on"),
    Limit.METHOD: ("its method ended", "a looser rel_gap or another backend may help"),
}


def termination_with_plan(answer: Answer, objective: float, bound: float, gap: float, options: Options) -> Termination:
    """Return OPTIMAL if the gap is closed within the options' tolerances, else FEASIBLE with the limit."""
    if gap <= max(options.rel_gap, CLOSED_GAP) or abs(bound - objective) <= options.abs_gap:
        message = answer.message if answer.claim is Claim.SOLVED else ""
        return Termination(TerminationReason.OPTIMAL, message=message)
    left = f"with a plan whose gap is {gap:.2g}" if math.isfinite(gap) else "with a plan, but no bound"
    return _limited(TerminationReason.FEASIBLE, answer, left, options)


def termination_without_plan(answer: Answer, options: Options) -> Termination:
    """Return the claim of a backend without a plan, if it concerns all plans; else the limit that stopped it."""
    if answer.claim in (Claim.INFEASIBLE, Claim.UNBOUNDED, Claim.INFEASIBLE_OR_UNBOUNDED):
        return Termination(TerminationReason[answer.claim.name], message=answer.message)
    left = "before it had a plan; there may be one"
    return _limited(TerminationReason.NO_SOLUTION_FOUND, answer, left, options)


def _limited(reason: TerminationReason, answer: Answer, left: str, options: Options) -> Termination:
    limit = answer.limit or Limit.METHOD
    return Termination(reason, limit, termination_message(answer.message, limit, left, options))


def termination_message(message: str, limit: Limit, left: str, options: Options) -> str:
    """Return the limit, the state it left, advice, and the backend's own message."""
    what, advice = f"it stopped at its limit of {limit.value}", "a higher limit in backend_options may help"
    if limit in ADVICE:
        what, advice = ADVICE[limit]
    if limit is Limit.TIME and options.time_limit is not None:
        what = f"it stopped at time_limit={options.time_limit:g} s"
    return f"{what} {left}: {advice}" + (f" [{message}]" if message else "")
