"""GangMakespan: the shortest schedule of jobs that each need a gang of GPUs, and its programs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from ...arrays import Floats, Indices, ranges
from ...checks import as_flag, as_integer, as_integers, refuse, same_length, store_checked
from ...errors import InvalidInput
from ...former_names import FormerName, former_parameters
from ...program.builder import ProgramBuilder
from ...program.data import ProblemClass, Residuals
from ...program.formulation import Formulation
from ...program.model import Program
from .bounds import round_bound
from .construction import from_starts, listed, packed
from .schedule import GangSchedule, worst_gang_fault

# Limits of the rounds of all jobs together and of the GPUs: schedules are built from lists of every job's rounds.
MOST_ROUNDS = 20_000_000
# Limits of the patterns and of the entries of a program: no solver would end on a larger one.
MOST_PATTERNS = 20_000
MOST_ENTRIES = 20_000_000


@former_parameters(gangs="gang_gpus")
@dataclass(frozen=True, eq=False)
class GangMakespan(Formulation[GangSchedule]):
    """Finish jobs of fixed width as soon as possible: job j holds `gang_gpus[j]` of the GPUs in `rounds[j]` rounds.

    Parameters
    ----------
    rounds : array_like of int, shape (N,)
        Rounds that each job needs, at least 0.
    gang_gpus : array_like of int, shape (N,)
        GPUs that each job holds while it runs, from 1 to `gpus`.
    gpus : int
        GPUs of the cluster.
    preemptive : bool
        Whether a job may pause between rounds (time sharing); if not, it runs without a pause.

    Raises
    ------
    InvalidInput
        Naming the field, the index and the value.

    Notes
    -----
    With preemption this is the problem of Shockwave's makespan baseline, there called open shop (Zheng et al., NSDI
    2023, Section 8). ``max(ceil(sum_j g_j n_j / M), max_j n_j)`` bounds the makespan and is usually reached, but not
    always: three jobs of two GPUs and one round each take three rounds on three GPUs, not two. `lower_bound` therefore
    also considers jobs that cannot share a round; see :func:`~.bounds.round_bound`.

    Examples
    --------
    >>> import equipoise as eq
    >>> problem = eq.GangMakespan(rounds=[2, 2, 2], gang_gpus=[1, 1, 1], gpus=2)
    >>> eq.solve(problem).require_optimal().makespan
    3
    """

    rounds: Indices
    gang_gpus: Indices
    gpus: int
    preemptive: bool = True

    gangs = FormerName("gang_gpus")
    sense = "min"
    _declared_class = ProblemClass.MILP
    reference: ClassVar[str] = "Zheng et al., Shockwave, NSDI 2023, Section 8 (OSSP)"

    def __post_init__(self) -> None:
        store_checked(self, as_integers, "rounds", minimum=0, maximum=MOST_ROUNDS)
        store_checked(self, as_integers, "gang_gpus", minimum=1, maximum=MOST_ROUNDS)
        store_checked(self, as_integer, "gpus", minimum=1, maximum=MOST_ROUNDS)
        store_checked(self, as_flag, "preemptive")
        same_length(rounds=self.rounds, gang_gpus=self.gang_gpus)
        refuse("gang_gpus", self.gang_gpus > self.gpus, self.gang_gpus, f"the cluster has {self.gpus} GPUs")
        if self.rounds.sum() > MOST_ROUNDS:
            raise InvalidInput("rounds", int(self.rounds.sum()), f"all jobs together at most {MOST_ROUNDS} rounds")

    @property
    def kind(self) -> str:
        """The name under which backends list it."""
        return "PreemptiveGangMakespan" if self.preemptive else "GangMakespan"

    @property
    def forms(self) -> tuple[str, ...]:  # type: ignore[override]
        """("time_indexed",), and with preemption also "patterns", for small clusters."""
        return ("time_indexed", "patterns") if self.preemptive else ("time_indexed",)

    @cached_property
    def bound_and_reason(self) -> tuple[int, str]:
        """The greatest of the bounds on the makespan, and its reason."""
        return round_bound(self.rounds, self.gang_gpus, self.gpus)

    @property
    def lower_bound(self) -> int:
        """Rounds that no schedule can beat, with or without preemption."""
        return self.bound_and_reason[0]

    @cached_property
    def list_plan(self) -> GangSchedule:
        """A schedule by construction: packed into rounds with preemption, the best of three lists without."""
        if self.preemptive:
            return packed(self.rounds, self.gang_gpus, self.gpus, self.lower_bound)
        return listed(self.rounds, self.gang_gpus, self.gpus)

    def program(self, form: str = "time_indexed") -> Program:
        """Return the problem as a MILP over the rounds of `list_plan`.

        Parameters
        ----------
        form : {"time_indexed", "patterns"}
            "time_indexed" has a binary for each job and round: whether the job runs in the round, or without preemption
            begins in it. "patterns" counts the rounds of each pattern (the numbers of GPUs of the jobs that share a
            round); InvalidInput if there are too many patterns.
        """
        self.check_form(form)
        if form == "patterns":
            return _patterns_program(self)
        return _preemptive_program(self) if self.preemptive else _nonpreemptive_program(self)

    def decode(self, values: Floats, duals: Floats | None = None, form: str = "time_indexed") -> GangSchedule:
        """Turn column values of the program into a schedule."""
        self.check_form(form)
        if form == "patterns":
            return _dealt(self, np.rint(values).astype(np.int64))
        if self.preemptive:
            run = values[: len(self.rounds) * self.list_plan.makespan].reshape(len(self.rounds), -1) > 0.5
            job, at = np.nonzero(run)
            return GangSchedule.of_rounds(self.gang_gpus, self.gpus, job, at)
        job, t = _begins(self)
        chosen = values[: len(job)] > 0.5
        starts = np.zeros(len(self.rounds), dtype=np.int64)
        starts[job[chosen]] = t[chosen]
        return from_starts(self.rounds, self.gang_gpus, self.gpus, starts)

    def encode(self, plan: GangSchedule, form: str = "time_indexed") -> Floats:
        """Turn a schedule into column values for a warm start; nan if it has more rounds than the program."""
        self.check_form(form)
        self.check_plan(plan)
        grants, horizon = plan.grants, self.list_plan.makespan
        if form == "patterns":
            held, classes = _patterns(self)
            by_class = [grants[members].sum(axis=0) for members in classes]
            counts = np.array(by_class, dtype=np.int64).reshape(len(classes), plan.makespan).T
            repeat = np.zeros(len(held))
            for count in counts:
                holds = np.flatnonzero((held >= count).all(axis=1))
                if not len(holds):
                    return np.full(len(held), np.nan)
                repeat[holds[0]] += 1
            return repeat
        if self.preemptive:
            if plan.makespan > horizon:
                return np.full(len(self.rounds) * horizon + horizon, np.nan)
            run = np.zeros((len(self.rounds), horizon))
            run[:, : plan.makespan] = grants
            used = np.arange(horizon) < max(plan.makespan, self.lower_bound)
            return np.concatenate([run.ravel(), used])
        job, t = _begins(self)
        first = np.full(len(self.rounds), -1)
        first[plan.job[::-1]] = plan.start[::-1]
        return np.append((first[job] == t).astype(float), float(plan.makespan))

    def check_plan(self, plan: GangSchedule, field: str = "plan") -> None:
        """Raise InvalidInput unless `plan` is a schedule of these jobs on this cluster."""
        same = (
            isinstance(plan, GangSchedule) and plan.gpus == self.gpus and np.array_equal(plan.gang_gpus, self.gang_gpus)
        )
        if not same:
            raise InvalidInput(field, type(plan).__name__, "must be a GangSchedule of these jobs and GPUs")

    def evaluate(self, plan: GangSchedule) -> tuple[float, Residuals]:
        """Return the makespan in rounds and the worst fault of a schedule; see `worst_gang_fault`."""
        fault = worst_gang_fault(self.rounds, self.gang_gpus, self.gpus, plan, preemptive=self.preemptive)
        return float(plan.makespan), Residuals(row=fault)

    def gap_scale(self, objective: float) -> float:
        """Return the makespan: a gap of .01 is 1% of it."""
        return max(1.0, abs(objective))

    def __repr__(self) -> str:
        how = "round-preemptive" if self.preemptive else "non-preemptive"
        return f"<GangMakespan: {len(self.rounds)} jobs, {self.gpus} GPUs, {how}>"


def _preemptive_program(problem: GangMakespan) -> Program:
    """Choose the jobs of each round: ``run[j, t] = 1``; used rounds come first, and their number is minimised."""
    jobs, horizon = len(problem.rounds), problem.list_plan.makespan
    _check_size(jobs * horizon)
    low = min(problem.lower_bound, horizon)
    build = ProgramBuilder(sense="min")
    job, t = np.arange(jobs), np.arange(horizon)
    run = build.add_binaries("run", (jobs, horizon))
    used = build.add_columns("used", (horizon,), lower=t < low, upper=1.0, integer=True)
    build.add_rows("rounds", job.shape, terms=[(job[:, None], run, 1.0)], lower=problem.rounds, upper=problem.rounds)
    gang_gpus = problem.gang_gpus[:, None].astype(float)
    build.add_rows("gpus", t.shape, terms=[(t, run, gang_gpus), (t, used, -float(problem.gpus))], upper=0.0)
    build.add_rows(
        "in_order", (max(0, horizon - 1),), terms=[(t[:-1], used[:-1], 1.0), (t[:-1], used[1:], -1.0)], lower=0
    )
    build.set_objective([(used, 1.0)])
    return build.program()


def _nonpreemptive_program(problem: GangMakespan) -> Program:
    """Choose the first round of each job: ``begin[j, t] = 1``; the job holds its GPUs until its rounds are done."""
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
    at = np.repeat(t, lengths) + ranges(lengths)
    build.add_rows(
        "gpus",
        (horizon,),
        terms=[(at, np.repeat(begin, lengths), np.repeat(problem.gang_gpus[job], lengths))],
        upper=problem.gpus,
    )
    build.add_rows("ends", jobs.shape, terms=[(job, begin, t + lengths), (jobs, makespan[0], -1.0)], upper=0.0)
    build.set_objective([(makespan, 1.0)])
    return build.program()


def _patterns_program(problem: GangMakespan) -> Program:
    """Choose the number of rounds of each pattern of gang sizes: ``repeat[p]`` rounds of pattern p.

    Jobs of one gang size differ only in their rounds n. The places of this size can be assigned to these jobs, with at
    most one place of a round for each job, if and only if for every s the rounds have at least as many places, counted
    up to s in each round, as the s longest jobs need (Gale 1957, Ryser 1957). So surplus places do no harm, and maximal
    patterns suffice.
    """
    held, classes = _patterns(problem)
    build = ProgramBuilder(sense="min")
    repeat = build.add_columns("repeat", (len(held),), upper=float(problem.rounds.sum()), integer=True)
    for c, members in enumerate(classes):
        most = int(held[:, c].max(initial=0))
        lengths = np.sort(problem.rounds[members])[::-1]
        needed = np.cumsum(lengths)[: max(0, most)].astype(float)
        if most:
            needed[-1] = float(lengths.sum())  # the last row covers all jobs
        s = np.arange(most)
        counted = np.minimum(held[:, c], s[:, None] + 1)
        build.add_rows(f"width_{c}", (most,), terms=[(s[:, None], repeat, counted)], lower=needed)
    build.add_rows("bound", (1,), terms=[(0, repeat, 1.0)], lower=float(problem.lower_bound))
    build.set_objective([(repeat, 1.0)])
    return build.program()


def count_patterns(problem: GangMakespan) -> int | None:
    """Return the number of patterns; None if too many."""
    try:
        return len(_patterns(problem)[0])
    except InvalidInput:
        return None


def _begins(problem: GangMakespan) -> tuple[Indices, Indices]:
    """Return job and round of every column ``begin``."""
    starts = np.where(problem.rounds > 0, problem.list_plan.makespan - problem.rounds + 1, 0)
    return np.repeat(np.arange(len(starts)), starts), ranges(starts)


def _patterns(problem: GangMakespan) -> tuple[Indices, list[Indices]]:
    """Return the maximal patterns, shape (P, C), from the largest gang size on, and the jobs of each size."""
    real = np.flatnonzero(problem.rounds > 0)
    sizes = np.unique(problem.gang_gpus[real])[::-1]
    classes = [real[problem.gang_gpus[real] == size] for size in sizes]
    found: list[tuple[int, ...]] = []

    def extend(held: tuple[int, ...], free: int) -> None:
        c = len(held)
        if c == len(sizes):
            if all(free < size or count == len(jobs) for size, count, jobs in zip(sizes, held, classes, strict=True)):
                if len(found) == MOST_PATTERNS:
                    why = f"more than {MOST_PATTERNS} patterns of gangs fill a round: use form='time_indexed'"
                    raise InvalidInput("form", "patterns", why)
                found.append(held)
            return
        for count in range(min(len(classes[c]), free // int(sizes[c])), -1, -1):
            extend((*held, count), free - count * int(sizes[c]))

    extend((), problem.gpus)
    return np.array(found, dtype=np.int64).reshape(len(found), len(sizes)), classes


def _dealt(problem: GangMakespan, repeat: Indices) -> GangSchedule:
    """Assign the rounds of the chosen patterns: longest job first, to the rounds with most places of its size left."""
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
    return GangSchedule.of_rounds(problem.gang_gpus, problem.gpus, np.concatenate(jobs), np.concatenate(at))


def _check_size(entries: int) -> None:
    if entries > MOST_ENTRIES:
        raise InvalidInput("form", "time_indexed", f"the program would have {entries} entries: use a special backend")
