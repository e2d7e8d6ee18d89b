"""The market over rounds: its input one wrong field at a time, its programs, and the static market it may be."""

import copy
import dataclasses
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq
from equipoise.validation.strategies.programs import allocations, volatile_markets

FAMILIES = ("linear", "leontief", "ces", "cobb-douglas")
# Two buyers, two resources, two rounds.
LINEAR = {"utilities": [[[2.0, 1.0], [1.0, 0.0]], [[0.0, 1.0], [3.0, 1.0]]], "budgets": [1.0, 2.0]}
LEONTIEF = {"requirements": LINEAR["utilities"], "budgets": [1.0, 2.0], "family": "leontief"}
WEIGHTS = [[[0.5, 1.0], [0.5, 0.0]], [[0.0, 0.25], [1.0, 0.75]]]
CES = {"utilities": WEIGHTS, "budgets": [1.0, 2.0], "family": "ces", "rho": 0.5}
COBB = {"utilities": WEIGHTS, "budgets": [1.0, 2.0], "family": "cobb-douglas"}


def table_with(value, at=(0, 1, 0), table=LINEAR["utilities"]):
    changed = np.array(table).tolist()
    i, j, t = at
    changed[i][j][t] = value
    return changed


@pytest.mark.parametrize(
    ("market", "changes", "message"),
    [
        (LINEAR, {"family": "quadratic"}, "family = 'quadratic': must be one of linear, leontief, ces, cobb-douglas"),
        (LINEAR, {"family": "Linear"}, "family = 'Linear': must be one of linear, leontief, ces, cobb-douglas"),
        (LINEAR, {"family": None}, "family = None: must be one of linear, leontief, ces, cobb-douglas"),
        (LINEAR, {"family": ["linear"]}, "family = ['linear']: must be one of linear, leontief, ces, cobb-douglas"),
        (
            LINEAR,
            {"family": "leontief"},
            "utilities = 'given': a leontief market takes requirements: leave utilities out",
        ),
        (LEONTIEF, {"family": "ces"}, "requirements = 'given': a ces market takes utilities: leave requirements out"),
        (
            LINEAR,
            {"requirements": WEIGHTS},
            "requirements = 'given': a linear market takes utilities: leave requirements out",
        ),
        (LINEAR, {"utilities": None}, "utilities = None: a linear market needs them"),
        (LEONTIEF, {"requirements": None}, "requirements = None: a leontief market needs them"),
        (LINEAR, {"rho": 0.5}, "rho = 0.5: a linear market has no rho: leave it out"),
        (COBB, {"rho": 0.5}, "rho = 0.5: a cobb-douglas market has no rho: leave it out"),
        (
            LINEAR,
            {"productivity": [[1.0, 1.0]] * 2},
            "productivity = 'given': a linear market includes it in its utilities: leave it out",
        ),
        (
            LEONTIEF,
            {"productivity": [[1.0, 1.0]] * 2},
            "productivity = 'given': a leontief market includes it in its requirements: leave it out",
        ),
        # Data.
        (LINEAR, {"utilities": table_with(math.nan)}, "utilities[0, 1, 0] = nan: must be finite"),
        (LINEAR, {"utilities": table_with(math.inf)}, "utilities[0, 1, 0] = inf: must be finite"),
        (LINEAR, {"utilities": table_with(-1.0)}, "utilities[0, 1, 0] = -1.0: at least 0"),
        (LINEAR, {"utilities": table_with(True)}, "utilities[0, 1, 0] = True: must be a number"),
        (LINEAR, {"utilities": table_with("1")}, "utilities[0, 1, 0] = '1': must be a number"),
        (LINEAR, {"utilities": "1"}, "utilities = '1': must be a sequence of numbers, not text"),
        (LINEAR, {"utilities": [[1.0, 2.0]]}, "utilities = 'array of shape (1, 2)': must have 3 dimension(s)"),
        (LINEAR, {"utilities": np.ones((2, 0, 2))}, "utilities = '[]': must not be empty"),
        (
            LINEAR,
            {"utilities": [[[1.0]], [[0.0]]]},
            "utilities[1] = 0.0: the buyer needs a round with a positive entry",
        ),
        (LEONTIEF, {"requirements": table_with(-0.5)}, "requirements[0, 1, 0] = -0.5: at least 0"),
        (
            LEONTIEF,
            {"requirements": [[[0.0]], [[1.0]]]},
            "requirements[0] = 0.0: the buyer needs a round with a positive entry",
        ),
        (
            CES,
            {"productivity": [[1.0, 1.0], [0.0, 0.0]]},
            "utilities[1] = 0.0: the buyer needs a round with a positive entry",
        ),
        # Budgets and capacities.
        (LINEAR, {"budgets": [0.0, 1.0]}, "budgets[0] = 0.0: must be greater than 0"),
        (LINEAR, {"budgets": [1.0, -1.0]}, "budgets[1] = -1.0: must be greater than 0"),
        (LINEAR, {"budgets": [math.nan, 1.0]}, "budgets[0] = nan: must be finite"),
        (LINEAR, {"budgets": [1.0]}, "budgets = '1 values': there are 2 buyers in the first dimension"),
        (LINEAR, {"budgets": []}, "budgets = '[]': must not be empty"),
        (LINEAR, {"capacities": [[1.0, 0.0], [1.0, 1.0]]}, "capacities[0, 1] = 0.0: must be greater than 0"),
        (LINEAR, {"capacities": [[1.0, 1.0], [math.inf, 1.0]]}, "capacities[1, 0] = inf: must be finite"),
        (LINEAR, {"capacities": [[1.0, 1.0]]}, "capacities = 'array of shape (1, 2)': must have shape (2, 2)"),
        (LINEAR, {"capacities": [1.0, 1.0]}, "capacities = 'array of shape (2,)': must have 2 dimension(s)"),
        (LINEAR, {"capacities": [[1.0, "1"], [1.0, 1.0]]}, "capacities[0, 1] = '1': must be a number"),
        # CES and Cobb-Douglas.
        (CES, {"rho": None}, "rho = None: a ces market needs it: a number below 1 and not 0"),
        (CES, {"rho": 1.0}, "rho = 1.0: must be less than 1; at 1 the family is 'linear'"),
        (CES, {"rho": 2}, "rho = 2.0: must be less than 1; at 1 the family is 'linear'"),
        (CES, {"rho": 0}, "rho = 0.0: its absolute value must be at least 1e-06; at 0 the family is 'cobb-douglas'"),
        (
            CES,
            {"rho": -1e-9},
            "rho = -1e-09: its absolute value must be at least 1e-06; at 0 the family is 'cobb-douglas'",
        ),
        (CES, {"rho": math.nan}, "rho = nan: must be finite"),
        (CES, {"rho": -math.inf}, "rho = -inf: must be finite"),
        (CES, {"rho": True}, "rho = True: must be a number"),
        (CES, {"rho": "0.5"}, "rho = '0.5': must be a number"),
        (CES, {"productivity": [1.0, 1.0]}, "productivity = 'array of shape (2,)': must have 2 dimension(s)"),
        (CES, {"productivity": [[1.0], [1.0]]}, "productivity = 'array of shape (2, 1)': must have shape (2, 2)"),
        (COBB, {"productivity": [[1.0, -1.0], [1.0, 1.0]]}, "productivity[0, 1] = -1.0: at least 0"),
        (COBB, {"productivity": [[1.0, math.nan], [1.0, 1.0]]}, "productivity[0, 1] = nan: must be finite"),
        (
            COBB,
            {"utilities": table_with(0.25, table=WEIGHTS)},
            "utilities[0, 0] = 0.75: the weights of a round must sum to 1 "
            "(use productivity to scale the utility of a round); summed over resources of buyer 0 in round 0",
        ),
        (CES, {"utilities": table_with(-0.5, table=WEIGHTS)}, "utilities[0, 1, 0] = -0.5: at least 0"),
    ],
)
def test_bad_input_names_field_index_and_value(market, changes, message):
    with pytest.raises(eq.InvalidInput) as caught:
        eq.VolatileFisherMarket(**(market | changes))
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("market", "changes", "at", "value"),
    [
        (LINEAR, {"utilities": table_with(1e308), "capacities": [[1.0, 1.0], [10.0, 1.0]]}, (0, 0), math.inf),
        (LINEAR, {"utilities": [[[1e308, 1e308]]], "budgets": [1.0]}, (0, 0), 1e308),
        (LINEAR, {"utilities": [[[1e-200, 1.0]]], "budgets": [1.0], "capacities": [[1e-200, 1.0]]}, (0, 0), 0.0),
        (LEONTIEF, {"requirements": [[[1e-320]]], "budgets": [1.0]}, (0, 0), math.inf),
        (LEONTIEF, {"requirements": [[[1.0, 1e200]]], "budgets": [1.0], "capacities": [[1.0, 1e-200]]}, (0, 1), 0.0),
        (CES, {"productivity": [[1.0, 1.0], [1e308, 1e308]]}, (1, 0), 1e308),
        (COBB, {"productivity": [[1.0, 1e308], [1.0, 1.0]], "capacities": [[9.0] * 2] * 2}, (0, 1), math.inf),
    ],
)
def test_yields_beyond_floating_point_are_refused(market, changes, at, value):
    with pytest.raises(eq.InvalidInput) as caught:
        eq.VolatileFisherMarket(**(market | changes))
    assert (caught.value.index, caught.value.value) == (at, value)
    i, t = at
    assert str(caught.value).endswith(
        f"all resources of round {t} must yield buyer {i} a positive number, finite in sum over rounds"
    )


