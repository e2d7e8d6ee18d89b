"""Log terms on linear solvers: what tangent cuts find, what they prove, and what they make of a bad inner solver."""

import dataclasses
import itertools
import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import equipoise as eq
from equipoise.solvers.backend import Availability, Backend, Claim, Task
from equipoise.solvers.options import Options
from equipoise.solvers.reductions.outer_approximation.points import Terms, first_grid
from equipoise.solvers.reductions.outer_approximation.relaxation import OuterProgram
from equipoise.solvers.reductions.outer_approximation.solve import solve_by_tangents
from equipoise.solvers.registry import find_backend

Reason, Limit = eq.Reason, eq.Limit
# scipy is a backend by name only.
BOTH = pytest.mark.parametrize("backend", ["highs", pytest.param("scipy", marks=pytest.mark.thorough)])
MOST = settings(max_examples=max(25, settings().max_examples // 2))  # a solve takes milliseconds


class Through(Backend):
    """HiGHS, with every answer passed through `change(call, task, answer)`; remembers what it was asked."""

    name = "through"
    licence = "none"
    classes = frozenset({eq.ProblemClass.LP, eq.ProblemClass.MILP})
    supported_options = frozenset({"threads", "seed", "warm_start", "log"})

    def __init__(self, change=lambda call, task, answer: answer, classes=None):
        self.change, self.asked = change, []
        self.classes = classes or self.classes

    def probe(self):
        return Availability(True, "1")

    def solve(self, task, options, on_progress):
        self.asked.append((task, options))
        answer = find_backend("highs").solve(task, dataclasses.replace(options, backend_options={}), on_progress)
        return self.change(len(self.asked), task, answer)


def market(utilities, budgets, supply=1.0, integer=False):
    """Eisenberg-Gale: buyers with budgets share goods; the duals of the goods are the prices."""
    utilities, budgets = np.asarray(utilities, float), np.asarray(budgets, float)
    n, m = utilities.shape
    build = eq.ProgramBuilder(sense="max")
    x = build.add_columns("x", (n, m), upper=supply if integer else np.inf, integer=integer)
    build.add_rows("goods", (m,), terms=[(np.arange(m), x, 1.0)], upper=supply)
    build.add_logs(budgets, terms=[(np.arange(n)[:, None], x, utilities)])
    return build.program(gap_unit=float(budgets.sum()))


def random_market(n, m, seed=0):
    rng = np.random.default_rng(seed)
    return market(np.exp(rng.normal(size=(n, m))), np.exp(0.5 * rng.normal(size=n)))


def program(weights, inside, offsets=0.0, cost=0.0, lower=0.0, upper=np.inf, rows=(), integer=False, unit=None):
    """One block of columns x; `inside` has a row for each logarithm, `rows` are (coefficients, lower, upper)."""
    inside = np.atleast_2d(np.asarray(inside, float))
    build = eq.ProgramBuilder(sense="max")
    x = build.add_columns("x", (inside.shape[1],), lower=lower, upper=upper, integer=integer)
    for i, (row, low, high) in enumerate(rows):
        build.add_rows(f"row{i}", (1,), terms=[(0, x, row)], lower=low, upper=high)
    build.add_logs(weights, terms=[(np.arange(len(inside))[:, None], x, inside)], offsets=offsets)
    build.set_objective([(x, cost)])
    return build.program(gap_unit=unit)


def claimed(problem, backend="highs", **options):
    """What the rounds themselves answer, before anything is verified."""
    chosen = find_backend(backend) if isinstance(backend, str) else backend
    task = Task(problem=problem, form="matrix", program=problem)
    return solve_by_tangents(chosen, task, Options(**options), lambda *report: None)


def worth_of_tolerances(problem):
    """A MILP solver's tolerance of 1e-6 inside each logarithm; scipy has a fixed gap of 1e-6 besides."""
    return 1e-6 * float(problem.log_weights.sum() + np.abs(problem.objective).max())


# -- Closed forms ------------------------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize(
    ("budgets", "prices", "second"),
    [((1.0, 1.0), (1, 1), 1.0), ((3.0, 1.0), (8 / 3, 4 / 3), 0.75), ((1.0, 8.0), (3, 6), 4 / 3), ((2, 1), (2, 1), 1.0)],
)
def test_two_buyers_share_two_goods_at_the_prices_of_the_closed_form(backend, budgets, prices, second):
    """Utilities 2 and 1, crossed: each buys its own good, unless it has more than twice the other's budget."""
    found = eq.solve(market([[2, 1], [1, 2]], budgets), backend, rel_gap=1e-9)
    x, p = found.require_optimal()["x"], found.duals["goods"]
    shared = np.array([2.0, 1.0]) @ x[0], np.array([1.0, 2.0]) @ x[1]
    assert p == pytest.approx(prices, rel=1e-3)
    assert p @ x[0] == pytest.approx(budgets[0], rel=1e-3)  # each spends its budget
    if budgets == (1.0, 8.0):  # the second buys part of the first good, and all of its own
        assert x[1] == pytest.approx([2 / 3, 1.0], rel=1e-3)
    else:
        assert shared[1] == pytest.approx(2 * second, rel=1e-3)


@BOTH
@given(data=st.data())
@MOST
def test_water_filling_has_its_closed_form_and_its_price(backend, data):
    """Max sum of w_i log(x_i + o_i) over sum x_i <= M: x_i = max(0, w_i / price - o_i)."""
    n = data.draw(st.integers(1, 5))
    weights = np.array(data.draw(st.lists(st.integers(1, 9), min_size=n, max_size=n)), float)
    offsets = np.array(data.draw(st.lists(st.sampled_from([0.0, 0.5, 2.0, 10.0]), min_size=n, max_size=n)))
    total = float(data.draw(st.integers(1, 20)))
    gap = data.draw(st.sampled_from([1e-3, 1e-6]))
    filled = program(weights, np.eye(n), offsets, rows=[(np.ones(n), -np.inf, total)], unit=float(weights.sum()))
    found = eq.solve(filled, backend, rel_gap=gap)

    low, high = 1e-9, 1e9
    for _ in range(200):
        price = math.sqrt(low * high)
        low, high = (price, high) if np.maximum(weights / price - offsets, 0).sum() > total else (low, price)
    best = float(weights @ np.log(np.maximum(weights / price, offsets)))
    allowed = gap * weights.sum()
    assert found.termination.reason is Reason.OPTIMAL
    assert best - allowed - 1e-6 <= found.objective <= best + 1e-5
    assert best - 1e-9 <= found.bound <= best + allowed + 1e-6
    # The dual function is strongly convex in the logarithm of the price: a gap leaves it within a square root.
    near = math.sqrt(2 * gap * weights.sum() / weights.min())
    assert abs(math.log(found.duals["row0"][0] / price)) <= 3 * near + 1e-4


@BOTH
@given(seed=st.integers(0, 10**6))
@MOST
def test_no_point_of_a_grid_is_better_whatever_the_signs(backend, seed):
    """Coefficients and offsets of either sign, weights of 0, costs: against every point of a fine grid."""
    rng = np.random.default_rng(seed)
    K = int(rng.integers(1, 4))
    inside, offsets = rng.integers(-3, 4, (K, 2)).astype(float), rng.integers(-1, 5, K).astype(float)
    weights, cost, row = rng.choice([0.0, 0.5, 3.0], K), rng.integers(-3, 4, 2), rng.integers(-3, 4, 2)
    problem = program(weights, inside, offsets, cost, lower=-1.0, upper=2.0, rows=[(row, -np.inf, 2.0)], unit=1.0)

    axes = np.meshgrid(np.linspace(-1.0, 2.0, 61), np.linspace(-1.0, 2.0, 61))
    points = np.column_stack([axis.ravel() for axis in axes])
    points = points[points @ row <= 2.0]
    insides = points @ inside.T + offsets
    defined = (insides[:, weights > 0] > 0).all(axis=1)
    values = points[defined] @ cost + np.log(np.where(weights > 0, insides[defined], 1.0)) @ weights
    if defined.any():
        found = eq.solve(problem, backend, rel_gap=1e-4)
        assert found.termination.reason is Reason.OPTIMAL
        assert found.objective >= values.max() - 1e-4 - 1e-9
        assert found.bound >= max(values.max() - 1e-9, found.objective)
        assert found.gap <= 1e-4
    elif (insides[:, weights > 0].min(axis=1) < -0.3).all():  # no sliver that the grid misses
        assert claimed(problem, backend).claim is Claim.INFEASIBLE


def test_slopes_duals_and_reduced_costs_prove_the_bound_and_price_the_data():
    problem = market([[2, 1], [1, 2]], (3.0, 1.0))
    answer = claimed(problem, rel_gap=1e-9)
    assert problem.linear_bound(answer.duals, answer.slopes) == answer.bound
    assert answer.bound - problem.objective_at(answer.values) <= 4e-9
    # One more unit inside a logarithm is worth weight / inside; a good that is not bought costs more than it is worth.
    assert answer.slopes == pytest.approx([3 / 2.25, 1 / 1.5], rel=1e-3)
    assert answer.reduced_costs == pytest.approx([0, 0, 1 / 1.5 - 8 / 3, 0], abs=1e-3)
    more = eq.solve(market([[2, 1], [1, 2]], (3.0, 1.0), supply=1.001), "highs", rel_gap=1e-9).objective
    assert (more - problem.objective_at(answer.values)) / 0.001 == pytest.approx(answer.duals.sum(), rel=2e-3)


@BOTH
def test_terms_of_weight_0_keep_their_place_and_decide_nothing(backend):
    problem = program([0.0, 2.0, 0.0], [[-1, 0], [1, 1], [0, 1]], upper=1.0, rows=[([1, 1], -np.inf, 1.5)])
    found = eq.solve(problem, backend, rel_gap=1e-9)
    assert found.objective == pytest.approx(2 * math.log(1.5))
    assert claimed(problem, backend).slopes.shape == (3,)
    plain = eq.solve(program([0.0], [[1, 1]], cost=[1.0, 2.0], upper=3.0), backend)
    assert (plain.termination.reason, plain.objective) == (Reason.OPTIMAL, 9.0)


@BOTH
def test_a_logarithm_of_a_constant_counts(backend):
    found = eq.solve(program([2.0, 1.0], [[0.0], [1.0]], offsets=[5.0, 0.0], upper=4.0), backend, rel_gap=1e-9)
    assert found.objective == pytest.approx(2 * math.log(5) + math.log(4))


@BOTH
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_units_of_weights_and_utilities_do_not_matter(backend, scale):
    utilities = np.exp(np.random.default_rng(1).normal(size=(6, 3)))
    spread = np.array([1e-6, 1e-3, 1.0, 1e3, 1e6, 1.0])[:, None]
    found = eq.solve(market(utilities * spread, scale * np.arange(1.0, 7.0)), backend, rel_gap=1e-7)
    plain = eq.solve(market(utilities, np.arange(1.0, 7.0)), backend, rel_gap=1e-7)
    moved = float(np.arange(1.0, 7.0) @ np.log(spread[:, 0]))
    assert found.termination.reason is Reason.OPTIMAL
    assert found.objective / scale - moved == pytest.approx(plain.objective, abs=2 * 21 * 1e-7 + 1e-5)


def test_a_minimisation_has_no_log_terms():
    build = eq.ProgramBuilder(sense="min")
    x = build.add_columns("x", (1,))
    with pytest.raises(eq.InvalidInput, match="sense must be 'max'"):
        build.add_logs(1.0, terms=[(0, x, 1.0)])


# -- The relaxation ----------------------------------------------------------------------------------------------------


@given(seed=st.integers(0, 10**6), integer=st.booleans())
@MOST
def test_the_outer_program_overestimates_everywhere_and_is_exact_where_it_touches(seed, integer):
    rng = np.random.default_rng(seed)
    K, n = int(rng.integers(1, 4)), 3
    problem = program(
        rng.uniform(0.1, 5, K), rng.integers(0, 4, (K, n)), rng.integers(1, 3, K), rng.integers(-2, 3, n), upper=5.0
    )
    problem = dataclasses.replace(problem, integer=np.full(n, integer))
    terms = Terms.of(problem)
    lower, upper = terms.span(problem)
    x, touched = (np.rint(p) if integer else p for p in (rng.uniform(0, 5, n), rng.uniform(0, 5, n)))
    tangents = first_grid(terms, lower, upper, 2.0).with_points(terms.log_arguments(touched)[:, None])
    outer = OuterProgram.of(problem, terms, tangents, upper=upper, units=tangents.middles())
    for point in (x, touched):
        filled = outer.completed(point)
        assert outer.program.residuals_at(filled).worst <= 1e-9
        above = outer.program.objective_at(filled) / outer.scale - problem.objective_at(point)
        assert above >= -1e-9
        assert point is x or above <= 1e-9


@pytest.mark.parametrize(
    ("inside", "offset", "least"),
    [
        ([30.0], 0.0, 30.0),
        ([-1.0], 1.0, 1.0),
        ([0.4, -0.6], 0.1, 0.1),
        ([math.pi, math.e], 0.0, math.e),
        ([6, 4], -5, 1),
    ],
)
def test_the_least_inside_of_whole_numbers(inside, offset, least):
    problem = program([1.0], [inside], offset, upper=9.0, integer=True)
    assert Terms.of(problem).least_whole(problem) == pytest.approx([least], rel=1e-4)
    made = [np.dot(inside, x) + offset for x in itertools.product(range(10), repeat=len(inside))]
    assert min(s for s in made if s > 1e-9) >= Terms.of(problem).least_whole(problem)[0]


def test_nothing_is_known_of_the_least_inside_with_continuous_columns_or_odd_numbers():
    mixed = dataclasses.replace(program([1.0], [[1.0, 1.0]]), integer=np.array([True, False]))
    assert Terms.of(mixed).least_whole(mixed) == [0.0]
    odd = program([1.0], [[math.pi, -math.e]], upper=9.0, integer=True)
    assert Terms.of(odd).least_whole(odd) == [0.0]


# -- Whole numbers -----------------------------------------------------------------------------------------------------


@BOTH
@given(seed=st.integers(0, 10**6))
@MOST
def test_whole_programs_against_enumeration(backend, seed):
    rng = np.random.default_rng(seed)
    n, K = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    problem = program(
        rng.choice([0.3, 1.0, 20.0], K),
        rng.integers(-2, 5, (K, n)),
        rng.integers(-1, 3, K),
        rng.integers(-3, 3, n),
        upper=3.0,
        rows=[(rng.integers(0, 4, n), -np.inf, float(rng.integers(1, 8)))],
        integer=True,
        unit=1.0,
    )
    points = [np.array(p, float) for p in itertools.product(range(4), repeat=n)]
    best = max((problem.objective_at(p) for p in points if problem.residuals_at(p).worst == 0), default=-math.inf)
    answer = claimed(problem, backend, rel_gap=1e-6)
    if best == -math.inf:
        assert answer.claim is Claim.INFEASIBLE
        assert answer.values is None
    else:
        allowed = 1e-6 + worth_of_tolerances(problem)
        assert problem.objective_at(np.rint(answer.values)) == pytest.approx(best, abs=allowed)
        assert best - allowed <= answer.bound <= best + allowed


@BOTH
@given(seed=st.integers(0, 10**6))
@MOST
def test_mixed_programs_against_enumeration_of_their_whole_columns(backend, seed):
    """Machines are opened at a cost (whole), what they make is shared (continuous): water-filling for each choice."""
    rng = np.random.default_rng(seed)
    buyers, machines = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    weights, costs = rng.integers(1, 5, buyers).astype(float), rng.uniform(0.5, 3.0, machines)
    build = eq.ProgramBuilder(sense="max")
    x = build.add_columns("share", (buyers,))
    y = build.add_columns("machines", (machines,), upper=2.0, integer=True)
    build.add_rows("made", (1,), terms=[(0, x, 1.0), (0, y, -1.0)], upper=0.0)
    build.add_logs(weights, terms=[(np.arange(buyers), x, 1.0)])
    build.set_objective([(y, -costs)])
    problem = build.program(gap_unit=1.0)
    best = max(
        float(weights @ np.log(sum(chosen) * weights / weights.sum()) - costs @ chosen)
        for chosen in itertools.product(range(3), repeat=machines)
        if sum(chosen)
    )
    found = eq.solve(problem, backend, rel_gap=1e-6)
    assert found.termination.reason is Reason.OPTIMAL
    assert found.objective == pytest.approx(best, abs=1e-6 + worth_of_tolerances(problem))
    assert found.bound >= best - worth_of_tolerances(problem)


@BOTH
def test_indivisible_goods_against_enumeration(backend):
    utilities = np.exp(np.random.default_rng(3).normal(size=(3, 6)))
    problem = market(utilities, [1.0, 2.0, 1.0], integer=True)
    best = -math.inf
    for owner in itertools.product(range(3), repeat=6):
        got = np.array([utilities[i, np.array(owner) == i].sum() for i in range(3)])
        best = max(best, float(np.array([1.0, 2.0, 1.0]) @ np.log(got)) if got.all() else -math.inf)
    found = eq.solve(problem, backend, rel_gap=1e-9)
    assert found.termination.reason is Reason.OPTIMAL
    assert found.objective == pytest.approx(best, abs=1e-8)
    assert "integer and" in found.notes[0]


def test_an_integer_program_is_first_asked_for_a_coarse_gap_then_for_finer_ones():
    through = Through()
    utilities = np.exp(np.random.default_rng(1).normal(size=(4, 9)))
    found = eq.solve(market(utilities, np.ones(4), integer=True), through, rel_gap=1e-6)
    asked = [options.rel_gap for task, options in through.asked if task.program.problem_class is eq.ProblemClass.MILP]
    assert found.termination.reason is Reason.OPTIMAL
    assert len(asked) > 1
    assert 1e-3 < asked[0] < 1e-1
    assert min(asked[1:]) < asked[0]
    starts = [task.start for task, _ in through.asked if task.program.problem_class is eq.ProblemClass.MILP]
    assert starts[-1] is not None  # later ones begin at the best point so far


def test_a_backend_of_integer_programs_alone_is_given_nothing_else():
    through = Through(classes=frozenset({eq.ProblemClass.MILP}))
    utilities = np.exp(np.random.default_rng(2).normal(size=(3, 5)))
    found = eq.solve(market(utilities, np.ones(3), integer=True), through, rel_gap=1e-6)
    assert found.termination.reason is Reason.OPTIMAL
    assert {task.program.problem_class for task, _ in through.asked} == {eq.ProblemClass.MILP}
    assert all(np.isfinite(task.program.upper).all() for task, _ in through.asked)  # as such backends need


def test_a_backend_that_stops_short_of_its_gap_is_asked_for_a_finer_one():
    through = Through()

    def lazy(call, task, answer):
        """Give a bound that is as far off as the backend was allowed, and then three times that."""
        options = through.asked[-1][1]
        if task.program.problem_class is not eq.ProblemClass.MILP:
            return answer
        return dataclasses.replace(answer, bound=answer.bound + 3.0 * options.abs_gap)

    through.change = lazy
    utilities = np.exp(np.random.default_rng(2).normal(size=(3, 6)))
    found = eq.solve(market(utilities, np.ones(3), integer=True), through, rel_gap=1e-5)
    assert found.termination.reason is Reason.OPTIMAL


# -- No optimum --------------------------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize(
    "problem",
    [
        program([1.0], [[1.0]]),
        program([1.0], [[1.0, 0.0]], cost=[-5.0, 2.0]),  # the cost alone rises
        program([1.0], [[1.0, 0.0]], cost=[-1.0, 1.0]),  # the cost stays, the inside rises
        program([2.0, 1.0], [[1.0, 1.0], [0.0, 1.0]], rows=[([1.0, -1.0], -np.inf, 3.0)]),
        program([1.0, 0.0], [[1.0], [-1.0]], offsets=[0.0, 5.0]),  # what has weight 0 holds nothing back
        program([1.0], [[-1.0]], lower=-np.inf),
        program([1.0], [[1.0]], integer=True),
    ],
)
def test_unbounded_is_told_by_a_direction(backend, problem):
    found = eq.solve(problem, backend)
    assert found.termination.reason is Reason.UNBOUNDED
    assert "direction" in found.termination.message
    assert found.bound == math.inf
    assert found.plan is None


