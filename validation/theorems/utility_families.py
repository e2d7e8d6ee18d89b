"""Premises on utilities, proved for each family: homogeneity of degree one, and concavity."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .proof import Argument, Proof
from .symbols import integers, nonnegative, positive, sp

SOURCE = "Shockwave, Section 4.2 and Appendix C"

#: Gives the amount of resource j in round t; a utility is a function of it.
Amounts = Callable[[Any, Any], Any]
Utility = Callable[[Amounts], Any]


def linear_is_homogeneous(utility: Utility | None = None) -> Proof:
    """Prove that linear utilities scale with the goods, and Euler's identity."""
    j, t, J, T = integers("j t J T")
    worth = nonnegative("u")
    proof = Argument()
    _homogeneous(proof, utility or (lambda at: sp.Sum(worth[j, t] * at(j, t), (j, 1, J), (t, 1, T))))
    return proof.proof("A linear utility is homogeneous of degree one: x . grad U = U; any resources, rounds", SOURCE)


def leontief_is_homogeneous(utility: Utility | None = None) -> Proof:
    """Prove it of Leontief utilities: by levels over any number of rounds, and of the minimum for two resources."""
    j, t, n, T = integers("j t n T")
    z, s = nonnegative("z"), sp.Symbol("s", positive=True)
    proof = Argument()
    # The level z_t of a round takes a_jt z_t of every resource: the levels are the variables of the program.
    levels = utility or (lambda at: sp.Sum(at(j, t), (t, 1, T)))
    level = levels(lambda j, t: z[t])
    proof.equal("Levels s times as high give s times the utility", levels(lambda j, t: s * z[t]), s * level)
    euler = sp.Sum(z[n] * sp.Derivative(level, z[n]), (n, 1, T))
    proof.equal("Euler's identity over levels: sum_t z_t dU/dz_t = U", euler, level)
    one, more = sp.symbols("m d", nonnegative=True)
    for order in ((one, one + more), (one + more, one)):
        least, scaled = sp.Min(*order, evaluate=False), sp.Min(*(s * v for v in order), evaluate=False)
        proof.equal("The minimum itself, either resource the scarcer one", scaled, s * least)
    return proof.proof(
        "A Leontief utility is homogeneous of degree one: by levels for any resources, rounds; the minimum for two",
        SOURCE,
    )


def ces_is_homogeneous(utility: Utility | None = None) -> Proof:
    """Prove it of CES utilities, rho symbolic."""
    j, t, J, T = integers("j t J T")
    w, s = positive("w s")
    rho = sp.Symbol("rho", real=True, nonzero=True)

    def ces(at: Amounts) -> Any:
        return sp.Sum(s[t] * sp.Sum(w[j, t] * at(j, t) ** rho, (j, 1, J)) ** (1 / rho), (t, 1, T))

    proof = Argument()
    _homogeneous(proof, utility or ces)
    return proof.proof(
        "A CES utility is homogeneous of degree one, any rho != 0: x . grad U = U; any resources, rounds", SOURCE
    )


def cobb_douglas_is_homogeneous(utility: Utility | None = None, total: Any = 1) -> Proof:
    """Prove it of Cobb-Douglas utilities whose weights sum to `total`."""
    j, t, J, T = integers("j t J T")
    w, s = positive("w s")

    def cobb_douglas(at: Amounts) -> Any:
        return sp.Sum(s[t] * sp.exp(sp.Sum(w[j, t] * sp.log(at(j, t)), (j, 1, J))), (t, 1, T))

    proof = Argument()
    proof.given("the weights of a round sum to one", sp.Sum(w[j, t], (j, 1, J)), sp.sympify(total), t)
    _homogeneous(proof, utility or cobb_douglas)
    return proof.proof(
        "A Cobb-Douglas utility is homogeneous of degree one: x . grad U = U; any resources, rounds", SOURCE
    )


