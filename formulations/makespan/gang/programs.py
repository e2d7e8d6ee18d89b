"""The programs of GangMakespan: who runs in which round, who begins in which, and how many rounds hold which widths."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...arrays import Floats, Indices
from ...errors import InvalidInput
from ...program.builder import ProgramBuilder
from ...program.model import Program
from .construction import from_starts
from .schedule import GangSchedule

if TYPE_CHECKING:
    from .problem import GangMakespan

# Sets of widths, and entries of a program, beyond which it is refused: no solver would end.
MOST_PATTERNS = 20_000
MOST_ENTRIES = 20_000_000


def shared(problem: GangMakespan) -> Program:
    """Choose who runs in which round: ``run[j, t] = 1``; used rounds come first, and their number is minimised."""
    jobs, horizon = len(problem.rounds), problem.list_plan.makespan
    _check_size(jobs * horizon)
    low = min(problem.lower_bound, horizon)
    build = ProgramBuilder(sense="min")
    job, t = np.arange(jobs), np.arange(horizon)
    run = build.add_binaries("run", (jobs, horizon))
    used = build.add_columns("used", (horizon,), lower=t < low, upper=1.0, integer=True)
    build.add_rows("rounds", job.shape, terms=[(job[:, None], run, 1.0)], lower=problem.rounds, upper=problem.rounds)
    gangs = problem.gangs[:, None].astype(float)
    build.add_rows("gpus", t.shape, terms=[(t, run, gangs), (t, used, -float(problem.gpus))], upper=0.0)
    build.add_rows(
        "in_order", (max(0, horizon - 1),), terms=[(t[:-1], used[:-1], 1.0), (t[:-1], used[1:], -1.0)], lower=0
    )
    build.set_objective([(used, 1.0)])
    return build.program()


def through(problem: GangMakespan) -> Program:
    """Choose when each job begins: ``begin[j, t] = 1``; it holds its GPUs until its rounds are done."""
    horizon = problem.list_plan.makespan
    job, t = _begins(problem)
    _check_size(int(problem.rounds[job].sum()))
    build = ProgramBuilder(sense="min")
    begin = build.add_binaries("begin", job.shape)
    low = min(problem.lower_bound, horizon)
    makespan = build.add_columns("makespan", (1,), lower=low, upper=horizon, integer=True)
    jobs = np.arange(len(problem.rounds))
    once = (problem.rounds > 0).astype(float)
    build.add_rows("one_begin", jobs.shape, terms=[(job, begin, 1.0)], lower=once, upper=once)
    lengths = problem.rounds[job]
    at = np.repeat(t, lengths) + np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    build.add_rows(
        "gpus",
        (horizon,),
        terms=[(at, np.repeat(begin, lengths), np.repeat(problem.gangs[job], lengths))],
        upper=problem.gpus,
    )
    build.add_rows("ends", jobs.shape, terms=[(job, begin, t + lengths), (jobs, makespan[0], -1.0)], upper=0.0)
    build.set_objective([(makespan, 1.0)])
    return build.program()


def patterns(problem: GangMakespan) -> Program:
    """Choose how many rounds hold which widths: ``repeat[p]`` rounds of pattern p.

    Jobs of one width differ in their rounds n only. Such rounds can be dealt out so that no job gets two of one round
    if and only if, for every s, the rounds hold at least as many of the width, counted up to s in each, as the s
    longest jobs need (Gale 1957, Ryser 1957). So more than is needed does no harm, and patterns to which no width can
    be added suffice.
    """
    held, classes = _patterns(problem)
    build = ProgramBuilder(sense="min")
    repeat = build.add_columns("repeat", (len(held),), upper=float(problem.rounds.sum()), integer=True)
    for c, members in enumerate(classes):
        most = int(held[:, c].max(initial=0))
        lengths = np.sort(problem.rounds[members])[::-1]
        needed = np.cumsum(lengths)[: max(0, most)].astype(float)
        if most:
            needed[-1] = float(lengths.sum())  # no round holds more: the last row is of all jobs
        s = np.arange(most)
        counted = np.minimum(held[:, c], s[:, None] + 1)
        build.add_rows(f"width_{c}", (most,), terms=[(s[:, None], repeat, counted)], lower=needed)
    build.add_rows("bound", (1,), terms=[(0, repeat, 1.0)], lower=float(problem.lower_bound))
    build.set_objective([(repeat, 1.0)])
    return build.program()


def decode(problem: GangMakespan, values: Floats, form: str) -> GangSchedule:
    """Turn column values of the program in this form into a schedule."""
    rounds, gangs, gpus = problem.rounds, problem.gangs, problem.gpus
    if form == "patterns":
        return _dealt(problem, np.rint(values).astype(np.int64))
    if problem.preemptive:
        run = values[: len(rounds) * problem.list_plan.makespan].reshape(len(rounds), -1) > 0.5
        job, at = np.nonzero(run)
        return GangSchedule.of_rounds(gangs, gpus, job, at)
    job, t = _begins(problem)
    chosen = values[: len(job)] > 0.5
    starts = np.zeros(len(rounds), dtype=np.int64)
    starts[job[chosen]] = t[chosen]
    return from_starts(rounds, gangs, gpus, starts)


def encode(problem: GangMakespan, plan: GangSchedule, form: str) -> Floats:
    """Turn a schedule into column values of the program; nan where it is longer than the program reaches."""
    grants, horizon = plan.grants, problem.list_plan.makespan
    if form == "patterns":
        held, classes = _patterns(problem)
        counts = np.stack([grants[members].sum(axis=0) for members in classes], axis=1) if classes else grants.T[:, :0]
        repeat = np.zeros(len(held))
        for count in counts:
            holds = np.flatnonzero((held >= count).all(axis=1))
            if not len(holds):
                return np.full(len(held), np.nan)
            repeat[holds[0]] += 1
        return repeat
    if problem.preemptive:
        if plan.makespan > horizon:
            return np.full(len(problem.rounds) * horizon + horizon, np.nan)
        run = np.zeros((len(problem.rounds), horizon))
        run[:, : plan.makespan] = grants
        used = np.arange(horizon) < max(plan.makespan, problem.lower_bound)
        return np.concatenate([run.ravel(), used])
    job, t = _begins(problem)
    first = np.full(len(problem.rounds), -1)
    first[plan.job[::-1]] = plan.start[::-1]
    return np.append((first[job] == t).astype(float), float(plan.makespan))


def count_patterns(problem: GangMakespan) -> int | None:
    """Return how many patterns there are, None if too many."""
    try:
        return len(_patterns(problem)[0])
    except InvalidInput:
        return None


def _begins(problem: GangMakespan) -> tuple[Indices, Indices]:
    """Return job and round of every column ``begin``."""
    room = np.where(problem.rounds > 0, problem.list_plan.makespan - problem.rounds + 1, 0)
    job = np.repeat(np.arange(len(room)), room)
    return job, np.arange(len(job)) - np.repeat(np.cumsum(room) - room, room)


def _patterns(problem: GangMakespan) -> tuple[Indices, list[Indices]]:
    """Return the patterns, shape (P, C), from the widest class on, and the jobs of each class."""
    real = np.flatnonzero(problem.rounds > 0)
    widths = np.unique(problem.gangs[real])[::-1]
    classes = [real[problem.gangs[real] == width] for width in widths]
    found: list[tuple[int, ...]] = []

    def extend(held: tuple[int, ...], free: int) -> None:
        c = len(held)
        if c == len(widths):
            if all(
                free < width or count == len(jobs) for width, count, jobs in zip(widths, held, classes, strict=True)
            ):
                if len(found) == MOST_PATTERNS:
                    raise InvalidInput("form", "patterns", f"more than {MOST_PATTERNS} sets of widths fill a round")
                found.append(held)
            return
        for count in range(min(len(classes[c]), free // int(widths[c])), -1, -1):
            extend((*held, count), free - count * int(widths[c]))

    extend((), problem.gpus)
    return np.array(found, dtype=np.int64).reshape(len(found), len(widths)), classes


def _dealt(problem: GangMakespan, repeat: Indices) -> GangSchedule:
    """Deal the rounds of the chosen patterns out: the longest job first, to the rounds with most of its width left."""
    held, classes = _patterns(problem)
    rounds_of = np.repeat(np.arange(len(held)), np.maximum(repeat, 0))
    jobs, at = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    for c, members in enumerate(classes):
        left = held[rounds_of, c].copy()
        for j in members[np.argsort(-problem.rounds[members], kind="stable")]:
            chosen = np.argsort(-left, kind="stable")[: problem.rounds[j]]
            chosen = chosen[left[chosen] > 0]
            left[chosen] -= 1
            jobs.append(np.full(len(chosen), j))
            at.append(chosen)
    return GangSchedule.of_rounds(problem.gangs, problem.gpus, np.concatenate(jobs), np.concatenate(at))


def _check_size(entries: int) -> None:
    if entries > MOST_ENTRIES:
        raise InvalidInput("form", "time_indexed", f"the program would have {entries} entries: use a special backend")
