"""Thresholds of the remaining time from which a pair gains, against the costs on both sides."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.formulations.gpu_sharing.pair_rule import pair_ends, shares_at_once
from equipoise.heuristics.placement.pair_settings import Setting, Thresholds

# Eighths, and differences of at least 1/1000 of a threshold, which rounding does not reach.
ratios = st.integers(8, 88).map(lambda eighths: eighths / 8)
factors = st.sampled_from([1.0, 1.0, 1.125, 1.5, 2.0, 4.0])


def gains(setting, running_s, waiting_s, behind):
    """Whether sharing costs no more, but for rounding, than one job after the other at its full batch."""
    _, _, x, y, running_gpus, waiting_gpus = setting
    apart = sum(pair_ends(running_s, waiting_s, x, y, running_s))
    apart += behind * (running_gpus * running_s + waiting_gpus * waiting_s)
    return setting.cost(running_s, waiting_s, behind) <= apart * (1 + 1e-12)


@given(
    factors, ratios, ratios, st.sampled_from([(1, 1), (1, 4), (2, 2), (16, 1)]),
    st.sampled_from([0.0, 0.0, 0.25, 1.0, 7.5, 400.0]), st.floats(0.01, 1e4),
)  # fmt: skip
def test_sharing_gains_from_the_threshold_on_and_not_below(factor, x, y, gpus, behind, waiting_s):
    setting, thresholds = Setting(1, factor, x, y, *gpus), Thresholds()
    number = thresholds.number(setting)
    least = thresholds.values(behind)[number]
    if least < 1e12:  # it is infinite for no ratio
        assert gains(setting, 1.001 * least * waiting_s + 1e-3 * waiting_s * (least == 0.0), waiting_s, behind)
    if least > 0.0:
        assert not gains(setting, 0.999 * least * waiting_s, waiting_s, behind)


@given(ratios, ratios, st.floats(0.01, 1e4), st.floats(1e-3, 1e3))
def test_with_the_full_batch_the_threshold_is_the_rule_of_the_pair(x, y, waiting_s, relative):
    thresholds = Thresholds()
    number = thresholds.number(Setting(1, 1.0, x, y))
    assert thresholds.number(Setting(4, 1.0, x, y)) == number
    least = thresholds.values(0.0)[number]
    if abs(relative - least) > 1e-9 * relative:
        assert shares_at_once(relative * waiting_s, waiting_s, x, y) == (relative >= least)


def test_thresholds_of_other_queues_are_forgotten():
    thresholds = Thresholds()
    number = thresholds.number(Setting(1, 1.0, 1.6, 1.6))
    wanted = {0.0: 1.2, 0.25: 1.1, 0.5: 0.0}
    for _ in range(2):
        assert {behind: thresholds.values(behind)[number] for behind in wanted} == pytest.approx(wanted)
        thresholds.forget()
