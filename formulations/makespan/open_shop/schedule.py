"""ShopSchedule: pieces of work of jobs on machines, and the check of a schedule."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...arrays import Floats, Indices
from ...errors import InvalidInput

if TYPE_CHECKING:
    from os import PathLike

    import pandas as pd


@dataclass(frozen=True, kw_only=True, eq=False)
class ShopSchedule:
    """Pieces of work of jobs on machines, sorted by start, machine and job.

    Attributes
    ----------
    num_jobs, num_machines : int
    job, machine : ndarray of int, shape (P,)
        Job and machine of each piece.
    start, end : ndarray of float, shape (P,)
        Start and end of each piece, in the unit of the processing times; the schedule begins at 0.
    """

    num_jobs: int
    num_machines: int
    job: Indices
    machine: Indices
    start: Floats
    end: Floats

    def __post_init__(self) -> None:
        kinds = {"job": np.int64, "machine": np.int64, "start": np.float64, "end": np.float64}
        arrays: dict[str, NDArray[Any]] = {n: np.array(getattr(self, n), dtype=kind) for n, kind in kinds.items()}
        for name, array in arrays.items():
            if array.shape != arrays["job"].shape or array.ndim != 1:
                raise InvalidInput(name, f"array of shape {array.shape}", "must have one entry for each piece")
        order = np.lexsort((arrays["job"], arrays["machine"], arrays["start"]))
        for name, array in arrays.items():
            array = array[order]
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    @property
    def makespan(self) -> float:
        """End of the last piece; 0 without pieces."""
        return float(self.end.max(initial=0.0))

    @property
    def preemptions(self) -> int:
        """Number of interruptions of operations that continue later."""
        operations = self.job * self.num_machines + self.machine
        return len(operations) - len(np.unique(operations))

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each piece: job, machine, start, end."""
        import pandas as pd

        return pd.DataFrame({"job": self.job, "machine": self.machine, "start": self.start, "end": self.end})

    def to_svg(self, path: str | PathLike[str] | None = None) -> str:
        """Return the schedule as a Gantt picture (SVG), a line for each machine; write it to `path` if given."""
        from ...files import written
        from ...plotting.gantt import gantt

        text = gantt(
            owner=self.job,
            line=self.machine,
            start=self.start,
            end=self.end,
            lines=[f"machine {k}" for k in range(self.num_machines)],
            axis="time",
        )
        return written(text, path)

    def _repr_svg_(self) -> str:
        return self.to_svg()  # notebooks display it

    def __repr__(self) -> str:
        return (
            f"<ShopSchedule: {self.num_jobs} jobs on {self.num_machines} machines, makespan {self.makespan:.6g}, "
            f"{self.preemptions} preemption{'s' * (self.preemptions != 1)}>"
        )


def worst_fault(times: Floats, plan: Any, *, preemptive: bool) -> float:
    """Return the worst fault of a schedule of `times`, shape (jobs, machines), in their unit; 0.0 if it has none.

    Faults are pieces that begin before 0 or end before they begin, two simultaneous pieces of a machine or a job,
    missing or excess work, and, unless `preemptive`, work of an operation outside its longest piece. A plan of another
    shape, or with numbers that are not finite, has an infinite fault.
    """
    jobs, machines = times.shape
    if not isinstance(plan, ShopSchedule) or (plan.num_jobs, plan.num_machines) != times.shape:
        return math.inf
    job, machine, start, end = plan.job, plan.machine, plan.start, plan.end
    if not len(job):
        return float(times.max(initial=0.0))
    inside = (job >= 0) & (job < jobs) & (machine >= 0) & (machine < machines)
    if not inside.all() or not (np.isfinite(start).all() and np.isfinite(end).all()):
        return math.inf
    operation = job * machines + machine
    length = end - start
    done = np.bincount(operation, weights=length, minlength=times.size)
    faults = [0.0, float(-start.min()), float(-length.min()), float(np.abs(done - times.ravel()).max())]
    faults += [_overlap(job, start, end), _overlap(machine, start, end)]
    if not preemptive:
        longest = np.zeros(times.size)
        np.maximum.at(longest, operation, length)
        faults.append(float((times.ravel() - longest).max()))
    return max(faults)


def _overlap(owner: Indices, start: Floats, end: Floats) -> float:
    """Return the longest overlap of two pieces of one owner; pieces of length 0 are ignored.

    Neighbours in the order of starts suffice: a piece that overlaps a later one overlaps the next one by no less.
    """
    real = end > start
    owner, start, end = owner[real], start[real], end[real]
    order = np.lexsort((start, owner))
    owner, start, end = owner[order], start[order], end[order]
    same = owner[1:] == owner[:-1]
    return float((end[:-1] - start[1:])[same].max(initial=0.0))
