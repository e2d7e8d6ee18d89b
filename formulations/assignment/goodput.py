"""GoodputAllocation and GoodputPlan: type and number of GPUs for each elastic job (Pollux, Sia)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import Floats, Indices
from ..checks import as_integers, as_real, as_reals, refuse, store_checked
from ..errors import InvalidInput
from ..program.builder import ProgramBuilder
from ..program.data import ProblemClass, Residuals
from ..program.formulation import Formulation
from ..program.model import Program

if TYPE_CHECKING:
    import pandas as pd

# Default speedup of a job without GPUs in a mean of speedups: 1% of its fair speed.
IDLE_SPEEDUP = 0.01


@dataclass(frozen=True, eq=False)
class GoodputPlan:
    """A type and a number of GPUs for each job.

    Attributes
    ----------
    problem : GoodputAllocation
    type_of, count_of : ndarray of int, shape (N,)
        Type and number of GPUs of each job; a job of count 0 does not run.
    """

    problem: GoodputAllocation
    type_of: Indices
    count_of: Indices

    def __post_init__(self) -> None:
        store_checked(self, as_integers, "type_of", "count_of")

    @cached_property
    def speedups(self) -> Floats:
        """Speedup of each job, shape (N,); the problem's `idle_speedup`, or 0 without one, for a job that is idle."""
        speed = self.problem.speedups[np.arange(len(self.type_of)), self.type_of, self.count_of]
        return np.where(self.count_of > 0, speed, self.problem.idle_speedup or 0.0)

    @cached_property
    def fitness(self) -> float:
        """The power mean of the speedups (Pollux)."""
        power, speed = self.problem.power, self.speedups
        if not (speed > 0).all():
            return 0.0 if power <= 0 else float(np.mean(speed**power) ** (1.0 / power))
        return float(np.exp(np.log(speed).mean()) if power == 0 else np.mean(speed**power) ** (1.0 / power))

    def to_frame(self) -> pd.DataFrame:
        """Return one row per job: type, GPUs, speedup."""
        import pandas as pd

        return pd.DataFrame(
            {"type": np.where(self.count_of > 0, self.type_of, -1), "gpus": self.count_of, "speedup": self.speedups},
            index=pd.Index(range(len(self.type_of)), name="job"),
        )

    def __repr__(self) -> str:
        running = int((self.count_of > 0).sum())
        return f"<GoodputPlan: {running} of {len(self.count_of)} jobs run on {int(self.count_of.sum())} GPUs>"