@BOTH
@pytest.mark.parametrize("cost", [1e-2, 1e-5, 1e-8])
def test_an_optimum_far_out_is_no_unbounded_program(backend, cost):
    """Max log(x) - cost x has its optimum at 1 / cost."""
    found = eq.solve(program([1.0], [[1.0]], cost=-cost), backend, rel_gap=1e-6)
    assert found.termination.reason is Reason.OPTIMAL
    assert found.objective == pytest.approx(-math.log(cost) - 1, rel=2e-6)


@BOTH
def test_infeasible_rows_are_infeasible(backend):
    problem = program([1.0], [[1.0, 1.0]], rows=[([1.0, 1.0], -np.inf, 1.0), ([1.0, 1.0], 2.0, np.inf)])
    found = eq.solve(problem, backend)
    assert found.termination.reason is Reason.INFEASIBLE
    whole = program([1.0], [[1.0]], rows=[([2.0], 1.0, 1.0)], upper=4.0, integer=True)
    assert eq.solve(whole, backend).termination.reason is Reason.INFEASIBLE


def test_a_ray_is_passed_on_by_the_program_s_own_rows():
    def with_ray(call, task, answer):
        rows = task.program.num_rows
        proof = np.concatenate(([1.0, -1.0], np.zeros(rows - 2)))
        return answer if answer.claim is Claim.SOLVED else dataclasses.replace(answer, ray=proof)

    problem = program([1.0], [[1.0, 1.0]], rows=[([1.0, 1.0], -np.inf, 1.0), ([1.0, 1.0], 2.0, np.inf)])
    found = eq.solve(problem, Through(with_ray))
    assert found.termination.reason is Reason.INFEASIBLE
    assert any("is proved" in note for note in found.notes)


