"""A program as a SCIP model: fast construction, progress events, and the readings of its solution."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Mapping
from itertools import repeat
from typing import Any

import numpy as np

from ....formulations.arrays import Floats
from ....formulations.errors import InvalidInput
from ....formulations.program.data import ProblemClass
from ....formulations.program.model import Program
from ...backend import Progress
from ...deadline import Deadline

# The value that SCIP treats as infinite.
INFINITY = 1e20
# A linear program must reach the simplex method unchanged and be solved to its end: then the duals are those of its
# rows.
LINEAR = {
    "presolving/maxrounds": 0,
    "propagating/maxrounds": 0,
    "propagating/maxroundsroot": 0,
    "misc/usesymmetry": 0,  # SCIP adds constraints to linear programs too
    "lp/disablecutoff": 1,
}
# Reading 30,000 values takes 7 ms, and SCIP finds incumbents in bursts.
READING_SHARE = 0.03
FREE_S = 1e-3
# Parameters in the objective's own unit.
IN_OBJECTIVE = ("limits/absgap", "limits/primal", "limits/dual")
# Prefixes of parameters that SCIP accepts but that have no effect, or a harmful one, here.
REFUSED = {
    "parallel/": "has no effect: SCIP runs on one thread here",
    "concurrent/": "has no effect: SCIP runs on one thread here",
    "reading/": "has no effect: SCIP reads no file here",
    "misc/catchctrlc": "cannot be changed: pyscipopt loses the interrupts that SCIP does not take",
}
FIELD = "backend_options['scip'][{!r}]"
KINDS = {bool: "True or False", int: "a whole number", float: "a number", str: "text"}


class ScipModel:
    """An LP or MILP in a `pyscipopt.Model`; it is solved once, as SCIP is unreliable when it continues after a limit.

    Parameters
    ----------
    parameters, own : mapping of str to object
        Parameters by SCIP's names: the backend's, and the user's (InvalidInput where SCIP does not take one).
    feasibility_only : bool
        Whether to omit the objective.

    Attributes
    ----------
    plain : bool
        Whether it is an LP that is not presolved: one with duals.
    fallback : ndarray of float or None
        A feasible point by column, for when SCIP finds none.
    nothing : float
        The trivial (infinite) bound.
    """

    def __init__(
        self,
        program: Program,
        parameters: Mapping[str, Any],
        own: Mapping[str, Any],
        *,
        log: bool = False,
        feasibility_only: bool = False,
        objective_factor: float = 1.0,
    ) -> None:
        from pyscipopt import Model

        self.program = program
        self.linear = program.problem_class is ProblemClass.LP
        self.nothing = program.sign * math.inf
        self.fallback: Floats | None = None
        self.running = False
        self.model = Model("program")
        self.model.hideOutput(not log)
        # Some parameters hold only for problems that are created after they are set.
        self.model.freeProb()
        if self.linear:
            self.model.setParams(LINEAR)
        for name, value in parameters.items():
            self._set(name, value)
        for name, value in own.items():
            _check(self.model, name, value)
            self._set(name, value, objective_factor if name in IN_OBJECTIVE else None)
        self.model.createProbBasic("program")
        self.plain = self.linear and not self.model.getParam("presolving/maxrounds")
        self.columns = _add_columns(self.model, program, feasibility_only=feasibility_only)
        self.rows = _add_rows(self.model, program, self.columns, keep=self.plain)

    def _set(self, name: str, value: Any, factor: float | None = None) -> None:
        in_unit = value if factor is None else float(np.clip(factor * value, -INFINITY, INFINITY))
        try:
            self.model.setParam(name, in_unit)
        except (ValueError, LookupError, OverflowError, TypeError):
            raise InvalidInput(FIELD.format(name), value, "SCIP does not take this value") from None

    def optimize(self, deadline: Deadline) -> str:
        """Run SCIP once, until the deadline at most; return its status."""
        if (left := deadline.left()) is not None:
            self.model.setParam("limits/time", min(left, INFINITY))
        self.running = True
        try:
            self.model.optimizeNogil()
        finally:
            self.running = False
        return str(self.model.getStatus())

    def free(self) -> None:
        """Free SCIP's memory now: model and event handler refer to each other."""
        self.columns, self.rows = [], []
        self.model.free()

    def bound(self) -> float | None:
        """Return SCIP's bound in the program's own sense; None if there is none."""
        bound = float(self.model.getDualbound())
        return bound if abs(bound) < INFINITY else None

    def values(self) -> Floats | None:
        """Return the best solution by column; None if there is none."""
        if not self.model.getNSols():  # without a solution, SCIP's values are those of a relaxation
            return None
        return np.fromiter(map(self.model.getBestSol().__getitem__, self.columns), np.float64, len(self.columns))

    def objective(self) -> float | None:
        """Return the objective of the best solution; None if there is none."""
        # Not the primal bound: that is still outdated when the event of a new best solution is raised.
        if not self.model.getNSols():
            return None
        return float(self.model.getSolObjVal(self.model.getBestSol()))

    def duals(self) -> Floats | None:
        """Return the duals of an LP by row, as changes of its objective; None if it was presolved."""
        if not self.plain:
            return None
        duals = np.array([self.model.getDualsolLinear(row) for row in self.rows], dtype=np.float64)
        return -self.program.sign * duals  # SCIP minimises

    def ray(self) -> Floats | None:
        """Return Farkas multipliers of an infeasible LP by row; None if it was presolved."""
        if not self.plain:
            return None
        return np.array([self.model.getDualfarkasLinear(row) for row in self.rows], dtype=np.float64)

    def offer(self, start: Floats) -> None:
        """Pass a start by column to SCIP; values that are not finite are left open."""
        given = np.flatnonzero(np.isfinite(start))
        model = self.model
        solution = model.createSol() if len(given) == len(start) else model.createPartialSol()
        for j, value in zip(given.tolist(), start[given].tolist(), strict=True):
            model.setSolVal(solution, self.columns[j], value)
        model.addSol(solution)

    def listen(self, on_progress: Progress) -> list[Exception]:
        """Report incumbents and bounds while SCIP runs; return the list that takes what `on_progress` raises."""
        handler = _event_handler()(self, on_progress)
        self.model.includeEventhdlr(handler, "progress", "reports incumbents and bounds")
        raised: list[Exception] = handler.raised
        return raised


