"""Timeline of a simulation: levels of use by step, and stretches in which jobs held GPUs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from ...formulations.arrays import Floats, Indices

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, kw_only=True, eq=False)
class Levels:
    """Quantities that are constant over each of L steps of the engine, in order of time, each of shape (L,).

    `gpus_busy` is the number of GPUs that jobs held, `running` and `waiting` the numbers of jobs that held GPUs, and of
    arrived jobs that held none.
    """

    start_s: Floats
    end_s: Floats
    gpus_busy: Floats | Indices
    running: Indices
    waiting: Indices

    @classmethod
    def of(cls, rows: Sequence[tuple[float, float, float, int, int]]) -> Levels:
        """Return the levels of (start, end, GPUs busy, running, waiting), one row for each step."""
        start_s, end_s, busy, running, waiting = zip(*rows, strict=True) if rows else ((), (), (), (), ())
        return cls(
            start_s=np.array(start_s, dtype=np.float64),
            end_s=np.array(end_s, dtype=np.float64),
            gpus_busy=np.array(busy),
            running=np.array(running, dtype=np.int64),
            waiting=np.array(waiting, dtype=np.int64),
        )

    def __len__(self) -> int:
        return len(self.start_s)

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas table, one row per step."""
        import pandas as pd

        return pd.DataFrame({name: getattr(self, name) for name in self.__dataclass_fields__})


@dataclass(frozen=True, kw_only=True, eq=False)
class Stretches:
    """Stretches of time over which a job (by index in the trace) held the same GPUs, ordered by start, of shape (S,).

    `gpus` is the number of GPUs held, fractional if the engine divides them, and `gpu_type` the index of their type.
    `gpu_ids`, shape (G,), are their numbers, concatenated over the stretches; None if the engine records only how many.
    """

    trace_index: Indices
    start_s: Floats
    end_s: Floats
    gpus: Floats
    gpu_type: Indices
    gpu_ids: Indices | None = None

    def __len__(self) -> int:
        return len(self.trace_index)

    def ids(self) -> list[Indices]:
        """Return the numbers of the GPUs of each stretch; an empty list if the engine does not record them."""
        if self.gpu_ids is None:
            return []
        return np.split(self.gpu_ids, np.cumsum(self.gpus[:-1]).astype(np.int64))


class StretchLog:
    """Log of stretches during a simulation: `start` when a job gets GPUs, `stop` when it loses them."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, float, float, int]] = []  # trace_index, start_s, gpus, gpu_type
        self._ids: list[Sequence[int]] = []
        self._end_s: list[float] = []
        self._open: dict[int, int] = {}

    def start(
        self, trace_index: int, time_s: float, gpus: float, *, gpu_ids: Sequence[int] = (), gpu_type: int = 0
    ) -> None:
        """Start a stretch of a job; an earlier stretch of the same job must have been stopped.

        `gpu_ids` are the numbers of the GPUs in the cluster, given for all stretches or for none.
        """
        assert trace_index not in self._open, f"job {trace_index} holds GPUs already"
        self._open[trace_index] = len(self._rows)
        self._rows.append((trace_index, time_s, gpus, gpu_type))
        self._ids.append(gpu_ids)
        self._end_s.append(math.inf)

    def stop(self, trace_index: int, time_s: float) -> None:
        """End the stretch of a job, if it has one."""
        index = self._open.pop(trace_index, None)
        if index is not None:
            self._end_s[index] = time_s

    def stretches(self, until_s: float) -> Stretches:
        """Return the stretches that started before `until_s`, each cut off there if it has not ended."""
        kept = [index for index, row in enumerate(self._rows) if row[1] < until_s]
        trace_index, start_s, gpus, gpu_type = (
            zip(*map(self._rows.__getitem__, kept), strict=True) if kept else ((),) * 4
        )
        ids = np.fromiter(chain.from_iterable(map(self._ids.__getitem__, kept)), np.int64)
        return Stretches(
            trace_index=np.array(trace_index, dtype=np.int64),
            start_s=np.array(start_s, dtype=np.float64),
            end_s=np.minimum(until_s, np.array(self._end_s, dtype=np.float64)[kept]),
            gpus=np.array(gpus, dtype=np.float64),
            gpu_type=np.array(gpu_type, dtype=np.int64),
            gpu_ids=ids if len(ids) else None,
        )
