"""CBC's program cbc behind Pyomo."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ....formulations.errors import InvalidInput
from ....formulations.program.data import ProblemClass
from ....formulations.program.model import Program
from ....formulations.program.to_pyomo import pyomo_variables
from ...backend import Claim, gaps
from ...options import Options
from ...result import Limit
from ..conventions import inner_tolerance
from .run import Call, Outcome, PyomoSolver, load, outwards

#: Parameters that a common option, or the program, already covers.
COVERED = {
    "seconds": "use time_limit= instead",
    "timeMode": "use time_limit= instead, which is wall time",
    "ratioGap": "use rel_gap= instead",
    "allowableGap": "use abs_gap= instead",
    "primalTolerance": "use feasibility_tol= instead",
    "integerTolerance": "use feasibility_tol= instead",
    "threads": "use threads= instead",
    "randomSeed": "use seed= instead",
    "randomCbcSeed": "use seed= instead",
    "logLevel": "use log= instead",
    "slogLevel": "use log= instead",
    "verbose": "use log= instead",
    "messages": "CBC's messages are read",
    "printingOptions": "CBC's solution is read",
    "keepNames": "CBC's solution is read",
    "direction": "the program has its sense",
}
#: Limits by CBC's status: of a search in CBC's terms, of a linear program in Pyomo's.
LIMITS = {
    "time": Limit.TIME,
    "node": Limit.NODES,
    "solution": Limit.SOLUTIONS,
    "iterations": Limit.ITERATIONS,
    "maxTimeLimit": Limit.TIME,
    "maxIterations": Limit.ITERATIONS,
}
COMPLAINT = r"^(?:No match|Multiple match|Short match|String of|.* was provided for|<Possible options).*"
# Bounds and gaps are printed with 8 digits.
DIGITS = 1e-7
# CBC accepts only solutions that are better by this; or by this, where objectives are whole numbers. Its default is
# 1e-5 or the absolute gap, and it then calls suboptimal solutions optimal.
INCREMENT, WHOLE = 1e-9, 0.999
# The default is 1e-7, which is large for large columns.
DUAL_TOLERANCE = 1e-9
# The largest seed.
LARGEST = 2**31 - 1


class Cbc(PyomoSolver):
    """CBC: branch and cut; the log is read for status and bound, the saved doubles for the solution."""

    name = "pyomo:cbc"
    licence = "EPL-2.0"
    classes = frozenset({ProblemClass.LP, ProblemClass.MILP})
    supported_options = frozenset({"threads", "seed", "warm_start", "log"})
    known_options = None  # CBC checks each
    title, executable, install = "CBC", "cbc", "apt-get install coinor-cbc"

    def backend_options(self, options: Options) -> dict[str, Any]:
        """Return CBC's parameters; each is checked by CBC beforehand, as a solve ignores a wrong one."""
        own = super().backend_options(options)
        for name, value in own.items():
            field = f"backend_options[{self.name!r}][{name!r}]"
            for full, why in COVERED.items():  # CBC accepts abbreviated names, in any case
                if full.lower().startswith(str(name).lower()):
                    raise InvalidInput(field, value, why)
            if not str(value).strip():
                raise InvalidInput(field, value, "CBC's actions are no options: give a parameter and its value")
            asked = [shutil.which(self.executable) or self.executable, f"-{name}", str(value), "-quit"]
            completed = subprocess.run(asked, capture_output=True, text=True, timeout=10, stdin=subprocess.DEVNULL)
            complaint = re.search(COMPLAINT, completed.stdout, re.MULTILINE)
            if complaint:
                raise InvalidInput(field, value, f"CBC does not take this option or value: {complaint[0]}")
        return own

    def run(self, call: Call) -> Outcome:
        """Run cbc; a warm start applies to branch and bound."""
        options, whole = call.options, bool(call.program.integer.any())
        tolerance = inner_tolerance(options)
        seed = 1 + options.seed % LARGEST  # 0 would mean the time of day
        asked: dict[str, Any] = {"primalTolerance": tolerance, "dualTolerance": DUAL_TOLERANCE, "randomSeed": seed}
        if whole:
            relative, absolute = gaps(call.program, options)
            ratio = relative / (1.0 + relative)  # CBC divides by the larger of objective and bound
            asked |= {"ratioGap": ratio, "allowableGap": absolute, "integerTolerance": tolerance, "randomCbcSeed": seed}
            costs, used = call.program.objective, call.program.objective != 0
            counts = call.program.integer[used].all() and (costs == np.rint(costs)).all()
            asked["increment"] = WHOLE if counts else INCREMENT
            if options.threads > 1:
                asked["threads"] = 100 + options.threads  # the 100 makes threads deterministic
            if call.started or call.program.objective.any():
                # CBC 2.10's preprocessing loses optima of small programs, and assigns values of a start to other
                # columns.
                asked["preprocess"] = "off"
        log_file = call.folder / "log"
        given = {"options": {**asked, **call.own}, "timelimit": call.seconds, "logfile": str(log_file)}
        results = call.solved_by(_plugin(call), **given)
        log = log_file.read_text(errors="replace")
        found = outcome(call.program, results, log)
        if found.has_point:
            load(call.model, results)
        if call.started and not whole:
            return replace(found, warm_start_note="warm start not used: CBC takes one for integer programs only")
        if call.started and "MIPStart provided solution" not in log:
            return replace(found, warm_start_note="warm start dropped: CBC could not complete it")
        return found


