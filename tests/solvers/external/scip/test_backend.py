"""SCIP against enumeration, finite differences and closed forms; its options, its reports, its known traps."""

import gc
import itertools
import math
import os
import signal
import time

import numpy as np
import pytest
from patience import SOON_S, until_incumbent

import equipoise as eq
from equipoise.solvers.backend import Task
from equipoise.solvers.external.scip import backend as scip
from equipoise.solvers.external.scip import model as scip_model

pyscipopt = pytest.importorskip("pyscipopt", reason="pyscipopt is not installed")
if not scip.BACKEND.probe().usable:
    pytest.skip(scip.BACKEND.probe().reason, allow_module_level=True)

Reason, Limit = eq.Reason, eq.Limit
INF = math.inf
senses = pytest.mark.parametrize("sense", ["max", "min"])


def dense(
    sense, objective, matrix, row_lower, row_upper, *, lower=0.0, upper=INF, integer=False, offset=0.0, gap_unit=None
):
    """A program from dense arrays."""
    matrix = np.asarray(matrix, dtype=float)
    build = eq.ProgramBuilder(sense=sense)
    x = build.add_columns("x", (len(objective),), lower=lower, upper=upper, integer=integer)
    if len(matrix):
        rows = np.arange(len(matrix))[:, None]
        build.add_rows("row", (len(matrix),), terms=[(rows, x, matrix)], lower=row_lower, upper=row_upper)
    build.set_objective([(x, objective)], offset=offset)
    return build.program(gap_unit=gap_unit)


def knapsack(seed, size=30, rows=3):
    rng = np.random.default_rng(seed)
    weights = rng.integers(5, 60, size=(rows, size))
    return dense(
        "max", rng.integers(5, 60, size=size), weights, -INF, weights.sum(axis=1) // 3, upper=1.0, integer=True
    )


def equality_knapsack():
    """No point is easy to find: SCIP has none after no time at all."""
    weights = np.random.default_rng(5).integers(1000, 9999, size=40)
    return dense("max", np.ones(40), [weights], weights[::3].sum(), weights[::3].sum(), upper=1.0, integer=True)


def hard():
    """No optimum within seconds, and many incumbents within one."""
    return knapsack(3, size=200, rows=15)


def mixed():
    build = eq.ProgramBuilder(sense="max")
    a = build.add_binaries("a", (3,))
    b = build.add_columns("b", (2,), upper=4.0)
    build.add_rows("room", (1,), terms=[(0, a, [4, 2, 2]), (0, b, 1.0)], upper=6)
    build.set_objective([(a, [5.0, 3.0, 3.0]), (b, 0.25)])
    return build.program()


@pytest.fixture
def statuses(monkeypatch):
    """Every status that SCIP ends with."""
    seen = []
    optimize = scip_model.ScipModel.optimize

    def noted(self, *args):
        seen.append(optimize(self, *args))
        return seen[-1]

    monkeypatch.setattr(scip_model.ScipModel, "optimize", noted)
    return seen


# -- Linear and integer programs ---------------------------------------------------------------------------------------


@senses
def test_small_integer_programs_against_enumeration(sense):
    rng = np.random.default_rng(1)
    lower, upper = np.array([-1.0, -0.9, 0.0, 0.2, -1.0]), np.array([1.0, 2.5, 1.0, 2.0, 0.5])
    points = np.array(list(itertools.product([-1, 0, 1, 2], repeat=5)))
    points = points[((lower <= points) & (points <= upper)).all(axis=1)]
    for _ in range(12):
        cost, weights = rng.integers(-9, 10, size=5), rng.integers(-5, 8, size=(2, 5))
        fits = (points @ weights.T <= 7).all(axis=1)
        best = (points[fits] @ cost).max() if sense == "max" else (points[fits] @ cost).min()
        program = dense(sense, cost, weights, -INF, 7, lower=lower, upper=upper, integer=True, offset=2.5)
        result = eq.solve(program, "scip", rel_gap=0.0)
        assert result.termination.reason is Reason.OPTIMAL
        assert result.objective == best + 2.5
        assert result.bound == pytest.approx(best + 2.5, abs=1e-9)