def test_weights_off_by_rounding_are_divided_by_their_sum():
    weights = np.full((1, 3, 1), 1 / 3) * (1 + 5e-10)
    market = eq.VolatileFisherMarket(utilities=weights, budgets=[1.0], family="cobb-douglas")
    assert market.utilities.sum() == pytest.approx(1.0, rel=1e-15)
    assert market.productivity.tolist() == [[1.0]]


def test_a_round_that_serves_nobody_yields_nothing_whatever_its_productivity():
    for changes in (CES, COBB):
        weights = np.array(WEIGHTS)
        weights[0, :, 0] = 0.0
        market = eq.VolatileFisherMarket(**(changes | {"utilities": weights}))
        assert market.arithmetic.rates(np.ones((2, 2, 2)))[0, 0] == 0.0
        assert market.active.tolist() == [[False, True], [True, True]]


@pytest.mark.parametrize("family", FAMILIES)
@given(data=st.data())
def test_a_market_cannot_be_changed_and_copies_are_the_same(family, data):
    market = data.draw(volatile_markets(family))
    x = data.draw(allocations(market, serving=True))
    for array in (market.utilities, market.requirements, market.productivity, market.budgets, market.capacities):
        if array is not None:
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        market.family = "linear"
    for twin in (pickle.loads(pickle.dumps(market)), copy.deepcopy(market)):
        assert twin.kind == market.kind == f"VolatileFisherMarket:{family}"
        assert twin.utilities_at(x).tolist() == market.utilities_at(x).tolist()
        assert not any(array.flags.writeable for array in (twin.budgets, twin.capacities))
    assert dataclasses.replace(market).utilities_at(x) == pytest.approx(market.utilities_at(x), rel=1e-14)


