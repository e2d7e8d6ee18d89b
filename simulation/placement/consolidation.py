"""Slowdown of jobs that hold more machines than they need, by a table of measurements."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ...formulations.arrays import Floats
from ...formulations.checks import as_integer, as_real
from ...formulations.errors import InvalidInput
from ..delimited_files import read_rows
from ..traces.trace import Trace
from .speeds import Running, Speeds, table_names


@dataclass(frozen=True)
class SlowdownTable:
    """Measured slowdowns of unconsolidated jobs.

    Parameters
    ----------
    slowdowns : mapping of (str, int) to float
        Factor, positive, on the run time of (job, GPUs) on more machines than it needs. Jobs are named
        "ResNet-18 (batch size 32)", with the batch size per GPU, or by their model alone. Measurements may be below 1:
        there, the job was faster on several machines.

    Raises
    ------
    InvalidInput
        If a key or a factor is out of range, or there is none.
    """

    slowdowns: Mapping[tuple[str, int], float]
    _by_job: Mapping[str, Mapping[int, float]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.slowdowns:
            raise InvalidInput("slowdowns", "{}", "must not be empty: a table has at least one job")
        by_job: dict[str, dict[int, float]] = {}
        for (job, gpus), slowdown in sorted(self.slowdowns.items()):
            count = as_integer(f"slowdowns[{job}].gpus", gpus, minimum=1)
            by_job.setdefault(job, {})[count] = as_real(f"slowdowns[{job}, {gpus}]", slowdown, above=0.0)
        object.__setattr__(self, "_by_job", by_job)

    @staticmethod
    def read(path: str | Path) -> SlowdownTable:
        """Read a CSV file with a header and the columns job, gpus and slowdown. Other columns are not read.

        Raises
        ------
        InvalidInput
            If the file is malformed; the message names column, value, file and line.
        """
        path = Path(path)
        slowdowns: dict[tuple[str, int], float] = {}
        for row in read_rows(path, ("job", "gpus", "slowdown")):
            key = (row.text("job"), row.integer("gpus", 1))
            if key in slowdowns:
                raise InvalidInput("job", key[0], f"a second slowdown on {key[1]} GPUs ({row.location})")
            slowdowns[key] = row.real("slowdown", above=0.0)
        if not slowdowns:
            raise InvalidInput("path", str(path), "the file holds no slowdown")
        return SlowdownTable(slowdowns)

    def slowdown(self, model: str, batch_size: int, gpus: int) -> float | None:
        """Return the factor of a job at its number of GPUs, or else at the nearest smaller one, or else at the least.

        A job that the table does not have at any number of GPUs has none (None).
        """
        names = (name for name in table_names(model, batch_size) if name in self._by_job)
        known = self._by_job.get(next(names, ""))
        if known is None:
            return None
        return known[max((count for count in known if count <= gpus), default=min(known))]


class MeasuredSlowdown:
    """Other speeds, with the measured slowdown of each job that is not consolidated.

    A job that the table lacks is not slowed down; `work` warns of the number of such jobs.

    Parameters
    ----------
    speeds : Speeds
        Speeds of consolidated jobs.
    table : SlowdownTable
    """

    def __init__(self, speeds: Speeds, table: SlowdownTable) -> None:
        if not isinstance(table, SlowdownTable):
            raise InvalidInput("table", type(table).__name__, "must be a SlowdownTable")
        self.speeds, self.table = speeds, table

    def unknown_jobs(self, trace: Trace) -> int:
        """Return the number of jobs of several GPUs that the table does not have at their own batch size."""
        jobs = zip(trace.model, trace.batch_size.tolist(), trace.gang_gpus.tolist(), strict=True)
        return sum(gpus > 1 and self.table.slowdown(model, size, gpus) is None for model, size, gpus in jobs)

    def work(self, trace: Trace) -> Floats:
        """Return the work by the other speeds; warn if jobs of several GPUs are not in the table."""
        unknown = self.unknown_jobs(trace)
        if unknown:
            text = f"{unknown} of {len(trace)} jobs are not in the table of slowdowns: they run as if consolidated"
            warnings.warn(text, UserWarning, stacklevel=2)
        return self.speeds.work(trace)

    def rate(self, run: Running) -> float:
        """Return the other speeds' rate, divided by the slowdown if the job is not consolidated."""
        rate = self.speeds.rate(run)
        if run.machines <= run.fewest_machines:
            return rate
        return rate / (self.table.slowdown(run.model, run.batch_size, run.gpus) or 1.0)

    def exposed(self, run: Running) -> float:
        """Return the other speeds' share."""
        return self.speeds.exposed(run)
