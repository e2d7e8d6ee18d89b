"""Sampled runs of stochastic markets: they agree with the plan's own arithmetic, and show what expectation hides."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

import equipoise as eq
from equipoise.simulation import sample_runs
from equipoise.validation.strategies.stochastic import stochastic_markets

# Of a sound sampler a mean is five standard errors off about once in two million times.
ERRORS = 5.0


def one_unit(rounds=1):
    chain = eq.JobChain(initial=[1.0], transitions=[[[1.0]], [[1.0]]], utilities=[[0.0], [1.0]], demands=[0, 1])
    return eq.StochasticMarket(chains=[chain] * 2, budgets=[1.0, 1.0], capacities=1.0, rounds=rounds)


def regime_market():
    chains = [
        eq.JobChain.from_regimes(
            epochs=3, epochs_per_round=[[0, slow], [0, 2 * slow]], change_probability=0.3, demands=[0, 1]
        )
        for slow in (0.75, 1.0)
    ]
    return eq.StochasticMarket(chains=chains, budgets=[1.0, 1.0], capacities=1.0, rounds=4)


def assert_agree(runs, utilities):
    slack = ERRORS * runs.standard_errors + 1e-9
    assert (np.abs(runs.mean_utilities - utilities) <= slack).all(), (runs.mean_utilities, utilities)


@pytest.mark.thorough
@pytest.mark.parametrize("form", ["decoupled", "joint", "decoupled-deterministic", "joint-deterministic"])
def test_sampled_means_are_the_plans_expectations(form):
    plan = eq.solve(regime_market(), form=form).require_plan()
    runs = sample_runs(plan, 20_000, np.random.default_rng(11))
    assert (runs.standard_errors < 0.02).all()
    assert_agree(runs, plan.utilities)
    spread = runs.use.std(axis=0) / np.sqrt(len(runs.use))
    assert (np.abs(runs.use.mean(axis=0) - plan.expected_use) <= ERRORS * spread + 1e-9).all()


@given(stochastic_markets(max_resources=2, max_rounds=3))
def test_on_any_market_sampling_agrees_and_a_joint_plan_never_exceeds_the_capacity(market):
    rng = np.random.default_rng(3)
    for form in ("decoupled", "joint"):
        plan = eq.solve(market, form=form).require_plan()
        runs = sample_runs(plan, 2_000, rng)
        # Probabilities below one in a thousand runs may not show at all: their worth is allowed for.
        rare = 1e-2 * max(float(chain.utilities.max()) for chain in market.chains)
        assert (np.abs(runs.mean_utilities - plan.utilities) <= ERRORS * runs.standard_errors + rare).all()
        if form == "joint":
            assert not runs.exceeded.any()


def test_the_test_above_can_fail():
    market = regime_market()
    plan = eq.solve(market).require_plan()
    idle = replace(plan, policy=tuple(np.broadcast_to([1.0, 0.0], part.shape) for part in plan.policy))
    with pytest.raises(AssertionError):
        assert_agree(sample_runs(idle, 1_000, np.random.default_rng(1)), plan.utilities)


def test_a_decoupled_plan_exceeds_the_capacity_in_a_quarter_of_the_runs():
    runs = sample_runs(eq.solve(one_unit(), rel_gap=1e-7).require_optimal(), 40_000, np.random.default_rng(2))
    assert runs.exceeded_share.shape == (1, 1)
    assert runs.exceeded_share[0, 0] == pytest.approx(0.25, abs=ERRORS * np.sqrt(0.25 * 0.75 / 40_000) + 1e-3)
    assert set(np.unique(runs.use)) == {0.0, 1.0, 2.0}
    assert "25." in repr(runs) or "24." in repr(runs)


def test_a_joint_lottery_hands_out_exactly_the_unit_there_is():
    runs = sample_runs(
        eq.solve(one_unit(), form="joint", rel_gap=1e-7).require_optimal(), 4_000, np.random.default_rng(2)
    )
    assert set(np.unique(runs.use)) <= {0.0, 1.0}
    assert runs.use.mean() > 0.999  # nothing is left lying
    np.testing.assert_array_equal(runs.utilities.sum(axis=1), runs.use[:, 0, 0])


def test_a_certain_plan_has_one_outcome():
    plan = eq.solve(one_unit(rounds=2), form="joint-deterministic").require_plan()
    runs = sample_runs(plan, 50, np.random.default_rng(0))
    np.testing.assert_array_equal(runs.utilities, np.ones((50, 2)))
    assert (runs.standard_errors == 0).all()


def test_the_same_seed_gives_the_same_runs_and_another_gives_others():
    plan = eq.solve(regime_market()).require_plan()
    first, again, other = (sample_runs(plan, 200, np.random.default_rng(seed)) for seed in (4, 4, 5))
    np.testing.assert_array_equal(first.utilities, again.utilities)
    np.testing.assert_array_equal(first.use, again.use)
    assert (first.utilities != other.utilities).any()


def test_one_run_has_no_standard_error():
    runs = sample_runs(eq.solve(one_unit()).require_plan(), 1, np.random.default_rng(0))
    assert np.isnan(runs.standard_errors).all()


@pytest.mark.parametrize(("runs", "rng", "field"), [(0, np.random.default_rng(0), "runs"), (10, 7, "rng")])
def test_bad_input_is_named(runs, rng, field):
    plan = eq.solve(one_unit()).require_plan()
    with pytest.raises(eq.InvalidInput) as caught:
        sample_runs(plan, runs, rng)
    assert caught.value.field == field
