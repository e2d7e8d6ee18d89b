"""GpuSharing: start and GPUs of each job of a small cluster, so that the sum of completion times is least."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from ..arrays import Floats, Indices
from ..errors import InvalidInput
from ..program.data import ProblemClass, Residuals
from ..program.formulation import Formulation
from ..program.model import Program
from .slot_jobs import SlotJobs, busy_time_bound
from .slot_lists import best_list
from .slot_program import SlotProgram
from .slot_schedule import SlotSchedule


@dataclass(frozen=True, kw_only=True, eq=False)
class GpuSharing(SlotJobs, Formulation[SlotSchedule]):
    """Place jobs on equal GPUs, at most two on each, so that the weighted sum of completion times is least.

    Time has slots. A job starts in a slot from its arrival on, on `gang_gpus[j]` GPUs, and holds the same GPUs without
    a pause to its end. In a slot it does the work of one slot, or 1/r of it, where r is the greatest of its ratios
    beside the jobs with which it shares a GPU in this slot. It ends with the slot in which its progress reaches its
    work, and leaves its GPUs then. The completion time counts from the arrival to this end.

    Parameters
    ----------
    work_slots : array_like of float, shape (N,)
        Slots that each job needs alone, greater than 0, at most 1000; they count to 1/1000.
    gang_gpus : array_like of int, shape (N,)
        GPUs of each job, from 1 to `gpus`.
    gpus : int
        GPUs of the cluster.
    ratios : array_like of float, shape (N, N)
        ``ratios[j][k]``, from 1 to 1000: how many times as long an iteration of job j takes beside job k. The diagonal
        is not used.
    arrival_slots : array_like of int, shape (N,), optional
        First slot in which each job may start; 0 by default.
    weights : array_like of float, shape (N,), optional
        Weights of the completion times, greater than 0; 1 by default.
    jobs_per_gpu : {2, 1}
        The most jobs on a GPU at a time (C).

    Raises
    ------
    InvalidInput
        Naming the field, the index and the value.

    Notes
    -----
    This is the problem of Eqs 8-15 of SJF-BSBF (Luo et al., IWQoS 2024), without the errors that docs/errata.md lists.
    The paper's placements y_jg[tau] are not columns of the program. GPUs are equal and a job keeps its own, so that the
    number of GPUs that two jobs share does not change while both run; and if in each slot these numbers fit, then
    the jobs find such GPUs one after the other, in the order of their starts. docs/gpu-sharing.md has the proof.

    The program contains every schedule that is no worse than `list_plan`, and no job that ends later than in any such
    schedule.

    Examples
    --------
    >>> import equipoise as eq
    >>> ratios = [[1, 1.25], [1.25, 1]]
    >>> problem = eq.GpuSharing(work_slots=[4, 4], gang_gpus=[1, 1], gpus=1, ratios=ratios)
    >>> eq.solve(problem).require_optimal().end
    array([5, 5])
    """

    sense = "min"
    forms = ("time_indexed",)
    _declared_class = ProblemClass.MILP
    reference: ClassVar[str] = "Luo et al., SJF-BSBF, IWQoS 2024, Eqs 8-15"

    @cached_property
    def lower_bound(self) -> float:
        """Number below which no weighted sum of completion times is: jobs run alone at once, or by their GPU slots."""
        return max(self.total_time(self.arrivals + self.least_slots), busy_time_bound(self))

    @cached_property
    def list_plan(self) -> SlotSchedule:
        """The best of the list schedules, improved by exchanges in the order."""
        return best_list(self)

    @cached_property
    def latest_ends(self) -> Indices:
        """Slots after which no job ends in a schedule that is no worse than `list_plan`, shape (N,)."""
        soonest = self.arrivals + self.least_slots
        spare = self.total_time(self.list_plan.end) - self.total_time(soonest)
        return soonest + np.floor(spare / self.job_weights + 1e-9).astype(np.int64)

    @cached_property
    def _model(self) -> SlotProgram:
        return SlotProgram(self, self.latest_ends)

    def program(self, form: str = "time_indexed") -> Program:
        """Return the MILP: for each job and slot whether it has started and is done, and levels of shared GPUs."""
        self.check_form(form)
        return self._model.program()

    def decode(self, values: Floats, duals: Floats | None = None, form: str = "time_indexed") -> SlotSchedule:
        """Turn column values into a schedule, with ends recomputed."""
        self.check_form(form)
        return self._model.decode(values)

    def encode(self, plan: SlotSchedule, form: str = "time_indexed") -> Floats:
        """Turn a schedule into column values for a warm start; nan if a job ends later than in `latest_ends`."""
        self.check_form(form)
        self.check_plan(plan)
        return self._model.encode(plan)

    def check_plan(self, plan: SlotSchedule, field: str = "plan") -> None:
        """Raise InvalidInput unless `plan` is a schedule of these jobs."""
        if not isinstance(plan, SlotSchedule) or len(plan.start) != len(self.work_slots):
            raise InvalidInput(field, type(plan).__name__, "must be a SlotSchedule of these jobs")

    def evaluate(self, plan: SlotSchedule) -> tuple[float, Residuals]:
        """Return the weighted sum of completion times and the worst fault (`SlotSchedule.fault`), both recomputed."""
        recomputed = SlotSchedule(self, plan.start, plan.end, plan.gpu_ids)
        return self.total_time(plan.end), Residuals(row=recomputed.fault())

    def __repr__(self) -> str:
        return f"<GpuSharing: {len(self.work_slots)} jobs on {self.gpus} GPUs, {self.jobs_per_gpu} jobs on a GPU>"
