"""List schedules in slots: rules of SJF-BSBF and SJF-FFS, their feasibility, and the same starts as on the engine."""

from dataclasses import replace

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
from equipoise.heuristics import make_policy
from equipoise.simulation import Cluster, Trace
from equipoise.simulation.placement import (
    ConstantInterference,
    DurationSpeeds,
    PlacementRules,
    simulate_placement,
)
from equipoise.validation.instances.clusters import random_cluster


def by_rule(problem, rule):
    return list_schedule(problem, shortest_first(problem), rule)


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


@pytest.mark.parametrize(("name", "rule"), [("sjf-bsbf", gaining_partners), ("sjf-ffs", first_partners)])
@pytest.mark.parametrize("ratio", [1.0, 2.0])
def test_rules_in_slots_are_those_of_the_placement_engine_where_all_ends_are_whole(name, rule, ratio):
    rng = np.random.default_rng(11)
    for _ in range(examples(40)):
        jobs = 8
        problem = replace(random_cluster(rng, jobs=jobs), ratios=np.full((jobs, jobs), ratio))
        trace = Trace(
            job_id=list(range(jobs)),
            model=["m"] * jobs,
            gang_gpus=problem.gang_gpus,
            arrival_s=problem.arrivals.astype(float),
            duration_s=problem.work_slots,
            batch_size=[1] * jobs,
        )
        result = simulate_placement(
            trace,
            make_policy(name, "placement"),
            cluster=Cluster(gpus_by_type={"gpu": 4}),
            speeds=DurationSpeeds(),
            interference=ConstantInterference(ratio),
            rules=PlacementRules(jobs_per_gpu=2),
        )
        plan = by_rule(problem, rule)
        assert plan.start.tolist() == result.start_s.tolist()
        assert plan.end.tolist() == pytest.approx(result.end_s.tolist())
