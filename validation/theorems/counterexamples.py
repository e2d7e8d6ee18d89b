"""Statements that do not hold of markets and of the window, refuted by exact counterexamples."""

from __future__ import annotations

from typing import Any

from .proof import Argument, Proof
from .symbols import sp


def product_needs_budgets(budgets: tuple[int, int] = (3, 1)) -> Proof:
    """Refute Appendix E as printed: without budgets as powers, the optimum need not minimise the product of ratios."""
    x = sp.Symbol("x", positive=True)
    B = tuple(sp.Integer(each) for each in budgets)
    proof = Argument()
    best = _best_of_two(proof, B, x, 1 - x)
    half = sp.Rational(1, 2)
    ratios = half / best, half / (1 - best)
    proof.exceeds("prod_i rho_i at the optimum is more than the 1 of the equal split", sp.Mul(*ratios), 1)
    weighted = ratios[0] ** B[0] * ratios[1] ** B[1]
    proof.exceeds("prod_i rho_i^B_i is less than that", 1, weighted)
    return proof.proof(
        "As printed, without budgets as powers, the optimum does not minimise prod_i rho_i: budgets 3 and 1, one good",
        "against Shockwave, Corollary 4.0.1 (a) and Appendix E",
    )


def ratios_are_not_finish_times(work: Any = None) -> Proof:
    """Refute Corollary 4.0.1 of finish times: an equilibrium in which a job ends later than under equal sharing.

    `work` is that of each of two identical jobs on one GPU over two rounds.
    """
    work = sp.Rational(1, 2) if work is None else sp.sympify(work)
    one, two = sp.symbols("U_1 U_2", positive=True)
    proof = Argument()
    proof.at_least("(U_1 + U_2)^2/4 >= U_1 U_2", (one + two) ** 2 / 4, (one + two) ** 2 / 4 - (one - two) ** 2 / 4)
    proof.equal("which is U_1 U_2", (one + two) ** 2 / 4 - (one - two) ** 2 / 4, one * two)
    total = (one + two).subs({one: 1, two: 1})
    proof.equal("U = (1, 1) uses both rounds and meets it: a whole round each is an optimum", total**2 / 4, 1)
    alone, shared = 1 + work, work / sp.Rational(1, 2)  # the second job waits a round; half a GPU each from the start
    proof.exceeds("The job that gets the second round ends later than with half a GPU in both", alone, shared)
    text = "and the product of the finish times is not what the equal split, an optimum too, minimises"
    proof.exceeds(text, shared**2, work * alone)
    return proof.proof(
        "As finish times the ratios may exceed one at an optimum, their product need not be least: two jobs",
        "against Shockwave, Corollary 4.0.1 (a) and (b)",
    )


def window_is_no_equilibrium(progress: Any = None) -> Proof:
    """Refute Appendix G.1: past `progress` makes the window's optimum no equilibrium."""
    x = sp.Symbol("x", positive=True)
    progress = sp.Rational(1, 2) if progress is None else sp.sympify(progress)
    proof = Argument()
    best = _best_of_two(proof, (sp.Integer(1), sp.Integer(1)), progress + x, 1 - x)
    price = 1 / (1 - best)
    proof.equal("The price at which job 2 spends its budget of 1", price * (1 - best), 1)
    proof.exceeds("Job 1 spends less than its own", 1, price * best)
    proof.exceeds("and has less than with half the GPU", progress + sp.Rational(1, 2), progress + best)
    return proof.proof(
        "The window's optimum is no equilibrium: one GPU, two jobs, U_1 = 1/2 + x_1 (half done before), U_2 = x_2",
        "against Shockwave, Appendix G.1",
    )


def _best_of_two(proof: Argument, budgets: tuple[Any, Any], first: Any, second: Any) -> Any:
    """Prove where ``B_1 log U_1 + B_2 log U_2`` is largest, for utilities linear in the first buyer's x of one good."""
    (x,) = first.free_symbols
    welfare = budgets[0] * sp.log(first) + budgets[1] * sp.log(second)
    (best,) = sp.solve(sp.diff(welfare, x), x)
    gains = [b * sp.diff(u, x) / u.subs(x, best) for b, u in zip(budgets, (first, second), strict=True)]
    proof.equal(
        "At the optimum, what the first gains and the second loses by a little more is equal", gains[0], -gains[1]
    )
    one, two = sp.symbols("U_1 U_2", positive=True)
    slopes = sp.diff(first, x), sp.diff(second, x)
    bend = sum(-b * slope**2 / u**2 for b, slope, u in zip(budgets, slopes, (one, two), strict=True))
    there = sp.diff(welfare, x, 2) - bend.subs({one: first, two: second})
    proof.equal("Its second derivative: -B_1 U_1'^2/U_1^2 - B_2 U_2'^2/U_2^2", there, 0)
    proof.exceeds("is negative wherever both have something: no other optimum", 0, bend)
    return best
