"""Public members that were renamed: the former name warns and has the value of the present one."""

import numpy as np
import pytest

import equipoise as eq
from equipoise.formulations.former_names import FormerName

MARKET = eq.FisherMarket([[2.0, 1.0], [1.0, 3.0]], budgets=[1.0, 2.0])
SHARES = eq.MaxMinFairness([[1.0, 2.0], [2.0, 1.0]], [1, 1], gpus=[1, 1])


def warned(call, former, present):
    with pytest.warns(DeprecationWarning, match=f"^{former} is now {present}$") as records:
        value = call()
    assert [record.filename for record in records] == [__file__]
    return value


def test_former_names_of_every_formulation():
    plan = eq.solve(MARKET).plan
    assert warned(lambda: MARKET.bound_of(plan), "Formulation.bound_of", "proved_bound") == MARKET.proved_bound(plan)
    assert warned(lambda: MARKET.problem_class, "Formulation.problem_class", "class_of") is MARKET.class_of()
    entries = warned(lambda: MARKET.program_entries, "Formulation.program_entries", "program_size")
    assert entries == MARKET.program_size()
    again = warned(lambda: MARKET.restated(plan), "Formulation.restated", "normalized")
    assert np.array_equal(again.prices, MARKET.normalized(plan).prices)
    better = warned(lambda: MARKET.with_better_prices(plan, plan), "Formulation.with_better_prices", "improve")
    assert better is MARKET.improve(plan, plan)


def test_former_names_of_shares():
    plan = eq.solve(SHARES).plan
    assert warned(lambda: SHARES.widths, "SharePolytope.widths", "gang_gpus").tolist() == [1.0, 1.0]
    recomputed = warned(lambda: SHARES.level_and_residuals(plan), "LevelShares.level_and_residuals", "evaluate")
    assert recomputed == SHARES.evaluate(plan)


def test_a_program_keeps_the_class_that_its_data_has(recwarn):
    assert MARKET.program().problem_class is eq.ProblemClass.LOG
    assert not recwarn.list


def test_a_former_name_on_the_class_itself_is_the_descriptor():
    assert isinstance(eq.FisherMarket.bound_of, FormerName)
    assert eq.FisherMarket.bound_of.present == "proved_bound"
