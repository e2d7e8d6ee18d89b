"""Every theorem closes; and none does once an ingredient that it rests on is exchanged."""

import subprocess
import sys

import pytest

sp = pytest.importorskip("sympy", reason="proofs need sympy: pip install 'equipoise[theory]'")

from equipoise.formulations.errors import InvalidInput  # noqa: E402
from equipoise.validation.theorems import accumulation as theorems_accumulation  # noqa: E402
from equipoise.validation.theorems import costs as theorems_costs  # noqa: E402
from equipoise.validation.theorems import counterexamples as theorems_counterexamples  # noqa: E402
from equipoise.validation.theorems import equilibrium as theorems_equilibrium  # noqa: E402
from equipoise.validation.theorems import fairness as theorems_fairness  # noqa: E402
from equipoise.validation.theorems import sharing as theorems_sharing  # noqa: E402
from equipoise.validation.theorems import utility_families as theorems_families  # noqa: E402
from equipoise.validation.theorems.catalogue import THEOREMS, prove  # noqa: E402
from equipoise.validation.theorems.proof import Argument, ProofFailed, formula_text  # noqa: E402
from equipoise.validation.theorems.sums import canonical  # noqa: E402
from equipoise.validation.theorems.symbols import TheoryMissing, load_sympy  # noqa: E402

i, j, k, t, K, N = sp.symbols("i j k t K N", integer=True, positive=True)
J, T = sp.symbols("J T", integer=True, positive=True)
u, w = sp.IndexedBase("u", nonnegative=True), sp.IndexedBase("w", positive=True)
x, y = sp.IndexedBase("x", positive=True), sp.IndexedBase("y", nonnegative=True)


@pytest.fixture(scope="module")
def proofs():
    return prove()


# -- They hold ---------------------------------------------------------------------------------------------------------


def test_every_theorem_is_proved_in_steps_of_which_most_are_verified(proofs):
    assert len(proofs) == len(THEOREMS) >= 25
    assert len({proof.statement for proof in proofs}) == len(proofs)
    for proof in proofs:
        verified = [text for text, _ in proof.steps if not text.startswith("Given")]
        assert verified, proof.statement
        assert proof.source


def test_a_proof_reads_as_text(proofs):
    for proof in proofs:
        lines = str(proof).splitlines()
        assert lines[0] == proof.statement
        assert len(lines) == 2 + 2 * len(proof.steps)
        assert "KroneckerDelta" not in str(proof)
        assert "Eq(" not in str(proof)


def test_one_theorem_by_name():
    (proof,) = prove("proportionality")
    assert proof.statement.startswith("Proportionality")
    with pytest.raises(InvalidInput, match="proportionality"):
        prove("proportionalty")


def test_without_sympy_the_message_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "sympy", None)
    with pytest.raises(TheoryMissing, match=r"pip install 'equipoise\[theory\]'"):
        load_sympy()


def test_importing_the_theorems_does_not_load_sympy():
    script = "import sys, equipoise.validation.theorems.catalogue; sys.exit('sympy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


# -- They fail without what they rest on -------------------------------------------------------------------------------


def with_a_square(at):
    return sp.Sum(u[j, t] * at(j, t) + at(j, t) ** 2, (j, 1, J), (t, 1, T))


def with_a_constant(at):
    return sp.Sum(u[j, t] * at(j, t) + 1, (j, 1, J), (t, 1, T))


def power_of_the_wrong_root(at):
    return sp.Sum(sp.Sum(w[j, t] * at(j, t) ** 3, (j, 1, J)) ** sp.Rational(1, 2), (t, 1, T))


