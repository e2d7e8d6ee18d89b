"""Speedup tables: how many times faster a model trains on several GPUs than on one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from ...formulations.arrays import Floats
from ...formulations.checks import as_integer, as_real, as_reals, refuse
from ...formulations.errors import InvalidInput
from ...formulations.text import nearest_hint
from ..delimited_files import read_lines
from ..traces.trace import Trace

#: Formula of tables in files that are not listed number by number.
_LINEAR = "speedup(g)=g"

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

    Raises
    ------
    InvalidInput
        If a table is empty, does not begin with 1 or is not positive, or a group names a model without a table.
    """

    tables: Mapping[str, Floats]
    default: Floats | None = None
    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)

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

        Instead of "speedup" an object may have a "formula" that begins with "speedup(g)=g", with "max_gpus". "groups"
        and "default" (a list as "speedup") are optional, and other members are not read.

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
        if not isinstance(content, dict) or not isinstance(content.get("models"), dict):
            raise InvalidInput("models", str(path), 'must be an object of a JSON file, such as {"models": {...}}')
        tables = {model: _table(f"models[{model}]", row) for model, row in content["models"].items()}
        groups = content.get("groups", {})
        if not isinstance(groups, dict) or not all(isinstance(models, list) for models in groups.values()):
            raise InvalidInput("groups", type(groups).__name__, "must map names to lists of models")
        return cls(tables=tables, default=content.get("default"), groups=groups)

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

        It is `size_s` of the trace, or else `duration_s` times the speedup at the maximum demand: `gang_gpus`, or the
        last GPU of the model's table if that is less.

        Raises
        ------
        InvalidInput
            If the trace has neither column, or a model has no table.
        """
        if trace.size_s is not None:
            return trace.size_s
        if trace.duration_s is None:
            raise InvalidInput("size_s", None, "the trace must have size_s or duration_s")
        largest = np.array([self.curve_of(trace, index)[-1] for index in range(len(trace))])
        return np.asarray(trace.duration_s * largest)

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
