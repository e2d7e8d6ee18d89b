"""All backends agree on random programs and markets, in CI a twentieth of `make verify-full`; the checker can fail."""

import dataclasses
import os

import numpy as np
import pytest
from examples import examples

import equipoise as eq
from equipoise.solvers import registry
from equipoise.validation.agreement import run as module
from equipoise.validation.agreement.run import KINDS, MARKET_KINDS, ONE_IN, agreement
from equipoise.validation.contract.market_draws import MARKETS as KINDS_OF_MARKET
from equipoise.validation.contract.market_draws import planted_market

FULL, FULL_MARKETS = 500, 2000
COUNT = int(os.environ.get("EQUIPOISE_AGREEMENT", examples(FULL // 20)))
MARKETS = int(os.environ.get("EQUIPOISE_AGREEMENT", examples(FULL_MARKETS // 20)))
KIND_OF = dict(zip(MARKET_KINDS, KINDS_OF_MARKET, strict=True))
LINEAR_PROGRAMS = ("fisher", "volatile-linear", "volatile-leontief")
PROGRAMS = [kind for kind in KINDS if kind not in MARKET_KINDS]


@pytest.mark.thorough
@pytest.mark.parametrize("kind", MARKET_KINDS)
def test_all_backends_agree_on_markets(kind):
    tallies = agreement(count=MARKETS, seed=2026, kinds=[kind])
    names = {tally.backend for tally in tallies}
    assert names >= ({"highs", "scipy"} if kind in LINEAR_PROGRAMS else {"proportional_response"})
    for tally in tallies:
        assert not tally.disagreements, tally
        assert tally.programs == -(-MARKETS // ONE_IN.get(tally.backend, 1))
        assert not tally.failed, tally
        assert tally.agreed + tally.left_open + tally.refused == tally.programs
        assert tally.left_open == 0 or tally.backend not in ("interior_point", "proportional_response"), tally
        assert tally.worst_gap <= 1e-6
        assert tally.worst_residual <= 1e-6
        if kind in ("fisher", "volatile-linear"):
            assert tally.exact + len(tally.inexact) == tally.programs - tally.refused
            assert tally.exact >= 0.99 * tally.programs - tally.refused, tally


@pytest.mark.thorough
@pytest.mark.parametrize("kind", PROGRAMS)
def test_all_backends_agree(kind):
    tallies = agreement(count=COUNT, seed=2026, kinds=[kind])
    assert {tally.kind for tally in tallies} == {kind}
    names = {tally.backend for tally in tallies}
    assert {"highs", "scipy"} <= names
    for tally in tallies:
        assert not tally.disagreements, tally
        assert tally.programs == COUNT
        assert tally.agreed + tally.refused == COUNT
        assert tally.worst_residual <= 1e-6
    least = COUNT if "window" in kind or "enumerated" in kind else 0
    assert all(tally.agreed >= least for tally in tallies), tallies


def test_what_is_drawn_depends_on_the_seed_and_on_nothing_else():
    once, again = ({t.backend: t.worst_gap for t in agreement(count=3, names=["highs"], seed=5)} for _ in range(2))
    assert once == again
    one, other = (KINDS["planted LP"](np.random.default_rng([seed, 0, 0])).program for seed in (1, 2))
    assert one.objective.shape != other.objective.shape or (one.objective != other.objective).any()


CORRUPTIONS = {
    "objective": lambda r: dataclasses.replace(r, objective=r.objective - 1.0),
    "better than the optimum": lambda r: dataclasses.replace(r, objective=r.objective + 1.0),
    "bound": lambda r: dataclasses.replace(r, bound=r.bound - 1.0),
    "optimum": lambda r: dataclasses.replace(r, termination=eq.Termination(eq.Reason.INFEASIBLE)),
    "FEASIBLE": lambda r: dataclasses.replace(
        r, termination=eq.Termination(eq.Reason.FEASIBLE, eq.Limit.METHOD), gap=np.inf
    ),
}


def violating(result):
    return dataclasses.replace(result, residuals=eq.Residuals(bound=0.0, row=1e-3))


@pytest.mark.parametrize("what", CORRUPTIONS)
@pytest.mark.parametrize("kind", ["planted LOG", "fisher", "volatile-leontief"])
def test_a_corrupted_result_is_a_disagreement(monkeypatch, what, kind):
    solve = module.solve

    def corrupt(program, name, **options):
        return CORRUPTIONS[what](solve(program, name, **options))

    monkeypatch.setattr(module, "solve", corrupt)
    if kind in MARKET_KINDS:  # of a planted one the optimum is known whatever the backends say
        monkeypatch.setitem(KINDS, kind, lambda rng: planted_market(rng, KIND_OF[kind]))
    (tally,) = agreement(count=2, names=["highs"], kinds=[kind])
    assert tally.agreed == 0
    assert len(tally.disagreements) == 2
    assert what in tally.disagreements[0]
    assert tally.row()["first_disagreement"] == tally.disagreements[0]


@pytest.mark.parametrize("kind", ["fisher", "volatile-linear"])
def test_a_plan_beyond_capacity_is_a_disagreement_about_a_market(monkeypatch, kind):
    solve = module.solve
    monkeypatch.setattr(module, "solve", lambda *a, **k: violating(solve(*a, **k)))
    (tally,) = agreement(count=3, names=["highs"], kinds=[kind])
    assert tally.agreed == 0
    assert "violates the market by 0.001" in tally.disagreements[0]


@pytest.mark.parametrize("kind", MARKET_KINDS)
def test_a_plan_without_its_certificates_is_a_disagreement_about_a_market(monkeypatch, kind):
    """The figures are those of the good plan: only who checks the plan itself can tell."""
    solve = module.solve

    def swapped(market, name, **options):
        result = solve(market, name, **options)
        plan = dataclasses.replace(result.plan, allocation=0.5 * result.plan.allocation)
        return dataclasses.replace(result, plan=plan)

    monkeypatch.setattr(module, "solve", swapped)
    name = "proportional_response" if kind in ("volatile-ces", "volatile-cobb-douglas") else "interior_point"
    (tally,) = agreement(count=3, names=[name], kinds=[kind])
    assert tally.agreed == 0
    assert len(tally.disagreements) == 3


def test_what_has_no_exact_equilibrium_is_told_with_its_reason(monkeypatch):
    solve = module.solve

    def of_another(market, name, **options):
        result = solve(market, name, **options)
        return dataclasses.replace(result, plan=market.equilibrium(np.zeros(market.utilities.shape)))

    monkeypatch.setattr(module, "solve", of_another)
    (tally,) = agreement(count=6, names=["highs"], kinds=["volatile-linear"])
    assert tally.exact + len(tally.inexact) == 6
    assert len(tally.inexact) > 1  # a small market's may be found beside anything
    assert tally.failed
    assert tally.row()["first_inexact"] == tally.inexact[0]


def test_an_honest_open_gap_is_counted_and_many_are_a_failure(monkeypatch):
    solve = module.solve

    def stop(market, name, **options):
        return solve(market, name, **{**options, "rel_gap": 1e-3})

    def content(market, name, **options):
        open_ended = eq.Termination(eq.Reason.FEASIBLE, eq.Limit.METHOD)
        return dataclasses.replace(stop(market, name, **options), termination=open_ended)

    monkeypatch.setattr(module, "solve", content)
    (tally,) = agreement(count=5, names=["highs"], kinds=["volatile-linear"])
    assert (tally.left_open, tally.agreed, tally.disagreements) == (5, 0, [])
    assert tally.failed
    assert not module.Tally("fisher", "highs", programs=2, left_open=1).failed
    monkeypatch.setattr(module, "solve", lambda *a, **k: dataclasses.replace(content(*a, **k), gap=np.inf))
    (tally,) = agreement(count=2, names=["highs"], kinds=["volatile-linear"])
    assert len(tally.disagreements) == 2


def test_one_backend_worse_than_the_others_is_found_on_markets(monkeypatch):
    solve = module.solve

    def corrupt(market, name, **options):
        result = solve(market, name, **options)
        worse = result.objective - 1e-5 * market.total_budget
        return dataclasses.replace(result, objective=worse) if name == "scipy" else result

    monkeypatch.setattr(module, "solve", corrupt)
    found = {tally.backend: tally for tally in agreement(count=4, names=["highs", "scipy"], kinds=["fisher"])}
    assert found["highs"].agreed == 4
    assert found["scipy"].agreed == 0


def test_a_slow_backend_is_given_a_share_of_the_markets(monkeypatch):
    monkeypatch.setitem(ONE_IN, "scipy", 3)
    found = {tally.backend: tally for tally in agreement(count=7, names=["highs", "scipy"], kinds=["fisher"])}
    assert (found["highs"].programs, found["scipy"].programs) == (7, 3)


def test_planted_markets_are_in_equilibrium_and_what_is_drawn_has_every_edge():
    seen = set()
    for kind in MARKET_KINDS:
        for k in range(300):
            drawn = KINDS[kind](np.random.default_rng([0, k]))
            market, budgets = drawn.market, drawn.market.budgets
            data = drawn.market.in_demand
            edges = {
                "one buyer": len(budgets) == 1,
                "one round": data.shape[-1] == 1,
                "unwanted": not data.all(),
                "orders": budgets.max() > 1e6 * budgets.min(),
                "sparse": getattr(market, "is_sparse", False),
                "planted": not np.isnan(drawn.optimum),
                "random": bool(np.isnan(drawn.optimum)),
            }
            seen |= {(kind, edge) for edge, there in edges.items() if there}
    named = {"one buyer", "one round", "unwanted", "orders", "planted", "random"}
    assert seen >= {(kind, edge) for kind in MARKET_KINDS for edge in named if (kind, edge) != ("fisher", "one round")}
    assert ("fisher", "sparse") in seen


@pytest.mark.parametrize("kind", KIND_OF.values())
@pytest.mark.parametrize("orders", [0, 12])
def test_planted_prices_and_welfare_meet(kind, orders):
    """Any backend that closes the gap closes it around the planted welfare."""
    name = "proportional_response" if kind.endswith(("ces", "cobb-douglas")) else "highs"
    for k in range(20):
        drawn = planted_market(np.random.default_rng([1, k]), kind, orders=orders)
        result = eq.solve(drawn.market, name, rel_gap=1e-6)
        assert result.termination.reason is eq.Reason.OPTIMAL
        slack = 1e-9 * drawn.market.total_budget
        assert result.objective - slack <= drawn.optimum <= result.bound + slack


def test_a_wrong_claim_about_an_infeasible_program_is_a_disagreement(monkeypatch):
    infeasible = next(
        k for k in range(200) if KINDS["enumerated MILP"](np.random.default_rng([0, 2, k])).optimum is None
    )
    assert agreement(count=infeasible + 1, names=["highs"], kinds=["enumerated MILP"])[0].agreed == infeasible + 1
    solve, unbounded = module.solve, eq.Termination(eq.Reason.UNBOUNDED)
    monkeypatch.setattr(module, "solve", lambda *a, **k: dataclasses.replace(solve(*a, **k), termination=unbounded))
    assert agreement(count=infeasible + 1, names=["highs"], kinds=["enumerated MILP"])[0].agreed == 0


def test_one_backend_worse_than_the_others_is_found_where_no_optimum_is_known(monkeypatch):
    solve = module.solve

    def corrupt(program, name, **options):
        result = solve(program, name, **options)
        return dataclasses.replace(result, objective=result.objective - 1.0) if name == "scipy" else result

    monkeypatch.setattr(module, "solve", corrupt)
    found = {tally.backend: tally for tally in agreement(count=2, names=["highs", "scipy"], kinds=["window counts"])}
    assert found["highs"].agreed == 2
    assert found["scipy"].agreed == 0


@pytest.mark.parametrize(("field", "value"), [("count", 0), ("count", -1), ("kinds", ["LP"])])
def test_bad_input(field, value):
    with pytest.raises(eq.InvalidInput, match=field):
        agreement(**{"count": 1, field: value})
    with pytest.raises(eq.BackendNotFound):
        agreement(count=1, names=["higs"])
    assert set(registry.BACKENDS) >= {"highs", "scipy"}
