"""The linear Fisher market against rational twins, and its input one wrong field at a time."""

import copy
import dataclasses
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array, csc_matrix, csr_array

import equipoise as eq
from equipoise.validation.strategies.programs import allocations, fisher_markets

GOOD = {"utilities": [[2.0, 1.0], [1.0, 3.0]], "budgets": [1.0, 2.0], "capacities": [1.0, 4.0]}
PRICES = st.sampled_from([0.0, 0.25, 1.0, 3.0, 1e-300, 1e300])


def dense(table):
    return table if isinstance(table, np.ndarray) else table.toarray()


def rational(table):
    return [[Fraction(entry) for entry in row] for row in dense(table).tolist()]


# -- Input -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("utilities", [[2.0, math.nan], [1.0, 3.0]], "utilities[0, 1] = nan: must be finite"),
        ("utilities", [[2.0, 1.0], [math.inf, 3.0]], "utilities[1, 0] = inf: must be finite"),
        ("utilities", [[2.0, 1.0], [1.0, -3.0]], "utilities[1, 1] = -3.0: at least 0"),
        ("utilities", [[2.0, True], [1.0, 3.0]], "utilities[0, 1] = True: must be a number"),
        ("utilities", [[2.0, 1.0], [1.0, "3"]], "utilities[1, 1] = '3': must be a number"),
        ("utilities", [[2.0, None], [1.0, 3.0]], "utilities[0, 1] = None: must be a number"),
        ("utilities", [[2.0, 1j], [1.0, 3.0]], "utilities[0, 1] = 1j: must be a number"),
        ("utilities", np.ones((2, 2), dtype=bool), "utilities[0, 0] = True: must be a number, not a truth value"),
        ("utilities", "2 1", "utilities = '2 1': must be a sequence of numbers, not text"),
        ("utilities", None, "utilities = None: must be a sequence of numbers"),
        ("utilities", 2.0, "utilities = 'array of shape ()': must have 2 dimension(s)"),
        ("utilities", [2.0, 1.0], "utilities = 'array of shape (2,)': must have 2 dimension(s)"),
        ("utilities", [[[2.0, 1.0]]], "utilities[0, 0] = [2.0, 1.0]: must be a number"),
        ("utilities", np.ones((1, 2, 2)), "utilities = 'array of shape (1, 2, 2)': must have 2 dimension(s)"),
        ("utilities", [[], []], "utilities = '[]': must not be empty"),
        ("utilities", np.ones((0, 2)), "utilities = '[]': must not be empty"),
        ("utilities", [[2.0, 1.0], [0.0, 0.0]], "utilities[1] = 0.0: the buyer needs a good of positive utility"),
        ("utilities", [[2.0, 1e308], [1.0, 3.0]], "utilities[0] = inf: worth of all goods must be finite"),
        ("budgets", [1.0, 0.0], "budgets[1] = 0.0: must be greater than 0"),
        ("budgets", [-1.0, 1.0], "budgets[0] = -1.0: must be greater than 0"),
        ("budgets", [1.0, math.nan], "budgets[1] = nan: must be finite"),
        ("budgets", [1.0, math.inf], "budgets[1] = inf: must be finite"),
        ("budgets", [1.0, False], "budgets[1] = False: must be a number"),
        ("budgets", [1.0, "2"], "budgets[1] = '2': must be a number"),
        ("budgets", "12", "budgets = '12': must be a sequence of numbers, not text"),
        ("budgets", [], "budgets = '[]': must not be empty"),
        ("budgets", 1.0, "budgets = 'array of shape ()': must have 1 dimension(s)"),
        ("budgets", np.ones((2, 1)), "budgets = 'array of shape (2, 1)': must have 1 dimension(s)"),
        ("budgets", [1.0, 2.0, 3.0], "budgets = '3 values': there are 2 buyers in the first dimension"),
        ("budgets", [1e308, 1e308], "budgets = 1e+308: their sum must be finite"),
        ("capacities", [1.0, 0.0], "capacities[1] = 0.0: must be greater than 0"),
        ("capacities", [-1.0, 1.0], "capacities[0] = -1.0: must be greater than 0"),
        ("capacities", [1.0, math.nan], "capacities[1] = nan: must be finite"),
        ("capacities", [1.0, math.inf], "capacities[1] = inf: must be finite"),
        ("capacities", [1.0, True], "capacities[1] = True: must be a number"),
        ("capacities", [1.0], "capacities = 'array of shape (1,)': must have shape (2,)"),
        ("capacities", 4.0, "capacities = 'array of shape ()': must have 1 dimension(s)"),
        ("capacities", [[1.0, 4.0]], "capacities[0] = [1.0, 4.0]: must be a number"),
        ("capacities", [1.0, 1e-310], "capacities[1] = 1e-310: too small: its price would be infinite"),
    ],
)
def test_bad_input_names_field_index_and_value(field, value, message):
    with pytest.raises(eq.InvalidInput) as caught:
        eq.FisherMarket(**(GOOD | {field: value}))
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("utilities", "message"),
    [
        (csr_array([[2.0, math.nan], [0.0, 3.0]]), "utilities[0, 1] = nan: must be finite"),
        (csr_array([[0.0, 2.0], [0.0, math.inf]]), "utilities[1, 1] = inf: must be finite"),
        (csc_matrix([[0.0, 2.0], [-1.0, 0.0]]), "utilities[1, 0] = -1.0: at least 0"),
        (csr_array([[0.0, 2.0], [0.0, 0.0]]), "utilities[1] = 0.0: the buyer needs a good of positive utility"),
        (csr_array(np.eye(2, dtype=bool)), "utilities = bool: must be numbers"),
        (csr_array(np.eye(2) * 1j), "utilities = complex128: must be numbers"),
        (csr_array((0, 2)), "utilities = (0, 2): must not be empty"),
        (csr_array([[2.0, 1e308], [0.0, 3.0]]), "utilities[0] = inf: worth of all goods must be finite"),
        (coo_array(([1e308, 1e308], ([0, 0], [1, 1])), shape=(2, 2)), "utilities[0, 1] = inf: must be finite"),
    ],
)
def test_bad_sparse_input_is_refused_alike(utilities, message):
    with pytest.raises(eq.InvalidInput) as caught:
        eq.FisherMarket(utilities, [1.0, 2.0], [1.0, 4.0])
    assert str(caught.value) == message