@BOTH
@pytest.mark.parametrize("integer", [False, True])
@pytest.mark.parametrize(
    ("inside", "offsets", "rows"),
    [
        ([[1.0, 1.0]], -3.0, [([1.0, 1.0], -np.inf, 2.0)]),  # never above -1
        ([[1.0, 0.0], [0.0, 1.0]], 0.0, [([1.0, 0.0], -np.inf, 0.0)]),  # the first is 0 at best
        ([[1.0, -1.0], [-1.0, 1.0]], 0.0, []),  # one of the two is never above 0
    ],
)
def test_without_a_point_inside_every_logarithm_there_is_no_plan(backend, integer, inside, offsets, rows):
    problem = program(np.ones(len(inside)), inside, offsets, rows=rows, upper=5.0, integer=integer)
    answer = claimed(problem, backend)
    assert answer.claim is Claim.INFEASIBLE
    assert answer.values is None
    assert "log argument" in answer.message


def test_the_only_points_may_lie_very_near_the_edge():
    found = eq.solve(program([1.0, 1.0], [[1.0], [-1.0]], offsets=[0.0, 1e-4]), "highs", rel_gap=1e-6)
    assert found.objective == pytest.approx(2 * math.log(5e-5), rel=1e-6)


# -- Gaps, history, time -----------------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("gap", [1e-1, 1e-2, 1e-4, 1e-6, 0.0])
def test_the_gap_asked_for_is_certified(backend, gap):
    problem = random_market(12, 5)
    found = eq.solve(problem, backend, rel_gap=gap)
    exact = eq.solve(problem, "highs", rel_gap=0.0).objective
    assert found.termination.reason is Reason.OPTIMAL
    assert found.gap <= max(gap, 1e-9)
    assert found.bound >= exact - 1e-6
    assert found.objective <= exact + 1e-6


