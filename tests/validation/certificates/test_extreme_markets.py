"""The edges of markets: every usable backend agrees there within the gaps it proves, and the certificates hold."""

import math
from itertools import combinations

import numpy as np
import pytest
from scipy.sparse import csr_array

import equipoise as eq
from equipoise.validation.certificates.certify import certify
from equipoise.validation.certificates.market_state import reach

GAP = 1e-5
KINDS = ("static", "sparse", "linear", "leontief", "ces", "complements", "cobb-douglas")

# Worths, needs or weights of (buyer, resource, round), and budgets; whole numbers.
EDGES = {
    "one of everything": (np.ones((1, 1, 1)), [3.0]),
    "one buyer": ([[[2, 1], [1, 3]]], [2.0]),
    "one good": (np.ones((3, 1, 1)), [1.0, 2.0, 5.0]),
    "one round": ([[[3], [1]], [[1], [2]], [[1], [1]]], [1.0, 2.0, 3.0]),
    "goods nobody wants": ([[[2, 0], [0, 1], [0, 0]], [[1, 0], [0, 3], [0, 0]]], [1.0, 1.0]),
    "a round that serves nobody": ([[[2, 0, 1], [1, 0, 2]], [[1, 0, 3], [2, 0, 1]]], [1.0, 2.0]),
    "rounds that serve one buyer": ([[[2, 0], [1, 0]], [[0, 3], [0, 1]]], [1.0, 5.0]),
    "buyers who want one good": ([[[0, 2], [0, 0]], [[0, 1], [0, 0]], [[1, 1], [2, 1]]], [1.0, 2.0, 1.0]),
    "identical buyers": ([[[3, 1], [1, 2]]] * 4, [1.0, 1.0, 1.0, 1.0]),
    "identical buyers, other budgets": ([[[3, 1], [1, 2]]] * 3, [1.0, 2.0, 4.0]),
    "ties everywhere": (np.ones((3, 2, 2)), [1.0, 2.0, 3.0]),
    "budgets over 12 orders": ([[[3, 1], [1, 2]], [[1, 1], [2, 1]], [[1, 4], [1, 1]]], [1e-6, 1.0, 1e6]),
    "12 orders and a good of one's own": ([[[3, 0], [0, 1]], [[0, 1], [0, 1]], [[0, 0], [1, 1]]], [1e-6, 1.0, 1e6]),
}
CAPACITIES = {"one round": [[4.0], [0.5]], "ties everywhere": [[1e-3, 1.0], [1e3, 2.0]]}


def market(kind, edge):
    table, budgets = np.array(EDGES[edge][0], dtype=np.float64), EDGES[edge][1]
    capacities = np.array(CAPACITIES.get(edge, np.ones(table.shape[1:])))
    if kind in ("static", "sparse"):
        flat = table.reshape(len(table), -1)
        return eq.FisherMarket(csr_array(flat) if kind == "sparse" else flat, budgets, capacities.ravel())
    given = {"budgets": budgets, "capacities": capacities}
    if kind in ("linear", "leontief"):
        field = "utilities" if kind == "linear" else "requirements"
        return eq.VolatileFisherMarket(**{field: table}, family=kind, **given)
    sums = table.sum(axis=1, keepdims=True)
    weights = table / np.where(sums > 0, sums, 1.0)
    family = {"family": "cobb-douglas"} if kind == "cobb-douglas" else {"family": "ces"}
    rho = {"ces": {"rho": 0.5}, "complements": {"rho": -1.0}}.get(kind, {})
    return eq.VolatileFisherMarket(utilities=weights, **family, **rho, **given)


def usable(problem, *, external=False):
    """Backends in this process; with `external`, those that write files and start programs too."""
    names = [row.name for row in eq.backends(problem, usable=True)]
    return [name for name in names if external or not name.startswith("pyomo:")]


@pytest.mark.thorough
@pytest.mark.parametrize("edge", EDGES)
@pytest.mark.parametrize("kind", KINDS)
def test_every_backend_agrees_and_every_certificate_holds(kind, edge):
    problem = market(kind, edge)
    names = ["auto", *usable(problem, external=edge == "one round")]
    assert len(names) > 1
    results = {name: eq.solve(problem, backend=name, rel_gap=GAP) for name in names}
    for name, result in results.items():
        assert result.plan is not None, f"{name}: {result}"
        assert result.gap <= GAP, f"{name}: {result}"
        certificate = certify(problem, result.plan, gap=GAP)
        assert certificate.holds, f"{name}:\n{certificate}"
    rounding = 1e-13 * math.fsum(problem.budgets * (40.0 + np.abs(np.log(problem.budgets))))
    for one, other in combinations(names, 2):
        first, second = results[one], results[other]
        most = max(first.gap, second.gap) * problem.total_budget + rounding
        assert abs(first.objective - second.objective) <= most, (one, other)


@pytest.mark.parametrize("kind", KINDS)
def test_identical_buyers_have_utility_by_budget(kind):
    problem = market(kind, "identical buyers, other budgets")
    everything = np.broadcast_to(problem.capacities, (3, *problem.capacities.shape))
    whole = problem.utilities_at(everything)
    for name in usable(problem):
        result = eq.solve(problem, backend=name, rel_gap=1e-8)
        below, above = reach(problem.budgets / problem.total_budget, result.gap + 1e-14)
        shares = result.require_plan().utilities / whole
        # Concave and of degree 1 means superadditive: alike, they cannot have more apart than together.
        assert math.fsum(shares) <= 1 + 1e-12
        ratios = shares / (problem.budgets / problem.total_budget)
        assert ((1 - below <= ratios) & (ratios <= 1 + above)).all(), name


@pytest.mark.parametrize("budgets", [[0.0, 1.0], [1.0, -1e-300], [0, 0]])
@pytest.mark.parametrize("kind", KINDS)
def test_zero_budgets_are_refused(kind, budgets, monkeypatch):
    monkeypatch.setitem(EDGES, "broke", (np.ones((2, 1, 1)), budgets))
    with pytest.raises(eq.InvalidInput, match=r"budgets\[[01]\] = .*: must be greater than 0"):
        market(kind, "broke")