def test_a_mixed_program_against_enumeration_of_its_integers():
    rng = np.random.default_rng(2)
    for _ in range(6):
        cost, weights = rng.uniform(1, 5, size=5), rng.uniform(1, 5, size=5)
        integer = np.array([True, True, True, True, False])
        program = dense("max", cost, [weights], -INF, 9.0, upper=2.0, integer=integer)
        best = -INF
        for whole in itertools.product([0, 1, 2], repeat=4):
            room = 9.0 - weights[:4] @ whole
            if room >= 0:
                best = max(best, cost[:4] @ whole + cost[4] * min(2.0, room / weights[4]))
        assert eq.solve(program, "scip", rel_gap=0.0).objective == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("integer", [False, True])
@senses
def test_no_rows_free_columns_and_fixed_ones(sense, integer):
    apart = dense(sense, [2.0, -3.0], np.zeros((0, 2)), None, None, lower=[-1, -4], upper=[5, 6], integer=integer)
    assert eq.solve(apart, "scip").plan["x"].tolist() == ([5, -4] if sense == "max" else [-1, 6])
    sign = 1.0 if sense == "min" else -1.0
    free = dense(sense, [sign, sign], [[1, 2], [3, 1]], [-4, -7], INF, lower=-INF, integer=integer)
    assert eq.solve(free, "scip").plan["x"] == pytest.approx([-2.0, -1.0])
    fixed = dense(sense, [1.0, 5.0], [[1, 1]], 3, 3, lower=[1, 2], upper=[1, 2], integer=integer)
    assert eq.solve(fixed, "scip").objective == 11.0


@senses
def test_duals_and_reduced_costs_are_the_change_of_the_optimum(sense):
    """Rows of one entry, two-sided rows and symmetric columns included: SCIP would change all three."""
    rng = np.random.default_rng(3)
    for _ in range(3):
        matrix = rng.uniform(0.1, 1.0, size=(5, 5))
        matrix[3], matrix[4] = 0.0, 0.0
        matrix[3, 0], matrix[4, 1] = 2.0, -1.5  # rows of one entry
        matrix[:3, 3] = matrix[:3, 2]  # columns alike
        low, high = np.array([0.3, -INF, 0.2, -INF, -1.0]), np.array([1.5, 1.2, 1.8, 0.9, INF])
        cost, lower, upper = rng.uniform(-1.0, 1.0, size=5), np.zeros(5), np.full(5, 0.7)
        cost[3] = cost[2] + 1e-3

        def optimum(low=low, high=high, lower=lower, upper=upper, matrix=matrix, cost=cost):
            return eq.solve(dense(sense, cost, matrix, low, high, lower=lower, upper=upper), "scip")

        base, step = optimum(), 1e-5
        assert base.termination.reason is Reason.OPTIMAL
        assert base.gap <= 1e-9  # proved by the duals
        for i in range(5):
            e = np.eye(5)[i] * step
            by_row = [optimum(low=low + s * e, high=high + s * e).objective for s in (1, -1)]
            by_bound = [optimum(lower=lower + s * e, upper=upper + s * e).objective for s in (1, -1)]
            assert base.duals["row"][i] == pytest.approx((by_row[0] - by_row[1]) / (2 * step), abs=1e-6)
            assert base.reduced_costs["x"][i] == pytest.approx((by_bound[0] - by_bound[1]) / (2 * step), abs=1e-6)


def test_duals_hold_where_columns_are_alike_and_rows_many():
    """SCIP would break the symmetry by a constraint of its own, and that would take a share of the duals."""
    rows = np.vstack([2 * np.eye(4), 3 * np.ones((1, 4)), 2 * np.ones((1, 4)), 1 - np.eye(4)])
    result = eq.solve(dense("max", np.ones(4), rows, -INF, [6, 6, 6, 6, 19, 19, 1, 1, 1, 1]), "scip")
    assert result.objective == pytest.approx(4 / 3)
    assert result.gap <= 1e-9


