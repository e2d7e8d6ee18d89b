"""Configurations of weighted fair queues: fields, files, thresholds of both rules, and what is refused."""

import copy
import json
import math
import pickle
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared_data import DATA

from equipoise import InvalidInput, WfqConfig
from equipoise.formulations.search.wfq_config import thresholds_of

GOOD = {"thresholds": [10.0, math.inf], "weights": ["1/4", "3/4"], "zeta": 0.5, "delta": 0.2}


def variation(values):
    return float(np.var(values) / np.mean(values) ** 2)


@pytest.mark.parametrize("weights", [["1/4", "0.75"], [0.25, 0.75], [Decimal("0.25"), Fraction(3, 4)]])
def test_weights_are_exact(weights):
    assert WfqConfig(**{**GOOD, "weights": weights}).weights == (Fraction(1, 4), Fraction(3, 4))


def test_a_float_weight_counts_as_printed():
    config = WfqConfig(thresholds=[1.0, 2.0, math.inf], weights=[0.1, 0.2, 0.7])
    assert config.weights == (Fraction(1, 10), Fraction(1, 5), Fraction(7, 10))


# -- Weights by GPU type -----------------------------------------------------------------------------------------------

BY_TYPE = {"v100": ["1/3", "2/3"], "k80": [Decimal("0.999"), 0.001]}


def test_weights_may_differ_by_type():
    config = WfqConfig(**{**GOOD, "weights": BY_TYPE})
    assert config.gpu_types == ("v100", "k80")
    assert config.weights_of("v100") == (Fraction(1, 3), Fraction(2, 3))
    assert config.weights_of("k80") == config.weights["k80"] == (Fraction(999, 1000), Fraction(1, 1000))
    assert config.queues == 2
    for gpu_type in ("p100", None):
        with pytest.raises(InvalidInput, match="there are weights of GPU types v100, k80") as error:
            config.weights_of(gpu_type)
        assert (error.value.field, error.value.value) == ("gpu_type", gpu_type)


def test_weights_without_types_are_those_of_all_types_and_a_single_type_is_the_default():
    config = WfqConfig(**GOOD)
    assert config.gpu_types == ()
    assert config.weights_of() == config.weights_of("v100") == config.weights
    single = WfqConfig(**{**GOOD, "weights": {"v100": ["1/4", "3/4"]}})
    assert single.weights_of() == config.weights
    assert single != config


@pytest.mark.parametrize("weights", [BY_TYPE, GOOD["weights"]])
def test_a_configuration_is_a_value(tmp_path, weights):
    """It is equal to what its file, a pickle or a copy of it gives, has a hash, and cannot be changed."""
    config = WfqConfig(**{**GOOD, "weights": weights, "zeta": 1 / 3})
    assert WfqConfig.from_json(config.to_json(tmp_path / "config.json")) == config
    assert WfqConfig.read(tmp_path / "config.json").to_json() == config.to_json()
    assert pickle.loads(pickle.dumps(config)) == copy.deepcopy(config) == config
    assert len({config, pickle.loads(pickle.dumps(config))}) == 1
    assert replace(config, zeta=0.0).weights == config.weights
    with pytest.raises(TypeError):
        config.weights["v100" if weights is BY_TYPE else 0] = (Fraction(1),)


def test_the_file_of_weights_by_type():
    config = WfqConfig(**{**GOOD, "weights": BY_TYPE})
    assert json.loads(config.to_json())["weights"] == {"v100": ["1/3", "2/3"], "k80": ["999/1000", "1/1000"]}


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({}, "weights = '{}': must name at least one GPU type"),
        ({3: ["1"]}, "weights = 3: a GPU type must have a name"),
        ({"": ["1/4", "3/4"]}, "weights = '': a GPU type must have a name"),
        ({"v100": "1/4"}, r"weights\[v100\] = '1/4': must be a sequence of numbers"),
        ({"v100": {"k80": ["1/4", "3/4"]}}, r"weights\[v100\] = .*: must be a sequence of numbers"),
        ({"v100": ["1/4", "3/4"], "k80": ["1"]}, r"weights\[k80\] = '1 values': there are 2 thresholds"),
        ({"v100": ["1/4", "3/4"], "k80": ["1/4", "1/4"]}, r"weights\[k80\] = 0.5: must add up to 1"),
        ({"v100": ["1/4", "-1/4"]}, r"weights\[v100\]\[1\] = '-1/4': must be greater than 0"),
        ({"v100": ["1/4", None]}, r"weights\[v100\]\[1\] = None: must be a number"),
        ({"v100": ["x", "1/4"]}, r"weights\[v100\]\[0\] = 'x': must be a number such as"),
    ],
)
def test_bad_weights_by_type_are_refused_by_type_and_index(weights, message):
    with pytest.raises(InvalidInput, match=message):
        WfqConfig(**{**GOOD, "weights": weights})