def _event_handler() -> Any:
    """Return the class of event handlers; it is made here, as pyscipopt is imported only on use."""
    from pyscipopt import SCIP_EVENTTYPE, Eventhdlr

    events = (SCIP_EVENTTYPE.BESTSOLFOUND, SCIP_EVENTTYPE.DUALBOUNDIMPROVED)

    class ProgressHandler(Eventhdlr):  # type: ignore[misc]
        """Reports incumbents and bounds; reads the incumbents' values while that takes a small share of the time.

        Values that are skipped are read at a later event.
        """

        def __init__(self, scip: ScipModel, on_progress: Progress) -> None:
            self.scip, self.on_progress = scip, on_progress
            self.raised: list[Exception] = []
            self.bound: float | None = None
            self.unread = False
            self.began, self.spent = time.perf_counter(), 0.0

        def eventinit(self) -> None:
            for event in events:
                self.model.catchEvent(event, self)

        def eventexit(self) -> None:
            for event in events:
                self.model.dropEvent(event, self)

        def eventexec(self, event: Any) -> None:
            if self.raised or not self.scip.running:  # a model being freed reports the incumbent's value as its bound
                return
            now, bound = time.perf_counter(), self.scip.bound()
            found = event.getType() == SCIP_EVENTTYPE.BESTSOLFOUND
            self.unread |= found
            read = self.unread and self.spent <= FREE_S + READING_SHARE * (now - self.began)
            if not (found or read or bound != self.bound):
                return
            self.bound = bound
            try:
                incumbent = self.scip.values() if read else None
                self.on_progress(self.scip.objective(), self.scip.nothing if bound is None else bound, incumbent)
            except Exception as error:  # SCIP would print it and continue
                self.raised.append(error)
                self.model.interruptSolve()
            if read:
                self.unread, self.spent = False, self.spent + time.perf_counter() - now

    return ProgressHandler


def _add_columns(model: Any, program: Program, *, feasibility_only: bool) -> list[Any]:
    """Add columns and, if it counts, the objective to the model; return its variables."""
    n = program.num_columns
    binary = program.integer & (program.lower >= 0) & (program.upper <= 1)
    kinds = np.where(binary, "B", np.where(program.integer, "I", "C")).tolist()
    costs = (0.0 * program.objective if feasibility_only else program.objective).tolist()
    names, lower, upper = map(str, range(n)), _finite(program.lower), _finite(program.upper)
    variables = list(map(model.addVar, names, kinds, lower, upper, costs))
    model.addObjoffset(0.0 if feasibility_only else program.offset)
    if program.sense == "max":
        model.setMaximize()
    return variables


def _add_rows(model: Any, program: Program, columns: list[Any], keep: bool) -> list[Any]:
    """Add the rows to the model; return its constraints.

    SCIP turns a row of one entry into a bound, which has no dual. `keep` prevents that by declaring the rows
    modifiable. (Presolving may drop modifiable rows.)
    """
    from pyscipopt import Expr, ExprCons

    matrix = program.matrix
    starts, of_entry, value = matrix.starts.tolist(), matrix.columns.tolist(), matrix.values.tolist()
    nothing, rows = Expr(), []
    for i, (low, high) in enumerate(zip(_finite(program.row_lower), _finite(program.row_upper), strict=True)):
        # An empty constraint, filled entry by entry: that takes half the time of one made of an expression.
        row = model.addCons(ExprCons(nothing, low, high), str(i), modifiable=keep)
        here = slice(starts[i], starts[i + 1])
        deque(map(model.addCoefLinear, repeat(row), map(columns.__getitem__, of_entry[here]), value[here]), maxlen=0)
        rows.append(row)
    return rows


def _finite(bounds: Floats) -> list[float]:
    clipped: list[float] = np.clip(bounds, -INFINITY, INFINITY).tolist()
    return clipped


def _check(model: Any, name: str, value: Any) -> None:
    """Raise InvalidInput for a parameter that SCIP lacks, or would convert or ignore."""
    field = FIELD.format(name)
    for beginning, reason in REFUSED.items():
        if str(name).startswith(beginning):
            raise InvalidInput(field, value, reason)
    try:
        kind = type(model.getParam(str(name)))
    except KeyError:
        raise InvalidInput(field, value, "SCIP has no such parameter") from None
    if type(value) is not kind and not (kind is float and type(value) is int):
        raise InvalidInput(field, value, f"must be {KINDS[kind]}")
