"""Weighted fair queues on the rounds engine: queues by size, weights by type, order inside, and clear errors."""

import math

import numpy as np
import pytest

import equipoise as eq
from equipoise.heuristics import make_policy
from equipoise.heuristics.rounds.wfq import size_gpu_s
from equipoise.simulation import Profiles, SizeClass, generate_trace, simulate_rounds
from equipoise.simulation.rounds.policy import RoundJob, RoundState


def job(place, steps, gpus=1, rates=(2.0,), **given):
    fields = {
        "id": place, "trace_index": place, "gpus": gpus, "model": "m", "mode": "static", "weight": 1.0,
        "arrival_s": 10.0 * place, "batch_size": 32, "initial_batch_size": 32, "steps_run": 0, "total_steps": steps,
        "steps_per_epoch": 100, "rates": np.array(rates), "attained_s": 0.0, "running": False, "make_state": None,
    }  # fmt: skip
    return RoundJob(**fields | given)


def state(*jobs, gpus=(4,)):
    return RoundState(
        round=10, time_s=1200.0, round_s=120.0, gpu_types=("v100", "k80", "p100")[: len(gpus)], gpus=np.array(gpus),
        jobs=jobs, arrived=1, completed=0, rescaled=0, since_call_s=math.inf,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("steps", "gpus", "rates", "size", "queue"),
    [
        (200, 1, [2.0], 100.0, 0),  # at the threshold
        (201, 1, [2.0], 100.5, 1),
        (200, 2, [2.0], 200.0, 1),  # the gang counts
        (1000, 1, [1.0, 10.0], 100.0, 0),  # on its fastest type
        (2001, 1, [2.0], 1000.5, 2),
    ],
)
def test_jobs_go_to_queues_by_their_size(steps, gpus, rates, size, queue):
    now = state(job(0, steps, gpus, rates), gpus=(4,) * len(rates))
    assert size_gpu_s(now.jobs[0]) == size
    for thresholds in ((100.0, 1000.0), [100, 1000, math.inf], np.array([100.0, 1000.0])):
        assert make_policy("wfq", thresholds=thresholds).queues(now).tolist() == [queue]


def test_a_job_keeps_the_queue_of_its_arrival():
    policy = make_policy("wfq", thresholds=100.0)
    assert policy.queues(state(job(0, 200), job(1, 2000))).tolist() == [0, 1]
    assert policy.queues(state(job(1, 20), job(2, 20))).tolist() == [1, 0]  # a larger batch leaves fewer steps
    assert policy.queues(state(job(0, 2000))).tolist() == [1]  # an ended job is forgotten


@pytest.mark.parametrize(
    ("options", "gpus", "shares"),
    [
        ({}, 2, [1, 1, 0, 0]),  # one queue: in order of arrival
        ({}, 3, [1, 1, 0.5, 0]),
        ({"thresholds": 100.0}, 2, [1, 0, 0.5, 0]),  # short: jobs 0 and 1; long: jobs 2 and 3, of two GPUs
        ({"thresholds": 100.0}, 4, [1, 1, 1, 0]),
        ({"thresholds": 100.0}, 5, [1, 1, 1, 0.5]),  # what the short queue does not want goes to the long one
        ({"thresholds": 100.0, "decay": math.log(3.0)}, 2, [1, 0.5, 0.25, 0]),  # weights 3/4 and 1/4
        ({"thresholds": 100.0, "decay": -math.log(3.0)}, 2, [0.5, 0, 0.75, 0]),
        ({"thresholds": [100.0, 5000.0], "decay": math.log(2.0)}, 2, [1, 1 / 3, 1 / 3, 0]),  # 2 : 1, the third is empty
    ],
)
def test_shares_on_one_type_by_hand(options, gpus, shares):
    now = state(job(0, 200), job(1, 100), job(2, 2000, 2), job(3, 2000, 2), gpus=(gpus,))
    decided = make_policy("wfq", **options).decide(now)
    assert decided.values[:, 0] == pytest.approx(shares, abs=1e-9)
    assert decided.evidence.gap <= 1e-6


def test_each_type_has_its_own_decay():
    """All jobs are equally fast on both types, so the weights of a queue are added up over the types."""
    rates = [1.0, 1.0]
    now = state(job(0, 20, 2, rates), job(1, 20, 2, rates), job(2, 2000, 2, rates), job(3, 2000, 2, rates), gpus=(2, 2))
    policy = make_policy("wfq", thresholds=100.0, decay={"v100": math.log(3.0), "k80": 0.0})
    assert policy.problem(now).weights == pytest.approx(np.array([[0.75, 0.5], [0.25, 0.5]]))
    # Of four GPUs the queues have (3/4 + 1/2) : (1/4 + 1/2), which is 2.5 and 1.5.
    assert policy.decide(now).values.sum(axis=1) == pytest.approx([1.0, 0.25, 0.75, 0.0])


# -- Configurations ----------------------------------------------------------------------------------------------------