def test_an_absolute_gap_is_enough():
    found = eq.solve(random_market(12, 5), "highs", rel_gap=0.0, abs_gap=0.5)
    assert found.termination.reason is Reason.OPTIMAL
    assert 1e-3 < found.bound - found.objective <= 0.5


def test_the_history_has_the_gap_after_each_round_and_it_falls_fast():
    problem = random_market(40, 12)
    found = eq.solve(problem, "highs", rel_gap=1e-6)
    gaps = [(point.bound - point.objective) / problem.gap_unit for point in found.history]
    rounds = len(gaps) - 1  # the last point is the verified outcome
    assert found.notes[0].startswith(f"tangent cuts: {rounds} rounds, ")
    assert 3 <= rounds <= 5
    assert all(after <= before / 4 for before, after in itertools.pairwise(gaps[:rounds]))
    assert [point.bound for point in found.history] == sorted((point.bound for point in found.history), reverse=True)


@BOTH
@pytest.mark.parametrize("integer", [False, True])
def test_no_time_at_all_gives_a_bound_and_no_plan(backend, integer):
    problem = market(np.ones((3, 3)), np.ones(3), integer=integer)
    found = eq.solve(problem, backend, time_limit=0.0)
    assert (found.termination.reason, found.termination.limit) == (Reason.NO_SOLUTION_FOUND, Limit.TIME)
    assert found.bound >= 0.0  # the optimum: one good each


