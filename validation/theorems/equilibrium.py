"""Proof that the optimum of Nash welfare is an equilibrium: stationarity, prices, budgets, the bound of prices."""

from __future__ import annotations

from typing import Any

from .proof import Argument, Proof
from .symbols import integers, nonnegative, positive, sp

LEONTIEF = "Shockwave, Appendix D"
MARKET = "Shockwave, Theorem C.1; Eisenberg and Gale 1959"


def leontief_conditions(constraint: Any = 1) -> Proof:
    """Prove the conditions of Appendix D, and that whoever meets them has the most welfare.

    `constraint` multiplies what a level takes of a resource in the Lagrangian.
    """
    i, j, t, m, n, N, J, T = integers("i j t m n N J T")
    B, c, U = positive("B c U")
    a, p, r, z, y, s = nonnegative("a p r z y s")

    def used(level: Any) -> Any:
        return sp.Sum(a[i, j, t] * level[i, t], (i, 1, N))

    def cost(level: Any) -> Any:  # of what levels take, resource by resource
        return sp.Sum(p[j, t] * used(level), (j, 1, J), (t, 1, T))

    def spent(level: Any) -> Any:  # the same, buyer by buyer
        return sp.Sum(level[i, t] * unit_cost, (t, 1, T), (i, 1, N))

    unit_cost = sp.Sum(a[i, j, t] * p[j, t], (j, 1, J))
    proof = Argument()
    lagrangian = sp.Sum(B[i] * sp.log(sp.Sum(r[i, t], (t, 1, T))), (i, 1, N)) + sp.Sum(
        p[j, t] * (c[j, t] - constraint * used(r)), (j, 1, J), (t, 1, T)
    )
    slope = B[m] / sp.Sum(r[m, t], (t, 1, T)) - sp.Sum(a[m, j, n] * p[j, n], (j, 1, J))
    text = "Slope of the Lagrangian in the level r_mn: B_m/U_m less what a unit costs"
    proof.equal(text, sp.Derivative(lagrangian, r[m, n]), slope)
    proof.equal("Cost of levels r: resource by resource or buyer by buyer", cost(r), spent(r), rule=True)
    proof.equal("and of any other levels y", cost(y), spent(y))
    proof.given("the utility is the sum of the levels", sp.Sum(r[i, t], (t, 1, T)), U[i], i)
    proof.given("no slope is positive: -z_it, z_it >= 0", unit_cost, B[i] / U[i] + z[i, t], i, t)
    proof.given("a slope is 0 where the level is not", sp.Sum(r[i, t] * z[i, t], (t, 1, T)), 0, i)
    priced = sp.Sum(p[j, t] * c[j, t], (j, 1, J), (t, 1, T))
    proof.given("what is left over costs nothing", priced, cost(r))
    proof.equal("Every buyer spends the budget", sp.Sum(r[i, t] * unit_cost, (t, 1, T)), B[i])
    proof.equal("All goods cost all budgets", priced, sp.Sum(B[i], (i, 1, N)))
    proof.given("y leaves s_jt >= 0 of each resource", used(y), c[j, t] - s[j, t], j, t)
    gain = sp.Sum(B[i] * (sp.Sum(y[i, t], (t, 1, T)) / U[i] - 1), (i, 1, N))
    rest = sp.Sum(y[i, t] * z[i, t], (t, 1, T), (i, 1, N)) + sp.Sum(p[j, t] * s[j, t], (j, 1, J), (t, 1, T))
    proof.equal(
        "The gain of y to first order, sum_i B_i (U_i(y)/U_i - 1), is -rest, by step 3", gain + rest, spent(y) - cost(y)
    )
    proof.at_least("so no other levels gain", 0, -rest)
    _logarithm(proof)
    return proof.proof(
        "KKT of the Leontief program: B_i/U_i <= sum_j a_ijt p_jt, with equality where a level is used; they suffice. "
        "Any number of buyers, resources, rounds",
        LEONTIEF,
    )