# -- Queues and files --------------------------------------------------------------------------------------------------


def test_queues_and_cap_levels():
    config = WfqConfig(**GOOD)
    assert [config.queue_of(size) for size in (0.1, 10.0, 10.1, 1e9)] == [0, 0, 1, 1]
    assert config.cap_levels == (0.5, 0.3, 0.3 - 0.2, 0.3 - 0.2 - 0.2)
    assert config.queues == 2
    assert WfqConfig(thresholds=[math.inf], weights=[1]).cap_levels == (0.0,)


def test_a_file_of_its_own_gives_the_same_configuration(tmp_path):
    config = WfqConfig(thresholds=[1.5, 10.0, math.inf], weights=["1/3", "1/7", "11/21"], zeta=1 / 3, delta=0.1)
    text = config.to_json(tmp_path / "config.json")
    assert WfqConfig.read(tmp_path / "config.json") == WfqConfig.from_json(text) == config


def test_the_form_of_pcs_is_read():
    text = (
        '{"num_classes": 2, "class_thresholds": [20000, "inf"], "class_rates": ["1/2", "1/2"], '
        '"clip_demand_factor": 0.6, "delta": 0.2, "source": "by hand"}'
    )
    assert WfqConfig.from_json(text) == WfqConfig(
        thresholds=[20000.0, math.inf], weights=["1/2", "1/2"], zeta=0.6, delta=0.2
    )


def test_the_published_configurations_are_read():
    files = sorted((DATA / "pcs" / "configs").glob("*.json"))
    if not files:
        pytest.skip("the published configurations are not there")
    for path in files:
        content = json.loads(path.read_text(encoding="utf-8"))
        assert [str(weight) for weight in WfqConfig.read(path).weights] == content["class_rates"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"thresholds": []}, "thresholds"),
        ({"thresholds": "inf"}, "thresholds = 'inf': must be a sequence"),
        ({"thresholds": [10.0, 20.0]}, r"thresholds\[1\] = 20.0: the last threshold must be infinite"),
        ({"thresholds": [0.0, math.inf]}, r"thresholds\[0\] = 0.0: must be greater than 0"),
        ({"thresholds": [5.0, 5.0, math.inf], "weights": ["1/4", "1/4", "1/2"]}, r"thresholds\[1\] = 5.0: .* ascend"),
        ({"thresholds": ["a", math.inf]}, r"thresholds"),
        ({"weights": ["1"]}, "weights = '1 values': there are 2 thresholds"),
        ({"weights": ["1/4", "1/4"]}, "weights = 0.5: must add up to 1"),
        ({"weights": ["1/4", "-1/4"]}, r"weights\[1\] = '-1/4': must be greater than 0"),
        ({"weights": ["1/4", "x"]}, r"weights\[1\] = 'x': must be a number such as"),
        ({"weights": ["1/4", True]}, r"weights\[1\] = True: must be a number"),
        ({"weights": 1}, "weights = 1: must be a sequence"),
        ({"zeta": 1.5}, "zeta = 1.5: at most 1"),
        ({"zeta": -0.5}, "zeta = -0.5: at least 0"),
        ({"delta": 0.0}, "delta = 0.0: must be greater than 0"),
        ({"delta": 1e-9}, "delta = 1e-09: relaxes zeta = 0.5 in more than 10,000 steps"),
    ],
)
def test_bad_fields_are_refused(change, message):
    with pytest.raises(InvalidInput, match=message):
        WfqConfig(**{**GOOD, **change})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is no JSON"),
        ("[]", "must be an object of JSON"),
        ('{"thresholds": ["inf"], "weights": [1], "zeta": 0}', "delta = None: missing"),
        ('{"class_thresholds": ["inf"], "class_rates": [1], "delta": 1}', "clip_demand_factor = None: missing"),
    ],
)
def test_bad_files_are_refused(tmp_path, text, message):
    with pytest.raises(InvalidInput, match=message):
        WfqConfig.from_json(text)
    with pytest.raises(InvalidInput, match="path"):
        WfqConfig.read(tmp_path / "none.json")


