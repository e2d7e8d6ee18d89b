"""The random stochastic markets of the benchmark: right in kind, and the same for the same seed."""

import numpy as np
import pytest
from enumerated_policies import best_deterministic, outcomes

import equipoise as eq
from equipoise.validation.instances.stochastic import random_stochastic_market


@pytest.mark.parametrize("kind", ["ladder", "dense"])
def test_the_same_seed_gives_the_same_market_and_another_seed_another(kind):
    first, again, other = (random_stochastic_market(kind, 3, 4, 3, 5, seed=seed) for seed in (1, 1, 2))
    for one, two, three in zip(first.chains, again.chains, other.chains, strict=True):
        np.testing.assert_array_equal(one.transitions, two.transitions)
        np.testing.assert_array_equal(one.utilities, two.utilities)
        assert (one.utilities[1:] != three.utilities[1:]).all()
    np.testing.assert_allclose(first.capacities, np.full((1, 5), 2.0))


def test_a_ladder_climbs_step_by_step_and_a_dense_chain_jumps():
    (ladder,) = random_stochastic_market("ladder", 1, 4).chains
    step = np.arange(4)[None, :] - np.arange(4)[:, None]
    assert (ladder.transitions[:, (step < 0) | (step > 1)] == 0).all()
    assert (ladder.transitions[1:, step == 1] > 0).all()
    np.testing.assert_array_equal(ladder.transitions[0], np.eye(4))
    (dense,) = random_stochastic_market("dense", 1, 4).chains
    assert (dense.transitions > 0).all()


def test_a_kind_that_does_not_exist_is_named():
    with pytest.raises(eq.InvalidInput, match="kind = 'sparse': must be one of ladder, dense"):
        random_stochastic_market("sparse", 2)


def test_what_is_too_large_to_enumerate_is_refused():
    market = random_stochastic_market("dense", 2, 3, 3, 3)
    with pytest.raises(eq.InvalidInput, match="more than 200,000 policies on the way"):
        outcomes(market.chains, market.capacities)
    many = random_stochastic_market("ladder", 8, 2, 3, 2)
    with pytest.raises(eq.InvalidInput, match="more than 200,000 combinations"):
        best_deterministic(many, "decoupled-deterministic")
