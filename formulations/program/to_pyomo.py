"""Conversion of a program to a Pyomo model with a component for each named block, which users can extend."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats, Indices
from ..errors import InvalidInput
from .data import Csr, ProgramData

Flags = NDArray[np.bool_]

# Names of the model's own components, and of the suffixes in which Pyomo returns duals and reduced costs.
OURS = ("objective", "zero", "dual", "rc")


def pyomo_model(program: ProgramData) -> Any:
    """Return the program as a `pyomo.environ.ConcreteModel`.

    Every named block of columns is a `Var` and every named block of rows a `Constraint`, indexed by the block's shape
    (``model.grant[j, t]``); a block of shape () is a scalar component. Bounds and integrality are those of each
    column, a row with two finite sides is a range, log terms are Pyomo's own ``log``, and the objective is
    ``model.objective``.

    - A name already in use gets the suffix ``_columns`` or ``_rows`` until it is unique. In use are the names of
      Pyomo's own attributes and index sets (``grant_index``), ``objective``, ``zero``, ``dual`` and ``rc``, and for a
      block of rows the names of blocks of columns.
    - Columns and rows of no block are ``model.other_columns[j]`` and ``model.other_rows[i]``, by their number in the
      program. So are those of a block that has an index twice, or shares one with an earlier block.
    - A redundant row (no finite side, or no entries and satisfied) is left out of its `Constraint`. A violated row
      without entries is a constraint on ``model.zero``, a variable with both bounds 0.
    - A column in no row of the model and no term of the objective has an initial value, the nearest to 0 within its
      bounds, because solvers return no value for it.
    """
    from pyomo.common.gc_manager import PauseGC
    from pyomo.environ import ConcreteModel

    model = ConcreteModel()
    of_columns, of_rows = _parts(program)
    with PauseGC():  # as Pyomo does around its own work on many objects: half the time
        variables = _add_columns(model, program, of_columns)
        _add_rows(model, program, of_rows, variables)
        _add_objective(model, program, variables)
    return model


def pyomo_values(program: ProgramData, model: Any) -> Floats:
    """Return the values of the variables, shape (columns,), of a solved model that :func:`pyomo_model` made.

    Raises InvalidInput if a variable has no value, or the model is not of this program.
    """
    variables = pyomo_variables(program, model)
    values = [variable.value for variable in variables]
    if None in values:
        name = variables[values.index(None)].name
        raise InvalidInput("model", name, "has no value: let a solver find and load a solution first")
    return np.array(values, dtype=np.float64)


def pyomo_variables(program: ProgramData, model: Any) -> list[Any]:
    """Return the model's variables by column; InvalidInput if the model is not of this program."""
    variables: list[Any] = [None] * program.num_columns
    for part in _parts(program)[0]:
        for j, variable in zip(part.index, part.found_in(model), strict=True):
            if variable is None:
                why = f"lacks a variable of {part.name}: it belongs to another program"
                raise InvalidInput("model", model.name, why)
            variables[j] = variable
    return variables


def pyomo_constraints(program: ProgramData, model: Any) -> list[Any]:
    """Return the model's constraints by row, None for those left out."""
    constraints: list[Any] = [None] * program.num_rows
    for part in _parts(program)[1]:
        for i, constraint in zip(part.index, part.found_in(model), strict=True):
            constraints[i] = constraint
    return constraints


@dataclass(frozen=True)
class _Part:
    """One component: its name, the program's columns or rows in it, and the sets whose product indexes it."""

    name: str
    index: list[int]
    sets: tuple[Sequence[int], ...]

    def places(self) -> list[Any]:
        """Return the component's own indices, in the order of `index`; None for a scalar."""
        if len(self.sets) == 1:
            return list(self.sets[0])
        return list(product(*self.sets)) if self.sets else [None]

    def found_in(self, model: Any) -> list[Any]:
        """Return the component's data in a model, None for missing entries."""
        block = model.component(self.name)
        held = {} if block is None else dict(block.items())
        return [held.get(place) for place in self.places()]


def _parts(program: ProgramData) -> tuple[list[_Part], list[_Part]]:
    """Return the components that hold the columns, and those that hold the rows."""
    from pyomo.environ import ConcreteModel

    taken = {*dir(ConcreteModel()), *OURS, *(f"{block}_index" for block in (*program.columns, *program.rows))}
    of_columns = list(_split(program.columns, program.num_columns, "_columns", taken))
    return of_columns, list(_split(program.rows, program.num_rows, "_rows", taken))


def _split(blocks: Mapping[str, Indices], count: int, kind: str, taken: set[str]) -> Iterator[_Part]:
    free = np.ones(count, dtype=bool)
    for block, index in blocks.items():
        flat = index.ravel()
        if free[flat].all() and len(np.unique(flat)) == len(flat):
            free[flat] = False
            yield _Part(_named(block, kind, taken), flat.tolist(), tuple(range(size) for size in index.shape))
    if free.any():
        left = np.flatnonzero(free).tolist()
        yield _Part(_named("other" + kind, kind, taken), left, (left,))


def _named(name: str, ending: str, taken: set[str]) -> str:
    while name in taken:
        name += ending
    taken.add(name)
    return name


