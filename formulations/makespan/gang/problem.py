"""GangMakespan: in which rounds each job holds its GPUs, so that the last one ends as soon as possible."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ...arrays import Floats, Indices
from ...checks import as_flag, as_integer, as_integers, same_length
from ...errors import InvalidInput
from ...program.data import ProblemClass, Residuals
from ...program.formulation import Formulation
from ...program.model import Program
from .bounds import round_bound
from .construction import listed, packed
from .schedule import GangSchedule, worst_gang_fault

# Rounds of all jobs together, and GPUs of a cluster: schedules list the rounds of every job on their way.
MOST_ROUNDS = 20_000_000


@dataclass(frozen=True, eq=False)
class GangMakespan(Formulation[GangSchedule]):
    """Finish jobs of fixed width as soon as possible: job j holds `gangs[j]` of the GPUs in `rounds[j]` rounds.

    Parameters
    ----------
    rounds : array_like of int, shape (N,)
        Rounds that each job needs, at least 0.
    gangs : array_like of int, shape (N,)
        GPUs that each job holds while it runs, from 1 to `gpus`.
    gpus : int
        GPUs of the cluster.
    preemptive : bool
        Whether a job may pause between rounds (time sharing); if not, it runs through once it has begun.

    Raises
    ------
    InvalidInput
        Naming the field, the index and the value.

    Notes
    -----
    With preemption this is what Shockwave's makespan baseline schedules under the name of open shop (Zheng et al., NSDI
    2023, Section 8). ``max(ceil(sum_j g_j n_j / M), max_j n_j)`` bounds the makespan and is usually reached, but not
    always: three jobs of two GPUs and one round each take three rounds on three GPUs, not two. `lower_bound` therefore
    counts what cannot share a round as well; see :func:`~.gang_bounds.round_bound`.

    Examples
    --------
    >>> import equipoise as eq
    >>> problem = eq.GangMakespan(rounds=[2, 2, 2], gangs=[1, 1, 1], gpus=2)
    >>> eq.solve(problem).require_optimal().makespan
    3
    """

    rounds: Indices
    gangs: Indices
    gpus: int
    preemptive: bool = True

    sense = "min"
    reference: ClassVar[str] = "Zheng et al., Shockwave, NSDI 2023, Section 8 (OSSP)"

    def __post_init__(self) -> None:
        object.__setattr__(self, "rounds", _read("rounds", self.rounds, 0))
        object.__setattr__(self, "gangs", _read("gangs", self.gangs, 1))
        object.__setattr__(self, "gpus", as_integer("gpus", self.gpus, minimum=1, maximum=MOST_ROUNDS))
        object.__setattr__(self, "preemptive", as_flag("preemptive", self.preemptive))
        same_length(rounds=self.rounds, gangs=self.gangs)
        if (self.gangs > self.gpus).any():
            at = int(np.flatnonzero(self.gangs > self.gpus)[0])
            raise InvalidInput("gangs", int(self.gangs[at]), f"the cluster has {self.gpus} GPUs", index=at)
        if self.rounds.sum() > MOST_ROUNDS:
            raise InvalidInput("rounds", int(self.rounds.sum()), f"all jobs together at most {MOST_ROUNDS} rounds")

    @property
    def kind(self) -> str:
        """The name by which backends list it."""
        return "PreemptiveGangMakespan" if self.preemptive else "GangMakespan"

    @property
    def forms(self) -> tuple[str, ...]:  # type: ignore[override]
        """ "time_indexed", and with preemption "patterns" for small clusters."""
        return ("time_indexed", "patterns") if self.preemptive else ("time_indexed",)

    @cached_property
    def bound_and_reason(self) -> tuple[int, str]:
        """The greatest of the bounds on the makespan, and what it is of."""
        return round_bound(self.rounds, self.gangs, self.gpus)

    @property
    def lower_bound(self) -> int:
        """Rounds that no schedule can beat, with or without preemption."""
        return self.bound_and_reason[0]

    @cached_property
    def list_plan(self) -> GangSchedule:
        """A schedule by construction: packed into rounds with preemption, the best of three lists without."""
        if self.preemptive:
            return packed(self.rounds, self.gangs, self.gpus, self.lower_bound)
        return listed(self.rounds, self.gangs, self.gpus)

    def class_of(self, form: str | None = None) -> ProblemClass:
        """Return MILP."""
        self.check_form(form)
        return ProblemClass.MILP

    def program(self, form: str = "time_indexed") -> Program:
        """Return the problem as a MILP over the rounds of `list_plan`.

        Parameters
        ----------
        form : {"time_indexed", "patterns"}
            "time_indexed" has a binary for each job and round: whether it runs then, or without preemption begins then.
            "patterns" counts how many rounds hold each set of widths; InvalidInput where there are too many.
        """
        from . import programs as gang_programs

        self.check_form(form)
        if form == "patterns":
            return gang_programs.patterns(self)
        return gang_programs.shared(self) if self.preemptive else gang_programs.through(self)

    def decode(self, values: Floats, duals: Floats | None = None, form: str = "time_indexed") -> GangSchedule:
        """Turn column values of the program into a schedule."""
        from . import programs as gang_programs

        self.check_form(form)
        return gang_programs.decode(self, values, form)

    def encode(self, plan: GangSchedule, form: str = "time_indexed") -> Floats:
        """Turn a schedule into column values of the program, for a warm start."""
        from . import programs as gang_programs

        self.check_form(form)
        self.check_plan(plan)
        return gang_programs.encode(self, plan, form)

    def check_plan(self, plan: GangSchedule, field: str = "plan") -> None:
        """Raise InvalidInput unless `plan` is a schedule of these jobs on this cluster."""
        same = isinstance(plan, GangSchedule) and plan.gpus == self.gpus and np.array_equal(plan.gangs, self.gangs)
        if not same:
            raise InvalidInput(field, type(plan).__name__, "must be a GangSchedule of these jobs and GPUs")

    def evaluate(self, plan: GangSchedule) -> tuple[float, Residuals]:
        """Return the makespan in rounds and the worst fault of a schedule; see `worst_gang_fault`."""
        fault = worst_gang_fault(self.rounds, self.gangs, self.gpus, plan, preemptive=self.preemptive)
        return float(plan.makespan), Residuals(row=fault)

    def gap_scale(self, objective: float) -> float:
        """Return the makespan: a gap of .01 is 1% of it."""
        return max(1.0, abs(objective))

    def __repr__(self) -> str:
        how = "round-preemptive" if self.preemptive else "non-preemptive"
        return f"<GangMakespan: {len(self.rounds)} jobs, {self.gpus} GPUs, {how}>"


def _read(name: str, values: ArrayLike, minimum: int) -> Indices:
    return as_integers(name, values, minimum=minimum, maximum=MOST_ROUNDS)
