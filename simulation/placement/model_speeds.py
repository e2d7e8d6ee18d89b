"""Speeds of jobs by the time model of their models and the statistical efficiency of their batch sizes."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ...formulations.arrays import Floats
from ...formulations.checks import as_integer
from ...formulations.errors import InvalidInput
from ..profiles.table import Profiles
from ..traces.trace import Trace
from .model_table import NOISE_SCALES, ModelRow, ModelTable
from .speeds import Running


class ModelSpeeds:
    """Speeds by a table of models.

    Progress is counted in iterations at the model's first batch size (M0): an iteration of M samples makes
    ``M / M0`` times the efficiency ``(phi + M0) / (phi + M)`` of them.

    Parameters
    ----------
    table : ModelTable
    gpus_per_machine : int, optional
        GPUs of each machine, at least 1: they decide whether a gang alone, consolidated, needs several machines. None:
        all GPUs are on one machine.
    noise_scale : str
        Gradient noise scale over the whole training: "first", "median" (default) or "last" of the table.

    Raises
    ------
    InvalidInput
        If an argument is out of range.
    """

    def __init__(self, table: ModelTable, gpus_per_machine: int | None = None, noise_scale: str = "median") -> None:
        if not isinstance(table, ModelTable):
            raise InvalidInput("table", type(table).__name__, "must be a ModelTable")
        if noise_scale not in NOISE_SCALES:
            raise InvalidInput("noise_scale", noise_scale, f"must be one of {', '.join(NOISE_SCALES)}")
        if gpus_per_machine is not None:
            gpus_per_machine = as_integer("gpus_per_machine", gpus_per_machine, minimum=1)
        self.table, self.gpus_per_machine, self.noise_scale = table, gpus_per_machine, noise_scale

    def work(self, trace: Trace) -> Floats:
        """Return the iterations at the first batch size that each job must make, shape (N,).

        A job with a duration takes exactly this time, alone, on its gang, on as few machines as possible and with its
        own batch size. Without durations it makes its `total_steps` (one for each GPU and iteration) at its own batch
        size.
        """
        work = np.empty(len(trace))
        for index, model in enumerate(trace.model):
            gpus, size = int(trace.gang_gpus[index]), int(trace.batch_size[index])
            machines = 1 if self.gpus_per_machine is None else -(-gpus // self.gpus_per_machine)
            try:
                rate = self.goodput(model, gpus, size, machines=machines)
            except InvalidInput as error:
                raise InvalidInput(error.field, error.value, error.why, index=index) from None
            if trace.duration_s is not None:
                work[index] = trace.duration_s[index] * rate
            else:
                work[index] = trace.total_steps[index] / gpus * self._progress(self.table.row(model), gpus * size)
        return work

    def rate(self, run: Running) -> float:
        """Return the iterations at the first batch size per second."""
        try:
            return self.goodput(run.model, run.gpus, run.batch_size, sub_batch=run.sub_batch, machines=run.machines)
        except InvalidInput as error:
            raise InvalidInput(error.field, error.value, error.why, index=run.trace_index) from None

    def exposed(self, run: Running) -> float:
        """Return the share of an iteration that is communication not hidden by computation."""
        time = self.table.row(run.model).time
        total_s, exposed_s = time.iteration(run.gpus, run.batch_size, sub_batch=run.sub_batch, machines=run.machines)
        return exposed_s / total_s

    def goodput(
        self, model: str, gpus: int, batch_size: int, *, sub_batch: int | None = None, machines: int = 1
    ) -> float:
        """Return iterations at the first batch size per second: throughput times efficiency (Pollux, Section 3).

        Parameters
        ----------
        model : str
        gpus, machines : int
            GPUs of the job, and the machines that hold them.
        batch_size : int
            Samples per GPU and iteration.
        sub_batch : int, optional
            Samples per GPU at once, at most the model's `max_gpu_batch`; by default `batch_size`.

        Raises
        ------
        InvalidInput
            If the model is not in the table, or a sub-batch exceeds the batch or the memory of a GPU.
        """
        row = self.table.row(model)
        sub_batch = batch_size if sub_batch is None else sub_batch
        if not 1 <= sub_batch <= batch_size:
            raise InvalidInput("sub_batch", sub_batch, f"must be from 1 to batch_size, {batch_size}")
        if sub_batch > row.max_gpu_batch:
            field = "batch_size" if sub_batch == batch_size else "sub_batch"
            raise InvalidInput(field, sub_batch, f"a GPU holds at most {row.max_gpu_batch} samples of {model} at once")
        iteration = row.time.iteration(gpus, batch_size, sub_batch=sub_batch, machines=machines)
        return self._progress(row, gpus * batch_size) / iteration.total_s

    def gpu_batch_range(self, model: str) -> tuple[int, int]:
        """Return the least and the largest batch size per GPU."""
        return self.table.gpu_batch_range(model)

    def profiles(self, configurations: Iterable[tuple[str, int, int]]) -> Profiles:
        """Return throughput profiles under which the rounds engine runs these configurations at the same speed.

        See `ModelTable.profiles`.
        """
        return self.table.profiles(configurations, self.gpus_per_machine)

    def _progress(self, row: ModelRow, total_batch: int) -> float:
        """Return the iterations at the first batch size that one iteration of this total batch size is worth."""
        return total_batch / row.first_batch * row.efficiency(total_batch, self.noise_scale)
