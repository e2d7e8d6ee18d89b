"""Table of trained models: batch sizes, length of training, times, gradient noise and skew."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from importlib.resources import as_file, files
from pathlib import Path

from ...formulations.checks import as_integer, as_real, store_checked
from ...formulations.errors import InvalidInput
from ..delimited_files import Row, read_rows
from ..profiles.table import Profiles
from .time_model import TimeModel

NOISE_SCALES = ("first", "median", "last")

_TIMES = tuple(constant.name for constant in fields(TimeModel))
_COUNTS = ("first_batch", "max_batch", "min_gpu_batch", "max_gpu_batch", "epochs", "iterations")
_NOISES = tuple(f"noise_{when}" for when in NOISE_SCALES)
_COLUMNS = ("model", *_COUNTS, *_TIMES, *_NOISES, "skew", "skew_source", "source")
# Columns that a file may leave out.
_MEMORIES = ("memory_gb", "memory_gb_per_sample")

#: Memory of the GPUs on which the largest batches per GPU of the built-in table were found (T4), in GB.
TABLE_GPU_GB = 16.0
#: Memory of a worker whatever its batch, where a table states none, in GB.
FIXED_GB = 1.0


@dataclass(frozen=True, kw_only=True)
class ModelRow:
    """Facts of one model.

    Parameters
    ----------
    model : str
        Name of the model in traces.
    first_batch, max_batch : int
        Total batch size at which training starts (M0), and the largest one, in samples.
    min_gpu_batch, max_gpu_batch : int
        Least and largest batch size per GPU, in samples; the memory of a GPU bounds the largest one.
    epochs, iterations : int
        Length of training at `first_batch`.
    time : TimeModel
        Constants of the time of an iteration.
    noise_first, noise_median, noise_last : float
        Gradient noise scale at the start of training, its median and at the end, in samples, at least 0 (phi).
    skew : float, optional
        Size of the largest tensor relative to the model, in (0, 1]. None: unknown.
    skew_source, source : str, optional
        Sources of the skew, needed with it, and of the other facts.
    memory_gb, memory_gb_per_sample : float, optional
        Memory of a worker on its GPU whatever its batch, at least 0, and for each sample that it computes at once,
        positive, in GB; both are stated, or neither. None: a worker with the largest batch per GPU fills the 16 GB of a
        T4, and 1 GB of them does not depend on the batch.
    memory_source : str, optional
        Source of the memory, needed with it.

    Raises
    ------
    InvalidInput
        If a value is out of range.
    """

    model: str
    first_batch: int
    max_batch: int
    min_gpu_batch: int
    max_gpu_batch: int
    epochs: int
    iterations: int
    time: TimeModel
    noise_first: float
    noise_median: float
    noise_last: float
    skew: float | None = None
    skew_source: str = ""
    source: str = ""
    memory_gb: float | None = None
    memory_gb_per_sample: float | None = None
    memory_source: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.model, str) or not self.model:
            raise InvalidInput("model", self.model, "must be text, not empty")
        store_checked(self, as_integer, *_COUNTS, minimum=1)
        store_checked(self, as_real, *_NOISES, minimum=0.0)
        for largest, least in (("max_batch", "first_batch"), ("max_gpu_batch", "min_gpu_batch")):
            if getattr(self, largest) < getattr(self, least):
                raise InvalidInput(largest, getattr(self, largest), f"less than {least}, {getattr(self, least)}")
        if self.iterations < self.epochs:
            raise InvalidInput("iterations", self.iterations, f"less than epochs, {self.epochs}")
        if not isinstance(self.time, TimeModel):
            raise InvalidInput("time", type(self.time).__name__, "must be a TimeModel")
        if self.skew is not None:
            store_checked(self, as_real, "skew", above=0.0, maximum=1.0)
            if not self.skew_source:
                raise InvalidInput("skew_source", self.skew_source, "must not be empty: a skew needs its source")
        for name, other in (_MEMORIES, _MEMORIES[::-1]):
            if getattr(self, name) is None and getattr(self, other) is not None:
                raise InvalidInput(name, None, f"must be stated with {other}")
        if self.memory_gb is not None:
            store_checked(self, as_real, "memory_gb", minimum=0.0)
            store_checked(self, as_real, "memory_gb_per_sample", above=0.0)
            if not self.memory_source:
                raise InvalidInput("memory_source", self.memory_source, "must not be empty: memory needs its source")

    @property
    def samples_per_epoch(self) -> int:
        """Samples of one pass over the data set, rounded."""
        return round(self.iterations * self.first_batch / self.epochs)

    def worker_gb(self, samples: int) -> float:
        """Return the memory of a worker that computes so many samples at once, in GB."""
        if self.memory_gb is None or self.memory_gb_per_sample is None:
            return FIXED_GB + (TABLE_GPU_GB - FIXED_GB) * samples / self.max_gpu_batch
        return self.memory_gb + self.memory_gb_per_sample * samples

    def efficiency(self, total_batch: int, noise_scale: str = "median") -> float:
        """Return the progress of a sample at this total batch size relative to one at `first_batch`.

        It is ``(phi + M0) / (phi + M)`` (Pollux, Section 3.1), 1 at `first_batch`; `noise_scale` is "first", "median"
        or "last".
        """
        noise: float = getattr(self, f"noise_{noise_scale}")
        return (noise + self.first_batch) / (noise + total_batch)


@dataclass(frozen=True)
class ModelTable:
    """Facts of models by name.

    Parameters
    ----------
    rows : iterable of ModelRow
        At least one, of different models.
    """

    rows: Iterable[ModelRow]
    _by_name: Mapping[str, ModelRow] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        rows = tuple(self.rows)
        by_name = {row.model: row for row in rows}
        if not rows:
            raise InvalidInput("rows", "[]", "must not be empty: a table has at least one model")
        for index, row in enumerate(rows):
            if by_name[row.model] is not row:
                raise InvalidInput("model", row.model, "a second row of the same model", index=index)
        object.__setattr__(self, "rows", rows)
        object.__setattr__(self, "_by_name", by_name)

    @staticmethod
    def builtin() -> ModelTable:
        """Return the six models of Pollux's workloads.

        Constants of time and gradient noise are our least-squares fit, on T4 GPUs, of the measurements of
        petuum/adaptdl (Apache-2.0). Skews are derived from the sources that the table names; none was found for yolov3.
        Memory beside the parameters is not measured: by rule, the largest batch per GPU fills a GPU of 16 GB.
        """
        with as_file(files(__package__) / "data" / "six_models.csv") as path:
            return ModelTable.read(path)

    @staticmethod
    def read(path: str | Path) -> ModelTable:
        """Read a CSV file with a header: the fields of `ModelRow`, and those of `TimeModel` instead of `time`.

        The cells of skew, skew_source, source and of the three columns of memory may be empty, and the latter missing.
        Other columns are not read.

        Raises
        ------
        InvalidInput
            If the file is malformed; the message names column, value, file and line.
        """
        path = Path(path)
        rows: dict[str, ModelRow] = {}
        for row in read_rows(path, _COLUMNS):
            found = _model_row(row)
            if found.model in rows:
                raise InvalidInput("model", found.model, f"a second row of the same model ({row.location})")
            rows[found.model] = found
        if not rows:
            raise InvalidInput("path", str(path), "the file holds no model")
        return ModelTable(rows.values())

    def extended(self, other: ModelTable) -> ModelTable:
        """Return this table with the rows of another one, which replace rows of the same models."""
        return ModelTable({**self._by_name, **other._by_name}.values())

    @property
    def models(self) -> tuple[str, ...]:
        """Names of the models, sorted."""
        return tuple(sorted(self._by_name))

    @property
    def skews(self) -> Mapping[str, float]:
        """Skew of each model that has one."""
        return {row.model: row.skew for row in self.rows if row.skew is not None}

    def row(self, model: str) -> ModelRow:
        """Return the facts of a model, or raise InvalidInput with the names of those that the table has."""
        found = self._by_name.get(model)
        if found is None:
            raise InvalidInput("model", model, f"not in the table of models, which has {', '.join(self.models)}")
        return found

    def gpu_batch_range(self, model: str) -> tuple[int, int]:
        """Return the least and the largest batch size per GPU."""
        row = self.row(model)
        return row.min_gpu_batch, row.max_gpu_batch

    def is_skewed(self, model: str, threshold: float) -> bool:
        """Return whether the skew is above the threshold; a model without one, or not in the table, counts as low."""
        found = self._by_name.get(model)
        return found is not None and found.skew is not None and found.skew > threshold

    def profiles(self, configurations: Iterable[tuple[str, int, int]], gpus_per_machine: int | None = None) -> Profiles:
        """Return throughput profiles of these (model, batch size per GPU, GPUs), on as few machines as possible.

        Profiles count samples and epochs: the efficiency of a larger batch is not part of them. The models do not
        adapt their batch sizes. With `gpus_per_machine` None all GPUs are on one machine.
        """
        wanted = sorted({(model, int(size), int(gpus)) for model, size, gpus in configurations})
        rates = {}
        for model, size, gpus in wanted:
            machines = 1 if gpus_per_machine is None else -(-gpus // gpus_per_machine)
            rates[model, size, gpus] = gpus / self.row(model).time.iteration(gpus, size, machines=machines).total_s
        sizes = {model: self.row(model).samples_per_epoch for model, _, _ in wanted}
        return Profiles(name="models", rates=rates, dataset_sizes=sizes, max_batch_sizes={})


def _model_row(row: Row) -> ModelRow:
    try:
        return ModelRow(
            model=row.text("model"),
            **{name: row.integer(name, 1) for name in _COUNTS},
            time=TimeModel(**{name: row.real(name) for name in _TIMES}),
            noise_first=row.real("noise_first"),
            noise_median=row.real("noise_median"),
            noise_last=row.real("noise_last"),
            skew=row.real("skew") if row.cells["skew"] else None,
            skew_source=row.cells["skew_source"],
            source=row.cells["source"],
            memory_gb=row.real("memory_gb") if row.cells.get("memory_gb") else None,
            memory_gb_per_sample=row.real("memory_gb_per_sample") if row.cells.get("memory_gb_per_sample") else None,
            memory_source=row.cells.get("memory_source", ""),
        )
    except InvalidInput as error:
        why = error.why if row.location in error.why else f"{error.why} ({row.location})"
        raise InvalidInput(error.field, error.value, why) from None