def ces_is_concave(rho: Any = None) -> Proof:
    """Prove that a CES utility bends down along every line, for 0 < rho < 1 and for rho < 0."""
    at, weighted = _line()
    less = sp.Symbol("q", positive=True)
    proof = Argument()
    # Every rho below 1 but 0 is one of these, and their signs are known to sympy.
    cases = (("0 < rho < 1", 1 / (1 + less)), ("rho < 0", -less)) if rho is None else (("rho as given", rho),)
    for name, power in cases:
        utility = weighted(_raised(at, power)) ** (1 / power)
        here = _raised(lambda j: at(j, 0), power)
        bend = (power - 1) * weighted(here) ** (1 / power - 2) * _squares(here) / 2
        proof.equal(f"The second derivative along h, {name}", _second_derivative(utility), bend)
        proof.at_least(f"It is nowhere positive, {name}", 0, bend)
    return proof.proof("A CES utility is concave, any rho < 1, rho != 0; any number of resources in a round", SOURCE)


def cobb_douglas_is_concave(total: Any = 1) -> Proof:
    """Prove that a Cobb-Douglas utility bends down along every line if its weights sum to `total`."""
    at, weighted = _line()
    proof = Argument()
    proof.given("the weights sum to one", weighted(lambda j: 1), sp.sympify(total))
    utility = sp.exp(weighted(lambda j: sp.log(at(j))))
    bend = -sp.exp(weighted(lambda j: sp.log(at(j, 0)))) * _squares(lambda j: 1) / 2
    proof.equal("The second derivative along h", _second_derivative(utility), bend)
    proof.at_least("It is nowhere positive", 0, bend)
    return proof.proof("A Cobb-Douglas utility is concave; any number of resources in a round", SOURCE)


def other_degrees(power: Any = None) -> Proof:
    """Prove that U^(1/d) is homogeneous of degree one if U is of degree d, and that mixed degrees have no degree."""
    s, d, one, two = sp.symbols("s d x y", positive=True)
    power = 1 / d if power is None else power
    utility, euler = sp.symbols("U E", positive=True)
    proof = Argument()
    proof.equal("U(s x) = s^d U(x), so its power 1/d scales by s", (s**d * utility) ** power, s * utility**power)
    proof.given("Euler's identity of degree d, E = x . grad U", euler, d * utility)
    slope = sp.diff(utility**power, utility)
    proof.equal("x . grad U^(1/d) = U^(1/d), by the chain rule", slope * euler, utility**power)
    mixed = one + two**2
    of_mixed = one * sp.diff(mixed, one) + two * sp.diff(mixed, two)
    where = ({one: 1, two: 1}, {one: 2, two: 1})
    degrees = [(of_mixed / mixed).subs(point) for point in where]
    proof.differ("Degree one in one round and two in the next: x . grad U / U is not the same everywhere", *degrees)
    return proof.proof(
        "Utilities of one degree d each are served by U^(1/d); degrees mixed over rounds by nothing of the kind",
        "Shockwave, Theorem C.1",
    )


def _line() -> tuple[Any, Callable[[Callable[[Any], Any]], Any]]:
    """Return the point x + e h at resource j, and the sum of a function of j with weights."""
    j, J = integers("j J")
    (w, x), h = positive("w x"), sp.IndexedBase("h", real=True)
    step = _step()
    return (lambda j, e=step: x[j] + e * h[j]), (lambda f: sp.Sum(w[j] * f(j), (j, 1, J)))


def _raised(f: Callable[..., Any], power: Any) -> Callable[[Any], Any]:
    return lambda j: f(j) ** power


def _step() -> Any:
    return sp.Symbol("e", nonnegative=True)


def _second_derivative(utility: Any) -> Any:
    return sp.diff(utility, _step(), 2).subs(_step(), 0)


def _squares(f: Callable[[Any], Any]) -> Any:
    """Return ``sum_ij w_i w_j f_i f_j (h_i/x_i - h_j/x_j)^2``."""
    i, j, J = integers("i j J")
    (w, x), h = positive("w x"), sp.IndexedBase("h", real=True)
    return sp.Sum(w[i] * w[j] * f(i) * f(j) * (h[i] / x[i] - h[j] / x[j]) ** 2, (i, 1, J), (j, 1, J))


def _homogeneous(proof: Argument, utility: Utility) -> None:
    m, n, J, T = integers("m n J T")
    x, s = positive("x"), sp.Symbol("s", positive=True)
    here = utility(lambda j, t: x[j, t])
    proof.equal("s times the goods give s times the utility", utility(lambda j, t: s * x[j, t]), s * here)
    euler = sp.Sum(x[m, n] * sp.Derivative(here, x[m, n]), (m, 1, J), (n, 1, T))
    proof.equal("Euler's identity: x . grad U = U", euler, here)
