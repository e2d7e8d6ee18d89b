"""AlloxMatching and AlloxPlan: jobs matched to (worker, k-th from last) slots for the least average completion time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import Floats, Indices, ranges
from ..checks import as_integers, as_reals, refuse, same_length, store_checked
from ..errors import InvalidInput
from ..former_names import former_parameters
from ..program.builder import ProgramBuilder
from ..program.data import ProblemClass, Residuals
from ..program.formulation import Formulation
from ..program.model import Program

if TYPE_CHECKING:
    import pandas as pd

# Entries of the bound's tables held in memory at once.
BLOCK_ENTRIES = 1 << 22


@dataclass(frozen=True, eq=False)
class AlloxPlan:
    """A type of worker and a place in its queue for each job.

    Attributes
    ----------
    problem : AlloxMatching
    type_of : ndarray of int, shape (N,)
        Type of worker that runs each job.
    prices : ndarray of float, shape (K, D), optional
        Prices of the slots: the saving of one more k-th slot from last, k = 1..D; they prove the bound.
    """

    problem: AlloxMatching
    type_of: Indices
    prices: Floats | None = None

    def __post_init__(self) -> None:
        store_checked(self, as_integers, "type_of")

    @cached_property
    def _order(self) -> tuple[Indices, Indices]:
        return self.problem.order(self.type_of)

    @property
    def depth(self) -> Indices:
        """Each job's position from the end of its worker's queue (k, from 1), shape (N,)."""
        return self._order[0]

    @property
    def worker(self) -> Indices:
        """Index of the worker of its type that runs each job, from 0, shape (N,)."""
        return self._order[1]

    @cached_property
    def first(self) -> NDArray[np.bool_]:
        """Whether the job is the first on its worker: it gets the worker now, shape (N,)."""
        queue = np.zeros(len(self.type_of), dtype=np.int64)
        for kind, workers in enumerate(self.problem.workers_of_type):
            mine = self.type_of == kind
            queue[mine] = np.bincount(self.worker[mine], minlength=max(1, int(workers)))[self.worker[mine]]
        return np.asarray(self.depth == queue)

    @cached_property
    def completion_s(self) -> Floats:
        """Seconds from now until each job ends, shape (N,)."""
        times = self.problem.times_s[np.arange(len(self.type_of)), self.type_of]
        at = np.zeros(len(times))
        order = np.lexsort((-self.depth, self.worker, self.type_of))
        clock, last = 0.0, (-1, -1)
        for job in order.tolist():
            here = (int(self.type_of[job]), int(self.worker[job]))
            clock = (clock if here == last else 0.0) + float(times[job])
            at[job], last = clock, here
        return at

    @former_parameters(gangs="gang_gpus")
    def shares(self, gang_gpus: ArrayLike | None = None) -> Floats:
        """Return the share of time that each job gets now on each type, shape (N, K): 1 / g if it is first, else 0."""
        given = np.ones(len(self.type_of)) if gang_gpus is None else gang_gpus
        sizes = as_integers("gang_gpus", given, minimum=1)
        same_length(gang_gpus=sizes, type_of=self.type_of)
        shares = np.zeros(self.problem.rates.shape)
        now = np.flatnonzero(self.first)
        shares[now, self.type_of[now]] = 1.0 / sizes[now]
        return shares

    def to_frame(self) -> pd.DataFrame:
        """Return one row per job: type, worker, position from last, whether it runs now, and its completion time."""
        import pandas as pd

        return pd.DataFrame(
            {
                "type": self.type_of,
                "worker": self.worker,
                "from_last": self.depth,
                "runs_now": self.first,
                "ends_s": self.completion_s,
            },
            index=pd.Index(range(len(self.type_of)), name="job"),
        )

    def __repr__(self) -> str:
        return f"<AlloxPlan: {len(self.type_of)} jobs, {int(self.first.sum())} of them run now>"


@dataclass(frozen=True, kw_only=True, eq=False)
class AlloxMatching(Formulation[AlloxPlan]):
    """Match each job to a worker and a place in its queue: minimise the sum of completion times since arrival.

    The job that is k-th from last on a worker of type i delays itself and k - 1 others, so matching job j there costs
    ``k n_j / tau_ji + t_j``, and the costs of the slots add up to the sum of completion times.

    Parameters
    ----------
    steps : array_like of float, shape (N,)
        Steps left (n_j), at least 0.
    rates : array_like of float, shape (N, K)
        Steps per second on one worker of each type (tau_ji), at least 0; 0 where the job cannot run.
    waited_s : array_like of float, shape (N,)
        Seconds since arrival (t_j), at least 0: a constant of the objective.
    workers_of_type : array_like of int, shape (K,)
        Workers of each type that take new jobs, at least 0.

    Raises
    ------
    InvalidInput
        Naming field, index and value; also for a job that no worker can run.

    Notes
    -----
    T. N. Le et al., "AlloX: Compute Allocation in Hybrid Clusters", EuroSys 2020, Section 4; the same is ``R || sum
    C_j`` of Bruno, Coffman and Sethi (1974). AlloX matches only the earliest ``max(alpha m, free workers)`` of m jobs
    at a time, so that none starves: the caller (the policy "allox") chooses these jobs.

    Workers of one type are identical, so type and k identify a slot, which takes as many jobs as there are workers. The
    program is this transport problem as a linear program; its vertices are integral. On each type an optimal plan runs
    shorter jobs first: plans use that order, with ties by index, whatever solver found the types.

    A worker is one GPU. For jobs of g GPUs the released code of Shockwave matches the job to one worker at its speed on
    g GPUs and then gives it a share of 1/g of the time. `AlloxPlan.shares` does the same if `gang_gpus` is given.

    Examples
    --------
    >>> import equipoise as eq
    >>> problem = eq.AlloxMatching(steps=[60.0, 30.0, 10.0], rates=[[1.0, 2.0], [1.0, 1.0], [1.0, 1.0]],
    ...     waited_s=[0.0, 0.0, 0.0], workers_of_type=[1, 1])
    >>> result = eq.solve(problem, rel_gap=0.0)
    >>> result.objective, result.plan.type_of.tolist(), result.plan.completion_s.tolist()
    (80.0, [1, 0, 0], [30.0, 40.0, 10.0])
    """

    steps: Floats
    rates: Floats
    waited_s: Floats
    workers_of_type: Indices

    sense = "min"
    proves_bounds = True
    reference: ClassVar[str] = "Le et al., AlloX, EuroSys 2020, Section 4"
    forms = ("slots",)
    _declared_class = ProblemClass.LP

    def __post_init__(self) -> None:
        store_checked(self, as_reals, "rates", minimum=0.0, ndim=2)
        store_checked(self, as_integers, "workers_of_type", minimum=0)
        store_checked(self, as_reals, "steps", "waited_s", minimum=0.0)
        same_length(steps=self.steps, waited_s=self.waited_s, rates=self.rates)
        if self.rates.shape[1] != len(self.workers_of_type):
            why = f"rates has {self.rates.shape[1]} types in its columns"
            raise InvalidInput("workers_of_type", f"{len(self.workers_of_type)} values", why)
        refuse("rates", ~self.runnable.any(axis=1), self.rates, "no worker can run the job")
        if not math.isfinite(len(self.steps) * float(np.where(self.runnable, self.times_s, 0.0).sum())):
            why = "too many for their rates: the sum of run times is out of range"
            raise InvalidInput("steps", float(self.steps.max()), why)

    @cached_property
    def times_s(self) -> Floats:
        """Run time of each job on one worker of each type, infinite where it cannot run, shape (N, K)."""
        able = (self.rates > 0) & (self.workers_of_type > 0)
        with np.errstate(divide="ignore", over="ignore"):
            return np.asarray(np.where(able, self.steps[:, None] / np.where(able, self.rates, 1.0), np.inf))

    @cached_property
    def runnable(self) -> NDArray[np.bool_]:
        """Whether the job can run on the type, shape (N, K)."""
        return np.isfinite(self.times_s)

    @cached_property
    def depths(self) -> Indices:
        """The greatest k of each type that an optimal plan can need, shape (K,)."""
        return np.asarray(-(-self.runnable.sum(axis=0) // np.maximum(1, self.workers_of_type)))

    def cost_of(self, type_of: Indices) -> float:
        """Return the sum of completion times since arrival, each job on its type, shape (N,), shortest first."""
        times = self.times_s[np.arange(len(type_of)), type_of]
        return math.fsum([*(self.order(type_of)[0] * times).tolist(), *self.waited_s.tolist()])

    def order(self, type_of: Indices) -> tuple[Indices, Indices]:
        """Return each job's position from last (k, from 1) and the index of its worker, each of shape (N,)."""
        depth, worker = np.zeros(len(type_of), np.int64), np.zeros(len(type_of), np.int64)
        for kind, workers in enumerate(self.workers_of_type):
            jobs = np.flatnonzero(type_of == kind)
            longest = jobs[np.argsort(-self.times_s[jobs, kind], kind="stable")]
            depth[longest], worker[longest] = np.divmod(np.arange(len(jobs)), max(1, int(workers)))
        return depth + 1, worker

    def evaluate(self, plan: AlloxPlan) -> tuple[float, Residuals]:
        """Return the sum of completion times since arrival; the residual is 1 if a job's type cannot run it."""
        self.check_plan(plan)
        if not self.runnable[np.arange(len(plan.type_of)), plan.type_of].all():
            return math.inf, Residuals(row=1.0)
        return self.cost_of(plan.type_of), Residuals()

    def proved_bound(self, plan: AlloxPlan) -> float:
        """Return the bound that the plan's slot prices prove: no matching costs less, whatever the prices are.

        ``sum_j min_(i,k) (k n_j/tau_ji + t_j + p_ik) - sum_ik M_i p_ik``, p at least 0 (0 beyond the prices given).
        """
        self.check_plan(plan)
        prices = np.zeros((len(self.workers_of_type), 0)) if plan.prices is None else plan.prices
        prices = np.where(np.isfinite(prices), np.maximum(prices, 0.0), 0.0)
        least = self._cheapest(prices)
        paid = (self.workers_of_type[:, None] * prices).ravel()
        return math.fsum([*least.tolist(), *self.waited_s.tolist(), *(-paid).tolist()])

    def _cheapest(self, prices: Floats) -> Floats:
        """Return each job's least sum of a slot's cost and price, without the time waited, shape (N,)."""
        count, deep = len(self.steps), prices.shape[1] + 1
        k = np.arange(1, deep + 1)
        least = np.full(count, np.inf)
        for kind in range(len(prices)):
            slot_prices = np.append(prices[kind], 0.0)
            for start in range(0, count, max(1, BLOCK_ENTRIES // deep)):
                rows = slice(start, start + max(1, BLOCK_ENTRIES // deep))
                times = self.times_s[rows, kind]
                able = np.isfinite(times)
                costs = (np.where(able, times, 0.0)[:, None] * k + slot_prices).min(axis=1)
                least[rows] = np.minimum(least[rows], np.where(able, costs, np.inf))
        return least

    def program(self, form: str = "slots") -> Program:
        """Return the transport problem: ``match[j, i, k]``, one slot for each job, M_i jobs at most in each."""
        self.check_form(form)
        job, slot, kind, depth = self._entries()
        build = ProgramBuilder(sense="min")
        match = build.add_columns("match", (len(job),), upper=1.0)
        build.add_rows("job", (len(self.steps),), terms=[(job, match, 1.0)], lower=1.0, upper=1.0)
        size = np.repeat(self.workers_of_type, self.depths)
        build.add_rows("slot", (len(size),), terms=[(slot, match, 1.0)], upper=size)
        build.set_objective([(match, depth * self.times_s[job, kind])], offset=math.fsum(self.waited_s))
        return build.program()

    def decode(self, values: Floats, duals: Floats | None = None, form: str = "slots") -> AlloxPlan:
        """Turn column values of the program into a plan, priced by the duals of the slots.

        A mixture of optimal matchings, as interior-point methods return, becomes one matching of the slots in use.
        """
        self.check_form(form)
        prices = None
        if duals is not None:
            prices = np.zeros((len(self.depths), int(self.depths.max())))
            ranks = np.arange(prices.shape[1])
            prices[ranks < self.depths[:, None]] = np.maximum(0.0, -duals[len(self.steps) :])
        return AlloxPlan(self, self._whole(values), prices)

    def _whole(self, values: Floats) -> Indices:
        job, slot, kind, _ = self._entries()
        mass = np.zeros(self.rates.shape)
        np.add.at(mass, (job, kind), values)
        mixed = np.minimum(values, 1.0 - values) > 1e-6
        if not mixed.any():
            return np.asarray(mass.argmax(axis=1))
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import maximum_bipartite_matching

        # Whichever slots some optimal matchings use, every matching within these slots is optimal.
        used = values > 1e-6
        size = np.repeat(self.workers_of_type, self.depths)
        ends = np.cumsum(size)
        many = size[slot[used]]
        rows = np.repeat(job[used], many)
        places = np.repeat(ends[slot[used]], many) - 1 - ranges(many)
        graph = csr_array((np.ones(len(rows)), (rows, places)), shape=(len(self.steps), int(ends[-1])))
        place = maximum_bipartite_matching(graph, perm_type="column")
        kinds = np.repeat(np.arange(len(self.depths)), self.depths)
        found = kinds[np.searchsorted(ends, np.maximum(place, 0), side="right")]
        # Only infeasible values leave a job without a slot: it gets the type of its largest value.
        return np.asarray(np.where(place >= 0, found, mass.argmax(axis=1)))

    def encode(self, plan: AlloxPlan, form: str = "slots") -> Floats:
        """Turn a plan into column values of the program, for a warm start."""
        self.check_form(form)
        self.check_plan(plan)
        job, _, kind, depth = self._entries()
        return np.asarray((plan.type_of[job] == kind) & (plan.depth[job] == depth), dtype=np.float64)

    def _entries(self) -> tuple[Indices, Indices, Indices, Indices]:
        """Return job, slot, type and k of every column."""
        kind = np.repeat(np.arange(len(self.depths)), self.depths)
        depth = ranges(self.depths) + 1
        job, slot = np.nonzero(self.runnable[:, kind])
        return job, slot, kind[slot], depth[slot]

    def check_plan(self, plan: AlloxPlan, field: str = "plan") -> None:
        """Raise InvalidInput unless `plan` gives each of the jobs one of the types."""
        if not isinstance(plan, AlloxPlan) or plan.type_of.shape != self.steps.shape:
            raise InvalidInput(field, type(plan).__name__, f"must be an AlloxPlan of {len(self.steps)} jobs")
        if ((plan.type_of < 0) | (plan.type_of >= len(self.workers_of_type))).any():
            raise InvalidInput(f"{field}.type_of", plan.type_of.tolist(), "must be types of workers")
        if plan.prices is not None and (np.ndim(plan.prices) != 2 or len(plan.prices) != len(self.workers_of_type)):
            raise InvalidInput(f"{field}.prices", np.shape(plan.prices), "must have a row for each type of worker")

    def __repr__(self) -> str:
        return f"<AlloxMatching: {len(self.steps)} jobs, {self.workers_of_type.tolist()} workers by type>"
