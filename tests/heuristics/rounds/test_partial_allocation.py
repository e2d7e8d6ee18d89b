"""The auction of Themis: its closed form, what a buyer keeps at least, and that lies do not pay."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import equipoise as eq
from equipoise.heuristics.rounds.partial_allocation import least_kept, partial_allocation

markets = st.integers(0, 10_000).map(np.random.default_rng)


def drawn(rng, most_buyers=7, most_goods=4):
    buyers, goods = rng.integers(2, most_buyers + 1), rng.integers(1, most_goods + 1)
    utilities = rng.integers(0, 6, size=(buyers, goods)).astype(float)
    utilities[utilities.max(axis=1) == 0, 0] = 1.0
    return eq.FisherMarket(
        utilities=utilities,
        budgets=rng.integers(1, 5, size=buyers).astype(float),
        capacities=rng.integers(1, 9, size=goods).astype(float),
    )


@pytest.mark.parametrize("budgets", [[1.0, 1.0], [1.0] * 5, [3.0, 1.0], [1.0, 2.0, 7.0]])
def test_of_one_good_everybody_keeps_the_least_there_is(budgets):
    budgets = np.array(budgets)
    market = eq.FisherMarket(utilities=np.arange(1.0, len(budgets) + 1)[:, None], budgets=budgets, capacities=[12.0])
    sold = partial_allocation(market, rel_gap=1e-10)
    # By hand: x* splits by budgets, and without i the others' parts grow by B/B_-i.
    share, others = budgets / budgets.sum(), budgets.sum() - budgets
    kept = (others / budgets.sum()) ** (others / budgets)
    # What the buyers end with is as sharp as the gap; the shares kept, only as its root.
    worth = np.arange(1.0, len(budgets) + 1) * 12 * share * kept
    assert sold.utilities == pytest.approx(worth, rel=1e-8)
    assert sold.kept == pytest.approx(kept, rel=1e-4)
    assert sold.kept == pytest.approx(least_kept(budgets), rel=1e-4)
    assert sold.leftover == pytest.approx(12 - 12 * float(share @ kept), rel=1e-4)


def test_two_buyers_of_different_goods_keep_everything():
    sold = partial_allocation(eq.FisherMarket(utilities=[[1.0, 0.0], [0.0, 1.0]], budgets=[1.0, 1.0]))
    assert sold.kept == pytest.approx([1.0, 1.0], abs=1e-6)
    assert sold.leftover == pytest.approx([0.0, 0.0], abs=1e-6)


def test_a_single_buyer_keeps_everything():
    sold = partial_allocation(eq.FisherMarket(utilities=[[2.0, 1.0]], budgets=[3.0], capacities=[1.0, 5.0]))
    assert (sold.kept.tolist(), sold.solves) == ([1.0], 1)
    assert sold.utilities == pytest.approx([7.0])


@given(st.lists(st.floats(0.01, 100.0), min_size=1, max_size=30))
def test_the_least_share_is_above_one_in_e_at_any_budgets(budgets):
    assert (least_kept(np.array(budgets)) > 1 / math.e).all()


def test_the_least_share_tends_to_one_in_e():
    assert least_kept(np.ones(10_000))[0] == pytest.approx(1 / math.e, rel=1e-4)


@settings(max_examples=25)
@given(markets)
def test_nobody_keeps_less_than_promised_and_the_certificates_hold(rng):
    market = drawn(rng)
    sold = partial_allocation(market)
    # A gap of g in welfare leaves the single utilities of x* unsure by its root.
    unsure = 2 * np.sqrt(2 * sold.slack)
    assert (sold.kept >= least_kept(market.budgets) * (1 - unsure)).all()
    assert (sold.kept <= 1.0).all()
    assert (sold.allocation.sum(axis=0) <= market.capacities * (1 + 1e-12)).all()
    assert sold.utilities == pytest.approx(market.utilities_at(sold.allocation))
    assert sold.gap <= 1e-8 * (1 + 1e-6)
    # Looser solves must bracket what tighter ones find.
    loose = partial_allocation(market, rel_gap=1e-3)
    assert (loose.least_utilities <= sold.most_utilities * (1 + 1e-9)).all()
    assert (loose.most_utilities >= sold.least_utilities * (1 - 1e-9)).all()
    assert (sold.utilities >= sold.least_utilities * (1 - 1e-9)).all()
    assert (sold.utilities <= sold.most_utilities * (1 + 1e-9)).all()


@settings(max_examples=25)
@given(markets, st.integers(0, 3))
def test_no_report_gains_more_than_the_gap_allows(rng, kind):
    market = drawn(rng)
    honest = partial_allocation(market)
    liar = int(rng.integers(market.num_buyers))
    truth = np.asarray(market.utilities)
    told = truth.copy()
    if kind == 0:  # wants everything alike
        told[liar] = 1.0
    elif kind == 1:  # exaggerates the favourite
        told[liar, truth[liar].argmax()] *= 10.0
    elif kind == 2:  # what another one says
        told[liar] = truth[(liar + 1) % market.num_buyers]
    else:
        told[liar] = rng.random(truth.shape[1]) + 0.01
    lied = partial_allocation(eq.FisherMarket(utilities=told, budgets=market.budgets, capacities=market.capacities))
    got = float(truth[liar] @ lied.allocation[liar])
    assert got <= honest.utilities[liar] * math.exp(honest.slack[liar]) * (1 + 1e-9)


def test_the_nash_optimum_without_the_auction_can_be_gamed():
    # Buyer 1 wants only good 0, buyer 0 both: by playing down good 1 it gets half of good 0 and all of good 1.
    def market(first):
        return eq.FisherMarket(utilities=[first, [1.0, 0.0]], budgets=[1.0, 1.0])

    truth = np.array([1.0, 0.5])
    honest, lied = partial_allocation(market([1.0, 0.5])), partial_allocation(market([1.0, 0.01]))
    assert truth @ lied.nash.allocation[0] > 1.2 * honest.nash.utilities[0]
    assert truth @ lied.allocation[0] <= honest.utilities[0] * math.exp(honest.slack[0])


def test_scale_and_order_of_buyers_do_not_matter():
    market = drawn(np.random.default_rng(3))
    sold = partial_allocation(market)
    order = np.arange(market.num_buyers)[::-1]
    factors = np.arange(1.0, market.num_buyers + 1)
    turned = eq.FisherMarket(
        utilities=(np.asarray(market.utilities) * factors[:, None])[order],
        budgets=market.budgets[order],
        capacities=market.capacities,
    )
    assert partial_allocation(turned).utilities == pytest.approx((sold.utilities * factors)[order], rel=1e-6)


def test_equal_buyers_share_a_solve():
    utilities = np.repeat([[1.0, 2.0], [3.0, 1.0]], 20, axis=0)
    sold = partial_allocation(eq.FisherMarket(utilities=utilities, budgets=np.ones(40)))
    assert sold.solves == 3
    assert np.ptp(sold.kept[:20]) == 0.0


@pytest.mark.parametrize("market", [None, eq.StochasticMarket])
def test_other_problems_are_refused(market):
    with pytest.raises(eq.InvalidInput, match="FisherMarket"):
        partial_allocation(market)


def test_a_sparse_market_is_refused_and_a_market_without_a_plan_is_told():
    from scipy.sparse import csr_array

    with pytest.raises(eq.InvalidInput, match="dense"):
        partial_allocation(eq.FisherMarket(utilities=csr_array(np.eye(2)), budgets=[1.0, 1.0]))
