"""Fairness against definitions written out, linear programs, and the counterexamples to the paper's corollary."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.sparse import csr_array

import equipoise as eq
from equipoise.validation.certificates import fairness, market_state
from equipoise.validation.certificates.certify import certify, feasibility
from equipoise.validation.certificates.domination import dominating
from equipoise.validation.certificates.efficiency import maximal_nash_welfare, pareto_optimality
from equipoise.validation.certificates.fairness import (
    envy_freeness,
    finish_time_fairness,
    finish_time_fairness_product,
    proportionality,
    sharing_incentive,
)
from equipoise.validation.certificates.market_state import MarketState

# The paper's Corollary 4.0.1, and what is true instead.


def one_good(budgets):
    return eq.FisherMarket([[1.0]] * len(budgets), budgets)


def test_corollary_a_fails_without_the_budgets():
    """Budgets (3, 1), one good: the equilibrium (3/4, 1/4) has a product of rho of 4/3; an equal split has 1."""
    market = one_good([3.0, 1.0])
    equilibrium, split = np.array([[0.75], [0.25]]), np.array([[0.5], [0.5]])
    assert certify(market, equilibrium, gap=1e-12)
    rho = finish_time_fairness(market, equilibrium)
    assert rho == pytest.approx([2 / 3, 2])
    assert np.prod(rho) == pytest.approx(4 / 3)
    assert np.prod(finish_time_fairness(market, split)) == pytest.approx(1.0)
    # With the budgets in the exponents the equilibrium has the least, 16/27, and the split still 1.
    assert np.prod(rho**market.budgets) == pytest.approx(16 / 27)
    assert finish_time_fairness_product(market, equilibrium, gap=1e-12)
    finding = finish_time_fairness_product(market, split, gap=1e-12)
    assert not finding
    assert finding.violation == pytest.approx(math.log(27 / 16) / 4)


def test_corollary_b_fails_at_unequal_budgets():
    """A buyer with a quarter of the money has a quarter of the good, and an equal split would give it half."""
    market, equilibrium = one_good([3.0, 1.0]), np.array([[0.75], [0.25]])
    assert finish_time_fairness(market, equilibrium).max() == pytest.approx(2.0)
    # What holds: nobody of an average budget or more loses by the market, and each has its budget's share.
    assert sharing_incentive(market, equilibrium, gap=1e-12)
    assert proportionality(market, equilibrium, gap=1e-12)
    poor = np.array([[0.45], [0.55]])
    assert sharing_incentive(market, poor, gap=1e-12).witness.buyer == 0


def finish_times(allocation, work):
    """Return when jobs end that run at the rate of their share of each round; the rounds have length 1."""
    done = np.cumsum(allocation, axis=1)
    ends = []
    for progress, share in zip(done, allocation, strict=True):
        last = int(np.argmax(progress >= work - 1e-12))
        ends.append(last + 1 - (progress[last] - work) / share[last])
    return np.array(ends)


def test_as_finish_times_both_parts_of_the_corollary_fail():
    """Two identical jobs of work 1/2, two rounds: one whole round for each is optimal, and so is an equal split."""
    market = eq.VolatileFisherMarket(utilities=np.ones((2, 1, 2)), budgets=[1.0, 1.0])
    rounds, split = np.array([[[1.0, 0.0]], [[0.0, 1.0]]]), np.full((2, 1, 2), 0.5)
    assert certify(market, rounds, gap=1e-12)
    assert certify(market, split, gap=1e-12)
    egalitarian = finish_times(split[:, 0], work=0.5)
    assert egalitarian.tolist() == [1.0, 1.0]
    ratios = finish_times(rounds[:, 0], work=0.5) / egalitarian
    assert ratios.tolist() == [0.5, 1.5]  # (b) fails: the second job ends later than under equal sharing
    assert np.prod(ratios) == 0.75 < 1.0  # (a) fails: of two optima one has a larger product than the other
    # In shares of utility, as put right, both hold of both.
    for allocation in (rounds, split):
        assert finish_time_fairness(market, allocation).tolist() == [1.0, 1.0]


# Envy, written out.


@st.composite
def allocations(draw, family=None):
    """Draw a small market and an allocation of all goods, near to fair or far from it."""
    family = family or draw(st.sampled_from(["static", "linear", "leontief", "ces", "cobb-douglas"]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    shape = tuple(int(n) for n in rng.integers(1, 5, 3))
    budgets = rng.integers(1, 4, shape[0]).astype(float)
    data = rng.integers(0, 4, shape).astype(float)
    data[:, 0, 0] += 1.0
    allocation = budgets[:, None, None] + draw(st.sampled_from([0.0, 0.1, 3.0])) * rng.random(shape)
    allocation = allocation / allocation.sum(axis=0)
    if family == "static":
        return eq.FisherMarket(data.reshape(len(data), -1), budgets), allocation.reshape(len(data), -1)
    extra = {"rho": 0.5} if family == "ces" else {}
    if family in ("ces", "cobb-douglas"):
        sums = data.sum(axis=1, keepdims=True)
        data = np.divide(data, sums, out=np.zeros_like(data), where=sums > 0)
    name = "requirements" if family == "leontief" else "utilities"
    return eq.VolatileFisherMarket(**{name: data}, budgets=budgets, family=family, **extra), allocation


def utility(market, buyer, bundle):
    everyone = np.broadcast_to(bundle, (market.num_buyers, *bundle.shape)).copy()
    return market.utilities_at(everyone)[buyer]


@given(allocations(), st.sampled_from([1e-9, 1e-3, 0.1]))
def test_envy_is_what_its_definition_says(plan, gap):
    market, allocation = plan
    finding = envy_freeness(market, allocation, gap=gap)
    below, above = MarketState(market, allocation, gap=gap).reach
    envious = False
    for i in range(market.num_buyers):
        for j in range(market.num_buyers):
            fair = market.budgets[i] / market.budgets[j] * utility(market, i, allocation[j])
            own = utility(market, i, allocation[i])
            envious |= i != j and own < fair * (1 - below[i]) / (1 + above[j]) - 1e-9
            if finding.witness is not None and (i, j) == (finding.witness.buyer, finding.witness.other):
                assert finding.violation == pytest.approx(1 - own / fair)
    assert finding.holds == (not envious)


@given(allocations(), st.sampled_from([1e-9, 1e-3, 0.1]))
def test_what_prices_clear_of_envy_has_none(plan, gap):
    """In a market too large to compare all pairs, the verdict is the same, and the bound is one."""
    market, allocation = plan
    exact = envy_freeness(market, allocation, gap=gap)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fairness, "COMPARED_PRODUCTS", 0)
        large = envy_freeness(market, allocation, gap=gap)
    assert large.holds == exact.holds
    if large.holds:
        assert large.violation >= exact.violation * (1 - 1e-9) or "prices" not in str(large.witness)
    else:
        assert large == exact


@given(allocations())
def test_shares_are_what_their_definitions_say(plan):
    market, allocation = plan
    whole = np.array([utility(market, i, market.capacities) for i in range(market.num_buyers)])
    split = np.array([utility(market, i, market.capacities / market.num_buyers) for i in range(market.num_buyers)])
    own, shares = market.utilities_at(allocation), market.budgets / market.budgets.sum()
    assert finish_time_fairness(market, allocation) == pytest.approx(
        np.divide(split, own, out=np.full(len(own), np.inf), where=own > 0)
    )
    below, _ = MarketState(market, allocation, gap=1e-4).reach
    lacks = 1 - own / (shares * whole)
    assert proportionality(market, allocation, gap=1e-4).holds == (lacks <= below + 1e-13).all()
    rich = shares * market.num_buyers >= 1 - 1e-12
    allowed = np.maximum(1 - (1 - below) * shares * market.num_buyers, 0.0) + 1e-13
    assert sharing_incentive(market, allocation, gap=1e-4).holds == (1 - own / split <= allowed)[rich].all()


# Efficiency: what dominates, and what is best.


def most_gain(market, allocation):
    """Return the most of ``sum_i q_i (U_i(y)/U_i - 1)`` over y that are worse for nobody, by scipy."""
    count, goods = market.utilities.shape
    own = market.utilities_at(allocation)
    rows = np.zeros((count, count * goods))
    for i in range(count):
        rows[i, i * goods : (i + 1) * goods] = market.utilities[i] / own[i]
    columns = np.tile(np.eye(goods), count)
    shares = market.budgets / market.budgets.sum()
    found = linprog(
        -shares @ rows,
        A_ub=np.vstack([columns, -rows]),
        b_ub=np.concatenate([market.capacities, -np.ones(count)]),
        method="highs",
    )
    return -found.fun - 1.0


@given(allocations("static"))
def test_pareto_optimality_is_what_a_linear_program_says(plan):
    market, allocation = plan
    finding = pareto_optimality(market, allocation, gap=1e-6)
    most = most_gain(market, allocation)
    assert finding.holds == (most <= 1e-6), (finding, most)
    if not finding.holds:
        assert finding.violation <= most + 1e-6
        shows_domination(market, allocation, finding)


def shows_domination(market, allocation, finding):
    better = finding.witness.allocation
    before, after = market.utilities_at(allocation), market.utilities_at(better)
    assert feasibility(market, better)
    assert (after >= before * (1 - 1e-9)).all()
    assert after[finding.witness.buyer] > before[finding.witness.buyer] * (1 + finding.tolerance)


@pytest.mark.parametrize("family", ["linear", "leontief", "ces", "cobb-douglas"])
def test_a_dominating_allocation_is_returned_in_every_family(family):
    """Two buyers who each hold mostly what the other wants, with a third of a good idle."""
    weights = np.array([[[0.8, 0.5], [0.2, 0.5]], [[0.2, 0.5], [0.8, 0.5]]])
    name = "requirements" if family == "leontief" else "utilities"
    extra = {"rho": 0.5} if family == "ces" else {}
    market = eq.VolatileFisherMarket(**{name: weights}, budgets=[1.0, 1.0], family=family, **extra)
    allocation = np.array([[[0.3, 0.5], [0.7, 0.5]], [[0.7, 0.5], [0.3, 0.5]]]) * [[[1.0, 0.7], [1.0, 1.0]]]
    finding = pareto_optimality(market, allocation, gap=1e-6)
    assert not finding
    shows_domination(market, allocation, finding)
    assert "nobody less" in str(finding.witness)


def test_an_efficient_allocation_need_not_be_fair():
    """All to one buyer who wants everything: unfair, far from an equilibrium, and Pareto optimal."""
    market = eq.FisherMarket([[1.0, 2.0], [2.0, 1.0]], [1.0, 1.0])
    allocation = np.array([[1.0, 1.0], [0.0, 0.0]])
    assert pareto_optimality(market, allocation, gap=1e-6)
    for check in (envy_freeness, proportionality, sharing_incentive, maximal_nash_welfare):
        assert not check(market, allocation, gap=1e-6)


@pytest.mark.parametrize("family", ["ces", "cobb-douglas"])
def test_prices_prove_efficient_what_is_no_equilibrium(family):
    """Equal tastes: nine tenths of everything to one buyer is unfair, and leaves nothing to gain."""
    weights = np.full((2, 2, 1), 0.5)
    extra = {"rho": 0.5} if family == "ces" else {}
    market = eq.VolatileFisherMarket(utilities=weights, budgets=[1.0, 1.0], family=family, **extra)
    allocation = np.array([[[0.9], [0.9]], [[0.1], [0.1]]])
    finding = pareto_optimality(market, allocation, gap=1e-6)
    assert finding.holds, finding
    assert not envy_freeness(market, allocation, gap=1e-6)


def test_a_buyer_left_with_nothing_beside_idle_goods_is_dominated():
    market = eq.FisherMarket([[1.0, 1.0], [1.0, 1.0]], [1.0, 1.0])
    finding = pareto_optimality(market, [[1.0, 0.5], [0.0, 0.0]], gap=1e-6)
    assert math.isinf(finding.violation)
    assert finding.witness.allocation[1].sum() > 0


def test_bad_prices_do_not_make_the_best_allocation_worse():
    """Prices of the wrong goods prove nothing of it; a solve finds others that do."""
    market = eq.FisherMarket([[2.0, 1.0], [1.0, 3.0]], [1.0, 1.0])
    best, wrong = np.eye(2), [1.9, 0.1]
    assert MarketState(market, best, wrong).measured_gap > 0.1
    for check in (maximal_nash_welfare, pareto_optimality, finish_time_fairness_product):
        assert check(market, best, wrong, gap=1e-6)
    finding = maximal_nash_welfare(market, np.full((2, 2), 0.5), wrong, gap=1e-6)
    assert finding.violation == pytest.approx(math.log(2 * 3 / (1.5 * 2)) / 2, abs=1e-6)
    assert finding.witness.allocation == pytest.approx(best, abs=1e-3)


def test_without_a_solver_the_plans_own_gap_stands(monkeypatch):
    def none(*_, **__):
        raise eq.BackendUnavailable("none here")

    monkeypatch.setattr(market_state, "solve", none)
    market = eq.FisherMarket([[2.0, 1.0], [1.0, 3.0]], [1.0, 1.0])
    finding = maximal_nash_welfare(market, np.full((2, 2), 0.5), [1.0, 1.0], gap=1e-6)
    assert not finding
    assert finding.violation == pytest.approx(MarketState(market, np.full((2, 2), 0.5), [1.0, 1.0]).measured_gap)
    assert "none here" in str(finding.witness)


def test_a_sparse_market_shows_a_sparse_better_allocation():
    market = eq.FisherMarket(csr_array([[2.0, 1.0], [0.0, 3.0]]), [1.0, 1.0])
    finding = pareto_optimality(market, csr_array([[0.5, 0.0], [0.5, 1.0]]), gap=1e-6)
    assert not finding
    assert finding.witness.allocation.toarray() == pytest.approx(np.array([[1.0, 0.0], [0.0, 1.0]]), abs=1e-6)


def in_one_round(weights, budgets, family="cobb-douglas"):
    return eq.VolatileFisherMarket(utilities=weights[:, :, None], budgets=budgets, family=family)


def test_an_equilibrium_of_other_budgets_is_efficient_and_unfair():
    """Cobb-Douglas in one round, in closed form: with 99 times the money one gets most, and nothing more is to gain."""
    weights = np.array([[0.7, 0.2, 0.1], [0.1, 0.5, 0.4]])
    paid = np.array([[99.0], [1.0]]) * weights
    allocation = (paid / paid.sum(axis=0))[:, :, None]
    assert certify(in_one_round(weights, [99.0, 1.0]), allocation, gap=1e-12)
    equal = in_one_round(weights, [1.0, 1.0])
    assert MarketState(equal, allocation).measured_gap > 0.1
    finding = pareto_optimality(equal, allocation, gap=1e-6)
    assert finding.holds, finding
    assert not sharing_incentive(equal, allocation, gap=1e-6)


@pytest.mark.parametrize("idle", [0.0, 0.2])
def test_the_bound_on_gains_is_no_less_than_what_is_gained(idle):
    weights = np.array([[0.7, 0.2, 0.1], [0.1, 0.5, 0.4]])
    market = in_one_round(weights, [1.0, 2.0])
    allocation = np.full((2, 3, 1), 0.5) * (1 - idle)
    found = dominating(MarketState(market, allocation, gap=1e-6), 10.0)
    gained = market.utilities_at(found.allocation) / market.utilities_at(allocation) - 1
    assert gained.min() > 0.05
    assert found.bound >= market.budgets / 3 @ gained
