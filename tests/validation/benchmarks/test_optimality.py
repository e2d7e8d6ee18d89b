"""Heuristics in slots against the optimum: no ratio below 1, rules as stated, and both heuristics beaten somewhere."""

import numpy as np
import pytest
from examples import examples

import equipoise as eq
from equipoise.formulations.gpu_sharing.slot_lists import (
    first_partners,
    gaining_partners,
    list_schedule,
    no_partners,
    shortest_first,
)
from equipoise.validation.benchmarks.optimality import Measured, measured, rows_of
from equipoise.validation.instances.clusters import random_cluster


def by_rule(problem, rule):
    return list_schedule(problem, shortest_first(problem), rule)


def test_no_heuristic_beats_the_optimum():
    found = [measured(index, seed=7, jobs=4, gpus=2) for index in range(examples(40))]
    assert all(each.proved for each in found)
    assert all(value >= each.objective for each in found for value in each.heuristics.values())
    assert any(value > each.objective for each in found for value in each.heuristics.values())


@pytest.mark.thorough
@pytest.mark.parametrize("backend", ["scip", "ortools"])
def test_other_solvers_find_the_same_optimum(backend):
    for index in range(examples(8)):
        one, other = (measured(index, seed=1, jobs=5, backend=each) for each in ("highs", backend))
        assert one.proved
        assert one.objective == other.objective, index


def test_heuristics_are_feasible_and_of_all_sizes():
    for seed in range(examples(100)):
        problem = random_cluster(np.random.default_rng(seed), jobs=8, gpus=5)
        for rule in (no_partners, first_partners, gaining_partners):
            plan = by_rule(problem, rule)
            assert problem.evaluate(plan)[1].worst == 0.0
            if rule is no_partners:
                assert (plan.end - plan.start == problem.least_slots).all()


@pytest.mark.parametrize(("ratio", "shares"), [(1.0, True), (1.5, True), (1.6, False), (2.0, False)])
def test_bsbf_shares_equal_jobs_up_to_a_ratio_of_three_halves(ratio, shares):
    problem = eq.GpuSharing(
        work_slots=[10, 10], gang_gpus=[1, 1], gpus=1, ratios=[[1, ratio], [ratio, 1]]
    )  # fmt: skip
    assert (by_rule(problem, gaining_partners).start.tolist() == [0, 0]) == shares
    assert by_rule(problem, first_partners).start.tolist() == [0, 0]


def test_bsbf_takes_the_best_pair_and_ffs_the_first_gpus():
    # Jobs 1 and 2 run on GPUs 0 and 1; job 0 would slow job 1 down, and not job 2.
    ratios = [[1, 2, 1], [2, 1, 1], [1, 1, 1]]
    problem = eq.GpuSharing(
        work_slots=[4, 6, 6], gang_gpus=[1, 1, 1], gpus=2, ratios=ratios, arrival_slots=[1, 0, 0]
    )  # fmt: skip
    assert by_rule(problem, gaining_partners).gpu_ids[0] == (1,)
    assert by_rule(problem, first_partners).gpu_ids[0] == (0,)


def test_forty_equal_jobs_are_better_shared_than_in_turn():
    """Equal jobs of 10 at 1.6: the pair test runs them in turn, although sharing is better for the queue behind."""
    problem = eq.GpuSharing(
        work_slots=np.full(40, 10), gang_gpus=np.ones(40, int), gpus=1, ratios=np.full((40, 40), 1.6)
    )  # fmt: skip
    bsbf, ffs = (problem.evaluate(by_rule(problem, rule))[0] / 40 for rule in (gaining_partners, first_partners))
    assert (bsbf, ffs) == (205.0, 168.0)


def test_rows_summarise_what_was_measured():
    values = [({"sjf-bsbf": 12.0, "sjf-ffs": 20.0}, 10.0), ({"sjf-bsbf": 10.0, "sjf-ffs": 15.0}, 8.0)]
    found = [
        Measured(heuristics=values, objective=10.0, bound=bound, proved=bound == 10.0, wall_s=bound)
        for values, bound in values
    ]
    first, second = rows_of(found)
    assert first["policy"] == "sjf-bsbf"
    assert (first["mean_ratio"], first["worst_ratio"], first["optimal"], first["proved"]) == (1.1, 1.2, 1, 1)
    assert (second["mean_ratio"], second["most_ratio"], second["median_s"]) == (1.75, 2.0, 9.0)
