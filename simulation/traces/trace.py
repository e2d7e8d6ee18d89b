"""Trace of jobs: arrivals, models, gangs and amounts of work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...formulations.checks import as_ids, as_integers, as_reals, same_length, store_checked
from ...formulations.errors import InvalidInput
from ...formulations.former_names import FormerName, former_parameters
from ..profiles.rules import MODES, Runs
from .file_columns import trace_columns
from .source import TraceSource

if TYPE_CHECKING:
    import pandas as pd


@former_parameters(num_gpus="gang_gpus")
@dataclass(frozen=True, kw_only=True, eq=False)
class Trace:
    """Jobs as columns, in any order of arrival.

    Parameters
    ----------
    job_id : sequence of str or int, length N
        Unique ids.
    model : sequence of str, length N
        Name of the model in the profiles.
    batch_size : array_like of int, shape (N,), optional
        Samples per GPU and step when the job starts, at least 1; 1 by default.
    gang_gpus : array_like of int, shape (N,)
        GPUs that the job needs simultaneously (its gang), at least 1.
    mode : sequence of str, length N, optional
        Mode of batch-size adaptation: "static", "accordion" or "gns"; static by default.
    total_steps : array_like of int, shape (N,), optional
        Steps at the initial batch size, at least 1. By default derived from `duration_s`: one for each GPU-second,
        in whole seconds; or else one for each second of `size_s`.
    arrival_s : array_like of float, shape (N,)
        Seconds from the trace's start, at least 0.
    weight : array_like of float, shape (N,), optional
        Priority, positive; 1 by default.
    total_epochs : array_like of int, shape (N,), optional
        Passes over the data set, at least 1. None: derived from the profiles.
    schedule : sequence of sequence of (int, int), length N, optional
        True (batch size, epochs) stretches of each job, the first at the initial batch size; the epochs of a job add
        up to its total_epochs. None: derived from the profiles' rules.
    duration_s : array_like of float, shape (N,), optional
        Exact run time alone on `gang_gpus` GPUs, in seconds, positive. None: unknown.
    size_s : array_like of float, shape (N,), optional
        Exact run time alone on one GPU (the job's size), in seconds, positive. None: unknown.
    min_gpus : array_like of int, shape (N,), optional
        Least GPUs on which the job can run in an engine that divides GPUs, at least 1 and at most `gang_gpus`; 1 by
        default.
    source : TraceSource, optional
        Lines of the jobs in a file, for errors that are found after reading; set by the readers.

    Raises
    ------
    InvalidInput
        If the trace is empty or a column has a wrong length, type or value; the message names column and index.
    """

    job_id: Sequence[str | int]
    model: Sequence[str]
    gang_gpus: NDArray[np.int64]
    arrival_s: NDArray[np.float64]
    # The constructor replaces a default of None by values in these fields.
    batch_size: NDArray[np.int64] = None  # type: ignore[assignment]
    mode: Sequence[str] = None  # type: ignore[assignment]
    total_steps: NDArray[np.int64] = None  # type: ignore[assignment]
    weight: NDArray[np.float64] = None  # type: ignore[assignment]
    min_gpus: NDArray[np.int64] = None  # type: ignore[assignment]
    duration_s: NDArray[np.float64] | None = None
    size_s: NDArray[np.float64] | None = None
    total_epochs: NDArray[np.int64] | None = None
    schedule: Sequence[Runs] | None = None
    source: TraceSource | None = None

    num_gpus = FormerName("gang_gpus")

    def __post_init__(self) -> None:
        put = self.__dict__.__setitem__
        store_checked(self, as_ids, "job_id")
        if not self.job_id:
            raise InvalidInput("job_id", "[]", "must not be empty: a trace has at least one job")
        ones = np.ones(len(self.job_id), dtype=np.int64)
        put("model", _texts("model", self.model))
        put("mode", _texts("mode", ["static"] * len(ones) if self.mode is None else self.mode))
        for index, mode in enumerate(self.mode):
            if mode not in MODES:
                raise InvalidInput("mode", mode, f"must be one of {', '.join(MODES)}", index=index)
        for name in ("batch_size", "gang_gpus", "min_gpus"):
            given = getattr(self, name)
            put(name, as_integers(name, ones if given is None and name != "gang_gpus" else given, minimum=1))
        for name in ("duration_s", "size_s"):
            if getattr(self, name) is not None:
                store_checked(self, as_reals, name, above=0.0)
        put("total_steps", as_integers("total_steps", self._steps(), minimum=1))
        store_checked(self, as_reals, "arrival_s", minimum=0.0)
        put("weight", as_reals("weight", ones if self.weight is None else self.weight, above=0.0))
        if self.schedule is not None:
            put("schedule", tuple(_runs(index, runs) for index, runs in enumerate(self.schedule)))
        if self.total_epochs is None and self.schedule is not None:
            put("total_epochs", [sum(epochs for _, epochs in runs) for runs in self.schedule])
        if self.total_epochs is not None:
            store_checked(self, as_integers, "total_epochs", minimum=1)
        columns = self._columns()
        ids = columns.pop("job_id")
        same_length(**columns, job_id=ids)
        for index in np.flatnonzero(self.min_gpus > self.gang_gpus).tolist():
            why = f"more than the job's gang_gpus, {self.gang_gpus[index]}"
            raise InvalidInput("min_gpus", int(self.min_gpus[index]), why, index=index)
        self._check_schedule()

    def _columns(self) -> dict[str, Any]:
        """Return the columns that the trace has, by name."""
        values = {column.name: getattr(self, column.name) for column in fields(self) if column.name != "source"}
        return {name: value for name, value in values.items() if value is not None}

    def _steps(self) -> Any:
        given: Any = self.total_steps
        if given is not None:
            return given
        if self.duration_s is None:
            if self.size_s is None:
                raise InvalidInput("total_steps", None, "must be given where neither duration_s nor size_s is")
            same_length(size_s=self.size_s, gang_gpus=self.gang_gpus)
            return np.maximum(1.0, np.rint(self.size_s))
        same_length(duration_s=self.duration_s, gang_gpus=self.gang_gpus)
        return self.gang_gpus * np.maximum(1.0, np.rint(self.duration_s))

    def _check_schedule(self) -> None:
        if self.schedule is None or self.total_epochs is None:
            return
        for index, runs in enumerate(self.schedule):
            if runs[0][0] != self.batch_size[index]:
                why = f"must start at the job's batch size, {self.batch_size[index]}"
                raise InvalidInput("schedule", runs[0][0], why, index=(index, 0))
            epochs = sum(count for _, count in runs)
            if epochs != self.total_epochs[index]:
                why = f"its epochs add up to {epochs}, total_epochs is {self.total_epochs[index]}"
                raise InvalidInput("schedule", runs, why, index=index)

    def __len__(self) -> int:
        return len(self.job_id)

    def arrival_rank(self, index: int) -> tuple[float, bool, str | int]:
        """Return the key that sorts jobs by arrival, ties by id (numbers before text), whatever the trace's order."""
        name = self.job_id[index]
        return float(self.arrival_s[index]), isinstance(name, str), name

    def select(self, indices: Sequence[int] | NDArray[np.integer[Any]] | NDArray[np.bool_]) -> Trace:
        """Return the trace of some jobs in the given order: trace indices, or a mask of shape (N,)."""
        chosen = np.arange(len(self))[np.asarray(indices)]
        columns: dict[str, Any] = {
            name: column[chosen] if isinstance(column, np.ndarray) else [column[i] for i in chosen]
            for name, column in self._columns().items()
        }
        return Trace(**columns, source=None if self.source is None else self.source.select(chosen.tolist()))

    def locate(self, error: InvalidInput) -> InvalidInput:
        """Return an error about a job of this trace with the file's column and line instead of the trace index.

        The error is unchanged if the trace was not read from a file or the error has no index.
        """
        return error if self.source is None else self.source.locate(error)

    def to_frame(self) -> pd.DataFrame:
        """Return the trace as a pandas table, one row per job; `schedule` is text such as "32x28 256x64"."""
        import pandas as pd

        columns: dict[str, Any] = {
            "job_id": list(self.job_id),
            "model": list(self.model),
            "batch_size": self.batch_size,
            "gang_gpus": self.gang_gpus,
            "mode": list(self.mode),
            "total_steps": self.total_steps,
            "arrival_s": self.arrival_s,
            "weight": self.weight,
        }
        if (self.min_gpus > 1).any():
            columns["min_gpus"] = self.min_gpus
        for name in ("duration_s", "size_s", "total_epochs"):
            if getattr(self, name) is not None:
                columns[name] = getattr(self, name)
        if self.schedule is not None:
            columns["schedule"] = [schedule_text(runs) for runs in self.schedule]
        return pd.DataFrame(columns)

    @classmethod
    def of(cls, columns: Mapping[str, Any]) -> Trace:
        """Return the trace with these fields; errors of a trace from a file name the file's column and line."""
        try:
            return cls(**columns)
        except InvalidInput as error:
            source: TraceSource | None = columns.get("source")
            raise (error if source is None else source.locate(error)) from None

    @staticmethod
    def read(path: str | Path) -> Trace:
        """Read a trace file in any of the formats, as `read_trace` does."""
        return Trace.of(trace_columns(path))


def schedule_text(runs: Runs) -> str:
    """Return runs as text: ((32, 28), (256, 64)) is "32x28 256x64"."""
    return " ".join(f"{batch_size}x{epochs}" for batch_size, epochs in runs)


def _texts(name: str, values: Sequence[str]) -> tuple[str, ...]:
    if isinstance(values, str):
        raise InvalidInput(name, values, "must be a sequence of names, not text")
    texts = tuple(str(value) if isinstance(value, np.str_) else value for value in values)
    for index, value in enumerate(texts):
        if not isinstance(value, str) or not value:
            raise InvalidInput(name, value, "must be text, not empty", index=index)
    return texts


def _runs(index: int, runs: Any) -> Runs:
    whole: list[tuple[int, int]] = []
    try:
        pairs = [(batch_size, epochs) for batch_size, epochs in runs]
    except (TypeError, ValueError):
        raise InvalidInput("schedule", runs, "must be a sequence of (batch size, epochs)", index=index) from None
    if not pairs:
        raise InvalidInput("schedule", "()", "must not be empty", index=index)
    for position, pair in enumerate(pairs):
        for value in pair:
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
                raise InvalidInput("schedule", pair, "must be whole numbers of at least 1", index=(index, position))
        whole.append((int(pair[0]), int(pair[1])))
    return tuple(whole)
