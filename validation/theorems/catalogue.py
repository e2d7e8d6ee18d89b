"""The theorems of market theory that the library proves, statement by statement, with sympy."""

from __future__ import annotations

from collections.abc import Callable

from ...formulations.errors import InvalidInput
from .costs import (
    ces_limit_cobb_douglas,
    ces_limit_leontief,
    ces_limit_linear,
    ces_limit_needs_weights_of_one,
    ces_unit_cost,
    cobb_douglas_unit_cost,
    leontief_unit_cost,
    linear_unit_cost,
    unit_cost_over_rounds,
)
from .counterexamples import product_needs_budgets, ratios_are_not_finish_times, window_is_no_equilibrium
from .equilibrium import (
    budgets_clear,
    gap_bounds_the_mean,
    leontief_conditions,
    leontief_prices_are_duals,
    prices_are_duals,
    prices_bound_welfare,
)
from .fairness import envy_freeness, finish_time_product, proportionality, sharing_incentive
from .proof import Proof, ProofFailed, TheoryMissing
from .utility_families import (
    ces_is_concave,
    ces_is_homogeneous,
    cobb_douglas_is_concave,
    cobb_douglas_is_homogeneous,
    leontief_is_homogeneous,
    linear_is_homogeneous,
    other_degrees,
)

__all__ = ["THEOREMS", "Proof", "ProofFailed", "TheoryMissing", "prove"]

#: Every theorem: called without arguments, each returns its proof, or raises ProofFailed. The arguments that they take
#: exchange an ingredient for another one, to see the proof fail.
THEOREMS: tuple[Callable[[], Proof], ...] = (
    leontief_conditions,
    prices_are_duals,
    leontief_prices_are_duals,
    budgets_clear,
    prices_bound_welfare,
    gap_bounds_the_mean,
    sharing_incentive,
    proportionality,
    envy_freeness,
    finish_time_product,
    product_needs_budgets,
    ratios_are_not_finish_times,
    window_is_no_equilibrium,
    linear_is_homogeneous,
    leontief_is_homogeneous,
    ces_is_homogeneous,
    cobb_douglas_is_homogeneous,
    ces_is_concave,
    cobb_douglas_is_concave,
    other_degrees,
    linear_unit_cost,
    leontief_unit_cost,
    ces_unit_cost,
    cobb_douglas_unit_cost,
    unit_cost_over_rounds,
    ces_limit_cobb_douglas,
    ces_limit_needs_weights_of_one,
    ces_limit_linear,
    ces_limit_leontief,
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
