"""Where the jobs of a trace stand in its file, so that a fault found later still names line and column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ...formulations.errors import InvalidInput


@dataclass(frozen=True)
class TraceSource:
    """A trace file, as error messages name it.

    Parameters
    ----------
    file : str
        Its name.
    lines : sequence of int, length N
        The line of each job, from 1.
    columns : mapping of str to str
        The file's column for each field of `Trace`, as far as the names differ.
    """

    file: str
    lines: Sequence[int]
    columns: Mapping[str, str]

    def select(self, indices: Sequence[int]) -> TraceSource:
        """Return the places of some jobs, by position."""
        return replace(self, lines=[self.lines[i] for i in indices])

    def locate(self, error: InvalidInput) -> InvalidInput:
        """Return the error with column and line instead of the job's position; as it is if it has none.

        The error must be about the trace: its first index is taken for a position of a job.
        """
        if error.index is None or not 0 <= error.index[0] < len(self.lines):
            return error
        columns = ", ".join(self.columns.get(name, name) for name in error.field.split(", "))
        return InvalidInput(columns, error.value, f"{error.why} ({self.file}, line {self.lines[error.index[0]]})")
