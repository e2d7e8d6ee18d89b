"""Gurobi on markets: logarithms of its own within its licence, tangent cuts beyond, by rows where columns run out."""

from dataclasses import replace

import numpy as np
import pytest

import equipoise as eq
from equipoise.solvers.backend import Claim, Task
from equipoise.solvers.external.gurobi import licence as gurobi_licence
from equipoise.solvers.external.gurobi.backend import BACKEND, LOGS_TOO_MANY
from equipoise.solvers.external.gurobi.row_relaxation import WithinLicence, _Envelopes
from equipoise.solvers.options import Options
from equipoise.solvers.reductions.outer_approximation.points import Terms, first_grid
from equipoise.solvers.reductions.outer_approximation.relaxation import OuterProgram
from equipoise.solvers.result import Reason
from equipoise.validation.instances.markets import random_fisher_market, random_leontief_market

pytest.importorskip("gurobipy")


@pytest.fixture(autouse=True)
def bundled(monkeypatch):
    """Use the licence that comes with gurobipy."""
    monkeypatch.setattr(gurobi_licence, "_places", lambda release: iter(()))
    monkeypatch.delenv("GRB_LICENSE_FILE", raising=False)


def relaxation(market):
    """Return the first relaxation of the market's program: a column for each segment."""
    program = market.program()
    terms = Terms.of(program)
    lower, upper = terms.span(program)
    tangents = first_grid(terms, lower, upper, 2.0)
    return OuterProgram.of(program, terms, tangents, upper=upper, units=tangents.middles()).program


# Columns with the logarithms': 165, 220 and 1,860.
@pytest.mark.parametrize(("buyers", "goods", "native"), [(15, 10, True), (20, 10, False), (60, 30, False)])
def test_logarithms_are_native_within_the_licence_and_cut_beyond(buyers, goods, native):
    market = random_fisher_market("lognormal", buyers, goods)
    result = eq.solve(market, "gurobi", rel_gap=1e-6)
    assert result.termination.reason is Reason.OPTIMAL
    assert result.gap <= 1e-6
    assert (LOGS_TOO_MANY in result.notes) is not native
    assert any(note.startswith("tangent cuts: ") for note in result.notes) is not native
    exact = eq.solve(market, "highs", rel_gap=1e-6)
    assert abs(result.objective - exact.objective) <= 1e-6 * market.total_budget


def test_leontief_markets_go_the_same_way():
    market = random_leontief_market(60, 3, 20)
    result = eq.solve(market, "gurobi", rel_gap=1e-5)
    assert result.termination.reason is Reason.OPTIMAL
    assert LOGS_TOO_MANY in result.notes


def test_beyond_the_licence_is_beyond_the_licence():
    with pytest.raises(eq.LicenseLimit, match=r"^2,010 variables \(30 for logarithms\) and 66 rows; the licence"):
        eq.solve(random_fisher_market("lognormal", 30, 66), "gurobi")


def test_what_bounds_the_licence_is_what_made_the_cuts(monkeypatch):
    """With a full licence nothing is said of it, and no relaxation is stated by rows."""
    market = random_fisher_market("lognormal", 20, 10)
    found = BACKEND.probe()
    monkeypatch.setattr(type(BACKEND), "probe", lambda self: replace(found, limit=""))
    monkeypatch.setattr("equipoise.solvers.external.gurobi.backend._knows_logs", lambda program: False)
    monkeypatch.setattr(WithinLicence, "__init__", lambda *_: pytest.fail("no licence bounds it"))
    result = eq.solve(market, "gurobi", rel_gap=1e-6)
    assert result.termination.reason is Reason.OPTIMAL
    assert LOGS_TOO_MANY not in result.notes


@pytest.mark.parametrize(
    "market",
    [
        random_fisher_market("lognormal", 60, 30),
        random_leontief_market(60, 3, 20),
        random_fisher_market("uniform", 95, 20),
    ],
)
def test_a_relaxation_by_rows_is_the_relaxation_by_columns(market):
    program = relaxation(market)
    assert program.num_columns > 2_000
    task = Task(problem=program, form=program.forms[0], program=program)
    rows = WithinLicence(BACKEND).solve(task, Options(rel_gap=1e-9), lambda *_: None)
    columns = eq.solve(program, "highs", rel_gap=1e-9)
    assert rows.claim is Claim.SOLVED
    assert columns.termination.reason is Reason.OPTIMAL
    scale = max(1.0, abs(columns.objective))
    assert program.residuals_at(rows.values).worst <= 1e-6
    assert program.objective_at(rows.values) == pytest.approx(columns.objective, abs=1e-6 * scale)
    # Its duals, read back, prove the same bound.
    assert program.linear_bound(rows.duals, np.zeros(0)) == pytest.approx(columns.bound, abs=1e-6 * scale)
    assert rows.reduced_costs.shape == (program.num_columns,)


def test_the_envelopes_are_those_of_the_segments():
    program = relaxation(random_fisher_market("lognormal", 5, 4))
    envelopes = _Envelopes.of(program)
    n = len(program.columns["original"])
    for k in range(5):
        own = np.flatnonzero(envelopes.term == k)
        widths, slopes = program.upper[n + own], program.objective[n + own]
        for inside in (0.0, 0.3 * widths[0], widths[0] + 0.5 * widths[1], 2.0 * widths[:-1].sum()):
            filled = np.clip(inside - np.concatenate(([0.0], np.cumsum(widths)[:-1])), 0.0, widths)
            lowest = (envelopes.heights[own] + envelopes.slopes[own] * inside).min()
            assert lowest == pytest.approx(float(slopes @ filled), rel=1e-9, abs=1e-9)


def test_a_limit_of_time_ends_the_rounds_with_what_is_proved():
    result = eq.solve(random_fisher_market("lognormal", 95, 20), "gurobi", rel_gap=1e-9, time_limit=0.0)
    assert result.termination.reason is not Reason.OPTIMAL
    assert result.termination.limit is not None


def test_integer_programs_beyond_are_refused_in_words():
    """Relaxations of integer programs keep their segments: too many of them end the solve with what there is."""
    program = relaxation(random_fisher_market("lognormal", 60, 30))
    integer = replace(program, integer=np.arange(program.num_columns) < 1)
    task = Task(problem=integer, form=integer.forms[0], program=integer)
    with pytest.raises(eq.LicenseLimit, match="3,060 variables and 90 rows"):
        WithinLicence(BACKEND).solve(task, Options(), lambda *_: None)