def test_a_presolved_lp_has_no_duals_and_says_whose_word_its_bound_is():
    program = dense("max", [1.0, 2.0], [[1, 1], [1, 0]], -INF, [4, 3], upper=3.0)
    assert eq.solve(program, "scip").duals["row"].tolist() == [1.0, 0.0]
    own = {"scip": {"presolving/maxrounds": -1}}
    presolved = eq.solve(program, "scip", backend_options=own)
    assert presolved.objective == presolved.bound == 7.0
    assert presolved.duals is None
    assert any("unverified bound" in note for note in presolved.notes)
    never = dense("min", np.ones(3), [[1, 1, 1], [2, 0, 2]], [5, -2], INF, upper=1.0)
    assert eq.solve(never, "scip", backend_options=own).termination.reason is Reason.INFEASIBLE


@pytest.mark.parametrize(
    ("matrix", "low", "high"),
    [
        ([[1, 1], [1, 1]], [3, -INF], [INF, 2]),
        ([[1, 1]], [3], [INF]),  # its columns' bounds forbid it
        ([[0, 0], [1, 1]], [1, 2], [1, 2]),  # an empty row
        ([[1, 0], [1, 1]], [1.5, 0], [2, 1]),  # a row of one entry
    ],
)
def test_that_a_linear_program_is_infeasible_is_proved(matrix, low, high):
    for sense in ("max", "min"):
        result = eq.solve(dense(sense, [1.0, 1.0], matrix, low, high, upper=1.0), "scip")
        assert result.termination.reason is Reason.INFEASIBLE
        assert result.plan is None
        assert any("is proved" in note for note in result.notes)


def test_a_proof_of_infeasibility_is_found_to_its_end():
    """Left alone, SCIP gives its simplex method a limit on the objective, which stops it without a proof."""
    matrix = [[1, 0, -1, 1, 0, -1, -2], [4, 2, 5, 4, 2, 5, 3], [2, 1, 2, 2, 1, 2, 3], [-3, 0, 0, -3, 0, 0, 3]]
    cost = [0.0, -3.0, 5.0, 0.0, -3.0, 5.0, -4.0]
    program = dense("max", cost, matrix, [-INF, -1, -INF, 10], [1, 1, 5, 10], upper=1.0)
    result = eq.solve(program, "scip")
    assert result.termination.reason is Reason.INFEASIBLE
    assert any("is proved" in note for note in result.notes)


def test_whole_numbers_alone_can_make_it_infeasible():
    program = dense("max", [1.0], [[2.0]], 1.0, 1.0, upper=5.0, integer=True)
    result = eq.solve(program, "scip")
    assert (result.termination.reason, result.bound) == (Reason.INFEASIBLE, -INF)


@pytest.mark.parametrize("integer", [False, True])
@senses
def test_unbounded(sense, integer):
    program = dense(sense, [1.0 if sense == "max" else -1.0, 0.0], [[-1, 1]], -INF, 2, integer=integer)
    result = eq.solve(program, "scip")
    assert result.termination.reason is Reason.UNBOUNDED
    assert (result.plan, result.bound) == (None, INF if sense == "max" else -INF)


@pytest.mark.parametrize(("side", "reason"), [(1.0, Reason.INFEASIBLE), (10.0, Reason.UNBOUNDED)])
def test_infeasible_and_unbounded_are_told_apart(statuses, side, reason):
    """10 x = 1 has no whole solution, and y grows without end: SCIP's presolve says "one of the two" of both."""
    free = [-INF, -INF]
    program = dense("max", [1.0, 1.0], [[10.0, 0.0]], side, side, lower=free, integer=True)
    result = eq.solve(program, "scip")
    assert statuses[0] == "inforunbd"
    assert len(statuses) == 2
    assert result.termination.reason is reason
    assert "SCIP: " in result.termination.message
    assert result.bound == (-INF if reason is Reason.INFEASIBLE else INF)


def test_logarithms_by_tangent_cuts_against_a_closed_form():
    """Two buyers share one good by their budgets; each of two goods goes to the one buyer who wants it."""
    budgets = np.array([3.0, 1.0])
    for utilities, best in (
        ([[2.0], [5.0]], 3 * math.log(2.0 * 3 / 4) + math.log(5.0 / 4)),
        ([[2.0, 0.0], [0.0, 3.0]], 3 * math.log(2.0) + math.log(3.0)),
    ):
        utilities = np.array(utilities)
        build = eq.ProgramBuilder(sense="max")
        x = build.add_columns("x", utilities.shape)
        goods = np.arange(utilities.shape[1])
        build.add_rows("supply", goods.shape, terms=[(goods, x, 1.0)], upper=1.0)
        build.add_logs(budgets, terms=[(np.arange(2)[:, None], x, utilities)])
        result = eq.solve(build.program(), "scip", rel_gap=1e-6)
        assert result.termination.reason is Reason.OPTIMAL
        assert result.objective == pytest.approx(best, rel=1e-6)
        assert result.bound >= best - 1e-9


