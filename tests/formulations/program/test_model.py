"""The matrix form: what the builder builds, and exact evaluation against fractions and dense algebra."""

import math
from dataclasses import FrozenInstanceError
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import equipoise as eq
from equipoise.validation.strategies.programs import programs

NAN, INF = math.nan, math.inf
QUARTERS = st.integers(-20, 20).map(lambda quarters: quarters / 4)


def points(program: eq.Program) -> st.SearchStrategy[np.ndarray]:
    return arrays(np.float64, program.num_columns, elements=QUARTERS)


def dense(program: eq.Program) -> np.ndarray:
    """The rows as a dense matrix, entry by entry."""
    matrix = np.zeros((program.num_rows, program.num_columns))
    for i in range(program.num_rows):
        for e in range(program.matrix.starts[i], program.matrix.starts[i + 1]):
            matrix[i, program.matrix.columns[e]] += program.matrix.values[e]
    return matrix


# -- Building ----------------------------------------------------------------------------------------------------------


def test_terms_broadcast():
    build = eq.ProgramBuilder("max")
    grant = build.add_binaries("grant", shape=(3, 2))
    spare = build.add_columns("spare", shape=(2,), lower=-1.0, upper=[4.0, INF])
    rows = build.add_rows(
        "capacity", (2,), terms=[(np.arange(2), grant, np.array([[4], [2], [1]])), ([0, 1], spare, -1.0)], upper=5
    )
    program = build.program()
    assert grant.tolist() == [[0, 1], [2, 3], [4, 5]]
    assert spare.tolist() == [6, 7]
    assert rows.tolist() == [0, 1]
    assert dense(program).tolist() == [[4, 0, 2, 0, 1, 0, -1, 0], [0, 4, 0, 2, 0, 1, 0, -1]]
    assert program.row_upper.tolist() == [5, 5]
    assert program.row_lower.tolist() == [-INF, -INF]
    assert program.lower.tolist() == [0] * 6 + [-1] * 2
    assert program.upper.tolist() == [1] * 6 + [4, INF]
    assert program.integer.tolist() == [True] * 6 + [False] * 2
    assert repr(program) == "<Program MILP (max): 8 columns (6 integer), 2 rows, 8 entries>"


def test_blocks_of_rows_follow_each_other_and_keep_their_shape():
    build = eq.ProgramBuilder("min")
    x = build.add_columns("x", (2,))
    first = build.add_rows("first", (1,), terms=[(0, x, 1.0)], lower=1)
    grid = build.add_rows(
        "grid", (2, 2), terms=[([[0, 1], [2, 3]], x, [[1, 2], [3, 4]])], lower=[[0], [1]], upper=[5, 6]
    )
    program = build.program()
    assert first.tolist() == [0]
    assert grid.tolist() == [[1, 2], [3, 4]]
    assert dense(program).tolist() == [[1, 1], [1, 0], [0, 2], [3, 0], [0, 4]]
    assert program.row_lower.tolist() == [1, 0, 0, 1, 1]
    assert program.row_upper.tolist() == [INF, 5, 6, 5, 6]
    assert program.rows["grid"].tolist() == [[1, 2], [3, 4]]


def test_entries_of_the_same_place_add_up_in_rows_logs_and_objective():
    build = eq.ProgramBuilder("max")
    x = build.add_columns("x", (2,), upper=9.0)
    build.add_rows("row", (1,), terms=[(0, x[[0, 0, 1]], [1.0, 2.0, 5.0]), (0, x[0], 0.5)], upper=1)
    build.set_objective([(x[[1, 1]], [1.0, 2.0]), (x, 10.0)])
    build.add_logs([2.0], terms=[(0, x[[0, 0]], [1.0, 1.0])], offsets=1.0)
    program = build.program()
    assert dense(program).tolist() == [[3.5, 5.0]]
    assert len(program.matrix.values) == 2
    assert program.objective.tolist() == [10.0, 13.0]
    assert program.objective_at(np.array([3.0, 0.0])) == pytest.approx(30 + 2 * math.log(7))


