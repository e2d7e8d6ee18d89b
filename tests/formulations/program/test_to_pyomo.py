"""A program as a Pyomo model: the round trip, names, side constraints, and reading values back."""

import math
from dataclasses import replace

import numpy as np
import pytest

import equipoise as eq
from equipoise.formulations.program.data import Csr

pyo = pytest.importorskip("pyomo.environ", reason="pyomo is not installed")

from pyomo.repn import generate_standard_repn  # noqa: E402 - after the skip

from equipoise.formulations.program.to_pyomo import pyomo_constraints, pyomo_variables  # noqa: E402


def read_back(program, model):
    """Return the program that a model states, by what Pyomo itself makes of each component."""
    variables = pyomo_variables(program, model)
    number = {id(variable): j for j, variable in enumerate(variables)}
    rows = np.zeros((program.num_rows, program.num_columns))
    row_lower, row_upper = np.full(program.num_rows, -math.inf), np.full(program.num_rows, math.inf)
    for i, constraint in enumerate(pyomo_constraints(program, model)):
        if constraint is None:
            continue
        low, high = pyo.value(constraint.lower), pyo.value(constraint.upper)
        repn = generate_standard_repn(constraint.body)
        assert repn.is_linear()
        assert repn.constant == 0
        for coefficient, variable in zip(repn.linear_coefs, repn.linear_vars, strict=True):
            if id(variable) in number:
                rows[i, number[id(variable)]] = coefficient
        row_lower[i] = -math.inf if low is None else low
        row_upper[i] = math.inf if high is None else high
    repn = generate_standard_repn(model.objective.expr)
    objective = np.zeros(program.num_columns)
    for coefficient, variable in zip(repn.linear_coefs, repn.linear_vars, strict=True):
        objective[number[id(variable)]] = coefficient
    sides = np.array([variable.bounds for variable in variables], dtype=object).reshape(-1, 2)
    return {
        "rows": rows,
        "row_lower": row_lower,
        "row_upper": row_upper,
        "objective": objective,
        "offset": repn.constant,
        "sense": "max" if model.objective.sense == pyo.maximize else "min",
        "lower": np.array([-math.inf if low is None else low for low in sides[:, 0]]),
        "upper": np.array([math.inf if high is None else high for high in sides[:, 1]]),
        "integer": np.array([variable.is_integer() or variable.is_binary() for variable in variables]),
    }


def random_program(seed, sense):
    rng = np.random.default_rng(seed)
    build = eq.ProgramBuilder(sense=sense)
    lower = rng.choice([0.0, -2.5, -math.inf], (3, 4))
    a = build.add_columns("a", (3, 4), lower=lower, upper=rng.choice([2.5, 7.0, math.inf], (3, 4)))
    b = build.add_binaries("b", (5,), upper=rng.choice([0.0, 1.0], 5))
    c = build.add_columns("c", (2,), lower=-1, upper=9, integer=[True, False])
    d = build.add_columns("d", ())
    build.add_columns("none", (0, 3))
    everything = np.concatenate([a.ravel(), b, c, d.ravel()])
    matrix = rng.integers(-3, 4, (4, len(everything))).astype(float)
    rows = np.arange(4)[:, None]
    build.add_rows("range", (4,), terms=[(rows, everything, matrix)], lower=rng.integers(-9, 0, 4), upper=9.5)
    build.add_rows("below", (2, 2), terms=[(rows, everything, matrix / 3)], upper=rng.random((2, 2)))
    build.add_rows("above", (4,), terms=[(rows, everything, matrix)], lower=rng.random(4))
    build.add_rows("equal", (), terms=[(0, d, 1.0), (0, c, [0.1, 0.2])], lower=1 / 3, upper=1 / 3)
    build.set_objective([(everything, rng.integers(-2, 3, len(everything)) / 7)], offset=-0.1)
    return build.program()


