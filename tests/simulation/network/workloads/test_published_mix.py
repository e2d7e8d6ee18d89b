"""Jobs of Dally's mix: the published counts, durations and arrivals by formula, and models for jobs without any."""

import math
from collections import Counter

import numpy as np
import pytest

from equipoise import InvalidInput
from equipoise.simulation import Trace
from equipoise.simulation.network import CommunicationTable
from equipoise.simulation.network.workloads import DALLY_DEMANDS, DALLY_MODELS, assign_models, draw_dally_jobs


def rng(seed=0):
    return np.random.default_rng(seed)


def same(first, second):
    return first.to_frame().equals(second.to_frame())


def test_five_hundred_jobs_have_the_published_counts_and_arrive_at_once():
    trace = draw_dally_jobs(rng())
    # Section 7 of the reconstruction: GPUs 1:270 2:13 4:52 8:109 16:42 32:11 40:1 48:1 56:1.
    assert Counter(trace.gang_gpus.tolist()) == {1: 270, 2: 13, 4: 52, 8: 109, 16: 42, 32: 11, 40: 1, 48: 1, 56: 1}
    published = {"MobileNetV3": 125, "BERT-large": 125, "ResNet50": 125, "AlexNet": 53, "ResNet18": 38, "VGG11": 34}
    assert Counter(trace.model) == published
    assert not trace.arrival_s.any()
    assert set(trace.batch_size.tolist()) == {1}
    assert trace.job_id == tuple(range(500))
    assert set(DALLY_MODELS) == set(CommunicationTable.builtin().models)


def test_fewer_jobs_are_a_sample_of_the_mix_and_more_repeat_it():
    drawn = [draw_dally_jobs(rng(seed), jobs=40) for seed in range(200)]
    for mix, values in (
        (DALLY_DEMANDS, [gang for trace in drawn for gang in trace.gang_gpus.tolist()]),
        (DALLY_MODELS, [model for trace in drawn for model in trace.model]),
    ):
        found = Counter(values)
        for key, number in mix.items():
            share = number / 500
            # Dealing without replacement scatters less than independent draws do.
            assert abs(found[key] / len(values) - share) <= 4 * math.sqrt(share * (1 - share) / len(values))
    many = draw_dally_jobs(rng(), jobs=1500)
    assert Counter(many.gang_gpus.tolist()) == {demand: 3 * number for demand, number in DALLY_DEMANDS.items()}


def test_models_and_demands_are_independent():
    trace = draw_dally_jobs(rng(3), jobs=20_000)
    wide = trace.gang_gpus > 4
    mobile = np.array(trace.model) == "MobileNetV3"
    assert (wide & mobile).mean() == pytest.approx(wide.mean() * mobile.mean(), abs=0.01)


def test_durations_are_lognormal():
    trace = draw_dally_jobs(rng(1), jobs=20_000, median_s=7200.0, sigma=0.8)
    logs = np.log(trace.duration_s)
    assert logs.mean() == pytest.approx(math.log(7200.0), abs=4 * 0.8 / math.sqrt(20_000))
    assert logs.std() == pytest.approx(0.8, rel=0.02)
    assert draw_dally_jobs(rng(), median_s=0.01).duration_s.min() == 1.0


@pytest.mark.parametrize("load", [None, 1.5, 3.0])
def test_poisson_arrivals_offer_the_load(load):
    traces = [draw_dally_jobs(rng(seed), jobs=400, arrivals="poisson", gpus=512, load=load) for seed in range(100)]
    gaps = []
    for trace in traces:
        assert trace.arrival_s[0] == 0.0
        mean_gap_s = float((trace.gang_gpus * trace.duration_s).mean()) / (512 * (load or 2.0))
        gaps.append(np.diff(trace.arrival_s) / mean_gap_s)
    together = np.concatenate(gaps)
    # Exponential: mean and deviation 1, and no gap depends on the one before.
    assert together.mean() == pytest.approx(1.0, abs=4 / math.sqrt(len(together)))
    assert together.std() == pytest.approx(1.0, abs=0.03)
    assert abs(np.corrcoef(together[:-1], together[1:])[0, 1]) < 0.02


def test_equal_seeds_give_equal_jobs_whatever_the_arrivals():
    batch, again = draw_dally_jobs(rng(5), jobs=60), draw_dally_jobs(rng(5), jobs=60)
    assert same(batch, again)
    assert not same(batch, draw_dally_jobs(rng(6), jobs=60))
    poisson = draw_dally_jobs(rng(5), jobs=60, arrivals="poisson", gpus=64)
    assert (poisson.model, poisson.gang_gpus.tolist()) == (batch.model, batch.gang_gpus.tolist())
    assert poisson.duration_s.tolist() == batch.duration_s.tolist()


def test_demands_that_do_not_fit_are_left_out():
    assert set(draw_dally_jobs(rng(), gpus=8).gang_gpus.tolist()) == {1, 2, 4, 8}
    own = draw_dally_jobs(rng(), jobs=10, demands={3: 1, 5: 4}, models={"m": 1})
    assert Counter(own.gang_gpus.tolist()) == {3: 2, 5: 8}
    assert set(own.model) == {"m"}


def test_models_are_dealt_to_jobs_that_name_none():
    trace = Trace(
        job_id=range(500), model=["vc"] * 500, gang_gpus=[2] * 500, arrival_s=range(500), duration_s=[9.5] * 500
    )
    found = assign_models(rng(), trace)
    assert Counter(found.model) == dict(DALLY_MODELS)
    assert same(found, assign_models(rng(), trace))
    assert found.to_frame().drop(columns="model").equals(trace.to_frame().drop(columns="model"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"jobs": 0}, "jobs = 0: at least 1"),
        ({"arrivals": "uniform"}, "arrivals = 'uniform': must be one of batch, poisson"),
        ({"load": 2.0}, "load = 2.0: belongs to Poisson arrivals"),
        ({"arrivals": "poisson"}, "gpus = None: must be given for Poisson arrivals"),
        ({"arrivals": "poisson", "gpus": 64, "load": 0.0}, "load = 0.0: must be greater than 0"),
        ({"gpus": 0}, "gpus = 0: at least 1"),
        ({"gpus": 2, "demands": {4: 1}}, "demands = .*: none fits the cluster of 2 GPUs"),
        ({"median_s": 0.0}, "median_s = 0.0: must be greater than 0"),
        ({"sigma": -1.0}, "sigma = -1.0: must be greater than 0"),
        ({"demands": {1: 0}}, r"demands\[1\] = 0: at least 1"),
        ({"demands": {0: 1}}, "demands = 0: at least 1"),
        ({"demands": {"4": 1}}, "demands = '4': must be a number"),
        ({"demands": {}}, "demands = '{}': must not be empty"),
        ({"models": {}}, "models = '{}': must not be empty"),
        ({"models": {"m": 1.5}}, r"models\['m'\] = 1.5: must be a whole number"),
    ],
)
def test_bad_input_is_refused_by_name(arguments, message):
    with pytest.raises(InvalidInput, match=message):
        draw_dally_jobs(rng(), **arguments)
    with pytest.raises(InvalidInput, match="rng"):
        draw_dally_jobs(7)