@given(st.data(), volatile_markets("linear"))
def test_a_linear_market_is_static_with_resource_and_round_as_goods(data, market):
    static = market.static
    assert np.shares_memory(static.utilities, market.utilities)
    x = data.draw(allocations(market, serving=True))
    flat = x.reshape(market.num_buyers, -1)
    prices = np.arange(1.0, 1.0 + static.num_goods)
    shaped = prices.reshape(market.capacities.shape)
    assert static.utilities_at(flat) == pytest.approx(market.utilities_at(x), rel=1e-14)
    assert static.unit_costs(prices) == pytest.approx(market.unit_costs(shaped), rel=1e-14)
    assert static.bound_at(prices) == pytest.approx(market.bound_at(shaped), rel=1e-13, abs=1e-13)
    assert static.in_demand.tolist() == market.in_demand.ravel().tolist()
    plan, its = market.equilibrium(x), static.equilibrium(flat)
    assert plan.prices.ravel().tolist() == its.prices.tolist()
    assert market.encode(plan).tolist() == static.encode(its).tolist()


@pytest.mark.parametrize("family", ["leontief", "ces", "cobb-douglas"])
@given(data=st.data())
def test_the_other_families_are_no_static_market(family, data):
    market = data.draw(volatile_markets(family))
    with pytest.raises(eq.UnsupportedProblem, match=f"a {family} market has no static form"):
        _ = market.static