def test_the_time_limit_holds_for_all_rounds_together():
    def slow(call, task, answer):
        time.sleep(0.1)
        return answer

    through = Through(slow)
    answer = claimed(random_market(12, 5), through, rel_gap=0.0, time_limit=0.25)
    assert (answer.claim, answer.limit) == (Claim.STOPPED, Limit.TIME)
    assert answer.values is not None
    assert answer.bound is not None
    given = [options.time_limit for _, options in through.asked]
    assert given == sorted(given, reverse=True)
    assert 1 <= len(given) <= 3
    assert max(given) <= 0.25


@BOTH
def test_the_same_call_gives_the_same_answer(backend):
    problem = random_market(12, 5)
    once, again = (eq.solve(problem, backend, rel_gap=1e-6) for _ in range(2))
    assert np.array_equal(once.plan["x"], again.plan["x"])
    assert (once.objective, once.bound, once.notes) == (again.objective, again.bound, again.notes)


def test_the_inner_solver_gets_the_caller_s_options_and_a_finer_gap():
    through = Through()
    own = {"through": {"speed": 3}}
    eq.solve(random_market(5, 3), through, rel_gap=1e-4, seed=7, feasibility_tol=1e-7, backend_options=own)
    for task, options in through.asked:
        assert (options.seed, options.threads, options.feasibility_tol) == (7, 1, 1e-7)
        assert options.backend_options == own
        assert options.rel_gap < 1e-4
        assert task.program.problem_class is eq.ProblemClass.LP


