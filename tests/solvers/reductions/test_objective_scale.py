"""Small objectives are raised before a solver gets them, and nothing of that is left in the result."""

import numpy as np
import pytest

import equipoise as eq
from equipoise.solvers.backend import Answer, Claim, Task
from equipoise.solvers.external.highs import BACKEND as HIGHS
from equipoise.solvers.reductions.run import raised, raising_factor

GENERAL = [row.name for row in eq.backends() if "MILP" in row.classes]


def knapsack(scale, *, integer=True, offset=0.0, sense="max"):
    rng = np.random.default_rng(0)
    rows, cost = rng.uniform(0.1, 1.0, (4, 16)), rng.uniform(0.1, 1.0, 16)
    build = eq.ProgramBuilder(sense=sense)
    x = build.add_columns("x", (16,), upper=1.0, integer=integer)
    sign = 1.0 if sense == "max" else -1.0
    build.add_rows("row", (4,), terms=[(np.arange(4)[:, None], x, rows)], upper=rows.sum(axis=1) / 3)
    build.set_objective([(x, sign * scale * cost)], offset=scale * offset)
    return build.program()


def usable(name):
    row = next(row for row in eq.backends() if row.name == name)
    if not row.usable:
        pytest.skip(row.reason)


@pytest.mark.parametrize("name", GENERAL)
@pytest.mark.parametrize("scale", [1e-7, 1e-12])
def test_tiny_costs_have_the_same_optimum(name, scale):
    usable(name)
    plain = eq.solve(knapsack(1.0), "highs", rel_gap=1e-9)
    tiny = eq.solve(knapsack(scale), name, rel_gap=1e-6)
    assert tiny.termination.reason is eq.Reason.OPTIMAL
    assert tiny.objective == pytest.approx(scale * plain.objective, rel=2e-6)
    assert tiny.bound == pytest.approx(scale * plain.objective, rel=2e-6)
    assert tiny.gap <= 1e-6


def test_highs_needs_it():
    """Handed over as it is, the same knapsack is called optimal at a fraction of its value."""
    program = knapsack(1e-8)
    task = Task(problem=program, form="matrix", program=program)
    found = HIGHS.solve(task, eq.Options(rel_gap=1e-6), lambda *report: None)
    right = eq.solve(program, "highs", rel_gap=1e-6)
    assert found.claim is Claim.SOLVED
    assert program.objective_at(found.values) < 0.9 * right.objective


@pytest.mark.parametrize("sense", ["max", "min"])
def test_bounds_duals_and_history_come_back_in_the_programs_units(sense):
    plain = eq.solve(knapsack(1.0, integer=False, offset=3.0, sense=sense), "highs")
    tiny = eq.solve(knapsack(2.0**-30, integer=False, offset=3.0, sense=sense), "highs")
    for what in ("objective", "bound"):
        assert getattr(tiny, what) == pytest.approx(2.0**-30 * getattr(plain, what), rel=1e-12)
    assert tiny.duals["row"] == pytest.approx(2.0**-30 * plain.duals["row"], rel=1e-9)
    assert tiny.reduced_costs["x"] == pytest.approx(2.0**-30 * plain.reduced_costs["x"], rel=1e-9)
    seen = []
    eq.solve(knapsack(2.0**-30, sense=sense), "highs", rel_gap=0.0, on_progress=seen.append)
    reported = [point.objective for point in seen if point.objective is not None]
    assert reported
    assert all(abs(each) < 1e-7 for each in reported)


def test_gaps_and_logarithms_are_raised_with_the_rest():
    build = eq.ProgramBuilder(sense="max")
    x = build.add_columns("x", (2,), upper=1.0)
    build.add_logs([1e-6, 2e-6], terms=[([0, 1], x, 1.0)], offsets=1.0)
    program = build.program(gap_unit=3e-6)
    task = Task(problem=program, form="matrix", program=program)
    factor = raising_factor(task)
    larger, options = raised(task, eq.Options(abs_gap=1e-9), factor)
    assert 1.0 <= larger.program.log_weights.max() < 2.0
    assert np.log2(factor) == round(np.log2(factor))
    assert larger.objective_factor == factor
    assert larger.program.gap_unit == 3e-6 * factor
    assert options.abs_gap == 1e-9 * factor
    result = eq.solve(program, "highs", rel_gap=1e-6)
    assert result.objective == pytest.approx(3e-6 * np.log(2.0), rel=1e-5)


def test_a_stop_at_an_objective_is_meant_in_the_programs_units():
    build = eq.ProgramBuilder(sense="max")
    build.set_objective([(build.add_binaries("x", (3,)), [3e-7, 2e-7, 1e-7])])
    program = build.program()
    seen = []

    class Watched(type(HIGHS)):
        def solve(self, task, options, on_progress):
            seen.append(task.objective_factor)
            return Answer(claim=Claim.STOPPED, limit=eq.Limit.METHOD)

    eq.solve(program, Watched())
    assert seen == [2.0**22]
    far, near = ({"highs": {"objective_target": target}} for target in (9e-7, 1e-7))
    assert eq.solve(program, "highs", backend_options=far).objective == pytest.approx(6e-7)
    assert eq.solve(program, "highs", backend_options=near).objective >= 1e-7