def test_rows_of_a_ragged_table_are_refused():
    with pytest.raises(
        eq.InvalidInput, match=r"^utilities\[1\] = '2 values': must be an array of one shape, and utilities\[0\] has 1"
    ):
        eq.FisherMarket([[1.0], [1.0, 2.0]], [1.0, 1.0])


def test_a_read_only_float_array_is_kept_and_anything_else_copied():
    kept = np.array([[2.0, 1.0], [1.0, 3.0]], order="F")
    kept.setflags(write=False)
    assert eq.FisherMarket(kept, [1.0, 1.0]).utilities is kept
    mine = np.array([[2.0, 1.0], [1.0, 3.0]])
    budgets = np.ones(2)
    market = eq.FisherMarket(mine, budgets, budgets)
    mine[0, 0] = budgets[0] = 99.0
    assert market.utilities[0, 0] == 2.0
    assert market.budgets[0] == market.capacities[0] == 1.0
    whole = np.array([[2, 1], [1, 3]])
    whole.setflags(write=False)
    assert eq.FisherMarket(whole, [1, 1]).utilities.dtype == np.float64
    wrong = np.array([[2.0, -1.0], [1.0, 3.0]])
    wrong.setflags(write=False)
    with pytest.raises(eq.InvalidInput, match=r"utilities\[0, 1\] = -1.0: at least 0"):
        eq.FisherMarket(wrong, [1.0, 1.0])


@given(fisher_markets())
def test_a_market_cannot_be_changed(market):
    table = market.utilities
    arrays = [table.data, table.indices, table.indptr] if market.is_sparse else [table]
    for array in (*arrays, market.budgets, market.capacities):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        market.budgets = np.ones(market.num_buyers)


def test_stored_zeros_and_duplicates_of_a_sparse_table_are_tidied():
    table = coo_array(([1.0, 1.0, 0.0, 3.0], ([0, 0, 0, 1], [1, 1, 0, 0])), shape=(2, 3))
    market = eq.FisherMarket(table, [1.0, 1.0])
    assert market.utilities.nnz == 2
    assert market.utilities.toarray().tolist() == [[0.0, 2.0, 0.0], [3.0, 0.0, 0.0]]
    assert market.in_demand.tolist() == [True, True, False]
    assert repr(market) == "<FisherMarket: 2 buyers, 3 goods, 2 wanted pairs>"


@given(st.data(), fisher_markets())
def test_copies_are_the_same_market(data, market):
    x = data.draw(allocations(market, serving=True))
    for twin in (pickle.loads(pickle.dumps(market)), copy.deepcopy(market), dataclasses.replace(market)):
        assert twin.utilities_at(x).tolist() == market.utilities_at(x).tolist()
        assert twin.capacities.tolist() == market.capacities.tolist()
        assert twin.is_sparse is market.is_sparse
        table = twin.utilities.data if twin.is_sparse else twin.utilities
        assert not any(array.flags.writeable for array in (table, twin.budgets, twin.capacities))
        assert twin.kind == market.kind == "FisherMarket"


