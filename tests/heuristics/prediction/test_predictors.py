"""The predictors against hand-made examples, in exact fractions, and against their own relations."""

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from equipoise.formulations.errors import InvalidInput
from equipoise.heuristics.prediction.predictors import (
    PREDICTORS,
    bayes_posterior,
    bayes_remaining,
    mean_epochs,
    predict,
    prior,
    restated_posterior,
    restated_remaining,
)
from equipoise.heuristics.prediction.regimes import ACCORDION_REGIMES, coming_batch_sizes, regime_limit, tidy
from equipoise.simulation import JobState


def state(**changed):
    data = {
        "id": "job",
        "gpus": 2,
        "mode": "gns",
        "total_epochs": 120.0,
        "finished_epochs": 30.0,
        "batch_sizes": (16, 32),
        "regime_epochs": (20.0, 10.0),
        "epoch_s": {16: 40.0, 32: 20.0, 64: 10.0, 128: 8.0},
        "future": (),
        "attained_s": 1000.0,
        "waiting_s": 0.0,
    }
    return JobState(**(data | changed))


@st.composite
def observations(draw):
    """N, the epochs of each regime so far (the last one ongoing), and K: whole epochs, so that sums are exact."""
    observed = [*draw(st.lists(st.integers(1, 30), max_size=4)), draw(st.integers(0, 40))]
    total = sum(observed) + draw(st.integers(1, 60))
    limit = len(observed) + draw(st.integers(0, 4))
    return Fraction(total), [Fraction(epochs) for epochs in observed], limit


@st.composite
def states(draw):
    total, observed, _ = draw(observations())
    mode = draw(st.sampled_from(["static", "accordion", "gns"]))
    ladder = [16, 32, 64, 128, 256, 512]
    if mode == "static":
        observed = [sum(observed)]
    if mode == "accordion":
        sizes = [16 if place % 2 == 0 else 512 for place in range(len(observed))]
        allowed = [16, 512]
    else:
        sizes, allowed = ladder[: len(observed)], ladder
    left = total - sum(observed)
    split = Fraction(draw(st.integers(0, 4)), 4) * left
    last = {"static": sizes[-1], "accordion": 528 - sizes[-1], "gns": 512}[mode]
    return state(
        mode=mode,
        total_epochs=float(total),
        finished_epochs=float(sum(observed)),
        batch_sizes=tuple(sizes),
        regime_epochs=tuple(map(float, observed)),
        epoch_s={size: float(draw(st.integers(1, 50))) for size in allowed},
        future=tuple((size, float(epochs)) for size, epochs in ((sizes[-1], split), (last, left - split)) if epochs),
    )


# -- The restatement rule ----------------------------------------------------------------------------------------------


def test_by_hand_when_a_regime_has_just_ended():
    # 100 epochs, at most 4 regimes, the first took 40: the other three share the remaining 60.
    assert restated_posterior(Fraction(100), [Fraction(40)], 4) == (40, 20, 20, 20)
    assert restated_remaining(Fraction(100), [Fraction(40), Fraction(0)], 4) == (20, 20, 20)


def test_by_hand_inside_a_regime():
    # Of an expected 20 epochs the second regime has done 5.
    assert restated_remaining(Fraction(100), [Fraction(40), Fraction(5)], 4) == (15, 20, 20)


def test_by_hand_when_the_ongoing_regime_overruns():
    # It was to last 20 and has done 30: it ends now, and the last two share 100 - 40 - 30.
    assert restated_remaining(Fraction(100), [Fraction(40), Fraction(30)], 4) == (0, 15, 15)


def test_thirds_stay_exact():
    assert restated_remaining(Fraction(10), [Fraction(0)], 3) == (Fraction(10, 3),) * 3
    assert restated_remaining(Fraction(10), [Fraction(5)], 3) == (0, Fraction(5, 2), Fraction(5, 2))