def prices_are_duals(degree: Any = 1, slack: Any = 0) -> Proof:
    """Prove that at the duals of the capacities no buyer can afford more, if Euler's identity is of `degree` one."""
    k, K = integers("k K")
    B, U, value = sp.symbols("B U V", positive=True)
    money, below = sp.symbols("m kappa", nonnegative=True)
    x, y, d, p = nonnegative("x y d p")
    g = sp.IndexedBase("g", real=True)

    def total(f: Any) -> Any:
        return sp.Sum(f, (k, 1, K))

    proof = Argument()
    amount = sp.Symbol("x", positive=True)
    utility = sp.Function("U", positive=True)(amount)
    slope = sp.Derivative(utility, amount)
    proof.equal("The slope of B log U in a good", sp.Derivative(B * sp.log(utility), amount), B / utility * slope)
    proof.given("p is a dual: B/U times the slope g of the utility, and d_k >= 0 more", p[k], B / U * g[k] + d[k])
    proof.given("d_k > 0 only where the buyer has nothing", total(d[k] * x[k]), sp.sympify(slack))
    proof.given("Euler's identity at x", total(g[k] * x[k]), degree * U)
    proof.given(
        "U is concave: V = U(y) is kappa >= 0 below the tangent", value, U + total(g[k] * (y[k] - x[k])) - below
    )
    proof.equal("The buyer's goods cost the budget", total(p[k] * x[k]), B)
    cost = total(p[k] * y[k])
    proof.equal("What any y falls short of U p.y/B", U / B * cost - value, U / B * total(d[k] * y[k]) + below)
    proof.at_least("is not negative: U(y) <= U p.y/B", U / B * total(d[k] * y[k]) + below, 0)
    proof.given(
        "y is affordable: what it gains by slopes", total(g[k] * y[k]), U / B * (B - money - total(d[k] * y[k]))
    )
    proof.equal("that is, it costs m >= 0 less than the budget", cost, B - money)
    proof.at_least("so it is worth no more than x", U, value)
    return proof.proof(
        "Prices are the duals of the capacities: at them each buyer spends the budget, and nothing affordable is "
        "better. Any concave utility of degree one, any number of goods",
        MARKET,
    )


def leontief_prices_are_duals(levels: Any = 1) -> Proof:
    """Prove the same of Leontief utilities, which have no slopes; `levels` multiplies what y's levels are worth."""
    j, t, J, T = integers("j t J T")
    B, U = sp.symbols("B U", positive=True)
    money = sp.Symbol("m", nonnegative=True)
    a, p, r, z, y, more = nonnegative("a p r z y b")
    unit_cost = sp.Sum(a[j, t] * p[j, t], (j, 1, J))
    bought = sp.Sum(p[j, t] * (a[j, t] * y[t] + more[j, t]), (j, 1, J), (t, 1, T))
    waste = sp.Sum(p[j, t] * more[j, t], (j, 1, J), (t, 1, T))
    value = levels * sp.Sum(y[t], (t, 1, T))
    proof = Argument()
    proof.given("the conditions: a unit of utility costs B/U, or z_t >= 0 more", unit_cost, B / U + z[t], t)
    proof.given("the latter only where no level is", sp.Sum(r[t] * z[t], (t, 1, T)), 0)
    proof.given("U is the sum of the levels", sp.Sum(r[t], (t, 1, T)), U)
    proof.equal("The buyer's goods cost the budget", sp.Sum(r[t] * unit_cost, (t, 1, T)), B)
    spare = U / B * (sp.Sum(y[t] * z[t], (t, 1, T)) + waste)
    text = "Any bundle a_jt y_t + b_jt, b_jt >= 0, of utility sum_t y_t: what it falls short of U p.x/B"
    proof.equal(text, U / B * bought - value, spare)
    proof.at_least("is not negative: its utility is at most U p.x/B", spare, 0)
    proof.given("it is affordable: what its levels add up to", sp.Sum(y[t], (t, 1, T)), U / B * (B - money) - spare)
    proof.equal("that is, it costs m >= 0 less than the budget", bought, B - money)
    proof.at_least("so it is worth no more", U, value)
    return proof.proof(
        "Prices are the duals of the capacities, for Leontief utilities: nothing affordable is better. "
        "Any number of resources, rounds",
        LEONTIEF,
    )


def budgets_clear(degree: Any = 1) -> Proof:
    """Prove that budgets are spent and goods sold, if Euler's identity is of `degree` one."""
    i, k, N, K = integers("i k N K")
    B, U, c = positive("B U c")
    (p, x), g = nonnegative("p x"), sp.IndexedBase("g", real=True)
    bought = sp.Sum(p[k] * x[i, k], (k, 1, K))
    sold = sp.Sum(p[k] * sp.Sum(x[i, k], (i, 1, N)), (k, 1, K))
    priced = sp.Sum(p[k] * c[k], (k, 1, K))
    proof = Argument()
    proof.equal("What is sold is what is bought", sold, sp.Sum(bought, (i, 1, N)), rule=True)
    by_slopes = sp.Sum(g[i, k] * x[i, k], (k, 1, K))
    proof.given("prices are B_i/U_i times the slope, wherever x_ik > 0", bought, B[i] / U[i] * by_slopes, i)
    proof.given("Euler's identity", by_slopes, degree * U[i], i)
    proof.equal("Every buyer spends the budget", bought, B[i])
    proof.given("what is left over costs nothing", priced, sold)
    proof.equal("All goods cost all budgets", priced, sp.Sum(B[i], (i, 1, N)))
    return proof.proof("Budgets clear: p.x_i = B_i, and p.c = sum_i B_i. Any number of buyers and goods", MARKET)


