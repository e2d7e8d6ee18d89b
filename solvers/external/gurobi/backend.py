"""Gurobi backend: linear and mixed-integer programs as arrays, and logarithms as native constraints."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, ClassVar

from ....formulations.errors import BackendUnavailable, InvalidInput, LicenseLimit
from ....formulations.program.data import ProblemClass
from ....formulations.program.model import Program
from ....formulations.program.to_gurobi import gurobi_model, log_terms
from ...backend import Answer, Availability, Backend, Claim, Progress, Task, gaps
from ...deadline import Deadline
from ...options import Options
from ...result import Limit
from ..conventions import inner_tolerance
from .licence import (
    ADVICE,
    BUNDLED_LOG_SIZE,
    LICENCE_PARAMETERS,
    TOO_LARGE,
    check_size,
    described_size,
    logs_fit,
    with_licence,
)
from .run import run

FINEST = 1e-9  # the smallest tolerance that Gurobi takes
# Whole numbers are rounded and logarithms recomputed after Gurobi's test of its gap: a margin for the difference.
GAP_SHARE, LOG_GAP_SHARE = 0.99, 0.5
LARGEST_SEED = 2_000_000_000
# Complementarity of the barrier for smooth programs. The gap proved afterwards is about this times the number of
# columns.
SMOOTH = {"OptimalityTarget": 1, "NLBarCFeasTol": 1e-10, "NLBarDFeasTol": 1e-9, "NLBarPFeasTol": 1e-9}

LOGS_TOO_MANY = f"beyond {BUNDLED_LOG_SIZE} variables the licence allows no native logarithms: tangent cuts"

# Parameters that are values of the objective.
IN_OBJECTIVE = {"BestObjStop", "BestBdStop", "Cutoff"}


class Gurobi(Backend):
    """Gurobi through gurobipy, given arrays."""

    name = "gurobi"
    licence = "commercial"
    requires = ("gurobipy",)
    extra = "gurobi"
    classes = frozenset(ProblemClass)
    supported_options = frozenset({"threads", "seed", "warm_start", "log"})
    covered_options: ClassVar = {
        "TimeLimit": "time_limit",
        "MIPGap": "rel_gap",
        "MIPGapAbs": "abs_gap",
        "FeasibilityTol": "feasibility_tol",
        "IntFeasTol": "feasibility_tol",
        "Threads": "threads",
        "Seed": "seed",
        "OutputFlag": "log",
        "LogToConsole": "log",
    }
    known_options = None  # the solver refuses unknown options

    def probe(self) -> Availability:
        """Return whether gurobipy is installed, and the limit of its licence; never raise."""
        return with_licence(super().probe())

    def solve(self, task: Task, options: Options, on_progress: Progress) -> Answer:
        """Pass the program as arrays, stream incumbents and bounds, and read the proved values."""
        import gurobipy as gp

        program, deadline = task.stated_program, Deadline.of(options)
        own = self.backend_options(options)
        for name in IN_OBJECTIVE & own.keys():
            if isinstance(own[name], float):
                own[name] *= task.objective_factor
        limited = bool(self.probe().limit) and not LICENCE_PARAMETERS & own.keys()
        if limited:
            check_size(program)
        try:
            native = not len(log_terms(program)) or (_knows_logs(program) and (logs_fit(program) or not limited))
            if native:
                with _environment(program, options, own) as env, gurobi_model(program, env, names=False) as model:
                    answer = run(model, task, options, own, on_progress)
                if answer is not None:
                    return answer
            answer = self._by_tangents(task, deadline.options(), on_progress, limited)
            if limited and _knows_logs(program) and not logs_fit(program):
                answer = replace(answer, notes=(*answer.notes, LOGS_TOO_MANY))
            return answer
        except gp.GurobiError as error:
            codes = gp.GRB.Error
            if error.errno == TOO_LARGE:
                raise LicenseLimit(f"{described_size(program)}: beyond this Gurobi's licence; {ADVICE}") from None
            if error.errno in (codes.NO_LICENSE, codes.NETWORK, codes.JOB_REJECTED, codes.CLOUD):
                raise BackendUnavailable(
                    f"Gurobi's licence does not work: {error}. Renew it (what comes with gurobipy ends after some two "
                    "years: pip install --upgrade gurobipy), or use backend='highs'"
                ) from None
            if error.errno == codes.OUT_OF_MEMORY:
                return Answer(claim=Claim.STOPPED, limit=Limit.MEMORY, message=f"Gurobi: {error}")
            raise

    def _by_tangents(self, task: Task, options: Options, on_progress: Progress, limited: bool) -> Answer:
        from ...reductions.outer_approximation.solve import solve_by_tangents
        from .row_relaxation import WithinLicence

        try:
            return solve_by_tangents(WithinLicence(self) if limited else self, task, options, on_progress)
        except LicenseLimit as error:  # the cuts exceed the licence; everything found before has been reported
            return Answer(claim=Claim.STOPPED, limit=Limit.METHOD, message=f"tangent cuts ended: {error}")


def _knows_logs(program: Program) -> bool:
    """Whether this version of Gurobi has a suitable method for the program's logarithms."""
    import gurobipy as gp

    # Integer programs take the search of version 12. It closes no fine gap on continuous ones: they take the barrier of
    # 13.
    return hasattr(gp, "nlfunc") and (bool(program.integer.any()) or hasattr(gp.GRB.Param, "OptimalityTarget"))


def _environment(program: Program, options: Options, own: dict[str, Any]) -> Any:
    """Return a started environment with all parameters; InvalidInput for an own option that Gurobi refuses."""
    import gurobipy as gp

    env = gp.Env(empty=True)
    try:
        for name, value in _parameters(program, options).items():
            env.setParam(name, value)
        for name, value in own.items():
            _set_own(env, name, value)
        env.start()
    except BaseException:
        env.dispose()
        raise
    return env


def _parameters(program: Program, options: Options) -> dict[str, Any]:
    tolerance = inner_tolerance(options, FINEST)
    relative, absolute = gaps(program, options)
    logs, integer = len(log_terms(program)) > 0, program.integer.any()
    share = LOG_GAP_SHARE if logs else GAP_SHARE
    found = {
        "LogToConsole": int(options.log),
        "TimeLimit": math.inf if options.time_limit is None else options.time_limit,
        "MIPGap": share * relative,
        "MIPGapAbs": share * absolute,
        "FeasibilityTol": FINEST if logs else tolerance,
        "IntFeasTol": tolerance,
        "OptimalityTol": FINEST,  # the duals prove the bound of an LP
        "Threads": options.threads,
        "Seed": options.seed % LARGEST_SEED,
    }
    if options.threads > 1 and not integer:
        found["Method"] = 4  # several methods race for an LP: make the outcome of the race repeatable
    return found | (SMOOTH if logs and not integer else {})


def _set_own(env: Any, name: str, value: Any) -> None:
    import gurobipy as gp

    field = f"backend_options['gurobi'][{name!r}]"
    if str(name).startswith("_") or not hasattr(gp.GRB.Param, str(name)):
        raise InvalidInput(field, value, "Gurobi has no parameter of this name (they are spelt as in its manual)")
    kind = type(env.getParam(name))
    if isinstance(value, bool) or not isinstance(value, (int, float) if kind is float else kind):
        raise InvalidInput(field, value, f"must be of type {kind.__name__}")  # Gurobi would truncate 2.7 to 2
    try:
        env.setParam(name, value)
    except gp.GurobiError as error:
        raise InvalidInput(field, value, str(error)) from None


BACKEND = Gurobi()
