"""Ipopt's program ipopt behind Pyomo."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from ....formulations.arrays import Floats
from ....formulations.errors import InvalidInput
from ....formulations.program.data import Csr, ProblemClass
from ....formulations.program.model import Program
from ...backend import Claim
from ...options import Options
from ...result import Limit
from ..conventions import inner_tolerance
from .run import Call, Outcome, PyomoSolver, SolverFailed, load

# Ipopt's default of 1e-8 leaves complementarities that add up to a gap.
TOLERANCE = 1e-9
# Ipopt's default of 1e20 is seldom reached before its limit of iterations.
DIVERGED = 1e15
#: Ipopt's last line: its text, the claim, and the limit.
ENDS = (
    ("Optimal Solution Found", Claim.SOLVED, None),
    ("Solved To Acceptable Level", Claim.SOLVED, None),
    ("Feasible point for square problem found", Claim.SOLVED, None),
    ("Search Direction is becoming Too Small", Claim.STOPPED, Limit.METHOD),
    ("Maximum Number of Iterations Exceeded", Claim.STOPPED, Limit.ITERATIONS),
    ("Maximum CPU time exceeded", Claim.STOPPED, Limit.TIME),
    ("Maximum wallclock time exceeded", Claim.STOPPED, Limit.TIME),
    ("Converged to a point of local infeasibility", Claim.INFEASIBLE, None),
    ("inconsistent variable bounds or constraint sides", Claim.INFEASIBLE, None),
    ("Iterates diverging", Claim.UNBOUNDED, None),
)


class Ipopt(PyomoSolver):
    """Ipopt: linear programs and logarithms; its duals prove the bound."""

    name = "pyomo:ipopt"
    licence = "EPL-2.0"
    classes = frozenset({ProblemClass.LP, ProblemClass.LOG})
    supported_options = frozenset({"warm_start", "log"})
    covered_options: ClassVar = {
        "max_wall_time": "time_limit",
        "max_cpu_time": "time_limit",
        "constr_viol_tol": "feasibility_tol",
        "print_level": "log",
    }
    known_options = None  # the solver refuses unknown options
    title, executable, install = "Ipopt", "ipopt", "conda install -c conda-forge ipopt"

    def backend_options(self, options: Options) -> dict[str, Any]:
        """Return Ipopt's own options; Ipopt itself checks them, in the solve."""
        own = super().backend_options(options)
        for name, value in own.items():
            field = f"backend_options[{self.name!r}][{name!r}]"
            if not re.fullmatch(r"\w+", str(name)) or not re.fullmatch(r"\S+", str(value)):
                raise InvalidInput(field, value, "Ipopt's options have names of text, and values of text or numbers")
            if name in ("option_file_name", "wantsol"):
                raise InvalidInput(field, value, "Pyomo sets it")
        return own

    def stated(self, program: Program, start: Floats | None) -> tuple[Program, Floats | None]:
        """Return the program with one more column for every log argument.

        Ipopt keeps columns off their bounds, and so the logarithms within their domain, from its first point on.
        """
        wanted = np.flatnonzero(program.log_weights > 0)
        terms, n = len(wanted), program.num_columns
        if not terms:
            return program, start
        from scipy.sparse import block_array, csr_array, eye_array

        logs, offsets, none = program.log_matrix, program.log_offsets[wanted], np.zeros(terms)
        inside = csr_array((logs.values, logs.columns, logs.starts), shape=(len(program.log_weights), n))[wanted]
        rows = block_array([[program.to_scipy(), None], [inside, -eye_array(terms)]], format="csr")
        stated = replace(
            program,
            objective=np.append(program.objective, none),
            lower=np.append(program.lower, none),
            upper=np.append(program.upper, none + np.inf),
            integer=np.append(program.integer, none > 0),
            matrix=Csr(rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data.astype(np.float64)),
            row_lower=np.append(program.row_lower, -offsets),
            row_upper=np.append(program.row_upper, -offsets),
            log_weights=program.log_weights[wanted],
            log_matrix=Csr(np.arange(terms + 1), np.arange(n, n + terms), np.ones(terms)),
            log_offsets=none,
        )
        return stated, None if start is None else np.append(start, inside @ start + offsets)

    def run(self, call: Call) -> Outcome:
        """Run ipopt on the program, or on the rows alone; its options go into a file, which accepts all of them."""
        from pyomo.environ import SolverFactory

        plugin: Any = SolverFactory("ipopt", executable=call.executable)
        asked: dict[str, Any] = {
            "tol": TOLERANCE,
            "constr_viol_tol": inner_tolerance(call.options),
            "bound_relax_factor": 0.0,  # by default it moves bounds and sides outwards by 1e-8
            "diverging_iterates_tol": DIVERGED,
            "print_level": 5,
        }
        if call.seconds is not None:
            wall = (plugin.version() or (0,)) >= (3, 14)
            asked["max_wall_time" if wall else "max_cpu_time"] = max(call.seconds, 1e-3)
        given = {f"OF_{name}": value for name, value in {**asked, **call.own}.items()}
        log = call.folder / "log"
        try:
            results = call.solved_by(plugin, options=given, timelimit=call.seconds, logfile=str(log))
        except SolverFailed as failure:
            words = str(failure)
            wrong = next((name for name in call.own if name in words), None)
            if "OPTION_INVALID" not in words or wrong is None:
                raise
            field = f"backend_options[{self.name!r}][{wrong!r}]"
            raise InvalidInput(field, call.own[wrong], "Ipopt does not take this option or value") from None
        log_text = log.read_text(errors="replace")
        end = re.findall(r"^EXIT: (.*)$", log_text, re.MULTILINE)
        exit_text = end[-1] if end else "no verdict"
        known = ((claim, limit) for words, claim, limit in ENDS if words in exit_text)
        claim, limit = next(known, (Claim.FAILED, None))
        point = claim in (Claim.SOLVED, Claim.STOPPED) and len(results.solution) > 0
        if point:
            load(call.model, results)
        message = "" if exit_text.startswith("Optimal") else f"Ipopt: {exit_text}"
        return Outcome(claim=claim, limit=limit, message=message, has_point=point)