def test_a_new_objective_replaces_the_old_one():
    build = eq.ProgramBuilder("max")
    x = build.add_columns("x", (2,))
    build.set_objective([(x, 1.0)], offset=3.0)
    build.set_objective([(x[0], 2.0)])
    program = build.program()
    assert program.objective.tolist() == [2.0, 0.0]
    assert program.offset == 0.0


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (2, 1, 2)])
def test_blocks_of_any_shape(shape):
    build = eq.ProgramBuilder("min")
    x = build.add_columns("x", shape, upper=1.0)
    rows = build.add_rows("row", shape, terms=[(np.arange(x.size).reshape(shape), x, 1.0)], upper=1.0)
    program = build.program()
    assert x.shape == rows.shape == shape
    assert program.num_columns == program.num_rows == x.size
    assert np.array_equal(dense(program), np.eye(x.size))
    values = np.arange(float(x.size))
    assert program.decode(values)["x"].shape == shape


def test_a_program_of_nothing():
    program = eq.ProgramBuilder("min").program()
    assert (program.num_columns, program.num_rows) == (0, 0)
    assert program.objective_at(np.zeros(0)) == 0.0
    assert program.residuals_at(np.zeros(0)).worst == 0.0
    assert program.linear_bound(np.zeros(0)) == 0.0
    assert program.problem_class is eq.ProblemClass.LP


def refused(build: eq.ProgramBuilder, method: str, *arguments, **options) -> eq.InvalidInput:
    with pytest.raises(eq.InvalidInput) as caught:
        getattr(build, method)(*arguments, **options)
    return caught.value


@pytest.fixture
def build() -> eq.ProgramBuilder:
    build = eq.ProgramBuilder("max")
    build.add_columns("x", (3,))
    return build


@pytest.mark.parametrize("bad", [-1, 3, 99, 0.5, 0.0])
def test_column_indices_must_be_the_blocks_own(build, bad):
    why = "column indices must be whole numbers in [0, 3)"
    assert refused(build, "add_rows", "row", (1,), terms=[(0, [0, bad], 1.0)]).why == why
    assert refused(build, "set_objective", [([0, bad], 1.0)]).why == why
    assert refused(build, "add_logs", [1.0], terms=[(0, [0, bad], 1.0)]).why == why


@pytest.mark.parametrize("bad", [-1, 2, 0.5])
def test_row_indices_count_within_the_block(build, bad):
    build.add_rows("other", (5,), terms=[])
    error = refused(build, "add_rows", "row", (2,), terms=[([0, bad], 0, 1.0)])
    assert error.why == "row indices must be whole numbers in [0, 2)"


@pytest.mark.parametrize("bad", [NAN, INF, -INF])
def test_coefficients_must_be_finite(build, bad):
    error = refused(build, "add_rows", "row", (1,), terms=[(0, [0, 1, 2], [1.0, bad, 1.0])])
    assert (error.field, error.index, error.why) == ("row", (1,), "coefficients must be finite")
    assert refused(build, "set_objective", [([0, 1], [1.0, bad])]).index == (1,)
    assert refused(build, "set_objective", [], offset=bad).field == "offset"
    assert refused(build, "add_logs", [1.0], terms=[(0, 0, bad)]).field == "logs"
    assert refused(build, "add_logs", [1.0], terms=[], offsets=bad).field == "offsets"


@pytest.mark.parametrize("bad", [NAN, INF, -1.0])
def test_log_weights_are_at_least_zero(build, bad):
    error = refused(build, "add_logs", [1.0, bad], terms=[(0, 0, 1.0)])
    assert (error.field, error.index) == ("weights", (1,))


def test_logs_are_for_maximising():
    build = eq.ProgramBuilder("min")
    x = build.add_columns("x", (1,))
    assert refused(build, "add_logs", [1.0], terms=[(0, x, 1.0)]).field == "sense"