@given(observations())
def test_the_posterior_spreads_all_epochs_and_keeps_what_happened(case):
    total, observed, limit = case
    finished = observed[:-1]
    posterior = restated_posterior(total, finished, limit)
    assert len(posterior) == limit
    assert sum(posterior) == total
    assert posterior[: len(finished)] == tuple(finished)
    assert mean_epochs(posterior, total) == posterior
    assert all(mean > 0 for mean in posterior[len(finished) :])


@given(observations())
def test_without_a_finished_regime_the_posterior_is_the_prior(case):
    total, _, limit = case
    assert restated_posterior(total, [], limit) == prior(total, limit) == bayes_posterior(total, [], limit)
    assert restated_remaining(total, [Fraction(0)], limit) == prior(total, limit)
    assert bayes_remaining(total, [Fraction(0)], limit) == prior(total, limit)


@given(observations(), st.sampled_from([restated_remaining, bayes_remaining]))
def test_what_is_left_is_shared_out_exactly(case, rule):
    total, observed, limit = case
    left = rule(total, observed, limit)
    assert len(left) == limit - len(observed) + 1
    assert sum(left) == total - sum(observed)
    assert all(epochs >= 0 for epochs in left)
    assert all(epochs > 0 for epochs in left[1:])


@given(observations(), st.fractions(Fraction(1, 20), 20), st.sampled_from([restated_remaining, bayes_remaining]))
def test_predictions_scale_with_the_epochs(case, scale, rule):
    total, observed, limit = case
    scaled = rule(total * scale, [epochs * scale for epochs in observed], limit)
    assert scaled == tuple(epochs * scale for epochs in rule(total, observed, limit))


@given(observations(), st.randoms())
def test_the_order_of_finished_regimes_does_not_matter_to_what_is_left(case, random):
    total, observed, limit = case
    shuffled = observed[:-1]
    random.shuffle(shuffled)
    for rule in (restated_remaining, bayes_remaining):
        assert rule(total, [*shuffled, observed[-1]], limit) == rule(total, observed, limit)


@given(observations())
def test_the_expected_end_holds_until_the_regime_overruns_it_and_there_is_no_jump(case):
    total, observed, limit = case
    assume(limit > len(observed))
    *finished, _ = observed
    mean = restated_posterior(total, finished, limit)[len(finished)]
    before = restated_remaining(total, [*finished, mean * Fraction(1, 2)], limit)
    exactly = restated_remaining(total, [*finished, mean], limit)
    beyond = restated_remaining(total, [*finished, mean + Fraction(1, 10**9)], limit)
    assert before[0] == mean / 2
    assert before[1:] == exactly[1:]
    assert exactly[0] == beyond[0] == 0
    assert max(abs(a - b) for a, b in zip(exactly, beyond, strict=True)) <= Fraction(1, 10**9)


@given(observations(), st.sampled_from([restated_remaining, bayes_remaining]))
def test_the_last_possible_regime_lasts_to_the_end(case, rule):
    total, observed, _ = case
    assert rule(total, observed, len(observed)) == (total - sum(observed),)


# -- Standard Bayes ----------------------------------------------------------------------------------------------------


def test_bayes_by_hand():
    # Prior 25 each, counts 40 and 10: Dir(65, 35, 25, 25), whose means of 100 epochs are 130/3, 70/3, 50/3 and 50/3.
    observed = [Fraction(40), Fraction(10)]
    posterior = bayes_posterior(Fraction(100), observed, 4)
    assert posterior == (65, 35, 25, 25)
    assert mean_epochs(posterior, Fraction(100)) == tuple(Fraction(n, 3) for n in (130, 70, 50, 50))
    # The ongoing regime wants 70/3 - 10 = 40/3 more, the later ones 50/3 each: 140/3 in all, where 50 are left.
    assert bayes_remaining(Fraction(100), observed, 4) == tuple(Fraction(n, 14) for n in (200, 250, 250))


@given(observations())
def test_bayes_means_sum_to_all_epochs_and_follow_their_regimes(case):
    total, observed, limit = case
    means = mean_epochs(bayes_posterior(total, observed, limit), total)
    assert sum(means) == total
    assert all(mean > 0 for mean in means)
    backwards = mean_epochs(bayes_posterior(total, observed[::-1], limit), total)
    assert backwards[: len(observed)] == means[: len(observed)][::-1]


