"""StochasticMarket: policies for jobs that change at random and share resources over rounds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ...arrays import Floats
from ...errors import InvalidInput
from ...program.data import ProblemClass, Residuals
from ...program.formulation import Formulation
from ...program.model import Program
from .data import StochasticData
from .plan import StochasticPlan
from .process import Process
from .programs import decoded_policy, encoded, stochastic_program


@dataclass(frozen=True, kw_only=True, eq=False)
class StochasticMarket(StochasticData, Formulation[StochasticPlan]):
    """Maximise ``sum_i B_i log E[U_i]`` over policies for jobs that are finite Markov chains.

    In each of T rounds every job is given one of its actions, which determines its utility and the change of its state;
    E[U_i] is the expected sum over the rounds. The form selects the program:

    - "decoupled" (the default): the action of a job depends on its own state only, and the capacity of a round holds in
      expectation. It relaxes "joint", and is the only form for more than a few jobs.
    - "joint", the paper's: one policy depends on all states, and every round keeps the capacity on every path. It is
      exact, and for tiny instances only.
    - "decoupled-deterministic", "joint-deterministic": the same with one certain action in each round and state, by
      binaries. They may have no plan at all: two jobs and one indivisible unit in one round.

    An action that by itself exceeds the capacity of a round is not available in it, in any form.

    Parameters
    ----------
    chains : sequence of JobChain
        N jobs, all of the same J resources.
    budgets : array_like of float, shape (N,)
        Money of each job, greater than 0.
    capacities : float or array_like of float, shape (T,) or (J, T)
        Amount of each resource in each round, at least 0; one number holds in all rounds. Stored with shape (J, T).
    rounds : int
        Number of rounds, T.

    Raises
    ------
    InvalidInput
        Naming the field, the index and the value; also for a job that has no utility even without the others.

    Notes
    -----
    Eq. 6, Appendix F of P. Zheng et al. ("Shockwave: Fair and Efficient Cluster Scheduling for Dynamic Adaptation in
    Machine Learning", NSDI 2023). Its program is the "joint" one: a probability for each round, the states of all jobs
    and the amounts of all, 0 where the amounts exceed the capacity, with the flow constraints of occupancy measures (E.
    Altman, "Constrained Markov Decision Processes", Chapman and Hall, 1999). Eq. 6 sums utility over t = 1, ..., T - 1;
    here every round counts, so that Eq. 6 is "joint" with one round less. The text of the appendix is restricted to
    deterministic policies: "joint-deterministic". The decoupled forms are not in the paper (docs/errata.md).

    Examples
    --------
    Two jobs, one indivisible GPU, one round: only a randomised policy gives both jobs a positive expected utility.

    >>> import equipoise as eq
    >>> chain = eq.JobChain(initial=[1.0], transitions=[[[1.0]], [[1.0]]], utilities=[[0.0], [1.0]], demands=[0, 1])
    >>> market = eq.StochasticMarket(chains=[chain, chain], budgets=[1.0, 1.0], capacities=1, rounds=1)
    >>> plan = eq.solve(market, form="joint", rel_gap=1e-8).require_optimal()
    >>> plan.utilities.round(3).tolist()
    [0.5, 0.5]
    """

    sense = "max"
    reference: ClassVar[str] = "Zheng et al., Shockwave, NSDI 2023, Appendix F"
    forms = ("decoupled", "joint", "decoupled-deterministic", "joint-deterministic")

    def class_of(self, form: str | None = None) -> ProblemClass:
        """Return LOG, or MILOG for a deterministic form."""
        deterministic = self.check_form(form).endswith("deterministic")
        return ProblemClass.MILOG if deterministic else ProblemClass.LOG

    def processes(self, form: str = "decoupled") -> tuple[Process, ...]:
        """Return the decision processes of a form; InvalidInput if there is none, UnsupportedProblem if too large."""
        self.check_form(form)
        return super().processes(form)

    def program(self, form: str = "decoupled") -> Program:
        """Return the program of a form over the probabilities of rounds, states and actions."""
        self.check_form(form)
        return stochastic_program(self, form)

    def decode(self, values: Floats, duals: Floats | None = None, form: str = "decoupled") -> StochasticPlan:
        """Turn column values of `program(form)` into a policy, and duals into prices."""
        self.check_form(form)
        prices = None
        if form == "decoupled" and duals is not None:
            of_capacity = duals[-self.capacities.size :].reshape(self.capacities.shape)
            prices = np.maximum(of_capacity, 0.0) / self.capacity_units
        return StochasticPlan(market=self, form=form, policy=decoded_policy(self, values, form), prices=prices)

    def encode(self, plan: StochasticPlan, form: str = "decoupled") -> Floats:
        """Turn a plan into column values of `program(form)`, for a warm start; a joint plan serves every form."""
        self.check_form(form)
        own = self._own(plan)
        if form.startswith("joint") and not own.is_joint:
            raise InvalidInput("plan", plan.form, f"a decoupled plan has no values for the {form} program")
        return encoded(self, own, form)

    def evaluate(self, plan: StochasticPlan) -> tuple[float, Residuals]:
        """Return the plan's objective and its worst faults, from its policy and this market's data.

        Residuals: `bound` of probabilities, `row` as a share of the capacity (in expectation for a decoupled plan, and
        of every action taken), `integrality` of the policy of a deterministic form.
        """
        plan = self._own(plan)
        drift = max(float(np.abs(part.sum(axis=2) - 1.0).max()) for part in plan.policy)
        bound = max(drift, *(float(-part.min()) for part in plan.policy))
        over = [
            float(_excess(process, part, self)) for process, part in zip(plan.processes, plan.occupancy, strict=True)
        ]
        if not plan.is_joint:
            over.append(float(((plan.expected_use - self.capacities) / self.capacity_units).max()))
        fractions = 0.0
        if plan.form.endswith("deterministic"):
            fractions = max(float(np.abs(part - np.rint(part)).max()) for part in plan.policy)
        objective = self.welfare(plan.utilities)
        return objective, Residuals(bound=max(bound, 0.0), row=max(0.0, *over), integrality=fractions)

    def gap_scale(self, objective: float) -> float:
        """Return the sum of the budgets: at a gap g the geometric mean of utilities is within exp(-g) of the best."""
        return self.total_budget

    def _own(self, plan: StochasticPlan) -> StochasticPlan:
        """Return the plan as one of this market; InvalidInput if its shapes are not."""
        if not isinstance(plan, StochasticPlan):
            raise InvalidInput("plan", type(plan).__name__, "must be a StochasticPlan")
        shapes = [process.shape for process in self.processes(plan.form)]
        if [np.shape(part) for part in plan.policy] != shapes:
            raise InvalidInput("plan.policy", [np.shape(part) for part in plan.policy], f"must have shapes {shapes}")
        return plan if plan.market is self else replace(plan, market=self)

    def __repr__(self) -> str:
        states = sum(chain.num_states for chain in self.chains)
        return f"<StochasticMarket: {len(self.chains)} jobs of {states} states in all, {self.rounds} rounds>"


def _excess(process: Process, occupancy: Floats, market: StochasticMarket) -> Any:
    """Return the largest excess of one action taken over the capacity, as a share of the capacity."""
    taken = (occupancy.sum(axis=1) > 0) & ~process.allowed
    over = (process.demands[None] - market.capacities.T[:, None]) / market.capacity_units.T[:, None]
    return np.where(taken, over.max(axis=2), 0.0).max()
