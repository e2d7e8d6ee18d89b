"""Lucid's packing by rule: the order, who shares with whom, and bad options."""

import pytest

import equipoise as eq
from equipoise.heuristics import make_policy
from equipoise.heuristics.placement.lucid import LucidPolicy
from equipoise.simulation import Cluster, Trace
from equipoise.simulation.placement import ConstantInterference, DurationSpeeds, PlacementRules, simulate_placement


def simulated(jobs, gpus=2, sharing=2, ratio=1.5, **options):
    """Simulate jobs given as (model, GPUs, arrival, duration)."""
    models, gangs, arrivals, durations = zip(*jobs, strict=True)
    trace = Trace(
        job_id=list(range(len(jobs))), model=models, gang_gpus=gangs, arrival_s=arrivals, duration_s=durations
    )
    return simulate_placement(
        trace, LucidPolicy(**options), cluster=Cluster(gpus_by_type={"gpu": gpus}), speeds=DurationSpeeds(),
        interference=ConstantInterference(ratio), rules=PlacementRules(jobs_per_gpu=sharing),
    )  # fmt: skip


def test_jobs_go_by_their_gpu_time_and_not_by_their_time():
    # All arrive behind a job on both GPUs: GPU times 20, 15 and 10.
    jobs = [("a", 2, 0.0, 5.0), ("b", 2, 1.0, 10.0), ("c", 1, 1.0, 15.0), ("d", 1, 1.0, 10.0)]
    assert simulated(jobs, sharing=1).start_s.tolist() == [0.0, 20.0, 5.0, 5.0]


@pytest.mark.parametrize(
    ("scores", "shares"),
    [
        ({"a": 1, "b": 1}, True),
        ({"a": 2, "b": 0}, True),
        ({"a": 0, "b": 0}, True),
        ({"a": 2, "b": 1}, False),
        ({"a": 1, "b": 2}, False),
        ({"a": 2}, False),  # b has the default score 1
    ],
)
def test_two_jobs_share_if_their_scores_add_up_to_the_capacity(scores, shares):
    result = simulated([("a", 2, 0.0, 10.0), ("b", 2, 0.0, 10.0)], scores=scores)
    assert result.end_s.tolist() == ([15.0, 15.0] if shares else [10.0, 20.0])
    assert result.shared_gpu_s.tolist() == ([30.0, 30.0] if shares else [0.0, 0.0])


def test_jobs_of_unequal_gangs_do_not_share():
    result = simulated([("a", 2, 0.0, 10.0), ("b", 1, 0.0, 30.0)])
    assert result.start_s.tolist() == [0.0, 10.0]


def test_no_job_is_packed_while_gpus_are_free_and_no_third_job_is():
    result = simulated([("a", 1, 0.0, 10.0)] * 5, gpus=2, sharing=3)
    # Two start alone, two share, the fifth waits for a GPU to become free.
    assert result.start_s.tolist() == [0.0, 0.0, 0.0, 0.0, 15.0]


def test_the_lightest_partner_is_taken_and_ties_go_to_the_first():
    jobs = [("heavy", 1, 0.0, 50.0), ("light", 1, 0.0, 50.0), ("light", 1, 0.0, 50.0), ("new", 1, 1.0, 5.0)]
    result = simulated(jobs, gpus=3, scores={"heavy": 1, "light": 0})
    assert result.stretches.ids()[3].tolist() == result.stretches.ids()[1].tolist()


def test_a_rule_of_one_job_on_a_gpu_prevents_packing():
    assert simulated([("a", 2, 0.0, 10.0)] * 2, sharing=1).shared_gpu_s.tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"scores": [1]}, "scores = 'list': must map models to scores"),
        ({"scores": {"a": 3}}, r"scores\['a'\] = 3: at most 2"),
        ({"scores": {"a": True}}, r"scores\['a'\] = True"),
        ({"default_score": 1.5}, "default_score = 1.5"),
        ({"capacity": -1}, "capacity = -1: at least 0"),
        ({"placement": "random"}, "placement = 'random': must be one of"),
    ],
)
def test_bad_options_are_named(options, said):
    with pytest.raises(eq.InvalidInput, match=said):
        make_policy("lucid", **options)
