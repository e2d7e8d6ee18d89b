"""The family "pyomo:SOLVER": every solver that Pyomo lists by name, four of them with an adapter of their own."""

from __future__ import annotations

import math
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

from ....formulations.errors import BackendNotFound, UnsupportedProblem
from ....formulations.program.bounds import proved_bound
from ....formulations.program.data import ProblemClass
from ....formulations.program.model import Program
from ....formulations.text import nearest_hint
from ...backend import Availability, Backend, Claim
from ...result import Limit
from .cbc import Cbc
from .glpk import Glpk
from .highs import PyomoHighs
from .ipopt import Ipopt
from .run import Call, Outcome, PyomoSolver, duals_in, load

KNOWN = {member.name: member for member in (PyomoHighs, Cbc, Glpk, Ipopt)}


def backend(name: str) -> Backend:
    """Return the backend of this name; BackendNotFound, naming the nearest, for a solver that Pyomo does not list."""
    if name in KNOWN:
        return KNOWN[name]()
    solver = name.partition(":")[2]
    if find_spec("pyomo") is not None:
        from pyomo.environ import SolverFactory

        if solver.partition(":")[0] not in SolverFactory:
            names = [*KNOWN, *(f"pyomo:{each}" for each in SolverFactory if not each.startswith("_"))]
            raise BackendNotFound(
                f"no backend {name!r}: {nearest_hint(name, names)}Pyomo knows {len(names)} solvers, this is none of "
                f"them; there are {', '.join(KNOWN)} and others"
            )
    return OtherSolver(solver)


class OtherSolver(PyomoSolver):
    """A solver without an adapter of its own: it gets the program, the time limit and its own options unchanged."""

    licence = "its own"
    classes = frozenset({ProblemClass.LP, ProblemClass.MILP})
    supported_options = frozenset({"log"})
    known_options = None  # Pyomo cannot list the options of the solver

    def __init__(self, solver: str) -> None:
        self.name, self.title = f"pyomo:{solver}", solver

    def probe(self) -> Availability:
        """Return whether Pyomo finds the solver runnable."""
        found = Backend.probe(self)
        if not found.usable:
            return found
        from pyomo.common.log import LoggingIntercept
        from pyomo.environ import SolverFactory

        with LoggingIntercept(None, "pyomo"):
            try:
                usable = bool(SolverFactory(self.title).available(exception_flag=False))
            except Exception as error:
                return replace(found, usable=False, reason=f"Pyomo fails to look for {self.title}: {error}")
        reason = "" if usable else f"Pyomo finds no {self.title}, its package or its program, that is licensed here"
        return replace(found, usable=usable, reason=reason)

    def run(self, call: Call) -> Outcome:
        """Run the solver by the interface that all of Pyomo's solvers share; its reports count as unverified."""
        from pyomo.environ import SolverFactory

        program, plugin = call.program, SolverFactory(self.title)
        can = getattr(plugin, "has_capability", None)
        if program.integer.any() and can is not None and not can("integer"):
            raise UnsupportedProblem(f"{self.name} takes no integer columns; use backend='highs'")
        asked = {"options": dict(call.own), "timelimit": call.seconds}
        try:
            results = call.solved_by(plugin, **asked)
        except NotImplementedError:  # the plugin has no duals
            call.model.del_component("dual")
            results = call.solved_by(plugin, **asked)
        condition_name = str(results.solver.termination_condition)
        claim, limit = VERDICTS.get(condition_name, (Claim.FAILED, None))
        point = claim in (Claim.SOLVED, Claim.STOPPED) and self._loaded(call, plugin, results)
        return Outcome(
            claim=claim,
            limit=limit,
            message="" if claim is Claim.SOLVED else f"{self.title}: {condition_name}",
            has_point=point,
            bound=_bound(program, results),
            notes=(f"gap and tolerances are those of {self.title}: Pyomo has no common name for them",),
        )

    def _loaded(self, call: Call, plugin: Any, results: Any) -> bool:
        """Load the solution into the model, by whichever method the plugin has; return whether there is one."""
        try:
            if len(results.solution):
                load(call.model, results)
            else:
                plugin.load_vars()
                if call.model.component("dual") is not None:
                    plugin.load_duals()
        except Exception:  # each plugin signals the lack of a solution in its own way
            return False
        program, duals = call.program, duals_in(call.program, call.model)
        if duals is not None:  # plugins differ in their sign: negated where that proves a better bound
            proved, negated = (program.sign * proved_bound(program, each) for each in (duals, -duals))
            if negated < proved:
                for row in list(call.model.dual):
                    call.model.dual[row] = -call.model.dual[row]
        return True


#: Claims by Pyomo's termination condition.
VERDICTS: dict[str, tuple[Claim, Limit | None]] = {
    "optimal": (Claim.SOLVED, None),
    "globallyOptimal": (Claim.SOLVED, None),
    "locallyOptimal": (Claim.SOLVED, None),
    "feasible": (Claim.STOPPED, Limit.METHOD),
    "maxTimeLimit": (Claim.STOPPED, Limit.TIME),
    "maxIterations": (Claim.STOPPED, Limit.ITERATIONS),
    "maxEvaluations": (Claim.STOPPED, Limit.NODES),
    "userInterrupt": (Claim.STOPPED, Limit.INTERRUPTED),
    "infeasible": (Claim.INFEASIBLE, None),
    "unbounded": (Claim.UNBOUNDED, None),
    "infeasibleOrUnbounded": (Claim.INFEASIBLE_OR_UNBOUNDED, None),
}


def _bound(program: Program, results: Any) -> float | None:
    stated = results.problem.upper_bound if program.sense == "max" else results.problem.lower_bound
    try:
        bound = float(stated)
    except (TypeError, ValueError):
        return None
    return bound if math.isfinite(bound) and abs(bound) < 1e20 else None