def _add_columns(model: Any, program: ProgramData, parts: list[_Part]) -> list[Any]:
    """Add the variables; return them by column."""
    from pyomo.environ import Binary, Integers, Reals, Var

    lower, upper = program.lower.tolist(), program.upper.tolist()
    binary = program.integer & (program.lower >= 0) & (program.upper <= 1)
    domains = [(Reals, Integers, Binary)[kind] for kind in (program.integer.astype(int) + binary).tolist()]
    variables: list[Any] = [None] * program.num_columns
    for part in parts:
        of_part = [domains[j] for j in part.index]
        uniform = of_part.count(of_part[0]) == len(of_part) if of_part else True
        domain = (*of_part, Reals)[0] if uniform else dict(zip(part.places(), of_part, strict=True))
        block = Var(*part.sets, domain=domain)
        model.add_component(part.name, block)
        for j, variable in zip(part.index, block.values(), strict=True):
            variables[j] = variable
            if lower[j] != (0.0 if binary[j] else -math.inf):  # Binary has bounds of its own
                variable.setlb(lower[j])
            if upper[j] != (1.0 if binary[j] else math.inf):
                variable.setub(upper[j])
    for j in np.flatnonzero(~_mentioned(program)).tolist():
        nearest = min(max(0.0, lower[j]), upper[j])
        variables[j].value = math.copysign(math.ceil(abs(nearest)), nearest) if program.integer[j] else nearest
    return variables


def _add_rows(model: Any, program: ProgramData, parts: list[_Part], variables: list[Any]) -> None:
    from pyomo.environ import Constraint, inequality

    lower, upper = program.row_lower.tolist(), program.row_upper.tolist()
    stated: list[Any] = [Constraint.Skip] * program.num_rows
    busy = np.flatnonzero(_forbids(program)).tolist()
    for i, body in zip(busy, _linear(model, program.matrix, busy, variables), strict=True):
        if lower[i] == upper[i]:
            stated[i] = body == upper[i]
        elif lower[i] == -math.inf:
            stated[i] = body <= upper[i]
        elif upper[i] == math.inf:
            stated[i] = body >= lower[i]
        else:
            stated[i] = inequality(lower[i], body, upper[i])
    for part in parts:
        rule = dict(zip(part.places(), (stated[i] for i in part.index), strict=True))
        model.add_component(part.name, Constraint(*part.sets, rule=rule if part.sets else rule[None]))


def _add_objective(model: Any, program: ProgramData, variables: list[Any]) -> None:
    from pyomo.core.expr.numeric_expr import LinearExpression
    from pyomo.environ import Objective, log, maximize, minimize

    used = np.flatnonzero(program.objective)
    linear = LinearExpression(
        constant=program.offset,
        linear_coefs=program.objective[used].tolist(),
        linear_vars=[variables[j] for j in used.tolist()],
    )
    wanted = np.flatnonzero(program.log_weights > 0)
    inside = _linear(model, program.log_matrix, wanted.tolist(), variables, program.log_offsets[wanted].tolist())
    logs = [weight * log(body) for weight, body in zip(program.log_weights[wanted].tolist(), inside, strict=True)]
    model.objective = Objective(expr=sum(logs, linear), sense=maximize if program.sense == "max" else minimize)


def _linear(
    model: Any, matrix: Csr, rows: list[int], variables: list[Any], constants: list[float] | None = None
) -> Iterator[Any]:
    """Yield the named rows of the matrix as expressions; a row without entries uses the zero variable."""
    from pyomo.core.expr.numeric_expr import LinearExpression
    from pyomo.environ import Var

    used = matrix.values != 0
    columns, values = matrix.columns[used].tolist(), matrix.values[used].tolist()
    ends = np.cumsum(_lengths(matrix)).tolist()
    for i, constant in zip(rows, constants or [0.0] * len(rows), strict=True):
        entries = slice(ends[i - 1] if i else 0, ends[i])
        its_values, its_variables = values[entries], [variables[j] for j in columns[entries]]
        if not its_values:
            if model.component("zero") is None:
                model.zero = Var(bounds=(0.0, 0.0))
            its_values, its_variables = [1.0], [model.zero]
        yield LinearExpression(constant=constant, linear_coefs=its_values, linear_vars=its_variables)


def _lengths(matrix: Csr) -> Indices:
    """Return the number of entries of every row that are not zero."""
    lengths: Indices = np.bincount(matrix.row_of_entry()[matrix.values != 0], minlength=len(matrix.starts) - 1)
    return lengths


def _forbids(program: ProgramData) -> Flags:
    """Return which rows are not redundant: they have a finite side, and entries or a violation."""
    idle = np.isinf(program.row_lower) & np.isinf(program.row_upper)
    forbids: Flags = ~(idle | ((_lengths(program.matrix) == 0) & (program.row_lower <= 0) & (program.row_upper >= 0)))
    return forbids


def _mentioned(program: ProgramData) -> Flags:
    """Return which columns occur in a row of the model or a term of the objective."""
    found: Flags = program.objective != 0
    used = _forbids(program)[program.matrix.row_of_entry()] & (program.matrix.values != 0)
    found[program.matrix.columns[used]] = True
    wanted = (program.log_weights > 0)[program.log_matrix.row_of_entry()] & (program.log_matrix.values != 0)
    found[program.log_matrix.columns[wanted]] = True
    return found
