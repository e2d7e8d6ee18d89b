"""Public members that were renamed: the former name warns and has the value of the present one."""

import numpy as np
import pytest

import equipoise as eq
from equipoise.formulations.former_names import FormerName
from equipoise.heuristics.prediction import makespan_bound_s
from equipoise.simulation import Trace

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
    assert warned(lambda: SHARES.widths, "SharePolytope.widths", "gang_gpus").tolist() == [1, 1]
    recomputed = warned(lambda: SHARES.level_and_residuals(plan), "LevelShares.level_and_residuals", "evaluate")
    assert recomputed == SHARES.evaluate(plan)


def test_a_program_keeps_the_class_that_its_data_has(recwarn):
    assert MARKET.program().problem_class is eq.ProblemClass.LOG
    assert not recwarn.list


def test_a_former_name_on_the_class_itself_is_the_descriptor():
    assert isinstance(eq.FisherMarket.bound_of, FormerName)
    assert eq.FisherMarket.bound_of.present == "proved_bound"


def test_the_gpus_of_gangs_are_accepted_and_read_by_their_former_names():
    shares = {"rates": [[1.0], [1.0]], "gangs": [1, 2], "gpus": [2]}
    trace = {"job_id": ["a", "b"], "model": ["m", "m"], "arrival_s": [0.0, 1.0], "total_steps": [1, 1]}
    columns = {
        "finished_epochs": [0, 0], "total_epochs": [1, 1], "regime_starts": [0, 1, 2], "regime_epochs": [1, 1],
        "regime_epoch_s": [60.0, 60.0], "gpus": 2, "rounds": 1,
    }  # fmt: skip
    made = {
        "MaxMinFairness": lambda: eq.MaxMinFairness(**shares),
        "MaxSumThroughput": lambda: eq.MaxSumThroughput(**shares),
        "MinTotalDuration": lambda: eq.MinTotalDuration(**shares, steps=[1, 1]),
        "FinishTimeFairness": lambda: eq.FinishTimeFairness(
            **shares, steps=[1.0, 1.0], elapsed_s=[0.0, 0.0], isolated_elapsed_s=[0.0, 0.0], isolated_rates=[1.0, 1.0]
        ),
        "GangMakespan": lambda: eq.GangMakespan(rounds=[1, 1], gangs=[1, 2], gpus=2),
        "GangSchedule": lambda: eq.GangSchedule(gangs=[1, 2], gpus=2, job=[0, 1], start=[0, 1], end=[1, 2]),
        "JobColumns.from_columns": lambda: eq.ScheduleWindow.from_columns(gangs=[1, 2], **columns),
    }
    for name, make in made.items():
        problem = warned(make, f"{name}: the parameter gangs", "gang_gpus")
        with pytest.warns(DeprecationWarning, match="gangs is now gang_gpus"):
            assert problem.gangs.tolist() == problem.gang_gpus.tolist() == [1, 2]
    jobs = warned(lambda: Trace(num_gpus=[1, 2], **trace), "Trace: the parameter num_gpus", "gang_gpus")
    assert warned(lambda: jobs.num_gpus, "Trace.num_gpus", "gang_gpus").tolist() == [1, 2]
    bound = warned(lambda: makespan_bound_s([5.0], 4, gangs=[2]), "makespan_bound_s: the parameter gangs", "gang_gpus")
    assert bound == makespan_bound_s([5.0], 4, gang_gpus=[2])


def test_a_parameter_is_not_given_by_both_names():
    with pytest.raises(TypeError, match="gangs is the former name of gang_gpus, which is given too"):
        eq.GangMakespan(rounds=[1], gang_gpus=[1], gangs=[1], gpus=1)
