"""The unit cost of utility in each family, and the limits of CES utilities at the ends of rho."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .proof import Argument, Proof
from .symbols import integers, nonnegative, positive, sp

COSTS = "market_families.unit_costs; duality of Eisenberg and Gale 1959"
LIMITS = "Shockwave, Section 4.2; Arrow, Chenery, Minhas and Solow 1961"


def linear_unit_cost(cost: Any = None) -> Proof:
    """Prove that a unit of linear utility costs ``min_k p_k/u_k``: `cost` times that."""
    k, K = integers("k K")
    u, p, y, more = nonnegative("u p y d")
    price, worth = sp.symbols("p_b u_b", positive=True)
    least = price / worth if cost is None else cost(price, worth)
    proof = Argument()
    # d_k >= 0: no good gives more utility for the money than good b.
    proof.given("e is the least p_k/u_k, that of good b: p_k = e u_k + d_k, d_k >= 0", p[k], least * u[k] + more[k])
    saved = sp.Sum(more[k] * y[k], (k, 1, K))
    paid = sp.Sum(p[k] * y[k], (k, 1, K))
    proof.equal(
        "What bundle y costs more than e per unit of its utility", paid - least * sp.Sum(u[k] * y[k], (k, 1, K)), saved
    )
    proof.at_least("is not negative", saved, 0)
    proof.equal("1/u_b of good b is one unit of utility, and costs e", price * (1 / worth), least)
    return proof.proof("A unit of linear utility costs min_k p_k/u_k, of any number of goods", COSTS)


def leontief_unit_cost(cost: Callable[[Any], Any] | None = None) -> Proof:
    """Prove that a unit of Leontief utility costs ``sum_j a_j p_j``: `cost` of that sum."""
    j, J = integers("j J")
    a, p, more = nonnegative("a p b")
    least = sp.Sum(a[j] * p[j], (j, 1, J))
    least = least if cost is None else cost(least)
    proof = Argument()
    paid = sp.Sum(p[j] * (a[j] + more[j]), (j, 1, J))
    waste = sp.Sum(p[j] * more[j], (j, 1, J))
    proof.equal("What gives one unit holds a_j and b_j >= 0 more of each resource: it costs", paid, least + waste)
    proof.at_least("The rest costs nothing or more", waste, 0)
    return proof.proof("A unit of Leontief utility costs sum_j a_j p_j, of any number of resources", COSTS)


def ces_unit_cost(cost: Callable[[Any, Any, Any], Any] | None = None) -> Proof:
    """Prove that a unit of CES utility costs ``(1/s) (sum_j w^sigma p^(1-sigma))^(1/(1-sigma))``.

    `cost` is another formula, of sigma, s and the sum of any function of j.
    """
    j, J, w, p, s = _weighted()
    q = sp.Symbol("q", positive=True)
    proof = Argument()
    for name, rho in (("0 < rho < 1", 1 / (1 + q)), ("rho < 0", -q)):
        sigma = sp.simplify(1 / (1 - rho))
        power = sp.simplify(1 - sigma)
        prices = sp.Sum(w[j] ** sigma * p[j] ** power, (j, 1, J))
        least = prices ** sp.simplify(1 / power) / s if cost is None else cost(sigma, s, prices)
        bundle = (w[j] / p[j]) ** sigma * prices ** (-1 / rho) / s
        _bundle_is_least(proof, name, _ces(rho), bundle, least)
    return proof.proof(
        "A unit of CES utility costs (1/s) (sum_j w^sigma p^(1-sigma))^(1/(1-sigma)), sigma = 1/(1-rho), any rho < 1, "
        "rho != 0; any number of resources",
        COSTS,
    )


def _ces(rho: Any) -> Callable[[Any], Any]:
    j, J, w, _, s = _weighted()
    return lambda at: s * sp.Sum(w[j] * at(j) ** rho, (j, 1, J)) ** (1 / rho)


def cobb_douglas_unit_cost(cost: Callable[[Any, Any], Any] | None = None) -> Proof:
    """Prove that a unit of Cobb-Douglas utility costs ``(1/s) prod_j (p/w)^w``; `cost` is another formula."""
    j, J, w, p, s = _weighted()
    proof = Argument()
    proof.given("the weights sum to one", sp.Sum(w[j], (j, 1, J)), 1)
    least = sp.exp(sp.Sum(w[j] * (sp.log(p[j]) - sp.log(w[j])), (j, 1, J))) / s
    bundle = w[j] / p[j] * least
    least = least if cost is None else cost(least, s)
    _bundle_is_least(
        proof, "any weights", lambda at: s * sp.exp(sp.Sum(w[j] * sp.log(at(j)), (j, 1, J))), bundle, least
    )
    return proof.proof("A unit of Cobb-Douglas utility costs (1/s) prod_j (p/w)^w; any number of resources", COSTS)


def unit_cost_over_rounds(dearer: Any = 0) -> Proof:
    """Prove that over rounds a unit of utility costs what it does in the cheapest: `dearer` more than that."""
    t, T = integers("t T")
    e, paid, u, over, more = nonnegative("e m u w d")
    least = sp.Symbol("e_b", positive=True) + dearer
    proof = Argument()
    proof.given("m_t buys utility u_t in round t, and w_t >= 0 is wasted", paid[t], e[t] * u[t] + over[t])
    proof.given("e_b is the least unit cost of a round: e_t = e_b + d_t, d_t >= 0", e[t], least - dearer + more[t])
    spare = sp.Sum(over[t] + more[t] * u[t], (t, 1, T))
    all_paid, utility = sp.Sum(paid[t], (t, 1, T)), sp.Sum(u[t], (t, 1, T))
    proof.equal("What is paid over all rounds, beyond e_b for each unit", all_paid - least * utility, spare)
    proof.at_least("is not negative; and all can be spent in the cheapest round", spare, 0)
    return proof.proof("Over rounds a unit of utility costs min_t e_t, any family, any number of rounds", COSTS)


def _weighted() -> Any:
    return *integers("j J"), *positive("w p"), sp.Symbol("s", positive=True)


def _bundle_is_least(proof: Argument, case: str, utility: Callable[[Any], Any], bundle: Any, least: Any) -> None:
    """Prove that `bundle`, a function of j, gives one unit of a concave utility for the `least` money."""
    j, J, _, p, _ = _weighted()
    m = integers("m")
    x, y, g = positive("x"), nonnegative("y"), sp.IndexedBase("g", real=True)
    below = sp.Symbol("kappa", nonnegative=True)

    def at(k: Any) -> Any:
        return bundle.xreplace({j: k})

    proof.equal(f"The bundle x_j of least cost gives one unit, {case}", utility(at), 1)
    slope = sp.Derivative(utility(lambda k: x[k]), x[m])
    here = proof.aside()  # x stands for the bundle in this step alone
    here.given("the bundle", x[j], bundle)
    here.equal(f"Its slopes are the prices over the cost e, {case}", least * slope, p[m])
    proof.include(here)
    proof.equal(f"It costs e, {case}", sp.Sum(p[j] * at(j), (j, 1, J)), least)
    paid = sp.Sum(least * g[j] * y[j], (j, 1, J))
    here = proof.aside()
    text = "y gives one unit too; concave and by Euler's identity, its slopes at x sum to kappa >= 0 more"
    here.given(text, sp.Sum(g[j] * y[j], (j, 1, J)), 1 + below)
    here.equal("It costs, at prices e g_j,", paid, least * (1 + below))
    here.at_least("which is e or more", least * (1 + below), least)
    proof.include(here)


def ces_limit_cobb_douglas(total: Any = 1) -> Proof:
    """Prove that CES tends to Cobb-Douglas as rho tends to 0, if the weights sum to `total` = 1."""
    j, J = integers("j J")
    w, x = positive("w x")
    rho = sp.Symbol("rho", real=True)
    proof = Argument()
    proof.given("the weights sum to one", sp.Sum(w[j], (j, 1, J)), sp.sympify(total))
    mean = sp.log(sp.Sum(w[j] * sp.exp(rho * sp.log(x[j])), (j, 1, J)))  # log U = mean / rho
    proof.equal("log U is M(rho)/rho, M = log sum_j w x^rho; M(0) = 0", mean.subs(rho, 0), 0)
    slope = sp.diff(mean, rho).subs(rho, 0)
    proof.equal(
        "so its limit is M'(0), by definition: that of Cobb-Douglas", slope, sp.Sum(w[j] * sp.log(x[j]), (j, 1, J))
    )
    one, two = sp.symbols("x y", positive=True)
    near, share = sp.Symbol("r", real=True), sp.Rational(1, 3)
    both = sp.log(share * one**near + (sp.sympify(total) - share) * two**near) / near
    limit = share * sp.log(one) + (1 - share) * sp.log(two)
    proof.equal("and by sympy's own limit, two goods, weights 1/3 and 2/3", sp.Limit(both, near, 0), limit)
    return proof.proof(
        "With weights that sum to one, CES tends to Cobb-Douglas as rho -> 0; any number of goods", LIMITS
    )


def ces_limit_needs_weights_of_one(total: Any = None) -> Proof:
    """Prove that with any other sum of weights there is no limit at 0; `total` is a sum to try it with."""
    j, J = integers("j J")
    w = positive("w")
    r, d, W = sp.symbols("r d W", positive=True)
    proof = Argument()
    proof.given("the weights sum to W", sp.Sum(w[j], (j, 1, J)), W)
    for sign, power in (("", 1 / r), ("-", -1 / r)):
        ces = sp.Sum(w[j] * 1**power, (j, 1, J)) ** (1 / power)
        proof.equal(f"The utility of one unit of everything at rho = {sign}1/r", ces, W ** (1 / power))
    more, less = (1 + d, 1 / (1 + d)) if total is None else (sp.sympify(total), 1 / sp.sympify(total))
    above = sp.Limit(more**-r, r, sp.oo)
    proof.equal("W = 1 + d: it vanishes as rho -> 0 from below, and its inverse from above", above, 0)
    below = sp.Limit(less**r, r, sp.oo)
    proof.equal("W = 1/(1 + d): it vanishes from above, and its inverse from below", below, 0)
    return proof.proof(
        "Unless the weights sum to one, CES has no limit as rho -> 0: 0 from one side, infinite from the other", LIMITS
    )


def ces_limit_linear(end: Any = 1) -> Proof:
    """Prove that CES is linear at rho = `end` = 1."""
    j, J = integers("j J")
    (w, x), rho = positive("w x"), sp.Symbol("rho", positive=True)
    ces = sp.Sum(w[j] * x[j] ** rho, (j, 1, J)) ** (1 / rho)
    proof = Argument()
    proof.equal("At rho = 1", ces.subs(rho, end), sp.Sum(w[j] * x[j], (j, 1, J)))
    one, two, a, b = sp.symbols("x y a b", positive=True)
    two_goods = (a * one**rho + b * two**rho) ** (1 / rho)
    proof.equal("and by sympy's own limit, two goods", sp.Limit(two_goods, rho, end, "-"), a * one + b * two)
    return proof.proof("CES tends to linear as rho -> 1, any weights, any number of goods", LIMITS)


def ces_limit_leontief(scarcer: Any = 1) -> Proof:
    """Prove that CES tends to the minimum as rho tends to -infinity: for two goods, the scarcer one times `scarcer`."""
    m, d, w, a, r = sp.symbols("m d w a r", positive=True)  # w and a are the weights
    other = m * (1 + d)
    ces = (w * m ** (-r) + a * other ** (-r)) ** (-1 / r)
    proof = Argument()
    # With q = (1 + d)^-r in (0, 1): w <= w + a q <= w + a, and U = m (w + a q)^(-1/r).
    proof.equal(
        "rho = -r, goods m and m (1 + d): U over m, to the power -r", (ces / m) ** (-r), w + a * (1 + d) ** (-r)
    )
    proof.at_least("is at least w", w + a * (1 + d) ** (-r), w)
    slack = sp.Symbol("q", nonnegative=True)
    proof.at_least("and at most w + a: with (1 + d)^r = 1 + q", w + a, w + a / (1 + slack))
    for weight in (w, w + a):
        proof.equal("Both ends tend to m", sp.Limit(m * weight ** (-1 / r), r, sp.oo), scarcer * m)
    return proof.proof("CES tends to the minimum of its goods as rho -> -oo, any weights; for two goods", LIMITS)
