"""Base class of the problems of sharing GPU time: the polytope P of shares, its checks, and the plan GpuShares."""

from __future__ import annotations

import math
from abc import ABC
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats, Indices
from ..checks import as_integers, as_reals, refuse, same_length, store_checked
from ..errors import InvalidInput
from ..former_names import FormerName
from ..program.builder import ProgramBuilder
from ..program.data import Residuals
from ..program.formulation import Formulation

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class GpuShares:
    """Shares of time of each job on each type of GPU.

    Attributes
    ----------
    shares : ndarray of float, shape (N, K)
        Share of the time that job j runs on type k, with all its GPUs.
    prices : ndarray of float, shape (K,), optional
        Value of one more GPU of each type, in units of the problem's objective (of its level 1/T for a total
        duration). They prove the problem's bound.
    budget_price : float
        Value of one more dollar per second, if the problem has a budget.
    level_prices : ndarray of float, shape (L, K), optional
        With water filling, the prices of each level in turn, in any unit: they prove the levels.
    """

    shares: Floats
    prices: Floats | None = None
    budget_price: float = 0.0
    level_prices: Floats | None = None

    def to_frame(self, jobs: Sequence[Any] | None = None, types: Sequence[str] | None = None) -> pd.DataFrame:
        """Return one row per job and one column per type of GPU; names are numbers unless given."""
        import pandas as pd

        count, kinds = self.shares.shape
        index = pd.Index(range(count) if jobs is None else jobs, name="job")
        columns = pd.Index(range(kinds) if types is None else types, name="gpu_type")
        return pd.DataFrame(self.shares, index=index, columns=columns)

    def __repr__(self) -> str:
        count, kinds = self.shares.shape
        return f"<GpuShares: {count} jobs on {kinds} type(s), {float(self.shares.sum()):.6g} jobs run at a time>"


@dataclass(frozen=True)
class Groups:
    """Groups of jobs with equal data: first job and number of jobs, shape (G,); group of every job, shape (N,)."""

    first: Indices
    counts: Floats
    of_job: Indices