# -- Arithmetic, against twins in rationals ----------------------------------------------------------------------------


@given(st.data(), fisher_markets())
def test_utilities_are_the_worth_of_what_is_got(data, market):
    x = data.draw(allocations(market))
    rows = zip(rational(market.utilities), rational(x), strict=True)
    worth = [sum(u * got for u, got in zip(*row, strict=True)) for row in rows]
    assert market.utilities_at(x) == pytest.approx([float(each) for each in worth], rel=1e-14)
    assert market.utilities_at(dense(x)) == pytest.approx([float(each) for each in worth], rel=1e-14)


@given(st.data(), fisher_markets())
def test_a_unit_of_utility_costs_the_least_price_per_worth(data, market):
    prices = np.array(data.draw(st.lists(PRICES, min_size=market.num_goods, max_size=market.num_goods)))
    least = [
        min(Fraction(p) / u for p, u in zip(prices.tolist(), row, strict=True) if u > 0)
        for row in rational(market.utilities)
    ]
    assert market.unit_costs(prices) == pytest.approx([float(cost) for cost in least], rel=1e-14, abs=0)


@given(st.data(), fisher_markets())
def test_implied_prices_are_what_the_highest_bidders_or_the_holders_would_pay(data, market):
    x = data.draw(allocations(market, serving=True))
    table, utilities = rational(market.utilities), [Fraction(u) for u in market.utilities_at(x).tolist()]
    rates = [Fraction(b) / u for b, u in zip(market.budgets.tolist(), utilities, strict=True)]
    slopes = [[u * rate for u in row] for row, rate in zip(table, rates, strict=True)]
    owned = [[a / Fraction(c) for a, c in zip(row, market.capacities.tolist(), strict=True)] for row in rational(x)]
    highest = [max(column) for column in zip(*slopes, strict=True)]
    pairs = zip(zip(*slopes, strict=True), zip(*owned, strict=True), strict=True)
    mean = [sum(slope * part for slope, part in zip(*pair, strict=True)) for pair in pairs]
    candidates = [[float(price) for price in prices] for prices in (highest, mean)]
    prices = market.implied_prices(x)
    assert any(prices == pytest.approx(each, rel=1e-13) for each in candidates)
    least = min(market.bound_at(np.array(each)) for each in candidates)
    assert market.bound_at(prices) == pytest.approx(least, rel=1e-12, abs=1e-12 * market.total_budget)


def test_buyers_who_get_nothing_imply_no_price():
    market = eq.FisherMarket([[1.0, 0.0], [1.0, 2.0]], [1.0, 1.0])
    assert market.implied_prices(np.array([[0.0, 1.0], [1.0, 0.0]])).tolist() == [1.0, 2.0]
    assert market.implied_prices(np.zeros((2, 2))).tolist() == [0.0, 0.0]
    assert market.equilibrium(np.zeros((2, 2))).prices.tolist() == [1.0, 1.0]


@given(st.data(), fisher_markets(sparse=True))
def test_sparse_and_dense_say_the_same(data, market):
    twin = eq.FisherMarket(market.utilities.toarray(), market.budgets, market.capacities)
    x = data.draw(allocations(market))
    prices = np.array(data.draw(st.lists(PRICES, min_size=market.num_goods, max_size=market.num_goods)))
    assert market.in_demand.tolist() == twin.in_demand.tolist()
    assert market.largest.tolist() == twin.largest.tolist()
    assert market.unit_costs(prices).tolist() == twin.unit_costs(prices).tolist()
    assert market.bound_at(prices) == twin.bound_at(prices)
    mine, its = market.equilibrium(2.0 * x), twin.equilibrium(2.0 * x.toarray())
    assert isinstance(mine.allocation, csr_array)
    assert mine.allocation.toarray() == pytest.approx(its.allocation, rel=1e-15)
    assert mine.prices == pytest.approx(its.prices, rel=1e-14)
    assert mine.utilities == pytest.approx(its.utilities, rel=1e-14)
    assert mine.spending == pytest.approx(its.spending, rel=1e-14)
    assert market.evaluate(mine)[0] == pytest.approx(twin.evaluate(its)[0], rel=1e-14)
    assert market.encode(mine) == pytest.approx(twin.encode(its), rel=1e-14)
    assert market.program_size() == twin.program_size()


