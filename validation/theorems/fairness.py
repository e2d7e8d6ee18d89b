"""Fairness of an equilibrium: no less than an equal split for each buyer, and no envy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .proof import Argument, Proof
from .symbols import integers, nonnegative, positive, sp

ENVY = "Shockwave, Section 4.2; Varian 1974"
PROPORTIONAL = "Steinhaus 1948; Shockwave, Section 4.2"
SHARING = "Shockwave, Corollary 4.0.1 (b), put right"
FINISH_TIMES = "Shockwave, Corollary 4.0.1 and Appendix E, put right"


def sharing_incentive(share: Callable[[Any, Any, Any], Any] | None = None) -> Proof:
    """Prove that at equal budgets no buyer is worse off than with 1/N of everything; `share` is another part of it.

    `share` takes the buyer's budget, the sum of all, and N.
    """
    N = integers("N")
    total, c = sp.Symbol("B", positive=True), positive("c")
    budget = total / N
    part = 1 / N if share is None else share(budget, total, N)
    proof = _affords("1/N of everything", budget=budget, part=part, goods=c, money=total)
    return proof.proof(
        "Sharing incentive: at equal budgets B_i = B/N, U_i(x_i) >= U_i(c/N). Any number of buyers and goods", SHARING
    )


def proportionality(share: Callable[[Any, Any, Any], Any] | None = None) -> Proof:
    """Prove that everyone gets a part B_i/B of the utility of everything; `share` is another part of it."""
    N = integers("N")
    budget, total = sp.symbols("B_i B", positive=True)
    part = budget / total if share is None else share(budget, total, N)
    proof = _affords("a part B_i/B of everything", budget=budget, part=part, goods=positive("c"), money=total)
    return proof.proof(
        "Proportionality: U_i(x_i) >= U_i(B_i/B c) = B_i/B U_i(c). Any number of buyers and goods", PROPORTIONAL
    )


def envy_freeness(scale: Callable[[Any, Any], Any] | None = None) -> Proof:
    """Prove that no buyer prefers another's goods, scaled by the budgets; `scale` is another scaling of B_i and B_j."""
    budget, other = sp.symbols("B_i B_j", positive=True)
    factor = budget / other if scale is None else scale(budget, other)
    goods = nonnegative("x_j")
    proof = _affords("B_i/B_j of what buyer j has", budget=budget, part=factor, goods=goods, money=other)
    return proof.proof(
        "Envy-freeness: U_i(x_i) >= U_i(B_i/B_j x_j) = B_i/B_j U_i(x_j). Any number of buyers and goods", ENVY
    )


def _affords(what: str, *, budget: Any, part: Any, goods: Any, money: Any) -> Argument:
    """Prove that buyer i can pay for a `part` of `goods`, which cost `money`, and so has no less than their utility."""
    k, K = integers("k K")
    p = nonnegative("p")
    have, value, whole = sp.symbols("U V W", positive=True)
    short = sp.Symbol("kappa", nonnegative=True)
    proof = Argument()
    proof.given("budgets clear (proved by budgets_clear)", sp.Sum(p[k] * goods[k], (k, 1, K)), money)
    cost = sp.Sum(p[k] * (part * goods[k]), (k, 1, K))
    proof.equal(f"Buyer i can pay for {what}", cost, budget)
    # U_i(y) <= U_i(x_i) p.y/B_i for every bundle y: what falls short of it is kappa >= 0.
    proof.given(
        "its utility V is kappa >= 0 below U p.y/B_i (proved by prices_are_duals)", value, have / budget * cost - short
    )
    proof.at_least("so it is worth no more than what i has", have, value)
    proof.given("W is the utility of the whole: it scales with the goods (*_is_homogeneous)", whole, value / part)
    proof.at_least("so i has no less than that part of W", have, part * whole)
    return proof


def finish_time_product(weighted: bool = True) -> Proof:
    """Prove Appendix E, put right: the optimum minimises ``prod_i rho_i^B_i``; without the powers if not `weighted`."""
    i, N = integers("i N")
    B, equal, U, V = positive("B E U V")
    power = B[i] if weighted else sp.Integer(1)
    gap = sp.Symbol("delta", nonnegative=True)

    def logarithm(utility: Any) -> Any:
        return sp.Sum(power * sp.log(equal[i] / utility[i]), (i, 1, N))

    def welfare(utility: Any) -> Any:
        return sp.Sum(B[i] * sp.log(utility[i]), (i, 1, N))

    proof = Argument()
    split = welfare(equal)
    ratios = sp.Product((equal[i] / U[i]) ** power, (i, 1, N))
    proof.equal("The logarithm of prod_i rho_i^B_i, rho_i = U_i(c/N)/U_i", sp.log(ratios), logarithm(U))
    text = "is the welfare of the equal split, E_i = U_i(c/N), less that of U: the product is exp(that)"
    proof.equal(text, logarithm(U), split - welfare(U))
    proof.given("U is the optimum: any other V has delta >= 0 less", welfare(V), welfare(U) - gap)
    proof.equal("What the logarithm is more at V", logarithm(V) - logarithm(U), gap)
    proof.at_least("so the product is least at the optimum", logarithm(V) - logarithm(U), 0)
    return proof.proof(
        "The optimum minimises prod_i rho_i^B_i, rho_i = U_i(c/N)/U_i(x_i). Any number of buyers", FINISH_TIMES
    )