# -- From a job's state ------------------------------------------------------------------------------------------------


def test_a_gns_job_by_hand():
    # Sizes 16, 32, 64, 128: K = 4. Of 120 epochs the first regime took 20; the other three get 100/3 each.
    prediction = predict(state())
    assert [size for size, _ in prediction.regimes] == [32, 64, 128]
    assert [epochs for _, epochs in prediction.regimes] == pytest.approx([100 / 3 - 10, 100 / 3, 100 / 3])
    assert prediction.remaining_s == pytest.approx(20 * (100 / 3 - 10) + 10 * 100 / 3 + 8 * 100 / 3)


def test_an_accordion_job_by_hand():
    job = state(mode="accordion", epoch_s={16: 40.0, 128: 8.0}, batch_sizes=(16,), regime_epochs=(30.0,))
    assert predict(job).regimes == ((16, 30.0), (128, 60.0))
    # Having overrun its 60 epochs, the small size is expected to end now: nothing is left of it.
    late = state(
        mode="accordion", epoch_s={16: 40.0, 128: 8.0}, batch_sizes=(16,), regime_epochs=(70.0,), finished_epochs=70.0
    )
    assert predict(late).regimes == ((128, 50.0),)
    assert predict(late, max_regimes=6).regimes == ((128, 10.0), (16, 10.0), (128, 10.0), (16, 10.0), (128, 10.0))


def test_accordion_alternates_between_the_initial_and_the_largest_size():
    job = state(
        mode="accordion", epoch_s={16: 40.0, 64: 9.0, 128: 8.0}, batch_sizes=(16, 128), regime_epochs=(24.0, 6.0)
    )
    assert predict(job, max_regimes=5).regimes == ((128, 18.0), (16, 24.0), (128, 24.0), (16, 24.0))


def test_greedy_keeps_todays_batch_size():
    prediction = predict(state(), "greedy")
    assert prediction.regimes == ((32, 90.0),)
    assert prediction.remaining_s == 1800.0


def test_the_oracle_is_exact():
    prediction = predict(state(future=((32, 5.0), (64, 85.0))), "oracle")
    assert prediction.regimes == ((32, 5.0), (64, 85.0))
    assert prediction.remaining_s == 950.0


def test_gns_at_the_cap_stays_there():
    job = state(batch_sizes=(16, 128), epoch_s={16: 40.0, 32: 20.0, 128: 8.0}, future=((128, 90.0),))
    for predictor in PREDICTORS:
        assert predict(job, predictor, max_regimes=9).regimes == ((128, 90.0),)


@pytest.mark.parametrize("mode", ["static", "accordion", "gns"])
def test_a_job_that_starts_at_its_largest_size_never_changes(mode):
    job = state(mode=mode, batch_sizes=(128,), regime_epochs=(30.0,), future=((128, 90.0),))
    for predictor in PREDICTORS:
        assert predict(job, predictor).regimes == ((128, 90.0),)


@given(states(), st.sampled_from(PREDICTORS), st.none() | st.integers(1, 8))
def test_every_predictor_accounts_for_every_epoch(job, predictor, limit):
    prediction = predict(job, predictor, max_regimes=limit)
    left = job.total_epochs - job.finished_epochs
    assert sum(epochs for _, epochs in prediction.regimes) == pytest.approx(left, rel=1e-12)
    assert all(epochs > 0 for _, epochs in prediction.regimes)
    sizes = [size for size, _ in prediction.regimes]
    assert all(first != second for first, second in pairwise(sizes))
    assert min(job.epoch_s.values()) * left <= prediction.remaining_s * (1 + 1e-12)
    assert prediction.remaining_s <= max(job.epoch_s.values()) * left * (1 + 1e-12)


@given(states(), st.sampled_from(PREDICTORS), st.integers(1, 8))
def test_slower_epochs_slow_the_prediction_alike(job, predictor, factor):
    slower = replace(job, epoch_s={size: factor * seconds for size, seconds in job.epoch_s.items()})
    assert predict(slower, predictor).remaining_s == pytest.approx(factor * predict(job, predictor).remaining_s)