@pytest.mark.parametrize("family", ["linear", "leontief"])
@given(data=st.data())
def test_the_program_says_what_the_arithmetic_says(family, data):
    market = data.draw(volatile_markets(family))
    plan = market.equilibrium(data.draw(allocations(market, serving=True)))
    program, values = market.program(), market.encode(plan)
    assert market.class_of() is program.problem_class is eq.ProblemClass.LOG
    if family == "linear":
        assert program.num_columns == np.count_nonzero(market.utilities)
        assert len(program.matrix.values) + len(program.log_matrix.values) == market.program_size()
    else:
        assert program.num_columns == np.count_nonzero(market.active)
        assert len(program.matrix.values) + len(program.log_matrix.values) <= market.program_size()
    assert program.residuals_at(values).worst <= 1e-14
    most = market.utilities_at(np.broadcast_to(market.capacities, market.shape))
    scale = math.fsum(market.budgets * (1.0 + np.abs(np.log(plan.utilities)) + np.abs(np.log(most))))
    assert program.objective_at(values) == pytest.approx(market.welfare(plan.utilities), rel=0, abs=1e-14 * scale)
    again = market.decode(values)
    assert again.utilities == pytest.approx(plan.utilities, rel=1e-13)
    assert (again.allocation <= plan.allocation * (1 + 1e-14)).all()  # nothing but what is of use
    assert market.encode(again) == pytest.approx(values, rel=1e-13)
    duals = np.arange(1.0, 1.0 + market.capacities.size)
    prices = market.decode(values, duals).prices
    asked = market.normal_prices(duals.reshape(market.in_demand.shape) / market.capacities)
    if market.bound_at(prices) < market.bound_at(asked):  # what the allocation implies proves more
        asked = market.normal_prices(market.implied_prices(again.allocation))
    assert prices == pytest.approx(asked, rel=1e-12)


@pytest.mark.parametrize("family", ["ces", "cobb-douglas"])
@given(data=st.data())
def test_the_other_families_have_no_program(family, data):
    market = data.draw(volatile_markets(family))
    assert market.forms == ()
    assert market.class_of() is None
    for call in (market.program, lambda: market.encode(None), lambda: market.decode(np.zeros(1))):
        with pytest.raises(eq.UnsupportedProblem, match=f"a {family} market has no linear or logarithmic program"):
            call()


@pytest.mark.parametrize(("market", "form"), [(LINEAR, "shares"), (LEONTIEF, "levels")])
def test_there_is_one_form(market, form):
    market = eq.VolatileFisherMarket(**market)
    assert market.program(form).num_columns == market.program().num_columns
    with pytest.raises(eq.InvalidInput, match=f"^form = 'other': must be one of {form}$"):
        market.program("other")


def test_it_says_what_it_is():
    market = eq.VolatileFisherMarket(**CES)
    assert repr(market) == "<VolatileFisherMarket, ces: 2 buyers, 2 resources, 2 rounds>"
    assert (market.num_buyers, market.num_resources, market.num_rounds) == market.shape == (2, 2, 2)


def test_former_names_warn_and_give_the_same():
    market = eq.VolatileFisherMarket(**LINEAR)
    with pytest.warns(DeprecationWarning, match="in_demand"):
        assert market.wanted.tolist() == market.in_demand.tolist()
    with pytest.warns(DeprecationWarning, match="active"):
        assert market.served.tolist() == market.active.tolist()