BROKEN = {
    "linear_is_homogeneous": [{"utility": with_a_square}, {"utility": with_a_constant}],
    "leontief_is_homogeneous": [{"utility": lambda at: sp.Sum(at(j, t) ** 2, (t, 1, T))}],
    "ces_is_homogeneous": [{"utility": power_of_the_wrong_root}],
    "cobb_douglas_is_homogeneous": [{"total": 2}, {"total": sp.Symbol("W", positive=True)}],
    "ces_is_concave": [{"rho": 2}, {"rho": sp.Symbol("r", positive=True)}],
    "cobb_douglas_is_concave": [{"total": 2}],
    "other_degrees": [{"power": sp.Rational(1, 2)}],
    "leontief_conditions": [{"constraint": 2}],
    "prices_are_duals": [{"degree": 2}, {"degree": sp.Rational(1, 2)}, {"slack": sp.Symbol("s", positive=True)}],
    "leontief_prices_are_duals": [{"levels": 2}],
    "budgets_clear": [{"degree": 2}],
    "prices_bound_welfare": [{"priced_at": 2}, {"priced_at": sp.Rational(1, 2)}],
    "gap_bounds_the_mean": [{"scale": 1}, {"scale": 2 * sp.Symbol("B", positive=True)}],
    "unit_cost_over_rounds": [{"dearer": sp.Symbol("z", positive=True)}],
    "linear_unit_cost": [{"cost": lambda price, worth: price}],
    "leontief_unit_cost": [{"cost": lambda total: 2 * total}],
    "ces_unit_cost": [
        {"cost": lambda sigma, s, total: total ** (1 / (1 - sigma))},
        {"cost": lambda sigma, s, total: total / s},
    ],
    "cobb_douglas_unit_cost": [{"cost": lambda least, s: least * s}],
    "ces_limit_cobb_douglas": [{"total": 2}],
    "ces_limit_needs_weights_of_one": [{"total": 1}, {"total": sp.Rational(1, 2)}],
    "ces_limit_linear": [{"end": 2}],
    "ces_limit_leontief": [{"scarcer": 2}],
    "sharing_incentive": [{"share": lambda budget, total, count: 2 / count}],
    "proportionality": [{"share": lambda budget, total, count: 1 / count}],
    "envy_freeness": [{"scale": lambda budget, other: other / budget}, {"scale": lambda budget, other: 1}],
    "finish_time_product": [{"weighted": False}],
    "product_needs_budgets": [{"budgets": (1, 1)}],
    "ratios_are_not_finish_times": [{"work": 1}],
    "window_is_no_equilibrium": [{"progress": 0}],
    "pair_pieces": [{"speeds": lambda x, y: (1 / y, 1 / x)}, {"speeds": lambda x, y: (x, y)}],
    "mean_jct_at_an_end": [{"bend": 1}, {"bend": -1}],
    "weighted_jct_at_an_end": [{"weight": -1}],
    "makespan_at_an_end": [{"last": 1}],
    "share_rule_running_first": [
        {"criterion": lambda a, b, x, y: 2 / y + 1 / x - 2},
        {"criterion": lambda a, b, x, y: a - b * (2 * y - 1 - y / x)},
    ],
    "share_rule_waiting_first": [
        {"criterion": lambda a, b, x, y: a - b * (2 * x - 1 - x / y)},
        {"criterion": lambda a, b, x, y: 2 / x + 1 / y - 2},
    ],
    "sign_test_errs": [{"data": (100, 1, 1, 1)}, {"data": (1, 100, 2, 2)}],
    "group_candidates": [
        {"shared": lambda ratio, alone, delay: ratio * (alone - delay) ** 2},
        {"shared": lambda ratio, alone, delay: ratio * alone * sp.exp(-delay)},
    ],
    "group_jct_candidates": [{"ratio": sp.Rational(1, 2)}, {"loss": sp.IndexedBase("c", real=True)}],
    "group_jct_needs_running_ends": [{"ratio": 1}],
    "group_jct_needs_common_ends": [{"ratio": 1}, {"ratio": 2}],
    "group_makespan_needs_common_ends": [{"ratio": 1}, {"ratio": 2}],
    "smaller_sub_batches_slow_pairs": [{"x": sp.Rational(1, 4)}],
    "equal_sub_batches_are_the_full_batch": [{"size": lambda part: w[part]}, {"size": lambda part: part}],
    "unequal_sub_batches_are_not": [{"gradients": (1, 1, 1)}],
    "smaller_sub_batches_take_longer": [{"excess": sp.Rational(-1, 2)}],
}


def test_every_theorem_has_a_broken_twin():
    assert set(BROKEN) == {theorem.__name__ for theorem in THEOREMS}