# -- Warm starts -------------------------------------------------------------------------------------------------------


def test_a_warm_start_is_a_first_point():
    problem = market([[2, 1], [1, 2]], (1.0, 1.0))
    start = {"x": np.array([[0.9, 0.1], [0.1, 0.9]])}
    found = eq.solve(problem, "highs", warm_start=start)
    assert any(note.startswith("warm start accepted, objective 1.28370") for note in found.notes)
    hurried = eq.solve(problem, "highs", warm_start=start, time_limit=0.0)
    assert hurried.termination.limit is Limit.TIME
    assert hurried.plan["x"] == pytest.approx(start["x"])


def test_a_warm_start_that_does_not_hold_is_dropped():
    problem = market([[2, 1], [1, 2]], (1.0, 1.0))
    found = eq.solve(problem, "highs", warm_start={"x": np.full((2, 2), 0.75)})
    assert "warm start violates the program by 0.5: dropped" in found.notes
    found = eq.solve(problem, "highs", warm_start={"x": np.zeros((2, 2))})
    assert "warm start gives a logarithm no positive argument: dropped" in found.notes
    assert found.termination.reason is Reason.OPTIMAL


def test_an_incomplete_warm_start_is_completed():
    problem = market([[2, 1], [1, 2]], (1.0, 1.0))
    found = eq.solve(problem, "highs", warm_start={"x": np.array([[0.5, 0.0], [np.nan, np.nan]])})
    told = "warm start: 2 of 4 columns given, the rest completed by a linear program: accepted, objective"
    assert any(note.startswith(told) for note in found.notes)
    found = eq.solve(problem, "highs", warm_start={"x": np.array([[0.0, 0.0], [np.nan, np.nan]])})
    assert any("gives a logarithm no positive argument" in note for note in found.notes)
    found = eq.solve(problem, "highs", warm_start={"x": np.array([[2.0, 0.0], [np.nan, np.nan]])})
    assert any(note.endswith("which no others complete: dropped") for note in found.notes)


