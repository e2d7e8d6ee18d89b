"""GroupSharing: after which delay a waiting job starts on the GPUs of several running ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

from ..arrays import Floats
from ..checks import as_real, as_reals, store_checked
from .delay_problem import LARGEST, DelayProblem
from .group_ends import group_ends, linear_pieces
from .plan import SharingPlan


@dataclass(frozen=True, kw_only=True, eq=False)
class GroupSharing(DelayProblem[SharingPlan]):
    """Choose the delay after which a waiting job starts on the GPUs of m running jobs, all at once.

    A running job takes its ratio times as long as alone while the waiting job runs. A gang moves at its slowest
    worker: the waiting job's ratio is the largest waiting ratio of the jobs that still run.

    Parameters
    ----------
    running_s : array_like of float, shape (m,)
        Time that each running job still needs alone (a), greater than 0, in seconds.
    waiting_s : float
        Time that the waiting job needs alone (b), greater than 0.
    running_ratios, waiting_ratios : array_like of float, shape (m,)
        Factors by which the running job (x) and the waiting job (y) slow down beside each other, greater than 0.
    objective : {"mean_jct", "weighted_jct", "makespan"}
        Minimise the mean end, the weighted mean of the ends, or the last end.
    weights : array_like of float, shape (m + 1,), optional
        Weights of the running jobs, then of the waiting job, for "weighted_jct", at least 0, not all 0.

    Raises
    ------
    InvalidInput
        Naming field, index and value.

    Notes
    -----
    Theorem 1 of SJF-BSBF does not extend to several running jobs: neither the delays 0 and max(a), nor these and the
    other times a suffice. An optimal delay is 0, a time a, or one at which two jobs end together; see
    docs/pair-sharing.md.

    Examples
    --------
    >>> import equipoise as eq
    >>> data = dict(running_s=[3, 4], waiting_s=3, running_ratios=[3, 1], waiting_ratios=[1, 2])
    >>> result = eq.solve(eq.GroupSharing(**data, objective="makespan"))
    >>> result.plan.delay_s, result.objective
    (1.6, 5.8)
    """

    running_s: Floats
    waiting_s: float
    running_ratios: Floats
    waiting_ratios: Floats
    objective: str = "mean_jct"
    weights: Floats | None = None

    reference: ClassVar[str] = "SJF-BSBF, Algorithm 1 (a new job over several running ones)"

    def __post_init__(self) -> None:
        store_checked(self, as_reals, "running_s", above=0.0, maximum=LARGEST)
        store_checked(self, as_real, "waiting_s", above=0.0, maximum=LARGEST)
        shape = self.running_s.shape
        store_checked(self, as_reals, "running_ratios", "waiting_ratios", above=0.0, maximum=LARGEST, shape=shape)
        self._store_objective(len(self.running_s) + 1)

    @cached_property
    def _data(self) -> tuple[list[Fraction], Fraction, list[Fraction], list[Fraction]]:
        arrays = (self.running_s, self.running_ratios, self.waiting_ratios)
        a, x, y = ([Fraction(each) for each in array.tolist()] for array in arrays)
        return a, Fraction(self.waiting_s), x, y

    @property
    def longest_s(self) -> float:
        """The longest time of a running job."""
        return float(self.running_s.max())

    def exact_ends(self, delay: Fraction) -> list[Fraction]:
        """Return the ends of the running jobs, then that of the waiting job."""
        return group_ends(*self._data, delay)

    def candidates(self) -> Iterator[Fraction]:
        """Yield 0, the times at which a running job ends alone, and the delays at which two jobs end together."""
        return linear_pieces(*self._data)

    @cached_property
    def _breakpoints(self) -> tuple[Fraction, ...]:
        return tuple(self.candidates())

    def breakpoints(self) -> Sequence[Fraction]:
        """Return all candidates."""
        return self._breakpoints

    def plan_of(self, delay_s: float) -> SharingPlan:
        """Return the plan of a delay."""
        return SharingPlan(self, delay_s)

    def __repr__(self) -> str:
        jobs = len(self.running_s)
        return f"<GroupSharing: {self.waiting_s:g} s over {jobs} running job{'s' * (jobs != 1)}, {self.objective}>"
