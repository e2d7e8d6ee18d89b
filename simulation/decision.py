"""Decisions of policies as every engine records them: the evidence behind each, and the log of calls."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

_Answer = TypeVar("_Answer")


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What a decision rests on.

    Attributes
    ----------
    reason : str
        Why the solver stopped, such as "OPTIMAL"; "rule" where nothing was solved.
    objective, bound, gap : float
        nan where nothing was solved.
    backend : str
    """

    reason: str = "rule"
    objective: float = float("nan")
    bound: float = float("nan")
    gap: float = float("nan")
    backend: str = ""


class CallRecord(NamedTuple):
    """One call of the policy.

    Attributes
    ----------
    step : int
        The step of the engine that the call was for.
    time_s : float
        Simulated time of the call.
    jobs : int
        Jobs that the policy decided on.
    wall_s : float
        Seconds that it took.
    answer : str
        What kind of answer it gave, such as "shares".
    reason, objective, bound, gap, backend
        Its `Evidence`.
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
    """Times the calls of a policy and keeps a record of each.

    Attributes
    ----------
    records : list of CallRecord
    """

    def __init__(self) -> None:
        """Start without a record."""
        self.records: list[CallRecord] = []

    def timed(self, call: Callable[[], _Answer]) -> tuple[_Answer, float]:
        """Make a call; return its answer and the seconds that it took."""
        started = time.perf_counter()
        answer = call()
        return answer, time.perf_counter() - started

    def record(self, step: int, time_s: float, jobs: int, wall_s: float, answer: str, evidence: Evidence) -> None:
        """Keep the record of a call whose answer was found to be possible."""
        found = (evidence.reason, evidence.objective, evidence.bound, evidence.gap, evidence.backend)
        self.records.append(CallRecord(step, time_s, jobs, wall_s, answer, *found))
