"""Search space of weighted fair queues: bounds, decoding of both spaces, and corners that deserve their names."""

import json
import math

import numpy as np
import pytest
from fluid_cases import PCS, recorded_trace
from hypothesis import given
from hypothesis import strategies as st
from shared_data import DATA

from equipoise import InvalidInput, WfqConfig
from equipoise.formulations.search.wfq_config import as_weights, decayed, thresholds_of
from equipoise.formulations.search.wfq_space import CORNERS, WfqSpace, largest_variation, steepest_decay
from equipoise.heuristics import make_policy
from equipoise.simulation.fluid import FluidRules, Speedups, generate_jobs, simulate_fluid

SIZES = np.random.default_rng(0).lognormal(8.0, 2.0, 500)
sizes_lists = st.lists(st.floats(1e-3, 1e6), min_size=1, max_size=30)


def bounds(space):
    return np.array([(each.lower, each.upper) for each in space.variables]).T


# -- Bounds ------------------------------------------------------------------------------------------------------------


def test_the_variables_and_their_bounds():
    space = WfqSpace(sizes_s=[1.0, 100.0, 100.0, 100.0])
    prefixes = [np.var(part) / np.mean(part) ** 2 for part in ([1.0], [1.0, 100.0], [1.0] + 2 * [100.0])]
    assert [each.name for each in space.variables] == ["T", "W", "zeta", "delta"]
    np.testing.assert_allclose(bounds(space), [[0.001, -3.0, 0.0, 0.01], [1.0 + max(prefixes), 3.0, 1.0, 0.9]])
    typed = WfqSpace(sizes_s=[1.0], gpu_types=("v100", "k80"), caps=False)
    assert [each.name for each in typed.variables] == ["T", "W[v100]", "W[k80]"]


@pytest.mark.skipif(not DATA.exists(), reason="no shared data")
def test_the_bounds_are_those_of_the_published_search():
    published = json.loads((PCS / "pareto" / "trace_2869ce.json").read_text())
    space = WfqSpace(sizes_s=recorded_trace("2869ce").size_s)
    np.testing.assert_allclose(bounds(space), [published["lower_bound"], published["upper_bound"]], rtol=1e-12)


@given(sizes=sizes_lists)
def test_one_queue_from_the_largest_variation_on(sizes):
    largest = largest_variation(sizes)
    assert thresholds_of(sizes, variation=largest * (1.0 + 1e-9) + 1e-12) == (math.inf,)
    exact = max(np.var(part) / np.mean(part) ** 2 for part in (np.sort(sizes)[:n] for n in range(1, len(sizes) + 1)))
    assert largest == pytest.approx(exact, rel=1e-6, abs=1e-12)


# -- Decoding ----------------------------------------------------------------------------------------------------------


def test_parameters_are_decoded_by_the_exact_rule():
    space = WfqSpace(sizes_s=SIZES)
    config = space.decode(np.array([0.9, 0.7, 0.5, 0.2]))
    assert config == WfqConfig.from_parameters(SIZES, variation=0.9, decay=0.7, zeta=0.5, delta=0.2)
    typed = WfqSpace(sizes_s=SIZES, gpu_types=("v100", "k80"), caps=False).decode(np.array([0.9, 0.7, -0.7]))
    assert typed.zeta == 0.0
    assert typed.weights_of("v100") == config.weights
    assert typed.weights_of("k80") == config.weights[::-1]
    with pytest.raises(InvalidInput, match=r"decay = 3.0: gives queue \d+ of \d+ a weight below 0.0005"):
        space.decode(np.array([0.01, 3.0, 0.5, 0.2]))


@given(seed=st.integers(0, 2**32 - 1), typed=st.booleans())
def test_the_direct_space_gives_valid_configurations_or_none(seed, typed):
    space = WfqSpace(sizes_s=SIZES, name="direct", gpu_types=("v100", "k80") if typed else (), caps=not typed)
    lower, upper = bounds(space)
    vector = np.random.default_rng(seed).uniform(lower, upper)
    if seed % 5 == 0:
        vector = np.where(np.random.default_rng(seed).random(len(vector)) < 0.5, lower, upper)
    try:
        config = space.decode(vector)
    except InvalidInput:
        return
    assert config.queues == min(5, int(vector[0]))
    finite = np.array(config.thresholds[:-1])
    assert (finite >= SIZES.min() * (1.0 - 1e-12)).all()
    assert (finite <= SIZES.max() * (1.0 + 1e-12)).all()
    ratios = np.exp(vector[5 : 5 + config.queues])
    weights = np.array(config.weights_of("v100" if typed else None), float)
    np.testing.assert_allclose(weights, ratios / ratios.sum(), atol=1e-3 * config.queues)
    assert typed or (config.zeta, config.delta) == tuple(vector[-2:])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"sizes_s": []}, "sizes_s"),
        ({"sizes_s": [1.0, 0.0]}, r"sizes_s\[1\] = 0.0"),
        ({"sizes_s": [1.0], "name": "polar"}, "space = 'polar': must be one of parameters, direct"),
    ],
)
def test_bad_spaces_are_refused_by_name(fields, message):
    with pytest.raises(InvalidInput, match=message):
        WfqSpace(**fields)


