"""One solve through Pyomo: build the model, run the solver without a trace, and read the stated results only."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np

from ....formulations.arrays import Floats
from ....formulations.program.data import NO_ROWS
from ....formulations.program.model import Program
from ....formulations.program.to_pyomo import pyomo_constraints, pyomo_model, pyomo_variables
from ...backend import Answer, Availability, Backend, Claim, Progress, Task
from ...deadline import Deadline
from ...options import Options
from ...result import Limit
from ..conventions import reduced_costs, warm_start_note


@dataclass(frozen=True, kw_only=True)
class Call:
    """One call of a solver behind Pyomo.

    Attributes
    ----------
    model : ConcreteModel
        The model of the program.
    own : mapping
        The solver's own options, checked.
    seconds : float or None
        Seconds left of the time limit; None without one.
    started : bool
        Whether the model's variables hold a warm start.
    executable : str
        The solver's path; empty for a Python package.
    folder : Path
        Folder for temporary files; removed afterwards.
    """

    program: Program
    model: Any
    options: Options
    own: Mapping[str, Any]
    seconds: float | None
    started: bool
    executable: str
    folder: Path

    def solved_by(self, plugin: Any, **keywords: Any) -> Any:
        """Run one of Pyomo's plugins on the model; return its results, not yet loaded into the model.

        Raise SolverFailed if the program ended with an error, and `subprocess.TimeoutExpired` if Pyomo ended it, which
        it does about a second after the limit it was given.
        """
        from pyomo.common.errors import ApplicationError
        from pyomo.common.log import LoggingIntercept
        from pyomo.common.tempfiles import TempfileManager

        captured, before = StringIO(), TempfileManager.tempdir
        # Pyomo has one stack of temporary files; entries that an exception leaves are dropped with this context.
        with LoggingIntercept(captured, "pyomo"), TempfileManager:
            TempfileManager.tempdir = str(self.folder)
            try:
                return plugin.solve(self.model, load_solutions=False, tee=self.options.log, **keywords)
            except ApplicationError as error:
                raise SolverFailed(captured.getvalue() or str(error)) from error
            finally:
                TempfileManager.tempdir = before


@dataclass(frozen=True, kw_only=True)
class Outcome(Answer):
    """The outcome of one call: an answer, whose values and duals are read from the model.

    Attributes
    ----------
    has_point : bool
        Whether the solver states that it has a solution; the model's values are read only then.
    within : float or None
        Alternative to `bound`: the proved distance of the bound from the solution's objective.
    warm_start_note : str
        Note on the use of the warm start, if the solver reports it.
    """

    has_point: bool = False
    within: float | None = None
    warm_start_note: str = ""


class PyomoSolver(Backend):
    """A solver behind Pyomo. Each member of the family defines how the solver is called and how its answer is read.

    Attributes
    ----------
    title : str
        The solver's usual name.
    executable : str
        The program that must be on PATH; empty if the last package in `requires` is the solver.
    install : str
        Command that installs the program.
    use_of_part : str
        What the solver does with an incomplete warm start, unless it completes the rest.
    """

    requires: tuple[str, ...] = ("pyomo",)
    extra = "pyomo"
    title = ""
    executable = ""
    install = ""
    use_of_part = ""

    def probe(self) -> Availability:
        """Return whether Pyomo and the solver are installed; the solver runs only once, to report its version."""
        found = super().probe()
        if not found.usable:
            return found
        if not self.executable:
            return replace(found, version=f"{found.version} ({self.title} {version(self.requires[-1])})")
        path = shutil.which(self.executable)
        if path is None:
            missing = f"{self.executable}, {self.title}'s program, is not on PATH: {self.install}"
            return replace(found, usable=False, reason=missing)
        theirs = stated_version(path, Path(path).stat().st_mtime_ns) or "of unknown version"
        return replace(found, version=f"{found.version} ({self.title} {theirs})")

    def run(self, call: Call) -> Outcome:
        """Run the solver and leave its solution in the call's model."""
        raise NotImplementedError

    def solve(self, task: Task, options: Options, on_progress: Progress) -> Answer:
        """Solve a Pyomo model of the program; Pyomo reports no progress."""
        program, deadline = task.stated_program, Deadline.of(options)
        own = self.backend_options(options)
        # GLPK accepts no fractional bounds of integers, and HiGHS calls some programs with fractional ones infeasible.
        lower, upper = program.whole_bounds
        if (lower > upper).any():
            j = int(np.argmax(lower > upper))
            between = f"[{program.lower[j]:g}, {program.upper[j]:g}]"
            return Answer(claim=Claim.INFEASIBLE, message=f"column {j} is integer, and none is in {between}")
        stated, start = self.stated(replace(program, lower=lower, upper=upper), task.start)
        found = self._attempt(stated, start, own, deadline)
        if found.claim in (Claim.UNBOUNDED, Claim.INFEASIBLE_OR_UNBOUNDED):
            found = self._settled(found, stated, own, deadline)
        duals = None if found.duals is None else found.duals[: program.num_rows]
        notes = found.notes
        if task.start is not None:
            note = warm_start_note(program, task.start, options, self.title, self.use_of_part)
            notes = (found.warm_start_note or note, *notes)
        # Every plugin gives duals, not every one reduced costs.
        reduced = None if duals is None or len(program.log_weights) else reduced_costs(program, duals)
        values = None if found.values is None else found.values[: program.num_columns]
        return replace(found, values=values, duals=duals, reduced_costs=reduced, notes=notes)

    def stated(self, program: Program, start: Floats | None) -> tuple[Program, Floats | None]:
        """Return the program and the start in the form that suits the solver: columns and rows may be appended."""
        return program, start

    def _attempt(self, program: Program, start: Floats | None, own: Mapping[str, Any], deadline: Deadline) -> Outcome:
        from pyomo.environ import Suffix

        options = deadline.given
        model = pyomo_model(program)
        if not program.integer.any():
            model.dual = Suffix(direction=Suffix.IMPORT)
        if start is not None:
            variables = pyomo_variables(program, model)
            for j in np.flatnonzero(np.isfinite(start)).tolist():
                variables[j].set_value(float(start[j]), skip_validation=True)
        seconds = deadline.left()
        if seconds == 0.0:
            message = f"the time limit passed before {self.title} started"
            return Outcome(claim=Claim.STOPPED, limit=Limit.TIME, message=message)
        priced = program.objective.any() or (program.log_weights > 0).any()
        if not priced and all(row is None for row in pyomo_constraints(program, model)):
            # Without a row and an objective, a solver would get no columns.
            return _read(Outcome(claim=Claim.SOLVED, has_point=True, within=0.0), program, model, options)
        with scratch(options.log) as folder:
            call = Call(
                program=program, model=model, options=options, own=own, seconds=seconds, started=start is not None,
                executable=(self.executable and shutil.which(self.executable)) or "", folder=folder,
            )  # fmt: skip
            try:
                return _read(self.run(call), program, model, options)
            except subprocess.TimeoutExpired:
                message = f"{self.title} did not stop at the time limit, and was ended"
                return Outcome(claim=Claim.STOPPED, limit=Limit.TIME, message=message)
            except SolverFailed as failure:
                words = " ".join(str(failure).split())[-300:]
                return Outcome(claim=Claim.FAILED, message=f"{self.title} failed: {words}")

    def _settled(self, found: Outcome, program: Program, own: Mapping[str, Any], deadline: Deadline) -> Outcome:
        """Decide between infeasible and unbounded by solving the rows without the objective."""
        none, options = np.zeros(0), deadline.given
        rows = replace(program, objective=np.zeros(program.num_columns), offset=0.0)
        rows = replace(rows, log_weights=none, log_matrix=NO_ROWS, log_offsets=none)
        nearest = np.clip(np.zeros(program.num_columns), program.lower, program.upper)
        claim = Claim.UNBOUNDED
        if not _fits(rows, nearest, options):
            alone = self._attempt(rows, None, own, deadline)
            if alone.values is None or not _fits(rows, alone.values, options):
                unsure = alone.claim is not Claim.INFEASIBLE
                claim = Claim.INFEASIBLE_OR_UNBOUNDED if unsure else Claim.INFEASIBLE
        return Outcome(claim=claim, message=found.message, notes=found.notes)


