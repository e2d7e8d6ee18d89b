"""HiGHS behind Pyomo, by its interface APPSI: every Pyomo since 6.7 has it, and it takes a warm start."""

from __future__ import annotations

import math
from typing import Any

from ....formulations.errors import InvalidInput
from ....formulations.program.data import ProblemClass
from ...backend import Claim
from ...options import Options
from ...result import Limit
from ..highs import Highs, program_options, set_own
from .run import Call, Outcome, PyomoSolver


class PyomoHighs(PyomoSolver):
    """HiGHS through Pyomo. The backend "highs" solves the same programs directly."""

    name = "pyomo:highs"
    licence = "MIT"
    classes = frozenset({ProblemClass.LP, ProblemClass.MILP})
    supported_options = frozenset({"threads", "seed", "warm_start", "log"})
    covered_options, known_options = Highs.covered_options, None
    title = "HiGHS"
    requires = ("pyomo", "highspy")
    use_of_part = "the others count as 0"  # Pyomo fills missing values with zeros

    def backend_options(self, options: Options) -> dict[str, Any]:
        """Return HiGHS's own options, each tried on a separate HiGHS: Pyomo does not check that one is accepted."""
        import highspy

        own = super().backend_options(options)
        trial = highspy.Highs()
        trial.setOptionValue("output_flag", False)
        set_own(trial, own, self.name)
        return own

    def run(self, call: Call) -> Outcome:
        """Run HiGHS in this process; once more if it keeps an earlier number of threads."""
        import highspy

        found = self._once(call)
        if found.claim is Claim.FAILED:
            highspy.Highs.resetGlobalScheduler(True)
            found = self._once(call)
        return found

    def _once(self, call: Call) -> Outcome:
        from pyomo.common.log import LoggingIntercept
        from pyomo.contrib.appsi.base import TerminationCondition as Ended
        from pyomo.contrib.appsi.solvers import Highs as AppsiHighs

        options, model = call.options, call.model
        solver = AppsiHighs()
        if "warmstart" in solver.config:
            solver.config.warmstart = call.started
        elif call.started:
            raise InvalidInput("warm_start", options.warm_start, "this Pyomo hands none to HiGHS: pip install -U pyomo")
        solver.config.load_solution = False
        solver.config.stream_solver = options.log
        solver.highs_options = {**program_options(call.program, options.with_time(call.seconds)), **call.own}
        with LoggingIntercept(None, "pyomo"):
            results = solver.solve(model)
        ended = results.termination_condition
        message = "" if ended is Ended.optimal else f"HiGHS: {ended.name}"
        verdicts: dict[Any, tuple[Claim, Limit | None]] = {
            Ended.optimal: (Claim.SOLVED, None),
            Ended.infeasible: (Claim.INFEASIBLE, None),
            Ended.unbounded: (Claim.UNBOUNDED, None),
            Ended.infeasibleOrUnbounded: (Claim.INFEASIBLE_OR_UNBOUNDED, None),
            Ended.maxTimeLimit: (Claim.STOPPED, Limit.TIME),
            Ended.maxIterations: (Claim.STOPPED, Limit.ITERATIONS),
            Ended.objectiveLimit: (Claim.STOPPED, Limit.METHOD),
            Ended.interrupted: (Claim.STOPPED, Limit.INTERRUPTED),
        }
        claim, limit = verdicts.get(ended, (Claim.FAILED, None))
        best, bound = results.best_feasible_objective, results.best_objective_bound
        point = claim in (Claim.SOLVED, Claim.STOPPED) and best is not None and math.isfinite(best)
        if point:
            for variable, value in solver.get_primals().items():
                variable.set_value(value, skip_validation=True)
            if not call.program.integer.any():
                for row, dual in solver.get_duals().items():
                    model.dual[row] = dual
        if not call.program.integer.any() or bound is None or not math.isfinite(bound):
            bound = None
        return Outcome(claim=claim, limit=limit, message=message, has_point=point, bound=bound)