def prices_bound_welfare(priced_at: Any = 1) -> Proof:
    """Prove that prices at which all goods cost `priced_at` times all budgets bound Nash welfare."""
    i, k, N, K = integers("i k N K")
    B, e, m, c = positive("B e m c")
    p, x, s, lam, gam = nonnegative("p x s l g")
    logs = sp.IndexedBase("v", real=True)
    proof = Argument()
    _logarithm(proof)
    budgets = sp.Sum(B[i], (i, 1, N))
    spent = sp.Sum(p[k] * x[i, k], (k, 1, K))
    sold = sp.Sum(p[k] * sp.Sum(x[i, k], (i, 1, N)), (k, 1, K))
    proof.equal("What x costs, by goods and by buyers", sold, sp.Sum(spent, (i, 1, N)))
    proof.given("m_i is what x_i costs", spent, m[i], i)
    proof.given("v_i = log(m_i/B_i) is g_i >= 0 below m_i/B_i - 1, by the above", logs[i], m[i] / B[i] - 1 - gam[i])
    # Of goods worth m_i the most utility is m_i/e_i: U_i is exp(-l_i) of that, l_i >= 0.
    bound = sp.Sum(B[i] * (sp.log(B[i]) - sp.log(e[i])), (i, 1, N))
    welfare = sp.Sum(B[i] * (sp.log(B[i]) + logs[i] - sp.log(e[i]) - lam[i]), (i, 1, N))
    slack = budgets - sp.Sum(m[i], (i, 1, N))
    text, short = "D - P, where U_i = m_i/e_i exp(-l_i), l_i >= 0: money m_i buys at most m_i/e_i", lam[i] + gam[i]
    proof.equal(text, bound - welfare, sp.Sum(B[i] * short, (i, 1, N)) + slack)
    proof.given("x keeps the capacities, s_k >= 0 is left", sp.Sum(x[i, k], (i, 1, N)), c[k] - s[k], k)
    proof.given("all goods cost all budgets", sp.Sum(p[k] * c[k], (k, 1, K)), priced_at * budgets)
    left = sp.Sum(p[k] * s[k], (k, 1, K))
    proof.equal("The last term is the worth of what is left", budgets - sold, left)
    proof.at_least("Nothing of it is negative: D >= P", sp.Sum(B[i] * short, (i, 1, N)) + left, 0)
    return proof.proof(
        "Weak duality: sum_i B_i log(B_i/e_i(p)) >= sum_i B_i log U_i(x_i) for all prices with p.c = sum B and all "
        "feasible x. Any number of buyers and goods",
        "Eisenberg and Gale 1959; Market.bound_at",
    )


def gap_bounds_the_mean(scale: Any = None) -> Proof:
    """Prove that a gap bounds utilities: their mean is within exp(-gap) of the best. `scale` divides the gap."""
    i, N = integers("i N")
    B, U, V = positive("B U V")
    total, least = sp.Symbol("B", positive=True), sp.Symbol("delta", nonnegative=True)
    bound, gap = sp.symbols("D g", real=True)
    scale = total if scale is None else sp.sympify(scale)

    def welfare(utility: Any) -> Any:
        return sp.Sum(B[i] * sp.log(utility[i]), (i, 1, N))

    proof = Argument()
    mean = sp.Product((U[i] / V[i]) ** (B[i] / total), (i, 1, N))
    text = "The logarithm of the geometric mean of U_i/V_i, weighted by budgets"
    proof.equal(text, sp.log(mean), (welfare(U) - welfare(V)) / total)
    proof.given("V is the optimum: delta >= 0 below the bound D (prices_bound_welfare)", welfare(V), bound - least)
    proof.given("the gap is g = (D - P)/B, P the welfare of U", welfare(U), bound - scale * gap)
    proof.at_least("so the mean is exp(-g) or more", sp.log(mean), -gap)
    return proof.proof(
        "At a gap g the geometric mean utility is within exp(-g) of the best, in any units. Any number of buyers",
        "Market.gap_scale",
    )


def _logarithm(proof: Argument) -> None:
    """Prove ``log v <= v - 1``: as an integral of something nonnegative, above 1 and below."""
    d, u = sp.symbols("d u", nonnegative=True)
    for name, v, integrand in (("v = 1 + d", 1 + d, u / (1 + u)), ("v = 1/(1 + d)", 1 / (1 + d), u / (1 + u) ** 2)):
        proof.equal(f"log v <= v - 1, {name}: the difference is 0 at d = 0", (v - 1 - sp.log(v)).subs(d, 0), 0)
        proof.equal("its derivative in d", sp.diff(v - 1 - sp.log(v), d), integrand.subs(u, d))
        proof.at_least("which is nowhere negative", integrand.subs(u, d), 0)