# -- Thresholds --------------------------------------------------------------------------------------------------------


@given(sizes=st.lists(st.integers(1, 12).map(float), min_size=1, max_size=40), bound=st.floats(0.01, 2.0))
def test_exact_thresholds_bound_the_variation_of_each_queue_and_are_as_few_as_can_be(sizes, bound):
    found = thresholds_of(sizes, variation=bound)
    queue = np.searchsorted(found, sizes)
    groups = [np.array(sizes)[queue == number] for number in range(len(found))]
    assert all(len(group) for group in groups)
    assert all(variation(group) <= bound * (1.0 + 1e-9) for group in groups)
    # Each queue was as long as it could be: with all sizes of the next value it exceeds the bound.
    for group, after in pairwise(groups):
        longer = [*group, *after[after == after.min()]]
        assert variation(longer) > bound * (1.0 - 1e-9)


def test_the_rule_of_the_artifact_may_exceed_the_bound():
    sizes = [1.0, 2.0, 3.0, 10.5, 30.0, 100.0]
    found = thresholds_of(sizes, variation=0.2, rule="artifact")
    # 10.5 exceeds the bound: the threshold is the size before it, and the next queue counts from 30.
    assert found == (3.0, 30.0, math.inf)
    queue = np.searchsorted(found, sizes)
    assert max(variation(np.array(sizes)[queue == number]) for number in range(len(found))) > 0.2


def test_equal_sizes_are_never_divided():
    sizes = [1.0, 100.0, 100.0, 100.0]
    assert thresholds_of(sizes, variation=0.3) == (1.0, math.inf)
    assert thresholds_of(sizes, variation=0.4) == (math.inf,)
    # The other rule divides at the first of the equal sizes, although the variation of all is lower.
    assert thresholds_of(sizes, variation=0.4, rule="artifact") == (1.0, math.inf)


def test_parameters_make_weights_of_three_decimals():
    config = WfqConfig.from_parameters([1.0, 10.0, 100.0], variation=0.5, decay=1.0, zeta=0.25, delta=0.5)
    assert config.thresholds == (1.0, 10.0, math.inf)
    raw = [math.exp(-queue) for queue in range(3)]
    rounded = [Fraction(round(1000 * each / sum(raw)), 1000) for each in raw]
    assert config.weights == tuple(each / sum(rounded) for each in rounded)
    assert (config.zeta, config.delta) == (0.25, 0.5)
    other = WfqConfig.from_parameters([1.0, 10.0, 100.0], variation=0.5, decay=-1.0)
    assert other.weights == config.weights[::-1]


def test_each_type_has_its_own_decay():
    arguments = {"sizes_s": [1.0, 10.0, 100.0], "variation": 0.5}
    config = WfqConfig.from_parameters(**arguments, decay={"v100": 1.0, "k80": 0.0})
    assert config.weights == {
        "v100": WfqConfig.from_parameters(**arguments, decay=1.0).weights,
        "k80": (Fraction(1, 3), Fraction(1, 3), Fraction(1, 3)),
    }


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"decay": 9.0}, "decay = 9.0: gives queue 1 of 3 a weight below 0.0005"),
        ({"decay": "1"}, "decay = '1': must be a number"),
        ({"decay": {}}, "decay = '{}': must name at least one GPU type"),
        ({"decay": {"v100": 1.0, "k80": 9.0}}, r"decay\[k80\] = 9.0: gives queue 1 of 3 a weight below 0.0005"),
        ({"decay": {"v100": math.inf}}, r"decay\[v100\] = inf: must be finite"),
        ({"variation": 0.0}, "variation = 0.0: must be greater than 0"),
        ({"thresholds": "nearest"}, "rule = 'nearest': must be one of exact, artifact"),
        ({"sizes_s": [0.0]}, "sizes_s"),
    ],
)
def test_bad_parameters_are_refused(change, message):
    arguments = {"sizes_s": [1.0, 10.0, 100.0], "variation": 0.5, "decay": 1.0}
    with pytest.raises(InvalidInput, match=message):
        WfqConfig.from_parameters(**{**arguments, **change})