def config(weights, zeta=0.0):
    return eq.WfqConfig(thresholds=[100.0, math.inf], weights=weights, zeta=zeta)


def test_a_configuration_is_what_thresholds_and_decay_make(tmp_path):
    now = state(job(0, 200), job(1, 100), job(2, 2000, 2), job(3, 2000, 2), gpus=(2,))
    options = make_policy("wfq", thresholds=100.0, decay=math.log(3.0))
    path = tmp_path / "config.json"
    config(["3/4", "1/4"]).to_json(path)
    for given in (config(["3/4", "1/4"]), path, str(path)):
        policy = make_policy("wfq", config=given)
        assert policy.queues(now).tolist() == options.queues(now).tolist() == [0, 0, 1, 1]
        assert policy.problem(now).weights == pytest.approx(options.problem(now).weights, rel=1e-15)
        # Of two GPUs the queues have 1.5 and 0.5; jobs of the second queue hold two.
        assert policy.decide(now).values[:, 0] == pytest.approx([1, 0.5, 0.25, 0])


def test_weights_by_type_follow_the_types_of_the_cluster():
    now = state(*(job(place, 20, 1, [1.0, 1.0]) for place in range(3)), gpus=(2, 2))
    policy = make_policy("wfq", config=config({"k80": ["1/2", "1/2"], "v100": ["9/10", "1/10"]}))
    assert now.gpu_types == ("v100", "k80")
    assert policy.problem(now).weights.tolist() == [[0.9, 0.5], [0.1, 0.5]]
    one = make_policy("wfq", config=config(["9/10", "1/10"]))
    assert one.problem(now).weights.tolist() == [[0.9, 0.9], [0.1, 0.1]]


@pytest.mark.parametrize("named", [["v100"], ["v100", "k80", "p100"], ["v100", "p100"]])
def test_weights_must_be_for_the_types_of_the_cluster(named):
    now = state(job(0, 20, 1, [1.0, 1.0]), gpus=(2, 2))
    by_option = {"config": config(dict.fromkeys(named, ("1/2", "1/2"))), "decay": dict.fromkeys(named, 1.0)}
    for option, value in by_option.items():
        with pytest.raises(eq.InvalidInput, match="the GPU types of the cluster, which are v100, k80") as error:
            make_policy("wfq", **{option: value}).decide(now)
        assert (error.value.field, error.value.value) == (option, ", ".join(named))


@pytest.mark.parametrize(
    ("options", "field", "message"),
    [
        ({"thresholds": [10.0, 10.0]}, "thresholds", "ascend"),
        ({"thresholds": [math.inf, 10.0]}, "thresholds", "finite"),
        ({"thresholds": 0.0}, "thresholds", "greater than 0"),
        ({"thresholds": "100"}, "thresholds", "not text"),
        ({"decay": math.nan}, "decay", "finite"),
        ({"decay": 31.0}, "decay", "at most 30"),
        ({"decay": {"k80": -31.0}}, "decay[k80]", "at least -30"),
        ({"decay": {}}, "decay", "must name at least one GPU type"),
        ({"decay": 30.0, "thresholds": list(range(1, 40))}, "decay", "would be 0"),
        ({"decay": "small"}, "decay", "number"),
        ({"zeta": 0.5}, "zeta", "no option of wfq"),
        ({"config": 3}, "config", "must be a WfqConfig or the path of its file"),
        ({"config": "/none.json"}, "path", "No such file"),
        ({"config": config(["3/4", "1/4"], zeta=0.5)}, "config.zeta", "must be 0: .* demands cannot be capped"),
        ({"config": config(["3/4", "1/4"]), "thresholds": 100.0}, "thresholds", "not beside config"),
        ({"config": config(["3/4", "1/4"]), "decay": 0.0}, "decay", "not beside config"),
    ],
)
def test_bad_options_are_refused(options, field, message):
    with pytest.raises(eq.InvalidInput, match=message) as error:
        make_policy("wfq", **options)
    assert error.value.field == field


def test_short_jobs_end_earlier_with_a_positive_decay():
    profiles = Profiles.builtin()
    sizes = [SizeClass(name=name, probability=0.5, min_gpu_hours=low, max_gpu_hours=high)
             for name, low, high in (("short", 0.1, 0.3), ("long", 2.0, 4.0))]  # fmt: skip
    trace = generate_trace(
        np.random.default_rng(3), num_jobs=30, mean_interarrival_s=60.0, size_classes=sizes, profiles=profiles,
        gpu_counts=(1, 2), gpu_probabilities=(0.5, 0.5),
    )  # fmt: skip
    mean_s = {}
    for decay in (-2.0, 2.0):
        policy = make_policy("wfq", thresholds=3600.0, decay=decay, interval_s=0.0)
        result = simulate_rounds(trace, policy, gpus=6, profiles=profiles)
        short = result.exclusive_s * trace.gang_gpus <= 3600.0
        assert 0 < short.sum() < len(short)
        mean_s[decay] = result.jct_s[short].mean()
    assert mean_s[2.0] < mean_s[-2.0]
