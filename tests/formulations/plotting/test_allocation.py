"""The picture and the table of an equilibrium: what is drawn adds up to what is in the plan."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from scipy.sparse import csr_array

import equipoise as eq


def bars(svg):
    """Return what each bar says when pointed at, with its height in pixels; ill-formed XML raises."""
    root = ET.fromstring(svg)
    space = {"s": "http://www.w3.org/2000/svg"}
    return [(rect.find("s:title", space).text, float(rect.get("height"))) for rect in root.iterfind("s:rect", space)]


def static(buyers: int, goods: int, sparse: bool = False) -> eq.Equilibrium:
    rng = np.random.default_rng(0)
    utilities = rng.random((buyers, goods))
    market = eq.FisherMarket(csr_array(utilities) if sparse else utilities, rng.random(buyers) + 0.1)
    allocation = rng.dirichlet(np.ones(buyers), size=goods).T
    return market.equilibrium(csr_array(allocation) if sparse else allocation, rng.random(goods) + 0.1)


def volatile(buyers: int, resources: int, rounds: int) -> eq.Equilibrium:
    rng = np.random.default_rng(0)
    shape = (buyers, resources, rounds)
    market = eq.VolatileFisherMarket(utilities=rng.random(shape), budgets=rng.random(buyers) + 0.1)
    allocation = np.moveaxis(rng.dirichlet(np.ones(buyers), size=shape[1:]), -1, 0)
    return market.equilibrium(allocation, rng.random(shape[1:]) + 0.1)


@pytest.mark.parametrize("sparse", [False, True])
def test_every_good_has_its_price_and_its_stack(sparse):
    plan = static(4, 5, sparse)
    allocation = plan.allocation.toarray() if sparse else plan.allocation
    drawn = dict(bars(plan.to_svg()))
    for k in range(5):
        assert f"good {k}: price {plan.prices[k]:.4g}" in drawn
        for i in range(4):
            assert drawn[f"good {k}, buyer {i}: {allocation[i, k]:.4g}"] == pytest.approx(
                130 * allocation[i, k], abs=0.01
            )


def test_a_volatile_market_has_a_panel_for_each_resource():
    plan = volatile(3, 2, 4)
    said = [word for word, _ in bars(plan.to_svg())]
    assert sum("price" in word for word in said) == 8
    assert sum(word.startswith("round 2, buyer 1:") for word in said) == 2
    assert "Resource 1" in plan.to_svg()


def test_of_too_many_it_draws_those_that_count_and_says_so():
    plan = static(30, 90)
    svg = plan.to_svg()
    said = [word for word, _ in bars(svg)]
    assert "the 60 dearest of 90" in svg
    named = {int(found) for found in re.findall(r"buyer (\d+)<", svg)}
    assert named >= set(np.argsort(-plan.spending)[:7].tolist())
    k = int(np.argmax(plan.prices))
    top = np.sort(np.argsort(-plan.spending)[:7])
    others = plan.allocation[:, k].sum() - plan.allocation[top, k].sum()
    assert f"good {k}, others: {others:.4g}" in said
    assert "1 more resources are not shown" in volatile(2, 7, 2).to_svg()
    assert "the first 60 of 70 rounds" in volatile(2, 1, 70).to_svg()


def test_the_file_appears_whole(tmp_path):
    plan = volatile(2, 1, 3)
    assert (
        plan.to_svg(tmp_path / "plan.svg") == (tmp_path / "plan.svg").read_text(encoding="utf-8") == plan._repr_svg_()
    )
    assert [path.name for path in tmp_path.iterdir()] == ["plan.svg"]
    assert plan.to_svg() == plan.to_svg()


def test_the_table_holds_every_amount_and_its_cost():
    for plan, names in (
        (static(4, 5, True), ["good"]),
        (static(4, 5), ["good"]),
        (volatile(3, 2, 4), ["resource", "round"]),
    ):
        frame = plan.to_frame()
        assert list(frame.columns) == ["buyer", *names, "amount", "cost"]
        assert frame.groupby("buyer")["cost"].sum().to_numpy() == pytest.approx(plan.spending)
        assert len(frame) == plan.prices.size * len(plan.spending)


def test_a_market_of_nothing_but_one_good_is_drawn():
    plan = eq.FisherMarket([[1.0]], [1.0]).equilibrium(np.zeros((1, 1)), np.ones(1))
    assert [word for word, _ in bars(plan.to_svg())] == ["buyer 0", "good 0: price 1"]
    assert '<rect class="f0"' in plan.to_svg()


def test_a_stochastic_plan_is_drawn_by_what_jobs_hold_in_expectation():
    chain = eq.JobChain(initial=[1.0], transitions=np.ones((2, 1, 1)), utilities=[[0.0], [1.0]], demands=[0, 1])
    market = eq.StochasticMarket(chains=[chain, chain], budgets=[1.0, 3.0], capacities=1.0, rounds=2)
    plan = eq.solve(market, rel_gap=1e-8).require_plan()
    assert plan.expected_amounts.shape == (2, 1, 2)
    assert plan.expected_amounts.sum(axis=0) == pytest.approx(plan.expected_use)
    assert plan.expected_amounts.sum(axis=(1, 2)) == pytest.approx(plan.utilities)  # a unit held is a unit earned
    drawn = dict(bars(plan.to_svg()))
    assert sum(word.startswith("round") and "price" in word for word in drawn) == 2
    held = {word.split(":")[0]: height for word, height in drawn.items() if ", job" in word}
    for i in range(2):
        for t in range(2):
            assert held.get(f"round {t}, job {i}", 0.0) == pytest.approx(130 * plan.expected_amounts[i, 0, t], abs=0.1)


def test_without_prices_there_is_no_panel_of_them(tmp_path):
    chain = eq.JobChain(initial=[1.0], transitions=np.ones((2, 1, 1)), utilities=[[0.0], [1.0]], demands=[0, 1])
    market = eq.StochasticMarket(chains=[chain, chain], budgets=[1.0, 1.0], capacities=1.0, rounds=2)
    plan = eq.solve(market, form="joint", rel_gap=1e-6).require_plan()
    assert plan.prices is None
    svg = plan.to_svg(tmp_path / "plan.svg")
    assert (tmp_path / "plan.svg").read_text(encoding="utf-8") == svg
    assert "price" not in svg
    assert "amount" in svg
    assert ", job 1:" in svg