def test_an_incomplete_warm_start_of_whole_numbers_goes_to_the_first_integer_program():
    through = Through()
    problem = market(np.ones((2, 3)), np.ones(2), integer=True)
    found = eq.solve(problem, through, warm_start={"x": np.array([[1.0, np.nan, 0.0], [0.0, np.nan, np.nan]])})
    assert any("through completes the rest in the first integer program" in note for note in found.notes)
    starts = [task.start for task, _ in through.asked if task.program.integer.any()]
    assert starts[0][:6] == pytest.approx([1.0, np.nan, 0.0, 0.0, np.nan, np.nan], nan_ok=True)
    assert found.objective == pytest.approx(math.log(2))


# -- A bad inner solver ------------------------------------------------------------------------------------------------


def spoilt(at, **changes):
    return lambda call, task, answer: dataclasses.replace(answer, **changes) if call >= at else answer


@pytest.mark.parametrize(
    ("changes", "limit", "words"),
    [
        ({"claim": Claim.FAILED, "values": None, "message": "it broke"}, Limit.METHOD, "it broke"),
        ({"claim": Claim.STOPPED, "limit": Limit.MEMORY, "values": None}, Limit.MEMORY, ""),
        ({"claim": Claim.STOPPED, "limit": Limit.ITERATIONS}, Limit.ITERATIONS, ""),
        ({"values": np.full(7, 1.0)}, Limit.METHOD, "shape"),
    ],
)
def test_a_round_that_goes_wrong_leaves_what_was_proved_before(changes, limit, words):
    problem = random_market(12, 5)
    found = eq.solve(problem, Through(spoilt(2, **changes)), rel_gap=1e-6)
    assert (found.termination.reason, found.termination.limit) == (Reason.FEASIBLE, limit)
    assert words in found.termination.message
    assert found.plan is not None
    assert found.gap < 0.1