def outcome(program: Program, results: Any, log: str) -> Outcome:
    """Return the outcome in CBC's solution file and log; without an incumbent the file holds the relaxation's point."""
    stated_status = str(results.solver.termination_condition)
    found = str(results.solution(0).status) if len(results.solution) else ""
    result = re.search(r"^Result - (.*)$", log, re.MULTILINE)
    message = f"CBC: {(result[1] if result else stated_status).lower()}"
    if stated_status == "infeasible":
        # CBC reports this for unbounded programs too, unless it has solved the relaxation and searched.
        searched = "Continuous objective value" in log and "infeasible or unbounded" not in log
        unsure = bool(program.objective.any()) and not searched
        return Outcome(claim=Claim.INFEASIBLE_OR_UNBOUNDED if unsure else Claim.INFEASIBLE, message=message)
    if stated_status == "unbounded":
        return Outcome(claim=Claim.UNBOUNDED, message=message)
    if stated_status == "optimal" and found == "optimal":
        gap = re.search(r"Exiting as integer gap of (\S+) less than", log)
        within = float(gap[1]) * (1.0 + DIGITS) if gap and "within gap tolerance" in log else 0.0
        best = re.search(r"Search completed - best objective (\S+?),", log)
        if best is None:
            return Outcome(claim=Claim.SOLVED, has_point=True, within=within)
        # The solution that CBC writes may be a little worse than its stated best, which is of a minimisation.
        return Outcome(claim=Claim.SOLVED, has_point=True, bound=-program.sign * (float(best[1]) - within))
    stopped = re.search(r"^Result - Stopped on (\w+) limit", log, re.MULTILINE)
    limit = LIMITS.get(stopped[1] if stopped else stated_status)
    if limit is None:
        return Outcome(claim=Claim.FAILED, message=message)
    point, bound = found == "stoppedByLimit" and "No feasible solution found" not in log, _bound(program, log)
    return Outcome(claim=Claim.STOPPED, limit=limit, message=message, has_point=point, bound=bound)


def _bound(program: Program, log: str) -> float | None:
    """Return the bound of an unfinished search, which CBC states for a minimisation."""
    stated = re.findall(r"\(best possible (\S+?)\)", log)
    least = float(stated[-1]) if stated else -np.inf
    if abs(least) >= 1e30:  # no bound yet
        return None
    return outwards(program, -program.sign * least, DIGITS)


def _plugin(call: Call) -> Any:
    """Return Pyomo's plugin for CBC, modified to take a whole start and to read all digits.

    cbc prints 8 digits, and saves doubles on request.
    """
    from pyomo.environ import SolverFactory

    plugin: Any = SolverFactory("cbc", executable=call.executable)
    command, read = plugin.create_command_line, plugin.process_soln_file
    saved = call.folder / "solution"

    def saving(executable: str, files: Any) -> Any:
        line = command(executable, files)
        line.cmd += ["-saveSolution", str(saved)]
        if call.started and call.program.integer.any():
            names = call.model.solutions.symbol_map[plugin._smap_id].byObject
            # Every column with a value: Pyomo omits zeros and continuous columns.
            values = enumerate(pyomo_variables(call.program, call.model))
            given = [(j, each) for j, each in values if each.value is not None and id(each) in names]
            lines = [f"{j} {names[id(each)]} {each.value:.17g}\n" for j, each in given]
            beginning = call.folder / "start"
            beginning.write_text("".join(lines), encoding="utf-8")
            line.cmd[line.cmd.index("-import") + 2 : 0] = ["-mipstart", str(beginning)]
        return line

    def reading(results: Any) -> Any:
        printed = Path(plugin._soln_file)
        text = printed.read_text(encoding="utf-8") if printed.exists() else ""
        done = read(results)
        if saved.exists() and len(results.solution):
            take_digits(results.solution(0), text, saved.read_bytes())
        return done

    plugin.create_command_line, plugin.process_soln_file = saving, reading
    return plugin


def take_digits(solution: Any, printed: str, saved: bytes) -> None:
    """Replace the printed numbers of Pyomo's solution by the saved doubles, which have all digits."""
    rows, columns = struct.unpack("ii", saved[:8])
    names = re.findall(r"^(?:\*\*)? *\d+ +(\S+) +\S+ +\S+ *$", printed, re.MULTILINE)
    numbers = np.frombuffer(saved, dtype=np.float64, offset=16)
    if len(names) != rows + columns or len(numbers) != 2 * (rows + columns):
        return
    duals = dict(zip(names[:rows], numbers[rows : 2 * rows].tolist(), strict=True))
    values = dict(zip(names[rows:], numbers[2 * rows : 2 * rows + columns].tolist(), strict=True))
    for name, entry in solution.variable.items():
        entry["Value"] = _nearest(entry["Value"], [values[name]])
    for name, entry in solution.constraint.items():
        sides = [duals[each] for each in {name, name.replace("r_l_", "r_u_", 1)} if each in duals]
        entry["Dual"] = _nearest(entry["Dual"], [*sides, *(-dual for dual in sides)])


def _nearest(printed: float, candidates: list[float]) -> float:
    best = min(candidates, key=lambda each: abs(each - printed))
    return best if abs(best - printed) <= DIGITS * max(1.0, abs(best)) else printed
