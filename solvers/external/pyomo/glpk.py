"""GLPK's program glpsol behind Pyomo."""

from __future__ import annotations

import math
import re
from typing import Any, ClassVar

from ....formulations.errors import InvalidInput
from ....formulations.program.data import ProblemClass
from ....formulations.program.model import Program
from ...backend import Claim, gaps
from ...options import Options
from ...result import Limit
from .run import Call, Outcome, PyomoSolver, load, outwards

#: Switches of the simplex method and of branch and bound; the other switches name files or change the problem.
SWITCHES = (
    "simplex primal dual std adv bib steep nosteep relax norelax flip presol nopresol exact xcheck scale noscale luf "
    "btf ft cbg cgr nord qmd amd symamd first last mostf drtom pcost dfs bfs bestp bestb intopt nointopt binarize "
    "fpump proxy gomory mir cover clique cuts"
)
# Bounds are printed with 10 digits.
DIGITS = 1e-9


class Glpk(PyomoSolver):
    """GLPK: one thread, no random numbers, no warm start; its tolerances are fixed."""

    name = "pyomo:glpk"
    licence = "GPL-3.0"
    classes = frozenset({ProblemClass.LP, ProblemClass.MILP})
    supported_options = frozenset({"log"})
    covered_options: ClassVar = {"tmlim": "time_limit", "mipgap": "rel_gap", "log": "log"}
    known_options = frozenset(SWITCHES.split())
    title, executable, install = "GLPK", "glpsol", "apt-get install glpk-utils"

    def backend_options(self, options: Options) -> dict[str, Any]:
        """Return glpsol's switches, each with the value None, which Pyomo passes on without a value."""
        own = super().backend_options(options)
        for switch, value in own.items():
            field = f"backend_options[{self.name!r}][{switch!r}]"
            if value is not True:
                raise InvalidInput(field, value, "a switch has no value: give True, or leave it out")
        return dict.fromkeys(own)

    def run(self, call: Call) -> Outcome:
        """Run glpsol, with its limit in whole seconds and its one gap, the relative one."""
        from pyomo.environ import SolverFactory

        relative, _ = gaps(call.program, call.options)
        asked = {"mipgap": relative} if call.program.integer.any() else {}
        limit = None if call.seconds is None else math.ceil(call.seconds)
        plugin, log = SolverFactory("glpk", executable=call.executable), call.folder / "log"
        results = call.solved_by(plugin, options={**asked, **call.own}, timelimit=limit, logfile=str(log))
        found = outcome(call.program, log.read_text(errors="replace"), has_solution=len(results.solution) > 0)
        if found.has_point:
            load(call.model, results)
        return found


def outcome(program: Program, log: str, has_solution: bool) -> Outcome:
    """Return the last verdict in the log; Pyomo takes a basis left by a limit for an optimal one."""
    verdicts = re.findall(r"^(?=.*(?:SOLUTION|TERMINATED))[A-Z][A-Z /;-]+$", log, re.MULTILINE)
    last = verdicts[-1] if verdicts else ""
    message = f"GLPK: {last.lower() or 'no verdict'}"
    whole = "Integer Optimizer" in log  # the log lacks it if no row nor the objective has an integer column
    bounds = re.findall(r"^\+ *\d+: .* [<>]= +(-?\d\S+)", log, re.MULTILINE) if whole else []
    bound = outwards(program, float(bounds[-1]), DIGITS) if bounds else None
    if "LIMIT EXCEEDED" in last:
        limit = Limit.TIME if last.startswith("TIME") else Limit.ITERATIONS
        return Outcome(claim=Claim.STOPPED, limit=limit, message=message, has_point=has_solution, bound=bound)
    if "NO DUAL FEASIBLE" in last or "PRIMAL/DUAL" in last:
        return Outcome(claim=Claim.INFEASIBLE_OR_UNBOUNDED, message=message)
    if "UNBOUNDED" in last:
        return Outcome(claim=Claim.UNBOUNDED, message=message)
    if " HAS NO " in last:
        return Outcome(claim=Claim.INFEASIBLE, message=message)
    if has_solution and last.startswith("RELATIVE MIP GAP"):
        return Outcome(claim=Claim.SOLVED, has_point=True, bound=bound)
    if has_solution and ("INTEGER OPTIMAL" if whole else "OPTIMAL") in last:
        return Outcome(claim=Claim.SOLVED, has_point=True, within=0.0)
    return Outcome(claim=Claim.FAILED, message=message)
