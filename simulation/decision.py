"""Records of policies' decisions: the evidence behind each, and the log of calls."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

_Answer = TypeVar("_Answer")


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Solver outcome behind a decision.

    Attributes
    ----------
    reason : str
        Termination reason of the solver, such as "OPTIMAL"; "rule" if no problem was solved.
    objective, bound, gap : float
        Values of the solve; nan if no problem was solved.
    backend : str
        Name of the backend; empty if no problem was solved.
    """

    reason: str = "rule"
    objective: float = float("nan")
    bound: float = float("nan")
    gap: float = float("nan")
    backend: str = ""

    @classmethod
    def of(cls, result: Any) -> Evidence:
        """Return the evidence of a decision based on this result of a solve."""
        objective = math.nan if result.objective is None else result.objective
        reason = result.termination.reason.name
        return cls(reason=reason, objective=objective, bound=result.bound, gap=result.gap, backend=result.backend)


class CallRecord(NamedTuple):
    """One call of the policy, which decides a step of the engine at a simulated time.

    `jobs` counts the jobs in the state passed to the policy, `wall_s` is the wall-clock duration, and `answer` the type
    of the answer, such as "shares". The other fields are those of the decision's `Evidence`.
    """

    step: int
    time_s: float
    jobs: int
    wall_s: float
    answer: str
    reason: str
    objective: float
    bound: float
    gap: float
    backend: str


class CallLog:
    """Log that times the calls of a policy and keeps their records in order."""

    def __init__(self) -> None:
        self.records: list[CallRecord] = []

    def timed(self, call: Callable[[], _Answer]) -> tuple[_Answer, float]:
        """Run a call; return its answer and its wall-clock seconds."""
        started = time.perf_counter()
        answer = call()
        return answer, time.perf_counter() - started

    def record(self, step: int, time_s: float, jobs: int, wall_s: float, answer: str, evidence: Evidence) -> None:
        """Append the record of a call whose answer passed the engine's checks."""
        found = (evidence.reason, evidence.objective, evidence.bound, evidence.gap, evidence.backend)
        self.records.append(CallRecord(step, time_s, jobs, wall_s, answer, *found))
