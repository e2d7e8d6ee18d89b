"""Statements on sharing: they hold on a part of the full counts, and fail for a wrong answer; the table of ratios."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from examples import examples
from shared_data import DATA

import equipoise as eq
from equipoise.validation.contract.sharing import pair_trouble, simulated_objective
from equipoise.validation.instances.sharing import measured_ratios, random_group, random_pair
from equipoise.validation.statements import sharing as module
from equipoise.validation.statements.sharing import interval, sharing_statements
from equipoise.validation.statements.verify import verify

TABLE = DATA / "gavel" / "interference_1gpu.csv"
# `make verify-full` runs 5,000 examples; a twentieth of them here in CI.
FULL = 5000
NEEDS_TABLE = pytest.mark.skipif(not TABLE.exists(), reason=f"{TABLE} is not here")


@pytest.fixture
def table(tmp_path):
    def written(*rows):
        path = tmp_path / "pairs.csv"
        path.write_text("\n".join(["gpu,job_a,job_b,xi_a,xi_b", *rows]) + "\n")
        return path

    return written


def by_name(tallies):
    return {tally.statement.split(":")[0]: tally for tally in tallies}


def names_here(monkeypatch, *names):
    rows = [row for row in eq.backends() if row.name in names]
    monkeypatch.setattr(module, "backends", lambda *_, **__: rows)


def test_the_closed_form_and_highs_agree_with_brute_force_and_groups_with_many_delays(monkeypatch):
    names_here(monkeypatch, "highs", "delay_candidates")
    count = examples(FULL // 20)
    tallies = [check() for check in sharing_statements(count, 2026, None)]
    promised = [tally for tally in tallies if tally.promised]
    assert len(promised) == 5
    for tally in promised:
        assert tally.held == tally.examples, tally
        assert tally.examples == (4 * count if "brute force" in tally.statement else count)


@pytest.mark.thorough
def test_every_other_backend_agrees(monkeypatch):
    names = [row.name for row in eq.backends(random_pair(np.random.default_rng(0)), usable=True) if row.name != "highs"]
    names_here(monkeypatch, *names)
    tallies = [check() for check in sharing_statements(examples(FULL // 20), 5, None)[: len(names)]]
    assert all("brute force" in tally.statement for tally in tallies)
    assert [tally for tally in tallies if not tally.examples or tally.held < tally.examples] == []


def test_the_sign_test_errs_on_a_fifth_of_drawn_pairs():
    tally = module._drawn_sign_test(0)
    rate = 1 - tally.held / tally.examples
    assert tally.examples == 20_000
    assert 0.21 < rate < 0.24
    assert f"{rate:.1%}" in tally.witness
    pair = eval(tally.problem, {"PairSharing": eq.PairSharing})
    slope = pair.running_ratio + 2 * pair.waiting_ratio - 2 * pair.running_ratio * pair.waiting_ratio
    assert (slope >= 0) != eq.solve(pair).plan.share


@NEEDS_TABLE
def test_the_sign_test_errs_on_measured_pairs():
    ratios = measured_ratios(TABLE)
    assert ratios.shape == (636, 2)
    tally = module._measured_sign_test(ratios, 0)
    assert tally.examples == 636 * 32
    assert 0.12 < 1 - tally.held / tally.examples < 0.16


def test_without_a_table_the_statement_is_skipped_and_gives_the_option():
    (skipped,) = (each for each in verify(["gpu-sharing"], examples=1) if each.verdict == "skipped")
    assert "V100" in skipped.statement
    assert skipped.witness == "needs a table of measured pairs: --interference FILE"


def test_a_small_table_is_read(table):
    path = table("v100,A,B,1.25,1.5", "v100,A,C,,2.0", "k80,A,B,3.0,3.0", "v100,B,C,1.0,1.0")
    assert measured_ratios(path).tolist() == [[1.25, 1.5], [1.0, 1.0]]
    assert measured_ratios(path, "k80").tolist() == [[3.0, 3.0]]


@pytest.mark.parametrize(
    ("row", "message"),
    [("v100,A,B,one,2", "line 2: .* not one, 2"), ("v100,A,B,0.5,2", "line 2"), ("k80,A,B,2,2", "no complete pair")],
)
def test_a_faulty_table_is_refused(table, row, message):
    with pytest.raises(eq.InvalidInput, match=message):
        measured_ratios(table(row))


def test_a_table_without_its_columns_is_refused(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text("gpu,xi_a\nv100,1.0\n")
    with pytest.raises(eq.InvalidInput, match="has no column xi_b"):
        measured_ratios(path)


# -- Wrong answers -----------------------------------------------------------------------------------------------------


def test_a_wrong_plan_or_bound_of_a_pair_is_found():
    problem = eq.PairSharing(running_s=100.0, waiting_s=1.0, running_ratio=2.0, waiting_ratio=2.0)
    result = eq.solve(problem)
    assert pair_trouble(problem, result) == ""
    assert float(simulated_objective(problem, Fraction(0))) == 51.5
    for change, message in (
        ({"objective": 51.5001}, "instead of 51.5"),
        ({"bound": 52.0}, "above the optimum"),
        ({"plan": problem.plan_of(1.0)}, "no candidate"),
        ({"termination": eq.Termination(eq.Reason.INFEASIBLE)}, "infeasible"),
    ):
        assert message in pair_trouble(problem, replace(result, **change)).lower()


@pytest.mark.parametrize("fault", ["longest delay", "objective"])
def test_a_group_that_is_not_optimal_fails(monkeypatch, fault):
    def worse(problem, *names, **options):
        result = eq.solve(problem, *names, **options)
        if fault == "objective":
            return replace(result, objective=result.objective * (1 - 1e-6))
        plan = problem.plan_of(problem.longest_s)
        return replace(result, plan=plan, objective=problem.evaluate(plan)[0])

    names_here(monkeypatch)
    monkeypatch.setattr(module, "solve", worse)
    failing = [each for each in verify(["gpu-sharing"], examples=10) if each.fails]
    assert len(failing) == 3
    for verdict in failing:
        group = eval(verdict.problem, {"GroupSharing": eq.GroupSharing})
        assert isinstance(group, eq.GroupSharing)


def test_a_backend_that_takes_the_other_end_fails(monkeypatch):
    def other(problem, *names, **options):
        result = eq.solve(problem, *names, **options)
        plan = problem.plan_of(problem.running_s if result.plan.share else 0.0)
        return replace(result, plan=plan, objective=problem.evaluate(plan)[0])

    names_here(monkeypatch, "highs")
    monkeypatch.setattr(module, "solve", other)
    tally = sharing_statements(5, 0, None)[0]()
    assert tally.held < tally.examples == 20


def test_draws_cover_what_they_should():
    pairs = [random_pair(np.random.default_rng(k)) for k in range(300)]
    assert {pair.objective for pair in pairs} == {"mean_jct", "weighted_jct", "makespan"}
    equal = sum(pair.running_ratio == pair.waiting_ratio for pair in pairs)
    assert 40 < equal < 150
    assert max(pair.running_ratio for pair in pairs) > 10
    assert min(min(pair.running_ratio, pair.waiting_ratio) for pair in pairs) >= 1
    assert {len(random_group(np.random.default_rng(k)).running_s) for k in range(50)} == {1, 2, 3, 4}


def test_the_interval_covers_its_rate():
    low, high = interval(20, 100)
    assert (round(low, 4), round(high, 4)) == (0.1334, 0.2888)
    assert interval(0, 50)[0] == pytest.approx(0.0, abs=1e-12)