@pytest.mark.parametrize(("lower", "upper"), [(2.0, 1.0), (NAN, 1.0), (0.0, NAN), (INF, INF), (-INF, -INF)])
def test_intervals(build, lower, upper):
    error = refused(build, "add_columns", "y", (2,), lower=[0.0, lower], upper=[1.0, upper])
    assert (error.field, error.index) == ("y", (1,))
    error = refused(build, "add_rows", "row", (2,), terms=[], lower=[0.0, lower], upper=[1.0, upper])
    assert (error.field, error.index) == ("row", (1,))


def test_a_mask_is_no_index(build):
    mask = np.array([True, False, True])
    assert "whole numbers" in refused(build, "add_rows", "row", (1,), terms=[(0, mask, 1.0)]).why


@pytest.mark.parametrize("bad", [0.0, -1.0, NAN, INF, "1"])
def test_the_unit_of_gaps_is_positive(build, bad):
    assert refused(build, "program", gap_unit=bad).field == "gap_unit"


def test_shapes_that_do_not_broadcast(build):
    assert refused(build, "add_columns", "v", (2,), integer=[True, False, True]).field == "v.integer"
    assert "do not broadcast" in refused(build, "add_rows", "row", (1,), terms=[(0, [0, 1], [1.0, 2.0, 3.0])]).why
    assert refused(build, "add_columns", "y", (2,), upper=[1.0, 2.0, 3.0]).field == "y.upper"
    assert refused(build, "add_columns", "z", (2,), lower="low").field == "z.lower"
    assert refused(build, "add_rows", "row2", (2,), terms=[], lower=[1.0, 2.0, 3.0]).field == "row2.lower"
    assert refused(build, "add_columns", "w", (-1,)).field == "w.shape"


@pytest.mark.parametrize("name", ["x", "", "no spaces", "1st", 7, None])
def test_names_of_blocks(build, name):
    assert refused(build, "add_columns", name, (1,)).field == "name"


def test_a_refused_block_leaves_the_builder_as_it_was(build):
    refused(build, "add_columns", "y", (2,), lower=1.0, upper=0.0)
    refused(build, "add_rows", "row", (2,), terms=[(0, 99, 1.0)])
    y = build.add_columns("y", (1,))
    row = build.add_rows("row", (1,), terms=[(0, y, 2.0)], upper=1.0)
    program = build.program()
    assert (y.tolist(), row.tolist()) == ([3], [0])
    assert dense(program).tolist() == [[0, 0, 0, 2]]
    assert len(program.lower) == 4


def test_a_sense_that_is_none():
    with pytest.raises(eq.InvalidInput, match="'max' or 'min'"):
        eq.ProgramBuilder("maximise")


@pytest.mark.parametrize(
    ("integer", "logs", "expected"),
    [(False, False, "LP"), (True, False, "MILP"), (False, True, "LOG"), (True, True, "MILOG")],
)
def test_problem_classes(integer, logs, expected):
    build = eq.ProgramBuilder("max")
    x = build.add_columns("x", (2,), upper=1.0, integer=[False, integer])
    if logs:
        build.add_logs([1.0], terms=[(0, x, 1.0)])
    assert build.program().problem_class is eq.ProblemClass[expected]


def test_a_program_is_immutable():
    build = eq.ProgramBuilder("max")
    upper = np.ones(2)
    x = build.add_columns("x", (2,), upper=upper, integer=True)
    build.add_rows("row", (1,), terms=[(0, x, 1.0)], upper=1.0)
    build.add_logs([1.0], terms=[(0, x, 1.0)], offsets=1.0)
    build.set_objective([(x, 1.0)])
    program = build.program()
    upper[0] = 9.0
    assert program.upper.tolist() == [1.0, 1.0]
    with pytest.raises(FrozenInstanceError):
        program.offset = 1.0
    held = [getattr(program, name) for name in ("objective", "lower", "upper", "integer", "row_lower", "row_upper")]
    held += [program.log_weights, program.log_offsets, x, program.columns["x"], program.rows["row"]]
    held += [
        getattr(matrix, part)
        for matrix in (program.matrix, program.log_matrix)
        for part in ("starts", "columns", "values")
    ]
    for array in held:
        assert not array.flags.writeable


