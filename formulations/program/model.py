"""Program: the matrix form that every general solver reads, with its bounds, files and models of other packages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays import Floats
from ..errors import InvalidInput
from ..files import write_text
from .bounds import proved_bound
from .data import ProblemClass, ProgramData
from .formulation import Formulation
from .lp_mps import lp_text, mps_text
from .to_gurobi import gurobi_model, gurobi_values
from .to_pyomo import pyomo_model, pyomo_values

if TYPE_CHECKING:
    from os import PathLike

    from gurobipy import Env as GurobiEnv
    from gurobipy import Model as GurobiModel
    from pyomo.environ import ConcreteModel


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Program(ProgramData, Formulation[dict[str, Floats]]):
    """Maximise or minimise ``offset + objective @ x + sum_k w_k log(a_k @ x + b_k)`` over rows and bounds.

    Built by :class:`ProgramBuilder`; its arrays are those of :class:`ProgramData`, all read-only. It is a formulation
    whose plan is the values of every named block of columns.
    """

    forms = ("matrix",)

    def class_of(self, form: str | None = None) -> ProblemClass:
        """Return `problem_class`."""
        return self.problem_class

    def program(self, form: str | None = None) -> Program:
        """Return the program itself; `solve` treats it like any formulation."""
        self.check_form(form)
        return self

    def decode(self, values: Floats, duals: Floats | None = None, form: str | None = None) -> dict[str, Floats]:
        """Return the values of every named block of columns, each in the block's shape."""
        self.check_form(form)
        return {name: values[index] for name, index in self.columns.items()}

    def encode(self, plan: Mapping[str, Any], form: str | None = None) -> Floats:
        """Turn values by block, as returned by `decode`, into one column vector; columns not given are nan."""
        self.check_form(form)
        values = np.full(self.num_columns, np.nan)
        for name, block in plan.items():
            if name not in self.columns:
                raise InvalidInput("plan", name, f"no such block of columns; there are {sorted(self.columns)}")
            try:
                values[self.columns[name]] = block
            except (ValueError, TypeError):
                shape = self.columns[name].shape
                raise InvalidInput(f"plan[{name!r}]", np.shape(block), f"must have shape {shape}") from None
        return values

    def gap_scale(self, objective: float) -> float:
        """Return the size of a relative gap of 1: `gap_unit`, or max(abs(objective), 1e-9)."""
        return super().gap_scale(objective) if self.gap_unit is None else self.gap_unit

    def linear_bound(self, duals: Floats, slopes: Floats | None = None) -> float:
        """Return the bound on the objective that `duals`, shape (rows,), prove, integrality aside; infinite if none.

        By weak duality no feasible point is better, whatever the duals are. With log terms, `slopes`, shape (terms,),
        are the slopes of lines above the logarithms. See :func:`equipoise.formulations.program.bounds.proved_bound`.
        """
        return proved_bound(self, duals, slopes)

    def to_pyomo(self) -> ConcreteModel:
        """Return a Pyomo model with a Var and a Constraint for each named block, to extend and solve with Pyomo.

        `values_from_pyomo` reads the solved model back. Needs the extra ``equipoise[pyomo]``.
        """
        return pyomo_model(self)

    def values_from_pyomo(self, model: ConcreteModel) -> Floats:
        """Return the values of a solved model made by `to_pyomo`, shape (columns,), for `decode`."""
        return pyomo_values(self, model)

    def to_gurobi(self, env: GurobiEnv | None = None) -> GurobiModel:
        """Return a Gurobi model with the named blocks as its variables and constraints, to extend and optimise.

        `values_from_gurobi` reads the solved model back. Needs the extra ``equipoise[gurobi]``, and a licence for the
        program's size once it is optimised.
        """
        model: GurobiModel = gurobi_model(self, env)
        return model

    def values_from_gurobi(self, model: GurobiModel) -> Floats:
        """Return the values of a solved model made by `to_gurobi`, shape (columns,), for `decode`."""
        return gurobi_values(self, model)

    def write_lp(self, path: str | PathLike[str]) -> None:
        """Write the program in CPLEX LP format; UnsupportedProblem if it has log terms."""
        write_text(path, lp_text(self))

    def write_mps(self, path: str | PathLike[str]) -> None:
        """Write the program in free MPS format; UnsupportedProblem if it has log terms."""
        write_text(path, mps_text(self))
