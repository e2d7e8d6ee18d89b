"""Programs with log terms on linear solvers: tangent cuts on the logarithms, refined until the gap is certified."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ....formulations.arrays import Floats
from ....formulations.program.data import ProblemClass
from ...backend import Answer, Backend, Claim, Progress, Task
from ...deadline import Deadline
from ...options import Options
from .continuous import ContinuousRounds
from .mixed_integer import IntegerRounds
from .relaxation import interior_program
from .state import Inner, Record


def solve_by_tangents(backend: Backend, task: Task, options: Options, on_progress: Progress) -> Answer:
    """Solve a LOG or MILOG program on a backend that reads its linear relaxations: LPs, or MILPs, or both.

    Each logarithm is replaced by the upper envelope of tangents, the backend solves the linear program that results,
    and tangents are added where its optimum lies; docs/tangents.md has the mathematics. The claims are proved: points
    are evaluated with true logarithms, and duals and slopes prove the bound of a continuous program. A faulty answer to
    a round, or a limit, ends the rounds with the best point and bound so far.

    Parameters
    ----------
    task : Task
        A task with log terms; its start may be incomplete.
    options : Options
        Options of the whole solve. The backend gets a finer gap, or for the first integer program a coarser one; seed,
        threads, log, tolerances and own options are passed on unchanged.
    on_progress : Progress
        Called after each round, and with an integer program's better incumbents.
    """
    program = task.stated_program

    def report(record: Record) -> None:
        on_progress(None if record.solution is None else record.objective, record.bound, record.solution)

    inner = Inner(backend, Deadline.of(options), task.problem)
    kind = IntegerRounds if program.problem_class is ProblemClass.MILOG else ContinuousRounds
    rounds: ContinuousRounds | IntegerRounds = kind(inner, program, report=report)
    warm_start_note = () if task.start is None else (_begin(rounds, task.start),)
    answer = rounds.run()
    integer = f"{rounds.rounds} integer and " if isinstance(rounds, IntegerRounds) else ""
    continuous = "continuous " if integer else ""
    made = f"tangent cuts: {integer}{inner.rounds} {continuous}rounds, {len(rounds.tangents.point)} cuts"
    return replace(answer, notes=(made, *warm_start_note, *inner.notes))


def _begin(rounds: ContinuousRounds | IntegerRounds, start: Floats) -> str:
    """Begin at the warm start; return the note on its use."""
    program, inner, record = rounds.program, rounds.inner, rounds.record
    given = np.isfinite(start)
    note = "warm start"
    if not given.all():
        note = f"warm start: {int(given.sum())} of {len(start)} columns given"
        linear = ProblemClass.LP in inner.backend.classes
        if isinstance(rounds, IntegerRounds) and not (linear and given[program.integer].all()):
            rounds.partial = start
            return f"{note}, {inner.backend.name} completes the rest in the first integer program"
        # A point that maximises the least log argument among those with the given columns.
        lower, upper = np.where(given, start, program.lower), np.where(given, start, program.upper)
        fixed = replace(program, lower=lower, upper=upper, integer=np.zeros(len(start), dtype=bool))
        answer = inner.solve(interior_program(fixed, rounds.terms, rounds.upper))
        if answer.values is None:
            none = answer.claim is Claim.INFEASIBLE
            return f"{note}, {'which no others complete' if none else 'the rest not found in time'}: dropped"
        start, note = answer.values[:-1], f"{note}, the rest completed by a linear program:"
    if not record.offer(start):
        return f"{note} violates the program by {program.residuals_at(start).worst:.3g}: dropped"
    if record.solution is None:
        return f"{note} gives a logarithm no positive argument: dropped"
    rounds.begin_at(record.solution)
    return f"{note} accepted, objective {record.objective:.12g}"
