"""VolatileFisherMarket: buyers who share resources over rounds, with utilities that change from round to round."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import Floats
from ..checks import as_real, as_reals, refuse
from ..errors import InvalidInput, UnsupportedProblem
from ..former_names import FormerName
from ..program.builder import ProgramBuilder
from ..program.data import ProblemClass
from ..program.model import Program
from .equilibrium import Equilibrium
from .fisher import FisherMarket
from .market import Market
from .utility_families import Ces, CobbDouglas, Family, Leontief, Linear

FamilyName = Literal["linear", "leontief", "ces", "cobb-douglas"]
FAMILIES: tuple[FamilyName, ...] = ("linear", "leontief", "ces", "cobb-douglas")
# Tolerance on the sum of a round's weights, which must be 1; the weights are then divided by their sum.
WEIGHT_TOLERANCE = 1e-9
# Smallest abs(rho) of a CES market: below it, the powers cannot be told from Cobb-Douglas in double precision.
LEAST_RHO = 1e-6


@dataclass(frozen=True, kw_only=True, eq=False)
class VolatileFisherMarket(Market):
    """A Fisher market over rounds whose goods cannot be kept: maximise ``sum_i B_i log(sum_t u_it(x_it))``.

    Parameters
    ----------
    utilities : array_like of float, shape (N, J, T)
        For "linear", the utility of a unit of resource j in round t to buyer i. For "ces" and "cobb-douglas" the
        weights w_ijt, which sum to 1 over the resources of a round, or are all 0 in a round that the buyer cannot use.
    requirements : array_like of float, shape (N, J, T)
        For "leontief", instead of utilities: amount of each resource that one unit of utility takes (a_ijt); 0 for a
        resource that is not required, all 0 in a round that the buyer cannot use.
    budgets : array_like of float, shape (N,)
        Money of each buyer, greater than 0.
    capacities : array_like of float, shape (J, T), optional
        Units of each resource in each round, greater than 0; 1 by default.
    family : {"linear", "leontief", "ces", "cobb-douglas"}
        Utility function of a round; see :mod:`equipoise.formulations.markets.utility_families`.
    rho : float, optional
        Exponent of "ces", less than 1 and not 0. The elasticity of substitution is 1/(1 - rho).
    productivity : array_like of float, shape (N, T), optional
        For "ces" and "cobb-douglas": utility of one unit of every resource in a round (s_it); 1 by default.

    Raises
    ------
    InvalidInput
        Naming the field, the index and the value. Every buyer must be able to use some round.

    Notes
    -----
    The volatile Fisher market of Shockwave (Section 4.2, Eqs 1 and 3; Theorem C.1 and Appendix D). Utility adds up over
    rounds, and each of the families is concave and homogeneous of degree one, which makes the optimum an equilibrium.
    A linear market equals the static market with (resource, round) as goods: `static`.

    Examples
    --------
    Two jobs share one GPU over two rounds; the first runs twice as fast in the second round.

    >>> import equipoise as eq
    >>> market = eq.VolatileFisherMarket(utilities=[[[1.0, 2.0]], [[1.0, 1.0]]], budgets=[1.0, 1.0])
    >>> plan = eq.solve(market, rel_gap=1e-8).require_optimal()
    >>> plan.allocation[:, 0, :].round(3).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """

    utilities: Floats = None  # type: ignore[assignment]  # checked by family
    requirements: Floats = None  # type: ignore[assignment]
    budgets: Floats
    capacities: Floats = None  # type: ignore[assignment]  # ones
    family: FamilyName = "linear"
    rho: float | None = None
    productivity: Floats = None  # type: ignore[assignment]  # ones

    reference: ClassVar[str] = "Shockwave, Eqs 1 and 3, Theorem C.1, Appendix D"
    _declared_class = ProblemClass.LOG

    def __post_init__(self) -> None:
        if self.family not in FAMILIES:
            raise InvalidInput("family", self.family, f"must be one of {', '.join(FAMILIES)}")
        field, other = ("requirements", "utilities") if self.family == "leontief" else ("utilities", "requirements")
        if getattr(self, other) is not None:
            raise InvalidInput(other, "given", f"a {self.family} market takes {field}: leave {other} out")
        if getattr(self, field) is None:
            raise InvalidInput(field, None, f"a {self.family} market needs them")
        data = as_reals(field, getattr(self, field), minimum=0.0, ndim=3)
        count, resources, rounds = data.shape
        weighted = self.family in ("ces", "cobb-douglas")
        if weighted:
            data = _weights(data)
            given: ArrayLike = np.ones((count, rounds)) if self.productivity is None else self.productivity
            productivity = as_reals("productivity", given, minimum=0.0, shape=(count, rounds), ndim=2)
            object.__setattr__(self, "productivity", productivity)
        elif self.productivity is not None:
            why = f"a {self.family} market includes it in its {field}: leave it out"
            raise InvalidInput("productivity", "given", why)
        object.__setattr__(self, field, data)
        object.__setattr__(self, "rho", self._checked_rho())
        self._set_budgets(self.budgets, self.capacities, count, (resources, rounds))
        refuse(field, ~self.active.any(axis=1), np.zeros(count), "the buyer needs a round with a positive entry")
        self._check_yields(field)

    def _check_yields(self, field: str) -> None:
        """Raise InvalidInput if the utility of all resources of a round overflows or underflows."""
        with np.errstate(over="ignore"):
            most = self.arithmetic.rates(np.broadcast_to(self.capacities, self.shape))
            lost = self.active & ~(most > 0)
            bad = ~np.isfinite(most.sum(axis=1)) | lost.any(axis=1)
        if bad.any():
            i = int(bad.argmax())
            t = int(np.argmax(lost[i] if lost[i].any() else most[i]))
            why = f"all resources of round {t} must yield buyer {i} a positive number, finite in sum over rounds"
            raise InvalidInput(field, float(most[i, t]), why, index=(i, t))

    def _checked_rho(self) -> float | None:
        if self.family != "ces":
            if self.rho is not None:
                raise InvalidInput("rho", self.rho, f"a {self.family} market has no rho: leave it out")
            return None
        if self.rho is None:
            raise InvalidInput("rho", None, "a ces market needs it: a number below 1 and not 0")
        rho = as_real("rho", self.rho)
        if rho >= 1:
            raise InvalidInput("rho", rho, "must be less than 1; at 1 the family is 'linear'")
        if abs(rho) < LEAST_RHO:
            why = f"its absolute value must be at least {LEAST_RHO:g}; at 0 the family is 'cobb-douglas'"
            raise InvalidInput("rho", rho, why)
        return rho

    @property
    def kind(self) -> str:
        """The name under which backends list it; it includes the family because few backends solve all families."""
        return f"VolatileFisherMarket:{self.family}"

    @property
    def forms(self) -> tuple[str, ...]:  # type: ignore[override]
        """("shares",) for a linear market, ("levels",) for a Leontief market, () for the others."""
        return {"linear": ("shares",), "leontief": ("levels",)}.get(self.family, ())

    @property
    def shape(self) -> tuple[int, int, int]:
        """(N, J, T): buyers, resources, rounds."""
        return self.num_buyers, self.num_resources, self.num_rounds

    @property
    def num_resources(self) -> int:
        """J."""
        return int(self.capacities.shape[0])

    @property
    def num_rounds(self) -> int:
        """T."""
        return int(self.capacities.shape[1])

    @cached_property
    def arithmetic(self) -> Family:
        """The utility family with its data."""
        if self.family == "linear":
            return Linear(self.utilities)
        if self.family == "leontief":
            return Leontief(self.requirements, self.capacities)
        if self.family == "ces":
            assert self.rho is not None
            return Ces(self.utilities, self.productivity, self.rho)
        return CobbDouglas(self.utilities, self.productivity)

    @cached_property
    def static(self) -> FisherMarket:
        """The static market equal to a linear market: its goods are the pairs (resource, round), in C order."""
        if self.family != "linear":
            why = "its utility is not linear in the goods"
            raise UnsupportedProblem(f"a {self.family} market has no static form: {why}")
        flat = self.utilities.reshape(self.num_buyers, -1)
        return FisherMarket(flat, self.budgets, self.capacities.ravel())

    @cached_property
    def active(self) -> NDArray[np.bool_]:
        """Whether a buyer can use a round, shape (N, T)."""
        return np.asarray(self.arithmetic.has_demand.any(axis=1))

    served = FormerName("active")

    @cached_property
    def in_demand(self) -> NDArray[np.bool_]:
        """Whether any buyer has demand for a resource in a round, shape (J, T)."""
        return np.asarray(self.arithmetic.has_demand.any(axis=0))

    def utilities_at(self, allocation: Any) -> Floats:
        """Return every buyer's utility, the sum over rounds, shape (N,)."""
        return np.asarray(self.arithmetic.rates(np.asarray(allocation)).sum(axis=1))

    def unit_costs(self, prices: Floats) -> Floats:
        """Return the least money that buys one unit of utility in the cheapest round, shape (N,)."""
        return np.asarray(self.arithmetic.unit_costs(prices).min(axis=1))

    def implied_prices(self, allocation: Any) -> Floats:
        """Return the budgets, split in proportion to each good's contribution to utility, per unit of capacity."""
        if self.family == "linear":
            return self.static.implied_prices(allocation.reshape(self.num_buyers, -1)).reshape(self.capacities.shape)
        contributions = self.arithmetic.contributions(allocation)
        total = contributions.sum(axis=(1, 2), keepdims=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = np.where(total > 0, contributions / total, 0.0)
        return np.asarray(np.einsum("i,ijt->jt", self.budgets, shares) / self.capacities)

    def program_size(self, form: str | None = None) -> int:
        """Return the number of entries of the program, without building it."""
        return 2 * int(np.count_nonzero(self.arithmetic.has_demand))

    def program(self, form: str | None = None) -> Program:
        """Return the program over shares of capacity (linear), or over the utility of each round (Leontief)."""
        form = self._checked_form(form)
        if form == "shares":
            return self.static.program()
        buyer, round_ = np.nonzero(self.active)
        unit = self._units()[buyer, round_]
        build = ProgramBuilder(sense="max")
        level = build.add_columns("level", (len(buyer),))
        shares = self.requirements[buyer, :, round_] / self.capacities[:, round_].T / unit[:, None]
        pair, resource = np.nonzero(shares)
        rows = (resource * self.num_rounds + round_[pair], level[pair], shares[pair, resource])
        build.add_rows("capacity", self.capacities.shape, terms=[rows], upper=1.0)
        least = self._largest()
        build.add_logs(self.budgets, terms=[(buyer, level, 1.0 / unit / least[buyer])])
        build.set_objective([], offset=math.fsum(self.budgets * np.log(least)))
        return build.program(gap_unit=self.total_budget)

    def decode(self, values: Floats, duals: Floats | None = None, form: str | None = None) -> Equilibrium:
        """Turn column values of the program into an equilibrium, its prices the duals of the capacities."""
        form = self._checked_form(form)
        prices = None if duals is None else duals.reshape(self.capacities.shape) / self.capacities
        if form == "shares":
            return self._improve_prices(self.static.allocation_of(values).reshape(self.shape), prices)
        rates = np.zeros((self.num_buyers, self.num_rounds))
        rates[self.active] = self._floor_allocations(values, np.nonzero(self.active)[0])
        return self._improve_prices(self.requirements * (rates / self._units())[:, None, :], prices)

    def encode(self, plan: Equilibrium, form: str | None = None) -> Floats:
        """Turn an equilibrium into column values of the program, for a warm start."""
        form = self._checked_form(form)
        self.evaluate(plan)  # checks the shape
        if form == "shares":
            return self.static.shares_of(np.asarray(plan.allocation).reshape(self.num_buyers, -1))
        return np.asarray((self.arithmetic.rates(np.asarray(plan.allocation)) * self._units())[self.active])

    def _units(self) -> Floats:
        """Return the unit of the columns of a Leontief market: the largest share of a capacity that one unit takes."""
        shares = (self.requirements / self.capacities).max(axis=1)
        return np.where(self.active, shares, 1.0)

    def _largest(self) -> Floats:
        """Return the most utility that one round alone can give each buyer of a Leontief market, shape (N,)."""
        return np.asarray(np.where(self.active, 1.0 / self._units(), 0.0).max(axis=1))

    def _checked_form(self, form: str | None) -> str:
        if not self.forms:
            raise UnsupportedProblem(
                f"a {self.family} market has no linear or logarithmic program; "
                "solve it with backend='proportional_response' or 'clarabel'"
            )
        return self.check_form(form)

    def __repr__(self) -> str:
        N, J, T = self.shape
        return f"<VolatileFisherMarket, {self.family}: {N} buyers, {J} resources, {T} rounds>"


def _weights(weights: Floats) -> Floats:
    """Return weights divided by their sums over the resources of a round; the sums must be 1, or 0 without demand."""
    with np.errstate(over="ignore"):
        sums = weights.sum(axis=1)
    bad = (sums > 0) & (np.abs(sums - 1.0) > WEIGHT_TOLERANCE)
    if bad.any():
        i, t = (int(at) for at in np.argwhere(bad)[0])
        why = "the weights of a round must sum to 1 (use productivity to scale the utility of a round); "
        why += f"summed over resources of buyer {i} in round {t}"
        raise InvalidInput("utilities", float(sums[i, t]), why, index=(i, t))
    weights = weights / np.where(sums > 0, sums, 1.0)[:, None, :]
    weights.setflags(write=False)
    return weights