@pytest.mark.parametrize("sense", ["max", "min"])
@pytest.mark.parametrize("seed", range(5))
def test_the_round_trip_changes_no_number(seed, sense):
    program = random_program(seed, sense)
    model = program.to_pyomo()
    read = read_back(program, model)
    np.testing.assert_array_equal(read["rows"], program.to_scipy().toarray())
    for name in ("row_lower", "row_upper", "objective", "offset", "sense", "lower", "upper", "integer"):
        np.testing.assert_array_equal(read[name], getattr(program, name), err_msg=name)
    assert model.name == "unknown"
    assert model.b[0].domain is pyo.Binary
    assert model.c[0].domain is pyo.Integers
    assert model.a[2, 3].domain is pyo.Reals
    assert model.d.is_continuous()
    assert model.equal.equality
    assert len(model.none) == 0


def test_pyomos_own_standard_form_is_the_programs():
    pytest.importorskip("pyomo", minversion="6.8", reason="pyomo before 6.8 has no form of mixed rows")
    program = random_program(3, "min")
    model = program.to_pyomo()
    from pyomo.repn.plugins.standard_form import LinearStandardFormCompiler

    form = LinearStandardFormCompiler().write(model, mixed_form=True)
    number = {id(variable): j for j, variable in enumerate(pyomo_variables(program, model))}
    place = {id(row): i for i, row in enumerate(pyomo_constraints(program, model))}
    found = np.zeros((program.num_rows, program.num_columns))
    columns = [number[id(column)] for column in form.columns]
    for values, (row, _) in zip(form.A.toarray(), form.rows, strict=True):
        found[place[id(row)], columns] = values
    np.testing.assert_array_equal(found, program.to_scipy().toarray())


def test_names_that_are_taken_get_an_ending():
    build = eq.ProgramBuilder(sense="max")
    for name in ("grant", "grant_columns", "name", "objective", "dual", "zero", "lambda", "grant_index"):
        build.add_columns(name, (2,), upper=1.0)
    x = build.add_columns("x", (2,), upper=3.0)
    for name in ("grant", "x", "x_rows", "solutions"):
        build.add_rows(name, (2,), terms=[(np.arange(2), x, 1.0)], upper=2.0)
    build.set_objective([(x, 1.0)])
    program = build.program()
    model = program.to_pyomo()
    variables = {each.name for each in model.component_objects(pyo.Var)}
    constraints = {each.name for each in model.component_objects(pyo.Constraint)}
    assert variables == {
        "grant",
        "grant_columns",
        "name_columns",
        "objective_columns",
        "dual_columns",
        "zero_columns",
        "lambda",
        "grant_index_columns",
        "x",
    }
    assert constraints == {"grant_rows", "x_rows", "x_rows_rows", "solutions_rows"}
    read = read_back(program, model)
    np.testing.assert_array_equal(read["rows"], program.to_scipy().toarray())
    np.testing.assert_array_equal(read["row_upper"], program.row_upper)


def test_columns_and_rows_of_no_block_go_by_their_number():
    program = replace(
        random_program(0, "max"),
        columns={"first": np.array([[2, 0]]), "again": np.array([0, 1]), "twice": np.array([3, 3])},
        rows={"one": np.array([4])},
    )
    model = program.to_pyomo()
    assert sorted(model.first.keys()) == [(0, 0), (0, 1)]
    assert sorted(model.other_columns.keys()) == sorted(set(range(program.num_columns)) - {0, 2})
    assert model.component("again") is None
    assert model.component("twice") is None
    assert 4 not in model.other_rows
    read = read_back(program, model)
    np.testing.assert_array_equal(read["rows"], program.to_scipy().toarray())
    np.testing.assert_array_equal(read["lower"], program.lower)


def empty_rows(lower, upper):
    build = eq.ProgramBuilder(sense="max")
    x = build.add_columns("x", (2,), upper=1.0)
    build.add_rows("empty", (1,), terms=[(0, x, 0.0)], lower=lower, upper=upper)
    build.set_objective([(x[0], 1.0)])
    return build.program()


@pytest.mark.parametrize(("lower", "upper"), [(-1, 1), (0, 0), (-math.inf, 0), (-math.inf, math.inf), (0, math.inf)])
def test_an_empty_row_that_is_true_is_left_out(lower, upper):
    model = empty_rows(lower, upper).to_pyomo()
    assert len(model.empty) == 0
    assert model.component("zero") is None


