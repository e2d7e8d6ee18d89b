"""PairSharing: whether, and after which delay, a waiting job starts on the GPUs of a running one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

from ..arrays import Floats
from ..checks import as_real, store_checked
from .delay_problem import LARGEST, DelayProblem
from .pair_rule import pair_ends
from .plan import PairPlan


@dataclass(frozen=True, kw_only=True, eq=False)
class PairSharing(DelayProblem[PairPlan]):
    """Choose the delay after which a waiting job W starts beside a running job R.

    While both run, each takes its ratio times as long as alone. A delay of `running_s` runs one after the other.

    Parameters
    ----------
    running_s, waiting_s : float
        Time that each job still needs alone (a, b), greater than 0, in seconds.
    running_ratio, waiting_ratio : float
        Factor by which each job's time grows beside the other (x, y), greater than 0.
    objective : {"mean_jct", "weighted_jct", "makespan"}
        Minimise the mean end, the weighted mean of both ends, or the later end.
    weights : array_like of float, shape (2,), optional
        Weights of the running and of the waiting job for "weighted_jct", at least 0, not both 0.

    Raises
    ------
    InvalidInput
        Naming field, index and value.

    Notes
    -----
    Y. Luo et al., "Scheduling Deep Learning Jobs in Multi-Tenant GPU Clusters via Wise Resource Sharing", Theorem 1,
    put right. With ``k = a - y b / x``, W ends first for delays up to k, and the objective does not fall there; for
    longer delays R ends first, and the objective is linear. So one of the delays 0 and a is optimal, for every
    objective. See docs/pair-sharing.md and, for policies,
    :func:`~equipoise.formulations.gpu_sharing.pair_rule.shares_at_once`.

    Examples
    --------
    >>> import equipoise as eq
    >>> pair = eq.PairSharing(running_s=100.0, waiting_s=1.0, running_ratio=2.0, waiting_ratio=2.0)
    >>> result = eq.solve(pair)
    >>> result.plan.share, result.plan.delay_s, result.objective
    (True, 0.0, 51.5)
    """

    running_s: float
    waiting_s: float
    running_ratio: float
    waiting_ratio: float
    objective: str = "mean_jct"
    weights: Floats | None = None

    reference: ClassVar[str] = "SJF-BSBF, Theorem 1"

    def __post_init__(self) -> None:
        names = ("running_s", "waiting_s", "running_ratio", "waiting_ratio")
        store_checked(self, as_real, *names, above=0.0, maximum=LARGEST)
        self._store_objective(2)

    @cached_property
    def _data(self) -> tuple[Fraction, Fraction, Fraction, Fraction]:
        names = (self.running_s, self.waiting_s, self.running_ratio, self.waiting_ratio)
        a, b, x, y = map(Fraction, names)
        return a, b, x, y

    @property
    def longest_s(self) -> float:
        """The running job's time."""
        return self.running_s

    def exact_ends(self, delay: Fraction) -> tuple[Fraction, Fraction]:
        """Return the ends of the running and of the waiting job."""
        return pair_ends(*self._data, delay)

    def candidates(self) -> Iterator[Fraction]:
        """Yield 0 and the running job's time."""
        yield from (Fraction(0), self._data[0])

    def breakpoints(self) -> Sequence[Fraction]:
        """Return 0, the delay at which both jobs end together (0 if there is none), and the running job's time."""
        a, b, x, y = self._data
        return Fraction(0), max(Fraction(0), a - y * b / x), a

    def plan_of(self, delay_s: float) -> PairPlan:
        """Return the plan of a delay."""
        return PairPlan(self, delay_s)

    def decode(self, values: Floats, duals: Floats | None = None, form: str = "pieces") -> PairPlan:
        """Turn column values into the plan of one of the candidates: no delay up to that of a common end is better."""
        plan = super().decode(values, duals, form)
        return plan if plan.delay_s >= self.running_s else self.plan_of(0.0)

    def __repr__(self) -> str:
        running = f"{self.running_s:g} s at ratio {self.running_ratio:g}"
        return f"<PairSharing: {running}, {self.waiting_s:g} s at {self.waiting_ratio:g}, {self.objective}>"