@dataclass(frozen=True, kw_only=True, eq=False)
class GoodputAllocation(Formulation[GoodputPlan]):
    """Choose one configuration (type, count of GPUs) for each job, or none, within the GPUs of each type.

    Maximises ``(1/N) sum_j u_j``, where ``u_j = sign(p) s_j^p`` (log s_j for p = 0) of the speedup ``s_j = r_j
    goodput_j / base_j``. For speedups alone that orders plans as Pollux's fitness, the power mean ``((1/N) sum_j
    s_j^p)^(1/p)``, does (:attr:`GoodputPlan.fitness`).

    Parameters
    ----------
    goodputs : array_like of float, shape (N, K, G + 1) or, for one type, (N, G + 1)
        Useful progress per second with n = 0..G GPUs of a type, at least 0; 0 in configurations that the job cannot
        run, and for n = 0. They need not rise with n.
    gpus : array_like of int, shape (K,), or int
        GPUs of each type (M_k), at least 0.
    power : float
        Exponent p of the mean, in [-20, 20]: -1 (Pollux) is the harmonic mean, 0 the geometric, 1 the arithmetic one.
        A lower exponent gives slow jobs more weight.
    base_goodputs : array_like of float, shape (N,), optional
        Goodput of a speedup of 1, greater than 0. By default the goodput of a fair share (Pollux): that of ``max(1, M
        // N)`` GPUs of the best type, or of the nearest smaller count that the job can run with, or else the nearest
        greater one.
    idle_speedup : float, optional
        Speedup assigned to a job without GPUs, greater than 0; 0.01 unless an `idle_penalty` is given.
    idle_penalty : float, optional
        Amount that a job without GPUs subtracts from the objective instead (lambda of Sia). Only one of the two may be
        given.
    current : array_like of int, shape (N, 2), optional
        Type and count of the job's GPUs now; a job of count 0 does not run, and its type is ignored.
    restart_factors : array_like of float, shape (N,), optional
        Factor r_j in (0, 1] of the goodput of any configuration but the current one of a running job; needs
        `current`. See :func:`~equipoise.formulations.assignment.goodput.restart_factors`.

    Raises
    ------
    InvalidInput
        Naming field, index and value.

    Notes
    -----
    A. Qiao et al., "Pollux: Co-adaptive Cluster Scheduling for Goodput-Optimized Deep Learning", OSDI 2021, Section
    4.2 (fitness, speedup, the factor of reallocation); S. Jayaram Subramanya et al., "Sia: Heterogeneity-aware,
    goodput-optimized ML-cluster scheduling", SOSP 2023, Section 3.4 (:meth:`sia`). With p <= 0, Pollux's fitness is 0
    as soon as one job has no GPU, and cannot rank plans while jobs outnumber GPUs; hence `idle_speedup`. GPUs are
    counted, not placed on nodes.

    Examples
    --------
    >>> import equipoise as eq
    >>> problem = eq.GoodputAllocation(goodputs=[[0, 1.0, 1.9, 2.7, 3.4], [0, 1.0, 1.1, 1.1, 1.1]], gpus=4)
    >>> result = eq.solve(problem)
    >>> result.plan.count_of.tolist(), round(result.plan.fitness, 4)
    ([3, 1], 1.1088)
    """

    goodputs: Floats
    gpus: Indices
    power: float = -1.0
    base_goodputs: Floats = None  # type: ignore[assignment]  # a fair share's
    idle_speedup: float | None = None
    idle_penalty: float | None = None
    current: Indices | None = None
    restart_factors: Floats | None = None

    sense = "max"
    reference: ClassVar[str] = "Qiao et al., Pollux, OSDI 2021, Section 4.2; Jayaram Subramanya et al., Sia, SOSP 2023"
    forms = ("configurations",)
    _declared_class = ProblemClass.MILP

    def __post_init__(self) -> None:
        put = self.__dict__.__setitem__
        flat = np.ndim(self.goodputs) == 2
        given = as_reals("goodputs", self.goodputs, minimum=0.0, ndim=2 if flat else 3)
        refuse("goodputs", given[..., :1] != 0, given, "must be 0 with 0 GPUs")
        goodputs = given[:, None, :] if flat else given
        count, types, _ = goodputs.shape
        put("goodputs", goodputs)
        put("gpus", as_integers("gpus", np.atleast_1d(self.gpus), minimum=0, shape=(types,)))
        put("power", as_real("power", self.power, minimum=-20.0, maximum=20.0))
        if self.idle_penalty is not None and self.idle_speedup is not None:
            raise InvalidInput("idle_penalty", self.idle_penalty, "give either idle_penalty or idle_speedup, not both")
        if self.idle_penalty is None:
            put("idle_speedup", IDLE_SPEEDUP if self.idle_speedup is None else self.idle_speedup)
            store_checked(self, as_real, "idle_speedup", above=0.0)
        else:
            store_checked(self, as_real, "idle_penalty")
        base: Any = self.base_goodputs
        base = self._fair_goodputs() if base is None else as_reals("base_goodputs", base, above=0.0, shape=(count,))
        put("base_goodputs", base)
        self._check_restarts(count, types)
        bad = (self.allowed & ~np.isfinite(self.utilities)).reshape(given.shape)
        refuse("goodputs", bad, given, f"its speedup to the power {self.power:g} is out of range")

    def _check_restarts(self, count: int, types: int) -> None:
        if self.restart_factors is not None:
            store_checked(self, as_reals, "restart_factors", above=0.0, maximum=1.0, shape=(count,))
            if self.current is None:
                raise InvalidInput("current", None, "restart_factors need the current configurations")
        if self.current is None:
            return
        if self.restart_factors is None:
            raise InvalidInput("restart_factors", None, "current configurations matter only with restart_factors")
        store_checked(self, as_integers, "current", minimum=0, shape=(count, 2), ndim=2)
        for column, limit in ((0, types), (1, self.goodputs.shape[2])):
            beyond = self.current >= limit
            beyond[:, 1 - column] = False
            refuse("current", beyond, self.current, f"must be below {limit}")

    @classmethod
    def sia(
        cls,
        *,
        goodputs: ArrayLike,
        gpus: ArrayLike | int,
        power: float = -0.5,
        idle_penalty: float = 1.1,
        current: ArrayLike | None = None,
        restart_factors: ArrayLike | None = None,
    ) -> GoodputAllocation:
        """Return Sia's problem: a job's goodputs are divided by the goodput per GPU of its lowest configuration.

        Sia normalises a job's row to ``n_min goodput / min goodput``, n_min the GPUs of the configuration with the
        least goodput. It optimises ``sum s^p`` (minimises for p < 0), with a penalty lambda for each job without GPUs.
        With the defaults every s^p is at most 1, so no job is better off without GPUs.
        """
        raw: Any = goodputs
        table = as_reals("goodputs", raw, minimum=0.0, ndim=2 if np.ndim(raw) == 2 else 3)
        rows = table.reshape(len(table), -1)
        least = np.where(rows > 0, rows, np.inf)
        smallest = least.min(axis=1)
        ranks = np.argmin(least, axis=1) % table.shape[-1]
        return cls(
            goodputs=table,
            gpus=gpus,  # type: ignore[arg-type]
            power=power,
            base_goodputs=np.where(np.isfinite(smallest), smallest / np.maximum(ranks, 1), 1.0),
            idle_penalty=idle_penalty,
            current=current,  # type: ignore[arg-type]
            restart_factors=restart_factors,  # type: ignore[arg-type]
        )

    @cached_property
    def allowed(self) -> NDArray[np.bool_]:
        """Whether the job can run in the configuration and the type has enough GPUs, shape (N, K, G + 1)."""
        ranks = np.arange(self.goodputs.shape[2])
        return np.asarray((self.goodputs > 0) & (ranks >= 1) & (ranks <= self.gpus[:, None]))

    def _fair_goodputs(self) -> Floats:
        count, _, length = self.goodputs.shape
        fair = max(1, int(self.gpus.sum()) // count)
        ranks = np.arange(length)
        able = self.goodputs > 0
        below = np.where(able & (ranks <= fair), ranks, 0).max(axis=2)
        above = np.where(able & (ranks > fair), ranks, length).min(axis=2)
        nearest = np.where(below > 0, below, np.minimum(above, length - 1))
        worth = np.take_along_axis(self.goodputs, nearest[:, :, None], axis=2)[:, :, 0].max(axis=1)
        return np.where(worth > 0, worth, 1.0)  # a job that can run nowhere gets no GPU, so any unit will do

    @cached_property
    def speedups(self) -> Floats:
        """Speedup of every configuration, restarts included, shape (N, K, G + 1); 0 where it is not allowed."""
        with np.errstate(over="ignore"):
            speed = np.where(self.allowed, self.goodputs / self.base_goodputs[:, None, None], 0.0)
        if self.current is not None and self.restart_factors is not None:
            rows, (kind, count) = np.arange(len(speed)), self.current.T
            moved = np.broadcast_to(np.where(count > 0, self.restart_factors, 1.0)[:, None, None], speed.shape).copy()
            moved[rows, kind, count] = 1.0
            speed = speed * moved
        return np.asarray(speed)

    @cached_property
    def utilities(self) -> Floats:
        """Utility u of every configuration, shape (N, K, G + 1); -inf where it is not allowed."""
        with np.errstate(divide="ignore", over="ignore", under="ignore"):
            return np.where(self.allowed, self._utility(self.speedups), -np.inf)

    @cached_property
    def idle_utility(self) -> float:
        """Utility of a job without GPUs."""
        if self.idle_penalty is not None:
            return -self.idle_penalty
        return float(self._utility(np.array([self.idle_speedup]))[0])

    def _utility(self, speed: Floats) -> Floats:
        if self.power == 0:
            return np.asarray(np.log(speed))
        return np.asarray(math.copysign(1.0, self.power) * speed**self.power)

    def bound_at(self, prices: Floats) -> float:
        """Return the bound that prices of one GPU of each type prove, shape (K,), at least 0: weak duality.

        ``(1/N) (sum_j max(u_idle, max_(k,n) u_jkn - n p_k) + p . M)``.
        """
        prices = np.maximum(0.0, np.asarray(prices, dtype=np.float64))
        best = np.maximum(self.idle_utility, self._at(prices).max(axis=1))
        return math.fsum([*best.tolist(), *(prices * self.gpus).tolist()]) / len(best)

    def _at(self, prices: Floats) -> Floats:
        """Return every configuration's utility less its price, shape (N, K (G + 1))."""
        paid = prices[:, None] * np.arange(self.goodputs.shape[2])
        return np.asarray((self.utilities - paid).reshape(len(self.goodputs), -1))

    def evaluate(self, plan: GoodputPlan) -> tuple[float, Residuals]:
        """Return the objective and the GPUs used beyond capacity; the violation is 1 if a configuration cannot run."""
        self.check_plan(plan)
        runs = np.flatnonzero(plan.count_of > 0)
        index = (runs, plan.type_of[runs], plan.count_of[runs])
        if not self.allowed[index].all():
            return -math.inf, Residuals(row=1.0)
        used = np.bincount(plan.type_of[runs], weights=plan.count_of[runs], minlength=len(self.gpus))
        idle = self.idle_utility * (len(self.goodputs) - len(runs))
        objective = math.fsum([*self.utilities[index].tolist(), idle]) / len(self.goodputs)
        return objective, Residuals(row=max(0.0, float((used - self.gpus).max())))

    def program(self, form: str = "configurations", keep: NDArray[np.bool_] | None = None) -> Program:
        """Return the integer program with a binary for each job and configuration; `keep` selects configurations."""
        self.check_form(form)
        job, kind, rank = np.nonzero(self.allowed if keep is None else self.allowed & keep)
        build = ProgramBuilder(sense="max")
        choice = build.add_binaries("choice", (len(job),))
        jobs = len(self.goodputs)
        build.add_rows("one_choice", (jobs,), terms=[(job, choice, 1.0)], upper=1.0)
        build.add_rows("capacity", self.gpus.shape, terms=[(kind, choice, rank)], upper=self.gpus)
        gains = (self.utilities[job, kind, rank] - self.idle_utility) / jobs
        build.set_objective([(choice, gains)], offset=self.idle_utility)
        return build.program()

    def decode(
        self,
        values: Floats,
        duals: Floats | None = None,
        form: str = "configurations",
        keep: NDArray[np.bool_] | None = None,
    ) -> GoodputPlan:
        """Turn column values of the program, built with the same `keep`, into a plan."""
        self.check_form(form)
        job, kind, rank = np.nonzero(self.allowed if keep is None else self.allowed & keep)
        chosen = values > 0.5
        type_of, count_of = np.zeros((2, len(self.goodputs)), np.int64)
        type_of[job[chosen]], count_of[job[chosen]] = kind[chosen], rank[chosen]
        return GoodputPlan(self, type_of, count_of)

    def encode(self, plan: GoodputPlan, form: str = "configurations") -> Floats:
        """Turn a plan into column values of the program, for a warm start."""
        self.check_form(form)
        self.check_plan(plan)
        job, kind, rank = np.nonzero(self.allowed)
        return np.asarray((plan.type_of[job] == kind) & (plan.count_of[job] == rank), dtype=np.float64)

    def check_plan(self, plan: GoodputPlan, field: str = "plan") -> None:
        """Raise InvalidInput unless `plan` gives each of the jobs a type and a count of the tables."""
        jobs, types, length = self.goodputs.shape
        if not isinstance(plan, GoodputPlan) or plan.type_of.shape != (jobs,) or plan.count_of.shape != (jobs,):
            raise InvalidInput(field, type(plan).__name__, f"must be a GoodputPlan of {jobs} jobs")
        for part, values, limit in (("type_of", plan.type_of, types), ("count_of", plan.count_of, length)):
            refuse(f"{field}.{part}", (values < 0) | (values >= limit), values, f"must be in [0, {limit})")

    def __repr__(self) -> str:
        return f"<GoodputAllocation: {len(self.goodputs)} jobs, {self.gpus.tolist()} GPUs by type, p = {self.power:g}>"


def restart_factors(age_s: ArrayLike, restarts: ArrayLike, restart_s: ArrayLike) -> Floats:
    """Return ``(age - restarts x restart_s) / (age + restart_s)``, at least 1e-3, shape (N,) as the arguments.

    Pollux and Sia multiply a job's goodput by this factor if it is restarted once more. It is small for young jobs and
    for jobs with many restarts. `age_s` is the time since arrival, at least 0, and `restart_s` what one restart costs,
    greater than 0, both in seconds.
    """
    age = as_reals("age_s", age_s, minimum=0.0)
    past = as_integers("restarts", restarts, minimum=0, shape=age.shape)
    cost = as_reals("restart_s", restart_s, above=0.0, shape=age.shape)
    return np.maximum(1e-3, (age - past * cost) / (age + cost))