@senses
def test_an_objective_of_small_numbers_is_no_objective_of_nothing(sense):
    """SCIP's tolerances are absolute: costs of 1e-8 as they are would be solved wrongly, and called optimal."""
    rng = np.random.default_rng(6)
    points = np.array(list(itertools.product([0, 1], repeat=10)))
    sign = 1.0 if sense == "max" else -1.0
    for _ in range(4):
        cost, weights = sign * 1e-8 * rng.uniform(0.1, 1.0, size=10), rng.uniform(0.1, 1.0, size=(3, 10))
        room = weights.sum(axis=1) / 3
        best = sign * (sign * points[(points @ weights.T <= room).all(axis=1)] @ cost).max()
        exact, loose = (
            eq.solve(dense(sense, cost, weights, -INF, room, upper=1.0, integer=True), "scip", rel_gap=0.0, abs_gap=gap)
            for gap in (0.0, 1e-9)
        )
        assert exact.objective == pytest.approx(best, rel=1e-12)
        assert exact.bound == pytest.approx(best, rel=1e-9)
        assert any(point.objective == pytest.approx(best, rel=1e-9) for point in exact.history[:-1])
        assert loose.termination.reason is Reason.OPTIMAL
        linear = eq.solve(dense(sense, cost, weights, -INF, room, upper=1.0), "scip", rel_gap=1e-9)
        assert linear.termination.reason is Reason.OPTIMAL  # its duals, in the program's own unit, prove it
        assert 0 < np.abs(linear.duals["row"]).max() < 1e-6


# -- Limits ------------------------------------------------------------------------------------------------------------


def test_no_time_at_all():
    result = eq.solve(equality_knapsack(), "scip", time_limit=0.0)
    assert (result.termination.reason, result.termination.limit) == (Reason.NO_SOLUTION_FOUND, Limit.TIME)
    assert (result.plan, result.objective, result.bound) == (None, None, INF)
    linear = eq.solve(dense("min", [1.0, 1.0], [[1, 2]], 2, INF), "scip", time_limit=0.0)
    assert (linear.termination.reason, linear.bound) == (Reason.NO_SOLUTION_FOUND, -INF)


def test_a_short_time_keeps_incumbent_bound_and_gap():
    result = until_incumbent(lambda limit: eq.solve(hard(), "scip", time_limit=limit), 0.5)
    assert (result.termination.reason, result.termination.limit) == (Reason.FEASIBLE, Limit.TIME)
    assert result.objective < result.bound < 1.1 * result.objective
    assert result.gap == pytest.approx((result.bound - result.objective) / result.objective)
    assert result.wall_time < SOON_S


def test_running_out_of_memory_is_a_limit():
    result = eq.solve(hard(), "scip", time_limit=5.0, backend_options={"scip": {"limits/memory": 1.0}})
    assert (result.termination.reason, result.termination.limit) == (Reason.NO_SOLUTION_FOUND, Limit.MEMORY)
    assert result.bound == INF


@pytest.mark.parametrize(
    ("own", "limit"),
    [
        ({"limits/nodes": 1}, Limit.NODES),
        ({"limits/totalnodes": 1}, Limit.NODES),
        ({"limits/solutions": 2}, Limit.SOLUTIONS),
        ({"limits/bestsol": 2}, Limit.SOLUTIONS),
        ({"limits/dual": 3242.5}, Limit.METHOD),
        ({"limits/primal": 100.0}, Limit.METHOD),
    ],
)
def test_limits_of_scip_are_limits(own, limit):
    result = eq.solve(hard(), "scip", time_limit=5.0, backend_options={"scip": own})
    assert (result.termination.reason, result.termination.limit) == (Reason.FEASIBLE, limit)
    assert result.objective < result.bound < INF