def test_what_is_built_later_leaves_an_earlier_program_alone():
    build = eq.ProgramBuilder("max")
    x = build.add_columns("x", (1,), upper=1.0)
    before = build.program()
    build.add_columns("y", (1,))
    build.add_rows("row", (1,), terms=[(0, x, 1.0)])
    assert list(before.columns) == ["x"]
    assert list(before.rows) == []
    assert (before.num_columns, before.num_rows) == (1, 0)


# -- Evaluation --------------------------------------------------------------------------------------------------------


@given(st.data(), programs(integers=True, bounded=False))
def test_the_objective_is_exact(data, program):
    point = data.draw(points(program))
    exact = sum(
        (Fraction(c) * Fraction(x) for c, x in zip(program.objective, point, strict=True)), Fraction(program.offset)
    )
    assert program.objective_at(point) == float(exact)


def test_objective_terms_are_added_without_rounding():
    build = eq.ProgramBuilder("max")
    x = build.add_columns("x", (3,))
    build.set_objective([(x, [1e16, 1.0, -1e16])], offset=1e-3)
    assert build.program().objective_at(np.ones(3)) == 1.001


@given(st.data(), programs(logs=True))
def test_log_terms_against_their_definition(data, program):
    point = data.draw(points(program))
    expected = float(program.objective @ point) + program.offset
    for k, weight in enumerate(program.log_weights):
        entries = slice(program.log_matrix.starts[k], program.log_matrix.starts[k + 1])
        inside = (
            program.log_offsets[k] + program.log_matrix.values[entries] @ point[program.log_matrix.columns[entries]]
        )
        if weight > 0:
            expected += weight * math.log(inside) if inside > 0 else -INF
    assert program.objective_at(point) == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_a_log_of_weight_zero_is_nothing_whatever_is_inside():
    build = eq.ProgramBuilder("max")
    x = build.add_columns("x", (1,))
    build.add_logs([0.0, 2.0], terms=[([0, 1], x, 1.0)], offsets=[-5.0, 1.0])
    assert build.program().objective_at(np.array([1.0])) == pytest.approx(2 * math.log(2))
    assert build.program().objective_at(np.array([-1.0])) == -INF


@given(st.data(), programs(max_rows=6, integers=True, bounded=False))
def test_residuals_against_dense_algebra(data, program):
    point = data.draw(points(program))
    activity = dense(program) @ point
    bound = max(0.0, *(program.lower - point), *(point - program.upper))
    row = max([0.0, *(program.row_lower - activity), *(activity - program.row_upper)])
    integrality = max([0.0, *(abs(x - round(x)) for x in point[program.integer])])
    assert program.residuals_at(point) == eq.Residuals(bound, row, integrality)
    assert program.residuals_at(point).worst == max(bound, row, integrality)
    assert (program.to_scipy().toarray() == dense(program)).all()


def test_residuals_of_a_point_inside_are_zero():
    build = eq.ProgramBuilder("max")
    x = build.add_columns("x", (2,), lower=-1.0, upper=3.0)
    build.add_rows("row", (1,), terms=[(0, x, 1.0)], lower=-2.0, upper=5.0)
    assert build.program().residuals_at(np.array([0.25, 0.5])) == eq.Residuals(0.0, 0.0, 0.0)


@pytest.mark.parametrize("bad", [NAN, INF, -INF])
def test_a_point_that_is_not_finite_is_infinitely_wrong(bad):
    build = eq.ProgramBuilder("max")
    build.add_columns("x", (2,), lower=-INF)
    assert build.program().residuals_at(np.array([0.0, bad])) == eq.Residuals(INF, INF, INF)


@given(programs(), st.floats(-1e6, 1e6))
def test_the_scale_of_gaps(program, objective):
    expected = program.gap_unit if program.gap_unit is not None else max(abs(objective), 1e-9)
    assert program.gap_scale(objective) == expected
    assert program.gap_scale(0.0) > 0


