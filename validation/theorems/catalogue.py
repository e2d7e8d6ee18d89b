"""The theorems of markets and of sharing that the library proves, statement by statement, with sympy."""

from __future__ import annotations

from collections.abc import Callable

from ...formulations.errors import InvalidInput
from . import accumulation, costs, counterexamples, equilibrium, fairness, sharing, utility_families
from .proof import Proof, ProofFailed
from .symbols import TheoryMissing

__all__ = ["THEOREMS", "Proof", "ProofFailed", "TheoryMissing", "prove"]

#: Every theorem: called without arguments, each returns its proof, or raises ProofFailed. The arguments that they take
#: exchange an ingredient for another one, to see the proof fail.
THEOREMS: tuple[Callable[[], Proof], ...] = (
    equilibrium.leontief_conditions,
    equilibrium.prices_are_duals,
    equilibrium.leontief_prices_are_duals,
    equilibrium.budgets_clear,
    equilibrium.prices_bound_welfare,
    equilibrium.gap_bounds_the_mean,
    fairness.sharing_incentive,
    fairness.proportionality,
    fairness.envy_freeness,
    fairness.finish_time_product,
    counterexamples.product_needs_budgets,
    counterexamples.ratios_are_not_finish_times,
    counterexamples.window_is_no_equilibrium,
    utility_families.linear_is_homogeneous,
    utility_families.leontief_is_homogeneous,
    utility_families.ces_is_homogeneous,
    utility_families.cobb_douglas_is_homogeneous,
    utility_families.ces_is_concave,
    utility_families.cobb_douglas_is_concave,
    utility_families.other_degrees,
    costs.linear_unit_cost,
    costs.leontief_unit_cost,
    costs.ces_unit_cost,
    costs.cobb_douglas_unit_cost,
    costs.unit_cost_over_rounds,
    costs.ces_limit_cobb_douglas,
    costs.ces_limit_needs_weights_of_one,
    costs.ces_limit_linear,
    costs.ces_limit_leontief,
    sharing.pair_pieces,
    sharing.mean_jct_at_an_end,
    sharing.weighted_jct_at_an_end,
    sharing.makespan_at_an_end,
    sharing.share_rule_running_first,
    sharing.share_rule_waiting_first,
    sharing.sign_test_errs,
    sharing.group_candidates,
    sharing.group_jct_candidates,
    sharing.group_jct_needs_running_ends,
    sharing.group_jct_needs_common_ends,
    sharing.group_makespan_needs_common_ends,
    sharing.smaller_sub_batches_slow_pairs,
    accumulation.equal_sub_batches_are_the_full_batch,
    accumulation.unequal_sub_batches_are_not,
    accumulation.smaller_sub_batches_take_longer,
)


def prove(name: str | None = None) -> tuple[Proof, ...]:
    """Return the proofs of all theorems, or of one by the name of its function.

    Raises
    ------
    ProofFailed
        If sympy cannot close a step.
    TheoryMissing
        If sympy is not installed.
    InvalidInput
        If no theorem has this name.
    """
    chosen = [theorem for theorem in THEOREMS if name in (None, theorem.__name__)]
    if not chosen:
        names = ", ".join(theorem.__name__ for theorem in THEOREMS)
        raise InvalidInput("name", name, f"must be one of {names}")
    return tuple(theorem() for theorem in chosen)
