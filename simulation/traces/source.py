"""Lines and columns of the jobs of a trace in its file, for errors that are found after reading."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ...formulations.errors import InvalidInput


@dataclass(frozen=True)
class TraceSource:
    """Trace file as error messages name it: the line of each job, from 1, and its names of fields that differ."""

    file: str
    lines: Sequence[int]
    columns: Mapping[str, str]

    def select(self, indices: Sequence[int]) -> TraceSource:
        """Return the source of some jobs, by trace index."""
        return replace(self, lines=[self.lines[i] for i in indices])

    def locate(self, error: InvalidInput) -> InvalidInput:
        """Return the error with column and line instead of the trace index; unchanged if it has no index.

        The error must concern the trace: its first index is taken as a trace index.
        """
        if error.index is None or not 0 <= error.index[0] < len(self.lines):
            return error
        columns = ", ".join(self.columns.get(name, name) for name in error.field.split(", "))
        return InvalidInput(columns, error.value, f"{error.why} ({self.file}, line {self.lines[error.index[0]]})")