@given(st.data(), programs(integers=True))
def test_encode_undoes_decode(data, program):
    point = data.draw(points(program))
    assert np.array_equal(program.encode(program.decode(point)), point)
    assert program.program() is program


def test_what_is_not_given_to_encode_is_nan():
    build = eq.ProgramBuilder("max")
    build.add_columns("x", (2, 2))
    build.add_columns("y", (1,))
    program = build.program()
    assert np.array_equal(program.encode({"x": [[1, 2], [3, 4]]}), [1, 2, 3, 4, NAN], equal_nan=True)
    with pytest.raises(eq.InvalidInput, match=r"no such block of columns; there are \['x', 'y'\]"):
        program.encode({"z": 1.0})
    with pytest.raises(eq.InvalidInput, match=r"must have shape \(2, 2\)"):
        program.encode({"x": [1.0, 2.0, 3.0]})


# -- Bounds ------------------------------------------------------------------------------------------------------------


@given(st.data(), programs(integers=True))
def test_any_duals_prove_a_bound(data, program):
    result = eq.solve(program, backend="highs", rel_gap=0.0)
    best = program.objective_at(result.require_plan()["x"])
    duals = data.draw(arrays(np.float64, program.num_rows, elements=QUARTERS))
    bound = program.linear_bound(duals)
    tolerance = 1e-6 * (1 + abs(duals).sum())
    if program.sense == "max":
        assert bound >= best - tolerance
    else:
        assert bound <= best + tolerance


@given(programs())
def test_optimal_duals_prove_the_optimum(program):
    result = eq.solve(program, backend="highs")
    objective = program.objective_at(result.require_optimal()["x"])
    duals = result.duals["row"] if program.num_rows else np.zeros(0)
    assert program.linear_bound(duals) == pytest.approx(objective, abs=1e-6)


@given(st.data(), programs(bounded=False))
def test_duals_prove_nothing_wrong_of_unbounded_programs(data, program):
    duals = data.draw(arrays(np.float64, program.num_rows, elements=QUARTERS))
    bound = program.linear_bound(duals)
    result = eq.solve(program, backend="highs")
    sign = 1.0 if program.sense == "max" else -1.0
    if result.termination.reason is eq.Reason.OPTIMAL:
        assert sign * (bound - result.objective) >= -1e-6 * (1 + abs(duals).sum())
    else:  # feasible by construction, so unbounded
        assert result.termination.reason is eq.Reason.UNBOUNDED
        assert bound == sign * INF


def test_rounding_against_an_infinite_bound_is_not_infinity_but_a_true_slope_is():
    build = eq.ProgramBuilder("max")
    x = build.add_columns("x", (1,))
    build.add_rows("row", (1,), terms=[(0, x, 0.1 + 0.2)], upper=3.0)
    build.set_objective([(x, 1.0)])
    program = build.program()
    assert program.linear_bound(np.array([1 / 0.3])) == pytest.approx(10.0)
    assert program.linear_bound(np.array([3.3])) == pytest.approx(10.0)  # cheaper than need be: the row bounds x itself
    assert program.linear_bound(np.array([4.0])) == 12.0  # dearer than need be: a bound, but a weak one
    build = eq.ProgramBuilder("max")
    x = build.add_columns("x", (2,))
    build.add_rows("row", (1,), terms=[(0, x, [1.0, -1.0])], upper=3.0)
    build.set_objective([(x, [1.0, 0.0])])
    endless = build.program()
    assert all(endless.linear_bound(np.array([dual])) == INF for dual in (0.0, 1.0, 2.0))


def test_the_dual_of_a_missing_side_counts_as_nothing():
    build = eq.ProgramBuilder("max")
    x = build.add_columns("x", (1,), upper=2.0)
    build.add_rows("row", (1,), terms=[(0, x, 1.0)], lower=1.0)
    build.set_objective([(x, 1.0)], offset=0.5)
    assert build.program().linear_bound(np.array([7.0])) == 2.5
