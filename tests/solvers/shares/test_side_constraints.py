"""Throughput with a budget and least rates: the optimum of HiGHS, its ties broken, and proofs that there is no plan."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.optimize import linprog

import equipoise as eq
from equipoise.formulations.program.bounds import proved_bound
from equipoise.solvers.shares.backend import nearest_optimum


def drawn(seed):
    """A small problem whose optimum is often not unique: whole rates from 0 to 3."""
    rng = np.random.default_rng(seed)
    jobs, types = int(rng.integers(2, 9)), int(rng.integers(1, 4))
    rates = rng.integers(0, 4, (jobs, types)).astype(float)
    rows = {}
    if rng.random() < 0.6:
        rows |= {"costs_per_s": rng.integers(0, 4, types).astype(float), "budget_per_s": float(rng.integers(1, 8))}
    if rng.random() < 0.7 or not rows:
        rows["least_rates"] = rates.max(axis=1) * rng.choice([0.0, 0.1, 0.3, 0.6], jobs)
    return eq.MaxSumThroughput(rates, rng.integers(1, 4, jobs), rng.integers(1, 6, types), **rows)


def least_over_optima(problem, slope, objective):
    """Return the least of slope.x over all optimal shares, by an independent solver."""
    job, kind = np.nonzero(problem.rates > 0)
    rates, widths = problem.rates[job, kind], problem.gang_gpus[job]
    rows = [np.where(kind == k, widths, 0.0) for k in range(problem.num_types)]
    sides = [*problem.gpus.astype(float)]
    for j in range(problem.num_jobs):
        rows += [1.0 * (job == j), -rates * (job == j)]
        sides += [1.0, -problem.least[j] + 1e-9]
    if problem.costs_per_s is not None:
        rows.append(problem.costs_per_s[kind] * widths)
        sides.append(problem.budget_per_s)
    rows.append(-rates)
    sides.append(-objective + 1e-9)
    return linprog(slope[job, kind], A_ub=np.array(rows), b_ub=sides, bounds=(0, 1), method="highs").fun


@example(seed=80348)  # no job runs anywhere
@given(seed=st.integers(0, 10**6))
def test_of_all_optima_it_is_the_nearest_to_isolated_shares(seed):
    problem = drawn(seed)
    result, other = eq.solve(problem, "share_prices"), eq.solve(problem, "highs", rel_gap=1e-9)
    assert result.termination.reason is other.termination.reason
    if result.plan is None:
        assert result.termination.reason is eq.Reason.INFEASIBLE
        assert "as prices prove" in result.termination.message
        return
    assert result.objective == pytest.approx(other.objective, rel=1e-8, abs=1e-8)
    assert result.gap <= 1e-9
    if not (problem.rates > 0).any():
        assert not result.plan.shares.any()
        return
    assert result.notes[-1] == "the optimum nearest to isolated shares"
    # A point of a convex set is the nearest to y exactly if no other is further along y - x.
    away = result.plan.shares - problem.isolated_shares
    assert (away * result.plan.shares).sum() <= least_over_optima(problem, away, result.objective) + 1e-6


@given(seed=st.integers(0, 10**6))
def test_the_order_of_jobs_does_not_matter(seed):
    problem = drawn(seed)
    result = eq.solve(problem)
    assert result.backend == "share_prices"
    if result.plan is None:
        return
    order = np.random.default_rng(seed).permutation(problem.num_jobs)
    least = None if problem.least_rates is None else problem.least_rates[order]
    turned = eq.MaxSumThroughput(
        problem.rates[order], problem.gang_gpus[order], problem.gpus, problem.costs_per_s, problem.budget_per_s, least
    )
    assert nearest_optimum(turned).shares == pytest.approx(result.plan.shares[order], abs=1e-6)


def test_ties_by_hand():
    # Two equal jobs on two GPUs, with money for one: any split is optimal, and each gets half.
    halves = eq.MaxSumThroughput([[1.0], [1.0]], [1, 1], [2], costs_per_s=[3.0], budget_per_s=3.0)
    assert nearest_optimum(halves).shares.ravel().tolist() == pytest.approx([0.5, 0.5])
    # The second has to reach .75 of its rate; what is left of the money is the first's.
    least = eq.MaxSumThroughput([[1.0], [1.0]], [1, 1], [2], [3.0], 3.0, least_rates=[0.0, 0.75])
    assert nearest_optimum(least).shares.ravel().tolist() == pytest.approx([0.25, 0.75])


def test_least_rates_that_cannot_be_had_at_once_are_proved_and_said():
    problem = eq.MaxSumThroughput([[1.0], [2.0]], [1, 1], [1], least_rates=[0.75, 1.5])
    result = eq.solve(problem)
    assert result.termination.reason is eq.Reason.INFEASIBLE
    assert "no more than 0.666667 of all least rates" in result.termination.message
    with pytest.raises(eq.NoSolution):
        nearest_optimum(problem)
    program = problem.reach_program()
    solved = eq.solve(program, "highs")
    assert solved.objective == pytest.approx(2 / 3)
    duals = np.concatenate([np.ravel(each) for each in solved.duals.values()])
    assert proved_bound(program, duals) == pytest.approx(2 / 3)


def test_out_of_time_is_said():
    rng = np.random.default_rng(0)
    problem = eq.MaxSumThroughput(
        rng.uniform(1.0, 9.0, (4000, 3)), rng.integers(1, 5, 4000), [900, 700, 500], least_rates=np.full(4000, 0.05)
    )
    result = eq.solve(problem, "share_prices", time_limit=1e-3)
    assert result.termination.reason in (eq.Reason.NO_SOLUTION_FOUND, eq.Reason.FEASIBLE)
    assert result.termination.limit is eq.Limit.TIME
