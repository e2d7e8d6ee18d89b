"""Conversion of a Program to a gurobipy model that users can extend and solve, and of its solution back to values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ..arrays import Floats, Indices
from ..errors import BackendUnavailable, InvalidInput, NoSolution, UnsupportedProblem
from .data import ProgramData


def gurobi_model(program: ProgramData, env: Any = None, *, names: bool = True) -> Any:
    """Return the program as a `gurobipy.Model`, built from arrays, in `env` or Gurobi's default environment.

    The model's first variables are the program's columns and its linear constraints are the program's rows, in the
    same order. A variable has its block's name (``model.getVarByName("start[0,2]")``), and the blocks themselves are
    in ``model._columns["start"]`` (an `MVar` in the block's shape) and ``model._rows["capacity"]`` (an `MConstr`), so
    that each side constraint takes one line; without `names`, which take about a quarter of the time, nothing is named.
    After the columns come, if the program needs them, variables named ``row.range`` (the activity of a row with two
    different sides, which are its bounds) and ``log.value``.

    Raises
    ------
    BackendUnavailable
        If gurobipy is not installed, or finds no valid licence.
    UnsupportedProblem
        If the program has log terms and gurobipy is older than 12.
    """
    try:
        import gurobipy as gp
    except ImportError:
        raise BackendUnavailable("gurobipy is not installed: pip install 'equipoise[gurobi]'") from None
    if len(log_terms(program)) and not hasattr(gp, "nlfunc"):
        release = ".".join(map(str, gp.gurobi.version()))
        raise UnsupportedProblem(f"gurobipy {release} cannot state logarithms exactly: pip install 'gurobipy>=12'")
    try:
        model = gp.Model(env=env)
    except gp.GurobiError as error:
        raise BackendUnavailable(f"Gurobi does not start: {error}") from None
    x = _add_columns(model, program, names)
    _add_rows(model, program, x, names)
    _add_logs(model, program, x)
    model.ModelSense = gp.GRB.MAXIMIZE if program.sense == "max" else gp.GRB.MINIMIZE
    model.ObjCon = program.offset
    model.update()
    return model


def gurobi_values(program: ProgramData, model: Any) -> Floats:
    """Return the values of the program's columns, shape (columns,), in the best solution that the model holds.

    Integer columns have Gurobi's values, which are whole numbers within its `IntFeasTol`. Raises NoSolution if the
    model holds none, InvalidInput if it has fewer variables than the program has columns.
    """
    if model.NumVars < program.num_columns:
        why = f"has too few variables for a program of {program.num_columns} columns"
        raise InvalidInput("model", model.NumVars, why)
    from gurobipy import GRB

    if model.SolCount == 0 or model.Status == GRB.UNBOUNDED:  # the solution of an unbounded program is about 1e30
        raise NoSolution(f"the model holds no solution: Gurobi's status is {status_name(model.Status)}", None)
    return np.array(model.getAttr("X", model.getVars()[: program.num_columns])) + 0.0  # converts -0.0 to 0.0


def log_terms(program: ProgramData) -> Indices:
    """Return the log terms of positive weight."""
    return np.flatnonzero(program.log_weights > 0)


def range_rows(program: ProgramData) -> Indices:
    """Return the rows with two finite sides that differ; each needs a variable of its own."""
    low, high = program.row_lower, program.row_upper
    return np.flatnonzero(np.isfinite(low) & np.isfinite(high) & (low != high))


def status_name(status: int) -> str:
    """Return the name of a status of Gurobi's, such as "INFEASIBLE"."""
    from gurobipy import GRB

    names: dict[int, str] = {value: name for name, value in vars(type(GRB.Status)).items() if isinstance(value, int)}
    return names.get(status, str(status))


def _add_columns(model: Any, program: ProgramData, names: bool) -> Any:
    """Add the columns, block by block, and return them all as one flat `MVar`."""
    import gurobipy as gp

    binary = program.integer & (program.lower >= 0) & (program.upper <= 1)
    kinds = np.where(binary, "B", np.where(program.integer, "I", "C"))
    parts = []
    for name, index in _blocks_in_order(program.columns, program.num_columns):
        part = model.addMVar(
            index.shape,
            lb=program.lower[index],
            ub=program.upper[index],
            obj=program.objective[index],
            vtype=kinds[index],
            **({"name": name} if name and names else {}),
        )
        parts.append(part.reshape(-1))
    x = gp.concatenate(parts) if parts else model.addMVar((0,))
    model._columns = {name: x[index] for name, index in program.columns.items()}
    return x


def _add_rows(model: Any, program: ProgramData, x: Any, names: bool) -> None:
    """Add the rows, block by block; one with two sides becomes ``a x - range = 0`` with the sides as bounds."""
    import gurobipy as gp
    from scipy.sparse import csr_array, hstack

    low, high = program.row_lower, program.row_upper
    ranged = range_rows(program)
    sense = np.where(low == high, "=", np.where(np.isfinite(low), ">", "<"))
    sense[ranged] = "="
    side = np.where(sense == ">", low, high)
    side[ranged] = 0.0
    rows, columns = program.to_scipy(), x
    if len(ranged):
        columns = gp.concatenate([x, model.addMVar(len(ranged), lb=low[ranged], ub=high[ranged], name="row.range")])
        each = np.arange(len(ranged))
        minus = csr_array((-np.ones(len(ranged)), (ranged, each)), shape=(program.num_rows, len(ranged)))
        rows = csr_array(hstack([rows, minus], format="csr"))
    parts = []
    for name, index in _blocks_in_order(program.rows, program.num_rows):
        flat = index.ravel()
        block = slice(flat[0], flat[0] + len(flat))
        parts.append(
            model.addMConstr(
                rows[block], columns, sense[block], side[block], **({"name": name} if name and names else {})
            )
        )
    every = gp.concatenate(parts) if parts else None
    model._rows = {name: every[index] for name, index in program.rows.items() if every is not None}


def _add_logs(model: Any, program: ProgramData, x: Any) -> None:
    """Add ``log = log(a x + b)`` for every term of positive weight, with the weights in the objective."""
    used = log_terms(program)
    if not len(used):
        return
    from gurobipy import nlfunc
    from scipy.sparse import csr_array

    inside = program.log_matrix
    matrix = csr_array(
        (inside.values, inside.columns, inside.starts), shape=(len(program.log_weights), program.num_columns)
    )
    log = model.addMVar(len(used), lb=-np.inf, obj=program.log_weights[used], name="log.value")
    model.addConstr(log == nlfunc.log(matrix[used] @ x + program.log_offsets[used]))


def _blocks_in_order(blocks: Mapping[str, Indices], count: int) -> Iterator[tuple[str, Indices]]:
    """Yield (name, indices) that cover 0..count-1 in order; indices outside whole blocks have no name."""
    done = 0
    for name, index in sorted(blocks.items(), key=lambda block: block[1].min(initial=count)):
        start = int(index.min(initial=count))
        if not index.size or start < done or not np.array_equal(index.ravel(), np.arange(start, start + index.size)):
            continue
        if start > done:
            yield "", np.arange(done, start)
        yield name, index
        done = start + index.size
    if done < count:
        yield "", np.arange(done, count)