def test_a_loose_gap_is_honoured():
    program = knapsack(13, size=200, rows=15)
    loose, tight = (eq.solve(program, "scip", rel_gap=gap) for gap in (0.5, 0.02))
    assert loose.termination.reason is tight.termination.reason is Reason.OPTIMAL
    assert tight.gap <= 0.02 < loose.gap <= 0.5  # it stopped sooner
    absolute = eq.solve(program, "scip", rel_gap=0.0, abs_gap=0.5 * loose.objective)
    assert absolute.termination.reason is Reason.OPTIMAL
    assert absolute.bound - absolute.objective <= 0.5 * loose.objective


def test_a_gap_in_the_programs_own_unit_is_honoured():
    """The objective is far from zero, so a gap relative to it would stop at once."""
    near = knapsack(14, size=60, rows=5)
    matrix = near.to_scipy().toarray()
    far = dense("max", near.objective, matrix, -INF, near.row_upper, upper=1.0, integer=True, offset=1e6, gap_unit=10.0)
    result = eq.solve(far, "scip", rel_gap=0.5)
    assert result.termination.reason is Reason.OPTIMAL
    assert result.gap == pytest.approx((result.bound - result.objective) / 10.0)
    assert result.gap <= 0.5


# -- Options -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("common", "parameter", "value", "expected"),
    [
        ("seed", "randomization/randomseedshift", 5, 5),
        ("time_limit", "limits/time", 7.0, None),
        ("abs_gap", "limits/absgap", 0.5, 0.495),
        ("rel_gap", "limits/gap", 0.25, 0.2475),
        ("feasibility_tol", "numerics/feastol", 1e-7, 1e-8),
        ("feasibility_tol", "numerics/feastol", 1e-9, 1e-9),
    ],
)
def test_common_options_reach_scip(monkeypatch, common, parameter, value, expected):
    passed = {}

    class Spy(pyscipopt.Model):
        def optimizeNogil(self):  # noqa: N802
            passed[parameter] = self.getParam(parameter)
            super().optimizeNogil()

    monkeypatch.setattr(pyscipopt, "Model", Spy)
    assert eq.solve(knapsack(16), "scip", **{common: value}).plan is not None
    if common == "time_limit":
        assert 6.0 < passed[parameter] < 7.0  # less what building took
    else:
        assert passed[parameter] == pytest.approx(expected)


def test_the_same_seed_gives_the_same_bits():
    program = knapsack(15, size=60, rows=6)
    first, again, other = (eq.solve(program, "scip", seed=seed, rel_gap=0.02) for seed in (3, 3, 4))
    assert first.plan["x"].tobytes() == again.plan["x"].tobytes()
    assert (first.objective, first.bound) == (again.objective, again.bound)
    assert [(p.objective, p.bound) for p in first.history] == [(p.objective, p.bound) for p in again.history]
    assert other.gap <= 0.02


@pytest.mark.parametrize(
    ("own", "words"),
    [
        ({"limits/gap": 0.1}, "use rel_gap= instead"),
        ({"timing/clocktype": 1}, "use time_limit= instead"),
        ({"nonsense": 1}, "SCIP has no such parameter"),
        ({"limits/nodes": 2.5}, "must be a whole number"),
        ({"limits/nodes": True}, "must be a whole number"),
        ({"misc/usevartable": 1}, "must be True or False"),
        ({"limits/memory": "much"}, "must be a number"),
        ({"branching/scorefunc": 3}, "must be text"),
        ({"branching/scorefunc": "xyz"}, "SCIP does not take this value"),
        ({"limits/nodes": -5}, "SCIP does not take this value"),
        ({"limits/memory": float("nan")}, "SCIP does not take this value"),
        ({"parallel/maxnthreads": 2}, "has no effect: SCIP runs on one thread here"),
        ({"misc/catchctrlc": False}, "pyscipopt loses the interrupts"),
    ],
)
def test_an_own_option_that_is_wrong_is_refused(own, words):
    with pytest.raises(eq.InvalidInput, match=words) as caught:
        eq.solve(knapsack(1), "scip", backend_options={"scip": own})
    assert next(iter(own)) in str(caught.value)