def test_a_round_called_infeasible_after_a_point_was_found_is_not_believed():
    def once(call, task, answer):
        return dataclasses.replace(answer, claim=Claim.INFEASIBLE, values=None) if call == 2 else answer

    found = eq.solve(random_market(12, 5), Through(once), rel_gap=1e-6)
    assert (found.termination.reason, found.termination.limit) == (Reason.FEASIBLE, Limit.METHOD)
    assert "called a round infeasible, but there is a feasible point" in found.termination.message


def test_a_first_round_that_goes_wrong_is_the_result():
    found = eq.solve(random_market(4, 3), Through(spoilt(1, claim=Claim.FAILED, values=None, duals=None)))
    assert found.termination.reason is Reason.NUMERICAL
    assert found.plan is None


def test_points_that_violate_the_program_are_not_taken():
    def doubled(call, task, answer):
        return dataclasses.replace(answer, values=2.0 * answer.values)

    found = eq.solve(random_market(4, 3), Through(doubled))
    assert found.termination.reason is Reason.NUMERICAL
    assert "violates" in found.termination.message


def test_wrong_duals_prove_a_worse_bound_and_never_a_wrong_one():
    problem = random_market(8, 4)
    best = eq.solve(problem, "highs", rel_gap=1e-8).objective
    rng = np.random.default_rng(0)

    def noisy(call, task, answer):
        return dataclasses.replace(answer, duals=answer.duals * rng.uniform(0.5, 1.5, len(answer.duals)))

    found = eq.solve(problem, Through(noisy), rel_gap=1e-6)
    assert found.bound >= best - 1e-7
    assert found.plan is not None


def test_without_duals_the_bound_is_the_backend_s_word():
    found = eq.solve(random_market(8, 4), Through(spoilt(1, duals=None)), rel_gap=1e-6)
    assert found.termination.reason is Reason.OPTIMAL
    assert "unverified bound: the backend gave no duals to prove it" in found.notes


def test_a_false_claim_of_unboundedness_is_not_passed_on():
    found = eq.solve(random_market(4, 3), Through(spoilt(1, claim=Claim.UNBOUNDED, values=None)))
    assert found.termination.reason is not Reason.UNBOUNDED


def test_a_licence_that_is_too_small_for_a_later_round_ends_the_rounds():
    class Small(Through):
        def solve(self, task, options, on_progress):
            if len(self.asked) >= self.rounds:
                raise eq.LicenseLimit("only 100 columns; use backend='highs'")
            return super().solve(task, options, on_progress)

    backend = Small()
    backend.rounds = 1
    found = eq.solve(random_market(12, 5), backend, rel_gap=1e-6)
    assert (found.termination.reason, found.termination.limit) == (Reason.FEASIBLE, Limit.METHOD)
    assert "only 100 columns" in found.termination.message
    backend.rounds, backend.asked = 0, []
    with pytest.raises(eq.LicenseLimit):
        eq.solve(random_market(12, 5), backend)


def test_an_unknown_own_option_is_refused_in_the_first_round():
    with pytest.raises(eq.InvalidInput, match="nonsense"):
        eq.solve(random_market(4, 3), "highs", backend_options={"highs": {"nonsense": 1}})
