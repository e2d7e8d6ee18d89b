"""Speedup tables: how many times faster a model trains on several GPUs than on one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from ...formulations.arrays import Floats
from ...formulations.checks import as_integer, as_real, as_reals, refuse
from ...formulations.errors import InvalidInput
from ...formulations.text import nearest_hint
from ..cluster import ONLY_TYPE, Cluster
from ..delimited_files import read_lines
from ..traces.trace import Trace

#: Formula of tables in files that are not listed number by number.
_LINEAR = "speedup(g)=g"
# Optional members of a model in files.
_OF_MODELS = ("spread", "rate")

# Share of the time of one GPU that each further GPU adds as overhead: round figures of a plausible order.
_OVERHEADS = {"linear": 0.0, "light": 0.02, "medium": 0.05, "heavy": 0.15}
_BUILTIN_GPUS = 64


@dataclass(frozen=True, kw_only=True, eq=False)
class Speedups:
    """Speedups s(g) on g = 1, 2, ... GPUs by model; s(0) = 0, s(1) = 1, and s is linear between whole numbers.

    Parameters
    ----------
    tables : mapping of str to array_like of float, shape (G,)
        Speedups of each model on 1 to G GPUs, positive, the first one 1. More than G GPUs are of no use to it.
    default : array_like of float, shape (G,), optional
        Table of all other models. None: a model without a table is an error.
    groups : mapping of str to sequence of str
        Names of groups of models.
    spread : mapping of str to array_like of float, shape (G,)
        Speedups of a model, as long as its table, on GPUs of several machines. Where the machines of a cluster are
        stated, they hold for more GPUs than one machine has; a model without them scales by its table.
    rates : mapping of str to float
        Speed of one GPU for a model relative to the GPU to which sizes and durations of traces refer; 1 if not named.
    gpu_type : str
        GPU type of all these.
    by_type : mapping of str to Speedups
        Speedups of other GPU types.

    Raises
    ------
    InvalidInput
        If a table is empty, does not begin with 1 or is not positive, or a group, `spread` or `rates` names a model
        without a table.
    """

    tables: Mapping[str, Floats]
    default: Floats | None = None
    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)
    spread: Mapping[str, Floats] = field(default_factory=dict)
    rates: Mapping[str, float] = field(default_factory=dict)
    gpu_type: str = ONLY_TYPE
    by_type: Mapping[str, Speedups] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.tables, Mapping):
            raise InvalidInput("tables", type(self.tables).__name__, "must be a mapping of model to speedups")
        checked = {model: _checked(f"tables[{model}]", table) for model, table in self.tables.items()}
        object.__setattr__(self, "tables", MappingProxyType(checked))
        if self.default is not None:
            object.__setattr__(self, "default", _checked("default", self.default))
        if not checked and self.default is None:
            raise InvalidInput("tables", "{}", "must name at least one model, or default must be given")
        groups = {name: tuple(models) for name, models in self.groups.items()}
        for name, models in groups.items():
            for index, model in enumerate(models):
                if model not in checked:
                    raise InvalidInput(f"groups[{name}]", model, "has no table", index=index)
        object.__setattr__(self, "groups", MappingProxyType(groups))
        spread = {model: _checked(f"spread[{model}]", table) for model, table in self.spread.items()}
        for model, table in spread.items():
            if len(table) != len(checked.get(model, ())):
                why = f"must be as long as its table, which has {len(checked.get(model, ()))} entries"
                raise InvalidInput(f"spread[{model}]", f"{len(table)} entries", why)
        object.__setattr__(self, "spread", MappingProxyType(spread))
        rates = {model: as_real(f"rates[{model}]", rate, above=0.0) for model, rate in self.rates.items()}
        for model in rates:
            if model not in checked:
                raise InvalidInput("rates", model, "has no table")
        object.__setattr__(self, "rates", MappingProxyType(rates))
        for gpu_type, other in self.by_type.items():
            if not isinstance(other, Speedups) or other.by_type:
                raise InvalidInput(f"by_type[{gpu_type}]", type(other).__name__, "must be Speedups of one GPU type")
        object.__setattr__(self, "by_type", MappingProxyType(dict(self.by_type)))

    def __reduce__(self) -> tuple[object, ...]:
        # A mapping proxy cannot be pickled.
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        plain: dict[str, Any] = {
            name: dict(value) if isinstance(value, Mapping) else value for name, value in values.items()
        }
        return partial(Speedups, **plain), ()

    @classmethod
    def linear(cls, gpus: int) -> Speedups:
        """Return s(g) = g up to this number of GPUs, for every model."""
        return cls(tables={}, default=np.arange(1.0, as_integer("gpus", gpus, minimum=1) + 1.0))

    @classmethod
    def builtin(cls) -> Speedups:
        """Return the package's own tables of up to 64 GPUs: s(g) = g / (1 + c (g - 1)).

        c is 0 for the model "linear", 0.02 for "light", 0.05 for "medium", which is the default, and 0.15 for "heavy":
        round figures of a plausible order, no measurements. The last three are the group "realistic", and the first the
        group "linear".
        """
        gpus = np.arange(1.0, _BUILTIN_GPUS + 1.0)
        tables = {name: gpus / (1.0 + overhead * (gpus - 1.0)) for name, overhead in _OVERHEADS.items()}
        groups = {"realistic": ("light", "medium", "heavy"), "linear": ("linear",)}
        return cls(tables=tables, default=tables["medium"], groups=groups)

    @classmethod
    def read(cls, path: str | Path) -> Speedups:
        """Read a JSON file: "models" maps each name to an object with "speedup", the list of s(1), s(2), ...

        Instead of "speedup" an object may have a "formula" that begins with "speedup(g)=g", with "max_gpus"; "spread"
        (a list as "speedup") and "rate" are optional. Beside "models" there may be "groups", "default" (a list),
        "gpu_type", and "gpu_types", an object with such an object for each further type. Other members are not read.

        Raises
        ------
        InvalidInput
            If the file cannot be read, is no JSON of this form, or a table is out of range.
        """
        path = Path(path)
        try:
            content = json.loads("\n".join(read_lines(path)))
        except json.JSONDecodeError as error:
            raise InvalidInput("path", str(path), f"is no JSON ({error})") from None
        others = _object(content, "gpu_types", path) if isinstance(content, dict) else {}
        by_type = {name: cls._of(other, path, {"gpu_type": name}) for name, other in others.items()}
        return cls._of(content, path, {"by_type": by_type})

    @classmethod
    def _of(cls, content: Any, path: Path, more: dict[str, Any]) -> Speedups:
        """Return the speedups of one GPU type of a file."""
        if not isinstance(content, dict) or not isinstance(content.get("models"), dict):
            raise InvalidInput("models", str(path), 'must be an object of a JSON file, such as {"models": {...}}')
        models = content["models"]
        tables = {model: _table(f"models[{model}]", row) for model, row in models.items()}
        groups = _object(content, "groups", path)
        if not all(isinstance(names, list) for names in groups.values()):
            raise InvalidInput("groups", str(path), "must map names to lists of models")
        optional = {name: content[name] for name in ("default", "gpu_type") if name in content}
        spread, rates = ({model: row[name] for model, row in models.items() if name in row} for name in _OF_MODELS)
        return cls(tables=tables, groups=groups, spread=spread, rates=rates, **{**optional, **more})

    def on(self, cluster: Cluster) -> Speedups:
        """Return the speedups of a cluster's GPU type alone, on machines of its size.

        Up to as many GPUs as a machine has, the GPUs of a job sit together. A cluster that does not name its type has
        that of the tables, and one without machines is one machine.

        Raises
        ------
        InvalidInput
            If there are no speedups of the cluster's GPU type, and those of another type.
        """
        (gpu_type,) = cluster.types
        named = self.gpu_type != ONLY_TYPE or self.by_type
        found = self if gpu_type in (self.gpu_type, ONLY_TYPE) or not named else self.by_type.get(gpu_type)
        if found is None:
            known = ", ".join([self.gpu_type] * (self.gpu_type != ONLY_TYPE) + list(self.by_type))
            raise InvalidInput("cluster", gpu_type, f"the speedups are of the GPU types {known}")
        size, tables = cluster.gpus_per_machine, dict(found.tables)
        if size is not None:
            for model, table in found.spread.items():
                tables[model] = np.concatenate((tables[model][:size], table[size:]))
        return replace(found, tables=tables, spread={}, by_type={})

    def curve(self, model: str, gpus: int | None = None) -> Floats:
        """Return s(0), ..., s(d) of a model for d = `gpus`, or fewer if its table ends before.

        Raises
        ------
        InvalidInput
            If the model has no table, and there is no default.
        """
        table = self.tables.get(model, self.default)
        if table is None:
            raise InvalidInput("model", model, f"{nearest_hint(model, self.tables)}it has no speedups")
        return np.concatenate(([0.0], table if gpus is None else table[:gpus]))

    def sizes_s(self, trace: Trace) -> Floats:
        """Return the exact run time of each job on one GPU, shape (N,).

        It is `size_s` of the trace, or else `duration_s` times the speedup at the maximum demand (`gang_gpus`, or the
        last GPU of the model's table if that is less), divided by the rate of the model.

        Raises
        ------
        InvalidInput
            If the trace has neither column, or a model has no table.
        """
        rates = np.array([self.rates.get(model, 1.0) for model in trace.model]) if self.rates else 1.0
        if trace.size_s is not None:
            return np.asarray(trace.size_s / rates)
        if trace.duration_s is None:
            raise InvalidInput("size_s", None, "the trace must have size_s or duration_s")
        largest = np.array([self.curve_of(trace, index)[-1] for index in range(len(trace))])
        return np.asarray(trace.duration_s * largest / rates)

    def curve_of(self, trace: Trace, index: int) -> Floats:
        """Return s(0), ..., s(d) of a job; InvalidInput names the job if its model has no table."""
        try:
            return self.curve(trace.model[index], int(trace.gang_gpus[index]))
        except InvalidInput as error:
            raise trace.locate(InvalidInput(error.field, error.value, error.why, index=index)) from None


def _checked(name: str, values: Any) -> Floats:
    table = as_reals(name, values, above=0.0)
    refuse(name, (table != 1.0) & (np.arange(len(table)) == 0), table, "must be 1: the speedup on one GPU")
    return table


def _object(content: Mapping[str, Any], name: str, path: Path) -> dict[str, Any]:
    """Return an optional member of a file that must be an object."""
    found = content.get(name, {})
    if not isinstance(found, dict):
        raise InvalidInput(name, type(found).__name__, f"must be an object ({path.name})")
    return found


def _table(name: str, row: Any) -> Any:
    """Return the speedups of one model of a file."""
    if not isinstance(row, dict):
        raise InvalidInput(name, type(row).__name__, 'must be an object with "speedup"')
    if "speedup" in row:
        return row["speedup"]
    formula = row.get("formula")
    if not isinstance(formula, str) or not formula.replace(" ", "").startswith(_LINEAR):
        raise InvalidInput(name, formula, f'must have "speedup", or a "formula" that begins with "{_LINEAR}"')
    gpus = as_integer(f"{name}.max_gpus", as_real(f"{name}.max_gpus", row.get("max_gpus")), minimum=1)
    return np.arange(1.0, gpus + 1.0)