def test_own_options_of_every_kind_are_taken(monkeypatch):
    created = []

    class Spy(pyscipopt.Model):
        def createProbBasic(self, *names):  # noqa: N802
            created.append(self.getParam("misc/usevartable"))
            super().createProbBasic(*names)

    monkeypatch.setattr(pyscipopt, "Model", Spy)
    own = {
        "presolving/maxrounds": 0,
        "limits/memory": 500,  # a whole number is a number
        "misc/usevartable": False,  # holds only for problems created after it
        "branching/scorefunc": "s",
        "limits/nodes": 10**6,
    }
    result = eq.solve(knapsack(1), "scip", rel_gap=0.0, backend_options={"scip": own})
    assert created[-1] is False
    assert result.objective == eq.solve(knapsack(1), "highs", rel_gap=0.0).objective


def test_threads_are_refused():
    with pytest.raises(eq.InvalidInput, match="scip backend cannot honour it"):
        eq.solve(knapsack(1), "scip", threads=2)


def test_the_log_is_silent_unless_asked_for_and_no_file_is_left(capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    eq.solve(knapsack(17), "scip")
    assert capfd.readouterr() == ("", "")
    eq.solve(knapsack(17), "scip", log=True)
    assert "SCIP Status" in capfd.readouterr().out
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(("found", "usable"), [("5.5.0", False), ("6.1.0", False), ("6.2.0", True), ("10.0rc1", True)])
def test_a_pyscipopt_that_is_too_old_is_not_usable(monkeypatch, found, usable):
    monkeypatch.setattr("equipoise.solvers.backend._installed", lambda name: found)
    probed = scip.BACKEND.probe()
    assert (probed.usable, probed.version) == (usable, found)
    assert probed.reason == ("" if usable else f"pyscipopt {found} is too old: pip install 'pyscipopt>=6.2'")


def test_a_pyscipopt_that_is_missing_is_named(monkeypatch):
    monkeypatch.setattr("equipoise.solvers.backend.find_spec", lambda name: None)
    assert scip.BACKEND.probe().reason == "pyscipopt is not installed: pip install 'equipoise[scip]'"


# -- Reports on the way ------------------------------------------------------------------------------------------------


def reports(program, start=None, **options):
    """Everything that the backend itself reports, and its answer."""
    heard = []
    task = Task(problem=program, form="matrix", program=program, start=start)
    answer = scip.BACKEND.solve(task, eq.Options(**options), lambda *said: heard.append(said))
    return heard, answer


@senses
def test_incumbents_and_bounds_are_streamed(sense):
    program = knapsack(18, size=100, rows=6)
    if sense == "min":  # the same in the other sense
        matrix = program.to_scipy().toarray()
        program = dense("min", -program.objective, matrix, -INF, program.row_upper, upper=1.0, integer=True)
    sign = 1.0 if sense == "max" else -1.0
    heard, answer = reports(program, rel_gap=0.01)
    best = sign * program.objective_at(answer.values)
    objectives = [sign * objective for objective, _, _ in heard if objective is not None]
    assert len(set(objectives)) > 1
    assert objectives == sorted(objectives)
    assert objectives[-1] == pytest.approx(best)
    assert heard[0][1] == sign * INF  # nothing is proved yet
    assert all(sign * bound >= best - 1e-6 for _, bound, _ in heard)
    read = [(objective, values) for objective, _, values in heard if values is not None]
    assert read
    for objective, values in read:
        assert program.residuals_at(values).worst <= 1e-6
        assert program.objective_at(values) == pytest.approx(objective)


def test_no_bound_is_better_than_the_last_one():
    """As SCIP frees a solve that hit a limit, it reports the incumbent's value as its bound."""
    result = eq.solve(hard(), "scip", time_limit=0.3)
    assert result.termination.limit is Limit.TIME
    assert all(point.bound >= result.bound - 1e-6 for point in result.history)


def test_incumbents_too_dear_to_read_are_reported_without_their_values(monkeypatch):
    monkeypatch.setattr(scip_model, "FREE_S", -1.0)
    monkeypatch.setattr(scip_model, "READING_SHARE", 0.0)
    heard, answer = reports(knapsack(18, size=100, rows=6), rel_gap=0.02)
    assert [values for _, _, values in heard if values is not None] == []
    assert any(objective is not None for objective, _, _ in heard)
    assert answer.values is not None


def test_an_error_of_the_callers_ends_the_solve():
    def fails(point):
        raise RuntimeError("enough")

    started = time.perf_counter()
    with pytest.raises(RuntimeError, match="enough"):
        eq.solve(hard(), "scip", time_limit=600.0, on_progress=fails)
    assert time.perf_counter() - started < SOON_S


@pytest.mark.skipif(os.name != "posix", reason="sends a signal to itself")
def test_an_interrupt_ends_the_solve_with_what_it_has(capfd):
    def interrupted(point):
        if point.objective is not None and math.isfinite(point.bound):
            os.kill(os.getpid(), signal.SIGINT)

    result = eq.solve(hard(), "scip", time_limit=600.0, on_progress=interrupted)
    assert (result.termination.reason, result.termination.limit) == (Reason.FEASIBLE, Limit.INTERRUPTED)
    assert result.wall_time < SOON_S
    assert result.objective < result.bound
    assert "CTRL-C" in capfd.readouterr().out  # SCIP says so, log or no log


def test_models_are_freed_at_once():
    gc.collect()
    gc.disable()
    try:
        eq.solve(knapsack(1), "scip")
        # By type: a dead weak proxy, which another package may have left, cannot be asked for its class.
        kinds = (pyscipopt.Model, pyscipopt.Eventhdlr)
        left = [found for found in gc.get_objects() if issubclass(type(found), kinds)]
    finally:
        gc.enable()
    assert left == []


# -- Warm starts -------------------------------------------------------------------------------------------------------


def test_a_warm_start_is_accepted_and_survives_any_limit():
    program = hard()
    good = eq.solve(program, "scip", time_limit=0.5)
    for limit in (0.0, 0.1):
        again = eq.solve(program, "scip", time_limit=limit, warm_start=good.plan)
        assert again.notes[0] == f"warm start accepted, objective {good.objective:g}"
        assert again.objective >= good.objective
        assert again.termination.reason is Reason.FEASIBLE
    (objective, bound, values), *_ = reports(program, start=good.plan["x"], time_limit=0.0)[0]
    assert (objective, bound) == (good.objective, INF)  # it is the first incumbent
    assert values.tolist() == good.plan["x"].tolist()


def test_an_incomplete_warm_start_is_completed():
    program = mixed()
    heard, answer = reports(program, start=program.encode({"a": [0, 1, 1]}), rel_gap=0.0)
    assert answer.notes == ("warm start: 3 of 5 columns given, SCIP completes the rest",)
    assert any(values is not None and values[:3].tolist() == [0, 1, 1] for _, _, values in heard)
    assert program.objective_at(answer.values) == pytest.approx(8.0)


def test_a_wrong_warm_start_is_named_and_repaired_in_its_continuous_columns(capfd):
    wrong = eq.solve(mixed(), "scip", warm_start={"a": [1, 1, 1], "b": [0, 0]})
    assert wrong.notes == ("warm start violates the program by 2: SCIP may repair or drop it",)
    assert wrong.objective == 8.0
    eq.solve(mixed(), "scip", warm_start={"a": [0, 1, 1], "b": [4, 0]}, log=True)
    assert "found by completesol heuristic" in capfd.readouterr().out
    whole = eq.solve(knapsack(1), "scip", warm_start={"x": np.ones(30)}, rel_gap=0.0)
    assert whole.objective == eq.solve(knapsack(1), "scip", rel_gap=0.0).objective


def test_a_linear_program_has_its_warm_start_to_fall_back_on():
    program = dense("max", [1.0, 2.0], [[1, 1]], -INF, 4, upper=3.0)
    plan = {"x": [1.0, 2.0]}
    hurried = eq.solve(program, "scip", time_limit=0.0, warm_start=plan)
    assert (hurried.termination.reason, hurried.termination.limit) == (Reason.FEASIBLE, Limit.TIME)
    assert hurried.objective == 5.0
    assert hurried.notes[0].startswith("warm start accepted, objective 5, kept as a fallback: SCIP's simplex method")
    solved = eq.solve(program, "scip", warm_start=plan)
    assert (solved.objective, solved.duals["row"].tolist()) == (7.0, [1.0])
    wrong = eq.solve(program, "scip", warm_start={"x": [3.0, 3.0]})
    assert wrong.notes[0].startswith("warm start dropped: SCIP's simplex method")