def outwards(program: Program, bound: float, share: float) -> float:
    """Return a printed bound, weakened by the share of it that printing may have cut off."""
    return bound + program.sign * share * abs(bound)


def _read(found: Outcome, program: Program, model: Any, options: Options) -> Outcome:
    """Return the outcome with the model's values and duals, where they belong to a solution."""
    if not found.has_point:
        return found
    variables = pyomo_variables(program, model)
    read = [variable.value for variable in variables]
    if None in read:
        missing = variables[read.index(None)].name
        return replace(found, claim=Claim.FAILED, limit=None, message=f"Pyomo read no value of {missing}")
    values = np.array(read, dtype=np.float64)
    duals = duals_in(program, model)
    if found.claim is not Claim.SOLVED and not _fits(program, values, options):
        return replace(found, duals=duals)  # an iterate left by a limit
    bound = found.bound
    if found.within is not None:
        best = program.objective_at(np.where(program.integer, np.rint(values), values))
        bound = best + program.sign * found.within
    return replace(found, values=values, bound=bound, duals=duals)


def duals_in(program: Program, model: Any) -> Floats | None:
    """Return the duals in a model's suffix, by row; None unless all are there."""
    suffix = model.component("dual")
    if suffix is None:
        return None
    read = [0.0 if row is None else suffix.get(row) for row in pyomo_constraints(program, model)]
    return None if None in read else np.array(read, dtype=np.float64)


def _fits(program: Program, values: Floats, options: Options) -> bool:
    whole = np.where(program.integer, np.rint(values), values)
    return program.residuals_at(whole).worst <= options.feasibility_tol


class SolverFailed(Exception):  # noqa: N818 - said of a solver, not of us
    """A solver's program ended with an error; the text is its message."""


def load(model: Any, results: Any) -> None:
    """Load the solution of Pyomo's results into the model."""
    from pyomo.common.log import LoggingIntercept

    with LoggingIntercept(StringIO(), "pyomo"):  # it warns of every solution that is not optimal
        model.solutions.load_from(results)


@contextmanager
def scratch(log: bool) -> Iterator[Path]:
    """Yield a folder for temporary files; keep plugins from printing, unless the log is wanted."""
    with tempfile.TemporaryDirectory(prefix="equipoise-") as folder:
        if log:
            yield Path(folder)
        else:
            with redirect_stdout(StringIO()):
                yield Path(folder)


@cache
def stated_version(path: str, changed: int) -> str:
    """Return the version that a program states; it is cached until its file changes."""
    switch = "-quit" if Path(path).stem == "cbc" else "--version"
    try:
        completed = subprocess.run([path, switch], capture_output=True, text=True, timeout=5, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.SubprocessError):
        return ""
    found = re.search(r"\d+(\.\d+)+", completed.stdout)
    return found[0] if found else ""