@given(states())
def test_a_gns_prediction_only_ever_grows_the_batch(job):
    assume(job.mode == "gns")
    sizes = [job.batch_sizes[-1], *(size for size, _ in predict(job).regimes)]
    assert sizes == sorted(sizes)


# -- How many regimes, and of which size -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "max_regimes", "limit"),
    [
        ({}, None, 4),  # 16, 32, 64, 128
        ({}, 9, 4),  # no more than doubling allows
        ({}, 3, 3),
        ({}, 1, 2),  # two have been seen
        ({"mode": "static"}, 7, 2),
        ({"mode": "accordion", "batch_sizes": (16, 128)}, None, ACCORDION_REGIMES),
        ({"mode": "accordion", "batch_sizes": (16, 128)}, 6, 6),
        ({"mode": "accordion", "batch_sizes": (16, 128, 16, 128), "regime_epochs": (20.0, 5.0, 3.0, 2.0)}, None, 4),
        # A trajectory that returned to its first size may double all over again.
        ({"batch_sizes": (16, 32, 16), "regime_epochs": (10.0, 10.0, 10.0)}, None, 6),
    ],
)
def test_the_number_of_regimes(changed, max_regimes, limit):
    assert regime_limit(state(**changed), max_regimes) == limit


def test_more_regimes_than_k_make_the_ongoing_one_the_last():
    job = state(
        mode="accordion", batch_sizes=(16, 128, 16), regime_epochs=(10.0, 10.0, 10.0), epoch_s={16: 40.0, 128: 8.0}
    )
    assert predict(job, max_regimes=2).regimes == ((16, 90.0),)


def test_doubling_skips_sizes_that_have_no_rate_and_stops_at_the_cap():
    job = state(batch_sizes=(16,), regime_epochs=(30.0,), epoch_s={16: 4.0, 24: 3.0, 100: 2.0, 128: 1.0})
    assert coming_batch_sizes(job, 5) == (16, 100, 128, 128, 128)
    assert regime_limit(job) == 3


def test_dust_joins_a_neighbour_and_equal_neighbours_join():
    assert tidy([(16, 1e-12), (32, 5.0), (32, 4.0), (64, 1.0), (64, 1e-12)], 10.0) == (
        (32, 9.000000000001),
        (64, 1.000000000001),
    )
    assert tidy([(16, 3.0), (32, 0.0), (16, 2.0)], 5.0) == ((16, 5.0),)
    assert tidy([(16, 1e-12), (32, 0.0)], 5.0) == ((16, 1e-12),)


# -- Bad input ---------------------------------------------------------------------------------------------------------


def test_the_oracle_needs_the_future_and_the_others_do_not():
    with pytest.raises(InvalidInput, match=r"future = '\(\)': the oracle needs the true remaining regimes"):
        predict(state(), "oracle")
    assert predict(state(), "bayes").regimes


def test_sums_that_miss_by_a_rounding_still_account_for_every_epoch():
    # A state may be off by a millionth of all epochs; with less than that left, a plain difference would be negative.
    job = state(
        total_epochs=100.0,
        finished_epochs=100.0 - 1e-7,
        regime_epochs=(60.0, 40.0),
        future=((32, 0.5e-7), (64, 1e-7)),
    )
    for predictor in PREDICTORS:
        assert sum(epochs for _, epochs in predict(job, predictor).regimes) == pytest.approx(1e-7, rel=1e-6)
    fresh = state(finished_epochs=1e-7, regime_epochs=(0.0,), batch_sizes=(16,))
    assert sum(epochs for _, epochs in predict(fresh).regimes) == pytest.approx(120.0 - 1e-7, rel=1e-12)


@pytest.mark.parametrize(("predictor", "max_regimes"), [("prophet", None), ("bayes", 0), ("bayes", 1.5)])
def test_unknown_predictors_and_bad_limits_are_refused(predictor, max_regimes):
    with pytest.raises(InvalidInput):
        predict(state(), predictor, max_regimes=max_regimes)