@pytest.mark.parametrize(
    ("name", "change"),
    [(name, change) for name, changes in BROKEN.items() for change in changes],
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_a_theorem_fails_with_an_ingredient_exchanged(name, change):
    (theorem,) = (theorem for theorem in THEOREMS if theorem.__name__ == name)
    with pytest.raises(ProofFailed):
        theorem(**change)


def test_the_modules_of_theorems_hold_none_that_is_left_out():
    modules = (
        theorems_accumulation,
        theorems_costs,
        theorems_counterexamples,
        theorems_equilibrium,
        theorems_fairness,
        theorems_families,
        theorems_sharing,
    )
    public = {
        name
        for module in modules
        for name, found in vars(module).items()
        if callable(found) and getattr(found, "__module__", "") == module.__name__ and not name.startswith("_")
    }
    assert public == {theorem.__name__ for theorem in THEOREMS}


# -- The verifier itself -----------------------------------------------------------------------------------------------


def test_what_is_false_or_unknown_is_not_verified():
    a, b = sp.symbols("a b", real=True)
    proof = Argument()
    for claim in (
        lambda: proof.equal("", a, b),
        lambda: proof.equal("", sp.Sum(x[k], (k, 1, K)), sp.Sum(y[k], (k, 1, K))),
        lambda: proof.equal("", sp.Sum(x[k], (k, 1, K)) ** 2, sp.Sum(x[k] ** 2, (k, 1, K))),
        lambda: proof.equal("", sp.Sum(u[i, k] * u[k, i], (i, 1, K), (k, 1, K)), sp.Sum(u[k, k] ** 2, (k, 1, K))),
        lambda: proof.equal("", sp.Sum(x[k], (k, 1, K)), sp.Sum(x[k], (k, 1, N))),
        lambda: proof.at_least("", a * b, 0),
        lambda: proof.at_least("", sp.Sum(x[k] - y[k], (k, 1, K)), 0),
        lambda: proof.exceeds("", sp.Sum(y[k], (k, 1, K)), 0),
        lambda: proof.exceeds("", sp.Sum(x[k], (k, 1, K - 1)), 0),
        lambda: proof.differ("", a, b),
        lambda: proof.differ("", sp.Rational(1, 2), sp.Rational(2, 4)),
    ):
        with pytest.raises(ProofFailed):
            claim()
    with pytest.raises(ProofFailed, match="no step"):
        proof.proof("nothing", "nowhere")


def test_what_is_true_of_sums_is_verified():
    proof = Argument()
    proof.equal("renamed", sp.Sum(x[k], (k, 1, K)), sp.Sum(x[i], (i, 1, K)))
    proof.equal(
        "exchanged", sp.Sum(x[k] * sp.Sum(u[i, k], (i, 1, N)), (k, 1, K)), sp.Sum(x[k] * u[i, k], (k, 1, K), (i, 1, N))
    )
    proof.equal("factored", sp.Sum(3 * x[k] + 2, (k, 1, K)), 3 * sp.Sum(x[j], (j, 1, K)) + 2 * K)
    proof.at_least("squares", sp.Sum((x[k] - y[k]) ** 2, (k, 1, K)), 0)
    proof.exceeds("positive", sp.Sum(x[k], (k, 1, K)), 0)
    assert len(proof.proof("sums", "here").steps) == 5


def test_what_is_given_stands_for_its_indices_and_no_more():
    proof = Argument()
    proof.given("by row", sp.Sum(u[i, k], (k, 1, K)), 1, i)
    proof.equal("any row", sp.Sum(u[N, k], (k, 1, K)), 1)
    proof.equal("all rows", sp.Sum(u[i, k], (k, 1, K), (i, 1, N)), N)
    with pytest.raises(ProofFailed):
        proof.equal("a column", sp.Sum(u[k, i], (k, 1, K)), 1)
    with pytest.raises(ProofFailed):
        proof.equal("the diagonal", sp.Sum(u[k, k], (k, 1, K)), 1)
    aside = proof.aside()
    aside.given("each entry", x[k], 2)
    aside.equal("replaced in a sum", sp.Sum(x[j], (j, 1, K)), 2 * K)
    proof.include(aside)
    with pytest.raises(ProofFailed):
        proof.equal("but not outside", x[k], 2)


@pytest.mark.parametrize("seed", range(6))
def test_one_form_of_sums_keeps_their_values(seed):
    """Written out for few terms, a sum and its one form are the same number."""
    import random

    draw = random.Random(seed)
    e = sp.Symbol("e", positive=True)
    factors = [x[k], u[i, k], x[i], e, y[k] ** 2, sp.Sum(u[i, j] * x[j], (j, 1, K)), sp.Sum(x[j] + y[i], (j, 1, N))]
    product = sp.Mul(*draw.choices(factors, k=3)) + draw.choice(factors)
    limits = [(i, 1, N), (k, 1, K)]
    draw.shuffle(limits)
    total = sp.Sum(product, *limits)
    values = {base[a, b]: draw.randint(1, 9) for base in (u,) for a in range(1, 5) for b in range(1, 5)}
    values |= {base[a]: draw.randint(1, 9) for base in (x, y) for a in range(1, 5)}

    def number(expression):
        return expression.subs({K: 3, N: 2}).doit().subs(values).subs(e, 7)

    for merge in (False, True):
        assert number(canonical(total, merge=merge)) == number(total)


def test_formulas_print_on_one_line():
    assert formula_text(sp.Ge(sp.Sum(x[k] ** 2, (k, 1, K)), 0, evaluate=False)) == "sum_k(x[k]^2) >= 0"
    assert formula_text(sp.Limit(1 / K, K, sp.oo)) == "lim_(K -> oo) (1/K)"
    assert formula_text(sp.Derivative(x[k] ** 2, x[k])) == "d/dx[k] (x[k]^2)"