@given(st.data(), fisher_markets(sparse=False))
def test_capacities_are_a_rescaling(data, market):
    """Goods counted in other units: worth and price of a unit change, and nothing else."""
    unit = eq.FisherMarket(market.utilities * market.capacities, market.budgets)
    x = data.draw(allocations(market, serving=True))
    prices = np.array(data.draw(st.lists(PRICES, min_size=market.num_goods, max_size=market.num_goods)))
    assert market.utilities_at(x) == pytest.approx(unit.utilities_at(x / market.capacities), rel=1e-14)
    assert market.bound_at(prices / market.capacities) == pytest.approx(unit.bound_at(prices), rel=1e-12, abs=1e-12)
    plan, its = market.equilibrium(x), unit.equilibrium(x / market.capacities)
    assert plan.prices * market.capacities == pytest.approx(its.prices, rel=1e-14)
    assert plan.spending == pytest.approx(its.spending, rel=1e-13)


# -- The program -------------------------------------------------------------------------------------------------------


@given(st.data(), fisher_markets())
def test_the_program_says_what_the_arithmetic_says(data, market):
    plan = market.equilibrium(data.draw(allocations(market, serving=True)))
    program, values = market.program(), market.encode(plan)
    assert program.num_columns == np.count_nonzero(dense(market.utilities))
    assert len(program.matrix.values) + len(program.log_matrix.values) == market.program_size()
    assert program.residuals_at(values).worst <= 1e-15
    scale = math.fsum(market.budgets * (1.0 + np.abs(np.log(plan.utilities)) + np.abs(np.log(market.largest))))
    assert program.objective_at(values) == pytest.approx(market.welfare(plan.utilities), rel=0, abs=1e-14 * scale)
    again = market.decode(values)
    wanted = np.where(dense(market.utilities) > 0, dense(plan.allocation), 0.0)
    assert dense(again.allocation) == pytest.approx(wanted, rel=1e-15)
    assert again.utilities == pytest.approx(plan.utilities, rel=1e-14)


def test_duals_become_prices_per_unit():
    market = eq.FisherMarket(**GOOD)
    plan = market.decode(np.array([1.0, 0.0, 0.0, 1.0]), np.array([1.0, 2.0]))
    assert plan.allocation.tolist() == [[1.0, 0.0], [0.0, 4.0]]
    assert plan.prices.tolist() == [1.0, 0.5]
    assert plan.spending.tolist() == [1.0, 2.0]
    assert plan.utilities.tolist() == [2.0, 12.0]


@pytest.mark.parametrize("call", ["program", "decode", "encode"])
def test_there_is_one_form(call):
    market = eq.FisherMarket(**GOOD)
    given_ = {"program": (), "decode": (np.zeros(4),), "encode": (market.equilibrium(np.eye(2)),)}[call]
    with pytest.raises(eq.InvalidInput, match=r"^form = 'levels': must be one of shares$"):
        getattr(market, call)(*given_, form="levels")


# -- Known equilibria --------------------------------------------------------------------------------------------------


@given(fisher_markets(max_goods=1), st.booleans())
def test_one_good_is_split_by_budget_and_costs_all_money(market, implied):
    total = market.total_budget
    shares = market.budgets[:, None] / total * market.capacities
    plan = market.equilibrium(shares, None if implied else market.budgets[:1])
    assert plan.prices == pytest.approx([total / market.capacities[0]], rel=1e-15)
    assert plan.spending == pytest.approx(market.budgets, rel=1e-14)
    scale = math.fsum(market.budgets * (1.0 + np.abs(np.log(plan.utilities))))
    assert market.proved_bound(plan) == pytest.approx(market.welfare(plan.utilities), abs=1e-14 * scale)


@pytest.mark.parametrize("small", [1e-150, 1e-6, 1.0])
@pytest.mark.parametrize("make", [np.asarray, csr_array])
def test_far_scales_keep_their_digits(make, small):
    """Each wants a good of its own, in units 300 orders of magnitude apart; the gap of the equilibrium is still 0."""
    worths, budgets = np.array([small, 1.0, 1.0 / small]), np.array([1e-6, 1.0, 1e6])
    market = eq.FisherMarket(make(np.diag(worths)), budgets)
    plan = market.equilibrium(make(np.eye(3)))
    assert plan.prices == pytest.approx(budgets, rel=1e-12)
    assert plan.utilities.tolist() == worths.tolist()
    welfare = market.welfare(plan.utilities)
    assert math.isfinite(welfare)
    assert abs(market.proved_bound(plan) - welfare) <= 1e-14 * market.total_budget * (1 + abs(math.log(small)))