class SharePolytope(Formulation[GpuShares], ABC):
    """Shares of GPU time: P = {x >= 0, sum_k x_jk <= 1, sum_j g_j x_jk <= M_k}, and x_jk = 0 where a job cannot run.

    P is fluid: a gang of more GPUs than a type has may get M_k / g_j of its time. Set the rate of such a pair to 0 if
    that has no meaning. The data is `rates` (tau), shape (N, K), `gang_gpus` (g), shape (N,), and `gpus` (M), shape
    (K,).
    """

    rates: Floats
    gang_gpus: Indices
    gpus: Indices

    forms: tuple[str, ...] = ("shares",)
    proves_bounds = True

    def _check_polytope(self, *, runs: bool) -> None:
        """Check and store the data of P; with `runs`, every job must be able to run on some type."""
        store_checked(self, as_reals, "rates", minimum=0.0, ndim=2)
        store_checked(self, as_integers, "gang_gpus", "gpus", minimum=1)
        same_length(gang_gpus=self.gang_gpus, rates=self.rates)
        types = self.rates.shape[1]
        if types != len(self.gpus):
            raise InvalidInput("gpus", f"{len(self.gpus)} values", f"rates has {types} types in its columns")
        fastest = self.rates.max(axis=1)
        if runs:
            refuse("rates", fastest == 0, fastest, "the job can run on no type of GPU")

    @property
    def num_jobs(self) -> int:
        """N."""
        return len(self.gang_gpus)

    @property
    def num_types(self) -> int:
        """K."""
        return len(self.gpus)

    @cached_property
    def runnable(self) -> NDArray[np.bool_]:
        """Whether the job can run on the type, shape (N, K)."""
        return np.asarray(self.rates > 0)

    @cached_property
    def isolated_shares(self) -> Floats:
        """The shares of an equal split of the GPUs of every type, shape (N, K).

        Every job gets M_k / N GPUs of each type, so x_jk = M_k / (N g_j), scaled down to sum 1 where it is more (as
        Gavel's isolated policy does). On one type: min(1, M / (N g_j)).
        """
        return self.isolated(self.gang_gpus)

    def isolated(self, gang_gpus: Indices) -> Floats:
        """Return the isolated shares of jobs of this problem with these gangs, shape (len(gang_gpus), K)."""
        even = self.gpus / (self.num_jobs * gang_gpus[:, None].astype(np.float64))
        return np.asarray(even / np.maximum(1.0, even.sum(axis=1, keepdims=True)))

    gangs = FormerName("gang_gpus")
    widths = FormerName("gang_gpus")

    def grouped(self, *columns: Floats) -> Groups:
        """Return the groups of jobs with the same values in all columns, each column of shape (N,)."""
        from .kernels import alike

        first, of_job, counts = alike(np.ascontiguousarray(np.column_stack(columns)))
        return Groups(first=first, counts=counts, of_job=of_job)

    def used(self, shares: Floats) -> Floats:
        """Return the mean number of busy GPUs of each type, shape (K,)."""
        return np.asarray(self.gang_gpus @ shares)

    def residuals(self, shares: Floats) -> Residuals:
        """Return the worst violations of P: of x >= 0, x = 0 where a job cannot run, and its rows.

        The excess of GPUs in use is a share of the type's GPUs.
        """
        if not np.isfinite(shares).all():
            return Residuals(math.inf, math.inf)
        barred = float(np.where(self.runnable, 0.0, shares).max(initial=0.0)) if not self.runnable.all() else 0.0
        busy = float((shares @ np.ones(self.num_types)).max()) - 1.0
        excess = float(((self.used(shares) - self.gpus) / self.gpus).max())
        return Residuals(bound=max(0.0, -float(shares.min()), barred), row=max(0.0, busy, excess))

    def sound(self, shares: Floats) -> Floats:
        """Return the shares moved into P: a solver's violations within its tolerance are clipped and scaled down."""
        shares = np.where(self.runnable, np.maximum(shares, 0.0), 0.0)
        busy = shares.sum(axis=1, keepdims=True)
        if (busy > 1.0).any():
            shares /= np.maximum(busy, 1.0)
        used = self.used(shares)
        if (used > self.gpus).any():
            shares *= np.minimum(1.0, self.gpus / np.maximum(used, self.gpus))
        return shares

    def check_plan(self, plan: GpuShares, field: str = "plan") -> None:
        """Raise InvalidInput, naming `field`, unless the plan is GpuShares of this problem's shapes."""
        if not isinstance(plan, GpuShares):
            raise InvalidInput(field, type(plan).__name__, "must be GpuShares of this problem")
        wanted = (self.num_jobs, self.num_types)
        if np.shape(plan.shares) != wanted:
            raise InvalidInput(f"{field}.shares", np.shape(plan.shares), f"must have shape {wanted}")
        if plan.prices is not None and np.shape(plan.prices) != wanted[1:]:
            raise InvalidInput(f"{field}.prices", np.shape(plan.prices), f"must have shape {wanted[1:]}")

    def prices_of(self, plan: GpuShares) -> Floats:
        """Return the plan's prices; missing, negative or NaN prices become 0, which keeps the bound valid."""
        if plan.prices is None:
            return np.zeros(self.num_types)
        prices = np.asarray(plan.prices, dtype=np.float64)
        return np.asarray(np.where(np.isfinite(prices), np.maximum(prices, 0.0), 0.0))

    def gap_scale(self, objective: float) -> float:
        """Return the size of the objective: gaps are relative to it, and absolute at 0."""
        return abs(objective) or 1.0

    def _pairs(self) -> tuple[Indices, Indices]:
        """Return job and type of every pair that has a column in a program."""
        job, kind = np.nonzero(self.runnable)
        return job, kind

    def _add_shares(self, build: ProgramBuilder) -> Indices:
        """Add P to a program: a column `share` for each pair, and the rows `capacity`, whose duals are the prices."""
        job, kind = self._pairs()
        share = build.add_columns("share", (len(job),), upper=1.0)
        build.add_rows(
            "capacity",
            (self.num_types,),
            terms=[(kind, share, self.gang_gpus[job].astype(np.float64))],
            upper=self.gpus,
        )
        build.add_rows("time", (self.num_jobs,), terms=[(job, share, 1.0)], upper=1.0)
        return share

    def _shares_of(self, columns: Floats) -> Floats:
        """Return the values of the columns `share` as shares inside P, shape (N, K)."""
        shares = np.zeros((self.num_jobs, self.num_types))
        shares[self._pairs()] = columns
        return self.sound(shares)

    def __repr__(self) -> str:
        kind = type(self).__name__
        return f"<{kind}: {self.num_jobs} jobs, {self.num_types} type(s) of GPU, {int(self.gpus.sum())} GPUs>"