@pytest.mark.parametrize(("lower", "upper"), [(1, 2), (1, 1), (-math.inf, -1), (1, math.inf)])
def test_an_empty_row_that_is_false_keeps_the_model_infeasible(lower, upper):
    pytest.importorskip("highspy")
    model = empty_rows(lower, upper).to_pyomo()
    assert len(model.empty) == 1
    solved = pyo.SolverFactory("appsi_highs").solve(model, load_solutions=False)
    assert str(solved.solver.termination_condition) == "infeasible"


def test_log_terms_are_pyomos_own():
    rng = np.random.default_rng(1)
    build = eq.ProgramBuilder(sense="max")
    x = build.add_columns("x", (3, 2), upper=1.0)
    build.add_logs([1.0, 2.0, 0.0], terms=[(np.arange(3)[:, None], x, rng.random((3, 2)))], offsets=[0.5, 0.0, -9.0])
    build.add_logs([3.0], terms=[], offsets=2.0)
    build.set_objective([(x, 0.25)], offset=1.0)
    program = build.program()
    model = program.to_pyomo()
    point = rng.random(6)
    for variable, value in zip(pyomo_variables(program, model), point, strict=True):
        variable.value = value
    model.zero.value = 0.0
    assert pyo.value(model.objective) == pytest.approx(program.objective_at(point), rel=1e-14)


def test_a_side_constraint_on_a_windows_grants_holds_in_its_plan():
    pytest.importorskip("highspy")
    jobs = [
        eq.WindowJob(id=name, gpus=2, finished_epochs=0, total_epochs=6, regimes=[eq.Regime(6, 120.0)])
        for name in ("a", "b", "c")
    ]
    window = eq.ScheduleWindow(jobs, gpus=4, rounds=5)
    program = window.program("time_indexed")
    model = program.to_pyomo()
    solver = pyo.SolverFactory("appsi_highs")
    solver.solve(model)
    free = window.decode(program.values_from_pyomo(model), None, "time_indexed")
    best = program.objective_at(program.values_from_pyomo(model))

    model.apart = pyo.Constraint(range(5), rule=lambda m, t: m.grant[0, t] + m.grant[1, t] <= 1)
    model.late = pyo.Constraint(expr=model.grant[2, 0] == 0)
    solver.solve(model)
    values = program.values_from_pyomo(model)
    plan = window.decode(values, None, "time_indexed")
    grants = values[program.columns["grant"]]
    assert (grants[0] + grants[1] <= 1 + 1e-6).all()
    assert grants[2, 0] == pytest.approx(0, abs=1e-6)
    assert program.residuals_at(values).worst < 1e-6
    assert program.objective_at(values) < best
    assert type(plan) is type(free)


def test_values_of_a_model_that_is_not_solved():
    program = random_program(1, "max")
    with pytest.raises(
        eq.InvalidInput, match=r"model = 'a\[0,0\]': has no value: let a solver find and load a solution"
    ):
        program.values_from_pyomo(program.to_pyomo())


def test_values_of_another_programs_model():
    with pytest.raises(eq.InvalidInput, match=r"lacks a variable of a: it belongs to another program"):
        random_program(1, "max").values_from_pyomo(empty_rows(0, 0).to_pyomo())


def test_a_column_that_nothing_mentions_has_a_value_from_the_start():
    build = eq.ProgramBuilder(sense="max")
    x = build.add_columns("x", (2,), upper=1.0)
    lower, upper = [-5.0, 0.5, -math.inf, 2.5], [-0.5, 3.0, math.inf, 9.0]
    unused = build.add_columns("unused", (4,), lower=lower, upper=upper, integer=[True, True, False, False])
    build.add_rows("free", (1,), terms=[(0, unused, 1.0)])
    build.set_objective([(x, 1.0)])
    program = build.program()
    model = program.to_pyomo()
    for j in range(2):
        model.x[j].value = 1.0
    np.testing.assert_array_equal(program.values_from_pyomo(model), [1.0, 1.0, -1.0, 1.0, 0.0, 2.5])


def test_entries_of_zero_are_no_entries():
    program = replace(
        empty_rows(0, 0), matrix=Csr(np.array([0, 2]), np.array([0, 1]), np.array([0.0, 2.0])), row_upper=np.ones(1)
    )
    model = program.to_pyomo()
    assert [each.name for each in generate_standard_repn(model.empty[0].body).linear_vars] == ["x[1]"]