@pytest.mark.skipif(not DATA.exists(), reason="no shared data")
def test_the_figures_of_the_published_front_in_the_errata():
    published = json.loads((PCS / "pareto" / "trace_2869ce.json").read_text())["solutions"]
    sizes = recorded_trace("2869ce").size_s

    def excess(point, thresholds):
        queues = np.searchsorted(thresholds, sizes)
        parts = [sizes[queues == queue] for queue in np.unique(queues)]
        return max(part.var() / part.mean() ** 2 for part in parts) / point["T"] - 1.0

    found = [excess(point, [float(each) for each in point["class_thresholds"]]) for point in published]
    assert sum(each > 0.0 for each in found) == 3
    assert max(found) == pytest.approx(0.0092, abs=1e-4)
    assert all(excess(point, thresholds_of(sizes, variation=point["T"])) <= 1e-12 for point in published)
    negative = [point for point in published if point["W"] < 0.0]
    assert (len(negative), sum(point["num_classes"] > 1 for point in negative)) == (23, 9)
    tables = Speedups.read(PCS / "speedups.json").tables.values()
    rises = [np.flatnonzero(np.diff(table / np.arange(1, len(table) + 1)) > 0.0) for table in tables]
    assert sorted(2 in each for each in rises) == [False] * 6 + [True] * 8
    assert sum(len(each) > 0 for each in rises) == 8


# -- Corners -----------------------------------------------------------------------------------------------------------


@given(queues=st.integers(1, 2500))
def test_the_steepest_decay_is_the_largest_that_rounds_no_weight_to_zero(queues):
    steepest = steepest_decay(queues)
    assert (steepest >= 0.0) == (queues < 2000)
    if steepest >= 0.0:
        as_weights("decay", decayed(queues, steepest))
    if 0.0 <= steepest < 3.0:
        with pytest.raises(InvalidInput):
            as_weights("decay", decayed(queues, steepest + 1e-6))


@pytest.mark.parametrize("sizes", [SIZES, [5.0], [5.0, 5.0], np.geomspace(1e-3, 1e9, 3000)])
@pytest.mark.parametrize("name", ["parameters", "direct"])
def test_corners_lie_within_the_bounds_and_are_feasible(sizes, name):
    space = WfqSpace(sizes_s=sizes, name=name)
    lower, upper = bounds(space)
    assert tuple(space.corners) == CORNERS
    for vector in space.corners.values():
        assert ((lower <= vector) & (vector <= upper)).all()
        if name == "parameters" or len(sizes) > 2:
            space.decode(vector)
    fifo = space.decode(space.corners["fifo"])
    assert (fifo.queues, fifo.zeta) == (1, 0.0)


def workloads():
    jobs = generate_jobs(np.random.default_rng(4), "training", num_jobs=500, gpus=8, speedups=Speedups.builtin())
    yield pytest.param(jobs, 8, Speedups.builtin(), id="generated")
    if DATA.exists():
        yield pytest.param(recorded_trace("2869ce"), 64, Speedups.read(PCS / "speedups.json"), id="2869ce")


@pytest.mark.parametrize(("trace", "gpus", "speedups"), [*workloads()])
@pytest.mark.parametrize("name", ["parameters", "direct"])
def test_each_corner_is_near_what_it_is_named_for(trace, gpus, speedups, name):
    """By average completion times, on the scale from the policy that it is named for to the one farthest from it."""

    def averages(policy, **options):
        made = make_policy(policy, "fluid", **options)
        result = simulate_fluid(
            trace, made, cluster=gpus, speedups=speedups, rules=FluidRules(predict=policy == "wfq"), record=False
        )
        return result.jct_s.mean(), result.unfairness.mean(), result.error_pct.mean()

    space = WfqSpace(sizes_s=speedups.sizes_s(trace), name=name)
    fifo, near_sjf, near_max_min = (averages("wfq", config=space.decode(each)) for each in space.corners.values())
    assert fifo[0] == averages("fifo")[0]
    assert fifo[2] < 1e-9
    srsf, fair = averages("srsf"), averages("fs")
    assert near_sjf[0] - srsf[0] < 0.25 * (fifo[0] - srsf[0])
    assert near_max_min[1] - fair[1] < 0.25 * (fifo[1] - fair[1])
    assert near_max_min[0] < 1.25 * fair[0]
