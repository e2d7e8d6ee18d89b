"""OpenShop: the shortest schedule of jobs with one operation on each machine, in any order."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from ...arrays import Floats, Indices
from ...checks import as_flag, as_reals
from ...errors import InvalidInput
from ...program.builder import ProgramBuilder
from ...program.data import ProblemClass, Residuals
from ...program.formulation import Formulation
from ...program.model import Program
from .construction import from_starts, list_schedule, longest_load, preemptive_schedule
from .schedule import ShopSchedule, worst_fault

# Limit of the processing times: sums of longer ones are not precise enough to compare.
LONGEST = 1e100
# Range of the bound in which programs use the caller's unit of time: solvers' tolerances are absolute.
COMFORTABLE = (1.0, 1e6)


@dataclass(frozen=True, eq=False)
class OpenShop(Formulation[ShopSchedule]):
    """Finish all operations of all jobs as soon as possible; a job's operations may run in any order.

    Each job has one operation on each machine. A machine works on one job at a time, and a job is worked on by one
    machine at a time.

    Parameters
    ----------
    times : array_like of float, shape (jobs, machines)
        Processing time of each job on each machine, at least 0, in any one unit.
    preemptive : bool
        Whether an operation may be interrupted and continue later.

    Raises
    ------
    InvalidInput
        Naming the field, the index and the value.

    Notes
    -----
    T. Gonzalez and S. Sahni, "Open shop scheduling to minimize finish time", Journal of the ACM 23, 1976. With
    preemption the shortest makespan is the largest total time of one job or one machine; without preemption, the
    problem is NP-hard for three or more machines. Shockwave (NSDI 2023, Section 8) gives its makespan baseline this
    name.

    Examples
    --------
    >>> import equipoise as eq
    >>> shop = eq.OpenShop([[3, 2, 2], [2, 3, 2], [2, 2, 3]], preemptive=True)
    >>> plan = eq.solve(shop).require_optimal()
    >>> plan.makespan
    7.0
    """

    times: Floats
    preemptive: bool = False

    sense = "min"
    reference: ClassVar[str] = "Gonzalez and Sahni 1976"

    def __post_init__(self) -> None:
        times = np.ascontiguousarray(as_reals("times", self.times, minimum=0.0, maximum=LONGEST, ndim=2))
        times.setflags(write=False)
        object.__setattr__(self, "times", times)
        object.__setattr__(self, "preemptive", as_flag("preemptive", self.preemptive))

    @property
    def kind(self) -> str:
        """The name under which backends list it."""
        return "PreemptiveOpenShop" if self.preemptive else "OpenShop"

    @property
    def forms(self) -> tuple[str, ...]:  # type: ignore[override]
        """("loads",), a linear program, with preemption; ("disjunctive",), a mixed-integer one, without."""
        return ("loads",) if self.preemptive else ("disjunctive",)

    def class_of(self, form: str | None = None) -> ProblemClass:
        """Return LP with preemption, MILP without."""
        self.check_form(form)
        return ProblemClass.LP if self.preemptive else ProblemClass.MILP

    @cached_property
    def lower_bound(self) -> float:
        """The largest total time of one job or one machine; with preemption, a schedule of this length exists."""
        return longest_load(self.times)

    @cached_property
    def list_plan(self) -> ShopSchedule:
        """A greedy schedule without preemption, within twice the shortest."""
        return list_schedule(self.times)

    @cached_property
    def unit(self) -> float:
        """The programs' unit of time in the caller's unit: 1, or a power of two for very long or short times."""
        low, high = COMFORTABLE
        if not self.lower_bound or low <= self.lower_bound <= high:
            return 1.0
        return math.ldexp(1.0, math.frexp(self.lower_bound)[1] - 10)

    def program(self, form: str | None = None) -> Program:
        """Return the program.

        "loads": the makespan is at least every job's and every machine's total time; `decode` decomposes the work into
        matchings (Birkhoff and von Neumann). "disjunctive": a binary orders each two operations of one job or one
        machine; the first binary is fixed, because the mirror image of a schedule has the same makespan.
        """
        self.check_form(form)
        return self._loads() if self.preemptive else self._disjunctive()

    def decode(self, values: Floats, duals: Floats | None = None, form: str | None = None) -> ShopSchedule:
        """Turn column values of the program into a schedule with every operation as early as the order allows."""
        self.check_form(form)
        if self.preemptive:
            return preemptive_schedule(self.times)
        return from_starts(self.times, values[: self.times.size].reshape(self.times.shape) * self.unit)

    def encode(self, plan: ShopSchedule, form: str | None = None) -> Floats:
        """Turn a schedule, or its mirror image if the fixed order requires it, into column values for a warm start."""
        self.check_form(form)
        self.check_plan(plan)
        if self.preemptive:
            return np.array([plan.makespan / self.unit])
        ends = np.zeros(self.times.size)
        np.maximum.at(ends, plan.job * plan.num_machines + plan.machine, plan.end)
        starts = ends - self.times.ravel()
        one, other = self._pairs
        if len(one) and starts[one[0]] > starts[other[0]]:
            starts = plan.makespan - ends
        starts = np.where(self.times.ravel() > 0, starts, 0.0)
        return np.concatenate([starts / self.unit, [plan.makespan / self.unit], starts[one] <= starts[other]])

    def check_plan(self, plan: ShopSchedule, field: str = "plan") -> None:
        """Raise InvalidInput unless `plan` is a schedule of as many jobs and machines."""
        if not isinstance(plan, ShopSchedule) or (plan.num_jobs, plan.num_machines) != self.times.shape:
            raise InvalidInput(field, type(plan).__name__, "must be a ShopSchedule of this shop's jobs and machines")

    def evaluate(self, plan: ShopSchedule) -> tuple[float, Residuals]:
        """Return the makespan and the worst fault of a schedule, as a share of `lower_bound`; see `worst_fault`."""
        fault = worst_fault(self.times, plan, preemptive=self.preemptive)
        return plan.makespan, Residuals(row=fault / (self.lower_bound or 1.0))

    def gap_scale(self, objective: float) -> float:
        """Return the makespan: a gap of .01 is 1% of it."""
        return max(abs(objective), self.lower_bound, 1e-300)

    @cached_property
    def _pairs(self) -> tuple[Indices, Indices]:
        """Return the pairs of operations that exclude each other, as indices of the flattened table."""
        jobs, machines = self.times.shape
        place = np.arange(self.times.size).reshape(jobs, machines)
        first_job, second_job = np.triu_indices(jobs, 1)
        first_machine, second_machine = np.triu_indices(machines, 1)
        one = np.concatenate([place[first_job].ravel(), place[:, first_machine].ravel()])
        other = np.concatenate([place[second_job].ravel(), place[:, second_machine].ravel()])
        work = self.times.ravel()
        real = (work[one] > 0) & (work[other] > 0)
        return one[real], other[real]

    def _loads(self) -> Program:
        build = ProgramBuilder(sense="min")
        makespan = build.add_columns("makespan", (1,))
        for name, axis in (("job", 1), ("machine", 0)):
            loads = self.times.sum(axis=axis) / self.unit
            rows = np.arange(len(loads))
            build.add_rows(name, loads.shape, terms=[(rows, makespan[0], 1.0)], lower=loads)
        build.set_objective([(makespan, self.unit)])
        return build.program()

    def _disjunctive(self) -> Program:
        work = self.times.ravel() / self.unit
        horizon = self.list_plan.makespan / self.unit
        one, other = self._pairs
        pair = np.arange(len(one))
        build = ProgramBuilder(sense="min")
        latest = np.where(work > 0, np.maximum(horizon - work, 0.0), 0.0)
        start = build.add_columns("start", self.times.shape, upper=latest.reshape(self.times.shape)).ravel()
        low = min(self.lower_bound / self.unit, horizon)
        # If times are whole numbers, a schedule with every operation as early as possible has whole starts and ends.
        whole = self.unit == 1.0 and np.array_equal(work, np.rint(work))
        makespan = build.add_columns("makespan", (1,), lower=low, upper=horizon, integer=whole)
        first = build.add_columns("first", pair.shape, lower=pair == 0, upper=1.0, integer=True)
        before, after = start[one], start[other]
        build.add_rows(
            "one_first",
            pair.shape,
            terms=[(pair, before, 1.0), (pair, after, -1.0), (pair, first, horizon)],
            upper=horizon - work[one],
        )
        build.add_rows(
            "other_first",
            pair.shape,
            terms=[(pair, after, 1.0), (pair, before, -1.0), (pair, first, -horizon)],
            upper=-work[other],
        )
        row = np.arange(len(start))
        build.add_rows("end", row.shape, terms=[(row, makespan[0], 1.0), (row, start, -1.0)], lower=work)
        build.set_objective([(makespan, self.unit)])
        return build.program()

    def __repr__(self) -> str:
        jobs, machines = self.times.shape
        return f"<OpenShop: {jobs} jobs, {machines} machines, {'' if self.preemptive else 'non-'}preemptive>"
