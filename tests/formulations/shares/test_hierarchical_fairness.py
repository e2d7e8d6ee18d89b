"""Shares of queues: the stages of the definition in fractions, closed forms on one type, relations, and proofs."""

from fractions import Fraction

import numpy as np
import pytest
from examples import fewer
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

import equipoise as eq
from equipoise.validation.strategies.shares import hierarchies

BACKENDS = ("share_prices", "level_programs")


def largest(objective, table, limits):
    """Return the maximum of objective.x over x >= 0, table x <= limits, in fractions: two phases, by Bland's rule."""
    rows, columns = len(table), len(objective)
    tableau = [[*row, *(Fraction(int(i == r)) for i in range(rows)), limit] for r, (row, limit) in
               enumerate(zip(table, limits, strict=True))]  # fmt: skip
    basis = [columns + r for r in range(rows)]

    def pivot(row, column):
        scale = tableau[row][column]
        tableau[row] = [value / scale for value in tableau[row]]
        for r in range(rows):
            if r != row and tableau[r][column]:
                factor = tableau[r][column]
                tableau[r] = [a - factor * b for a, b in zip(tableau[r], tableau[row], strict=True)]
        basis[row] = column

    def climb(costs):
        while True:
            gains = [costs[c] - sum(costs[basis[r]] * tableau[r][c] for r in range(rows)) for c in range(len(costs))]
            entering = next((c for c, gain in enumerate(gains) if gain > 0), None)
            if entering is None:
                return sum(costs[basis[r]] * tableau[r][-1] for r in range(rows))
            falling = [r for r in range(rows) if tableau[r][entering] > 0]
            pivot(min(falling, key=lambda r: (tableau[r][-1] / tableau[r][entering], basis[r])), entering)

    if min(limits) < 0:  # one artificial column makes the start feasible; then it is driven out
        for row in tableau:
            row.insert(-1, Fraction(-1))
        pivot(min(range(rows), key=lambda r: tableau[r][-1]), columns + rows)
        assert climb([Fraction(0)] * (columns + rows) + [Fraction(-1)]) == 0
        if columns + rows in basis:
            row = basis.index(columns + rows)
            pivot(row, next(c for c in range(columns + rows) if tableau[row][c]))
        for row in tableau:
            del row[-2]
    return climb([*objective, *([Fraction(0)] * rows)])


def fractions(problem):
    """Return rates in units of the level, and P, in fractions, from the definition."""
    weights = problem.weights.reshape(problem.num_queues, -1) * np.ones(problem.num_types)
    tau = [[Fraction(float(rate)) for rate in row] for row in problem.rates]
    jobs, types = range(problem.num_jobs), range(problem.num_types)
    whole = [
        sum(tau[j][k] * Fraction(weights[problem.queue[j], k]) * int(problem.gpus[k]) for k in types) for j in jobs
    ]
    worth = [[int(problem.gang_gpus[j]) * tau[j][k] / whole[j] for k in types] for j in jobs]
    time = [[Fraction(int(i == j)) for i in jobs for _ in types] for j in jobs]
    capacity = [[Fraction(int(problem.gang_gpus[i])) * (m == k) for i in jobs for m in types] for k in types]
    return worth, [*time, *capacity], [Fraction(1)] * len(jobs) + [Fraction(int(m)) for m in problem.gpus]


def by_stages(problem):
    """Return the rates of all jobs, in fractions: the heads of the queues rise together, and stop one after another."""
    worth, table, limits = fractions(problem)
    jobs, types = problem.num_jobs, problem.num_types
    rate = [[worth[j][k] * (i == j) for i in range(jobs) for k in range(types)] for j in range(jobs)]
    waiting = {q: [j for j in range(jobs) if problem.queue[j] == q] for q in range(problem.num_queues)}
    settled = {}
    while any(waiting.values()):
        heads = {jobs_of[0]: q for q, jobs_of in waiting.items() if jobs_of}
        start = {h: sum(r for j, r in settled.items() if problem.queue[j] == q) for h, q in heads.items()}
        kept = [[*(-v for v in rate[j]), Fraction(0)] for j in settled]
        rising = [[*(-v for v in rate[h]), Fraction(1)] for h in heads]
        objective = [Fraction(0)] * (jobs * types) + [Fraction(1)]
        floors = [-settled[j] for j in settled]
        every = [[*row, Fraction(0)] for row in table]
        level = largest(objective, [*every, *kept, *rising], [*limits, *floors, *(start[h] for h in heads)])
        least = {**settled, **{h: level - start[h] for h in heads}}
        stopped = []
        for h in heads:
            others = [i for i in least if i != h]
            most = largest(rate[h], [*table, *([-v for v in rate[i]] for i in others)],
                           [*limits, *(-least[i] for i in others)])  # fmt: skip
            if most == least[h]:
                stopped.append(h)
        assert stopped
        for h in stopped:
            settled[h] = least[h]
            waiting[heads[h]].remove(h)
    return [settled[j] for j in range(jobs)]


def by_levels(problem):
    """Return the rates that are lexicographically best in the levels of the queues up to each job, in fractions."""
    worth, table, limits = fractions(problem)
    jobs, types = problem.num_jobs, problem.num_types
    upto = [[i <= j and problem.queue[i] == problem.queue[j] for i in range(jobs)] for j in range(jobs)]
    levels = [[worth[i][k] * upto[j][i] for i in range(jobs) for k in range(types)] for j in range(jobs)]
    below = [[-v for v in row] for row in levels]
    fixed = {}
    while len(fixed) < jobs:
        kept = [[*below[j], Fraction(int(j not in fixed))] for j in range(jobs)]
        every, floors = [[*row, Fraction(0)] for row in table], [-fixed.get(j, Fraction(0)) for j in range(jobs)]
        objective = [Fraction(0)] * (jobs * types) + [Fraction(1)]
        level = largest(objective, [*every, *kept], [*limits, *floors])
        least = [fixed.get(j, level) for j in range(jobs)]
        for j in set(range(jobs)) - set(fixed):
            others = [i for i in range(jobs) if i != j]
            rows = [*table, *(below[i] for i in others)]
            if largest(levels[j], rows, [*limits, *(-least[i] for i in others)]) == level:
                fixed[j] = level
    before = [max((i for i in range(j) if upto[j][i]), default=None) for j in range(jobs)]
    return [fixed[j] - (0 if i is None else fixed[i]) for j, i in enumerate(before)]


def solved(problem, backend="share_prices", rel_gap=1e-9):
    result = eq.solve(problem, backend, rel_gap=rel_gap)
    assert result.termination.reason is eq.Reason.OPTIMAL, result
    assert result.notes[-1] == "the optimum nearest to isolated shares"
    assert result.residuals.worst <= 1e-11
    return result


def agree(problem, first, second):
    """Rates within 1e-8 of the highest rate of each job."""
    assert first / problem.highest == pytest.approx(second / problem.highest, abs=1e-8)


@pytest.mark.thorough
@fewer(2)
@given(problem=hierarchies())
def test_the_rates_are_those_of_the_stages_in_fractions(problem):
    expected = np.array([float(rate) for rate in by_stages(problem)])
    for backend in BACKENDS:
        agree(problem, problem.rates_at(solved(problem, backend).plan.shares), expected)


@pytest.mark.thorough
@fewer(2)
@given(problem=hierarchies(max_jobs=5))
def test_the_stages_end_at_the_lexicographic_optimum_of_the_levels(problem):
    assert by_levels(problem) == by_stages(problem)


@pytest.mark.thorough
@given(problem=hierarchies(max_jobs=25, max_types=4, max_queues=5))
def test_the_backends_agree(problem):
    first, second = (solved(problem, backend) for backend in BACKENDS)
    agree(problem, problem.rates_at(first.plan.shares), problem.rates_at(second.plan.shares))
    assert first.plan.shares == pytest.approx(second.plan.shares, abs=1e-6)  # the nearest ones: one rule for ties
    assert first.objective == pytest.approx(second.objective, rel=1e-9)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(4))
def test_the_backends_agree_on_more_jobs(seed):
    rng = np.random.default_rng(seed)
    jobs, types, queues = 200, 3, 5
    rates = rng.uniform(1.0, 10.0, (jobs, 1)) * rng.uniform(0.3, 1.0, (jobs, types))
    weights = np.exp(-np.arange(queues)[:, None] * rng.uniform(-1.0, 1.0, types))
    gpus = rng.integers(10, 400, types)
    problem = eq.HierarchicalFairness(rates, rng.choice([1, 2, 4], jobs), gpus, rng.integers(0, queues, jobs), weights)
    first, second = (solved(problem, backend) for backend in BACKENDS)
    agree(problem, problem.rates_at(first.plan.shares), problem.rates_at(second.plan.shares))


def filled(gpus, weights, demands):
    """Return weighted max-min shares of the GPUs, in fractions: PCS's rule, without its snapping."""
    shares, rest, open_ = [Fraction(0)] * len(demands), Fraction(gpus), {q for q, d in enumerate(demands) if d > 0}
    while open_ and rest > 0:
        unit = rest / sum(weights[q] for q in open_)
        full = {q for q in open_ if demands[q] - shares[q] <= unit * weights[q]}
        for q in full or open_:
            given_now = demands[q] - shares[q] if full else unit * weights[q]
            shares[q] += given_now
            rest -= given_now
        open_ = open_ - full if full else set()
    return shares


@given(problem=hierarchies(max_jobs=12, max_types=1, max_queues=4))
def test_on_one_type_queues_have_the_shares_of_weighted_fair_queues(problem):
    gpus, gangs = int(problem.gpus[0]), [int(g) for g in problem.gang_gpus]
    demands = [sum(g for g, q in zip(gangs, problem.queue, strict=True) if q == p) for p in range(problem.num_queues)]
    left = filled(gpus, [Fraction(float(w)) for w in problem.weights.ravel()], demands)
    assert sum(left) == min(gpus, sum(demands))
    for backend in BACKENDS:
        shares = solved(problem, backend).plan.shares[:, 0]
        used = np.bincount(problem.queue, weights=shares * gangs, minlength=problem.num_queues)
        assert used == pytest.approx([float(share) for share in left], abs=1e-9)
        rest = list(left)
        for j, q in enumerate(problem.queue):  # inside a queue, jobs in order have all their GPUs until none are left
            mine = min(rest[q], Fraction(gangs[j]))
            assert shares[j] == pytest.approx(float(mine / gangs[j]), abs=1e-9)
            rest[q] -= mine


@pytest.mark.thorough
@given(problem=hierarchies(max_jobs=10))
def test_with_a_queue_for_each_job_it_is_max_min_fairness_with_water_filling(problem):
    alone = eq.HierarchicalFairness(problem.rates, problem.gang_gpus, problem.gpus, np.arange(problem.num_jobs))
    known = eq.MaxMinFairness(problem.rates, problem.gang_gpus, problem.gpus, water_filling=True)
    plan = eq.solve(known, "share_prices", rel_gap=1e-9).require_optimal()
    for backend in BACKENDS:
        shares = solved(alone, backend).plan.shares
        assert shares == pytest.approx(plan.shares, abs=1e-7)
        assert eq.solve(known, backend).plan.shares == pytest.approx(plan.shares, abs=1e-7)


@given(problem=hierarchies(max_jobs=10), seed=st.integers(0, 10**6))
def test_relations_between_problems(problem, seed):
    rng = np.random.default_rng(seed)
    base = solved(problem).plan.shares

    def made(jobs=slice(None), **changed):
        data = {"rates": problem.rates, "gang_gpus": problem.gang_gpus, "queue": problem.queue}
        data = {name: values[jobs] for name, values in data.items()}
        data |= {"gpus": problem.gpus, "weights": problem.weights} | changed
        return solved(eq.HierarchicalFairness(**data)).plan.shares

    units = 2.0 ** rng.integers(-9, 9, (problem.num_jobs, 1))  # of a step, for each job
    assert made(rates=problem.rates * units) == pytest.approx(base, abs=1e-7)
    assert made(weights=problem.weights * 8.0) == pytest.approx(base, abs=1e-7)
    names = rng.permutation(problem.num_queues + 1)[: problem.num_queues]  # of queues; one more is empty
    weights = np.ones((problem.num_queues + 1, *problem.weights.shape[1:]))
    weights[names] = problem.weights
    assert made(queue=names[problem.queue], weights=weights) == pytest.approx(base, abs=1e-7)
    order = np.argsort(problem.queue, kind="stable")  # only the order inside a queue counts
    assert made(order) == pytest.approx(base[order], abs=1e-7)
    wide = problem.weights.reshape(problem.num_queues, -1) * np.ones(problem.num_types)
    rates = np.column_stack([problem.rates, np.zeros(problem.num_jobs)])  # and one type that no job can use
    useless = made(rates=rates, gpus=np.append(problem.gpus, 3), weights=np.column_stack([wide, wide[:, 0]]))
    agree(problem, problem.rates_at(useless[:, :-1]), problem.rates_at(base))
    assert (useless[:, -1] == 0).all()


def rises(problem, rates):
    """Return the rate that each job could reach if all others kept what they have at its level; stated by linprog."""
    jobs, types = problem.rates.shape
    starts = np.array([rates[:j][problem.queue[:j] == problem.queue[j]].sum() for j in range(jobs)])
    each = np.kron(np.eye(jobs), np.ones(types))
    capacity = np.vstack([(problem.gang_gpus[:, None] * (np.arange(types) == k)).ravel() for k in range(types)])
    need = each * (problem.worth / problem.highest[:, None]).ravel()
    reached = np.zeros(jobs)
    for j in range(jobs):
        floors = np.clip(starts[j] + rates[j] - starts, 0.0, rates) * (1 - 1e-12) / problem.highest
        floors[j] = 0.0
        found = linprog(
            -need[j], A_ub=np.vstack([each, capacity, -need]),
            b_ub=np.concatenate([np.ones(jobs), problem.gpus, -floors]),
            bounds=[(0.0, 1.0 if rate > 0 else 0.0) for rate in problem.rates.ravel()],
            options={"primal_feasibility_tolerance": 1e-10, "presolve": False},
        )  # fmt: skip
        assert found.status == 0
        reached[j] = -found.fun * problem.highest[j]
    return reached


@given(problem=hierarchies(max_jobs=12, max_types=4))
def test_no_job_can_rise_unless_another_falls(problem):
    rates = problem.rates_at(solved(problem).plan.shares)
    assert (rises(problem, rates) <= rates + 1e-7 * problem.highest).all()


@given(problem=hierarchies(max_jobs=8), seed=st.integers(0, 10**6))
def test_whatever_the_prices_no_job_rises_above_its_proved_level(problem, seed):
    rng = np.random.default_rng(seed)
    best = solved(problem).plan
    drawn = rng.random((2, problem.num_types)) * 10.0 ** rng.integers(-14, 1, (2, problem.num_types))
    for shares, prices in (
        (best.shares, np.vstack([drawn, best.level_prices + 1e-12 * drawn[:1]])),
        (best.shares * rng.uniform(0.5, 1.0, (problem.num_jobs, 1)), best.level_prices),
        (problem.isolated_shares * problem.runnable, drawn),
    ):
        plan = eq.GpuShares(shares, level_prices=prices)
        rates = problem.rates_at(shares)
        reach = problem.levels(shares) - rates + rises(problem, rates)
        for settled in (1e-9, 1e-3):
            assert (reach <= problem.proved_levels(plan, settled) + 1e-6 * problem.highest).all()


@given(problem=hierarchies(), data=st.data())
def test_a_plan_in_which_a_job_has_less_is_not_proved(problem, data):
    best = solved(problem).plan
    running = np.flatnonzero(best.shares.sum(axis=1) > 0)
    j = data.draw(st.sampled_from(list(running)))
    shares = best.shares.copy()
    shares[j] *= 0.7
    worse = eq.GpuShares(shares, best.prices, level_prices=best.level_prices)
    lost = 0.3 * problem.rates_at(best.shares)[j]
    assert problem.shortfall(worse) >= lost / min(problem.highest[j], problem.levels(best.shares)[j]) * (1 - 1e-6)
    assert problem.proved_bound(worse) >= problem.evaluate(best)[0] * (1 - 1e-9)


def test_a_plan_that_serves_the_later_job_first_is_short():
    problem = eq.HierarchicalFairness([[1.0]] * 2, [1, 1], [1], [0, 0])
    best = solved(problem).plan
    assert best.shares.ravel().tolist() == [1.0, 0.0]
    turned = eq.GpuShares(best.shares[::-1].copy(), best.prices, level_prices=best.level_prices)
    assert problem.evaluate(turned)[0] == 0.0
    assert problem.shortfall(turned) == 1.0
    assert problem.shortfall(best) == 0.0


def test_a_job_that_must_wait_for_one_type_leaves_the_other_to_the_next():
    """The second job wants only the type that the first one fills; the third runs beside them."""
    problem = eq.HierarchicalFairness([[2.0, 1.0], [1.0, 0.0], [0.0, 1.0]], [4, 4, 4], [4, 4], [0, 0, 0])
    for backend in BACKENDS:
        assert solved(problem, backend).plan.shares == pytest.approx(np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]]))


def test_a_golden_case():
    """Two queues: the first one has the weight of three quarters of the fast GPUs and a quarter of the slow ones."""
    rates = [[3.0, 1.0], [3.0, 1.0], [1.0, 1.0], [2.0, 1.0], [3.0, 2.0]]
    problem = eq.HierarchicalFairness(rates, [2, 2, 1, 2, 4], [4, 4], [0, 0, 0, 1, 1], [[0.75, 0.25], [0.25, 0.75]])
    rates = [Fraction(3, 5), Fraction(1, 5), Fraction(4, 17), Fraction(4, 5), Fraction(4, 17)]
    assert by_stages(problem) == rates
    for backend in BACKENDS:
        shares = solved(problem, backend).plan.shares
        assert shares == pytest.approx(np.array([[1, 0], [0, 1], [0, 16 / 17], [1, 0], [0, 9 / 34]]), abs=1e-9)
        assert problem.queue_levels(shares) == pytest.approx([88 / 85, 88 / 85])


@given(problem=hierarchies(max_jobs=8, orders=6))
def test_rates_and_weights_over_many_orders_of_magnitude(problem):
    first, second = (eq.solve(problem, backend, rel_gap=1e-6) for backend in BACKENDS)
    assert first.gap <= 1e-6
    agree(problem, problem.rates_at(first.plan.shares), problem.rates_at(second.plan.shares))


def test_an_empty_queue_changes_nothing_and_the_same_problem_has_the_same_bits():
    jobs = {"rates": [[1.0, 2.0]] * 3, "gang_gpus": [1, 2, 3], "gpus": [2, 1], "queue": [2, 0, 2]}
    problem = eq.HierarchicalFairness(**jobs)
    plan = solved(problem).plan
    assert problem.num_queues == 3
    assert problem.queue_levels(plan.shares)[1] == 0.0
    again = solved(eq.HierarchicalFairness(**jobs, weights=[5.0, 1.0, 5.0])).plan
    assert plan.shares == pytest.approx(again.shares)
    assert plan.shares.tobytes() == solved(problem).plan.shares.tobytes()


def test_no_general_backend_takes_the_first_level_for_all():
    problem = eq.HierarchicalFairness([[1.0]], [1], [1], [0])
    with pytest.raises(eq.UnsupportedProblem, match="share_prices"):
        eq.solve(problem, "highs")
    assert eq.solve(problem).backend == "share_prices"


@pytest.mark.parametrize(
    ("changed", "field", "message"),
    [
        ({"rates": [[1.0], [0.0]]}, "rates", "can run on no type"),
        ({"queue": [0, 2]}, "queue", "weights has 2 queues"),
        ({"queue": [0, -1]}, "queue", "at least 0"),
        ({"queue": [0]}, "queue", "rates"),
        ({"queue": [0, 0.5]}, "queue", "0.5"),
        ({"weights": [1.0, 0.0]}, "weights", "greater than 0"),
        ({"weights": [1.0, float("nan")]}, "weights", "finite"),
        ({"weights": [[1.0, 1.0], [1.0, 1.0]]}, "weights", "1 columns, as rates has"),
        ({"weights": [1e-308, 1e-308], "gpus": [1]}, "weights", "out of range"),
        ({"weights": []}, "weights", "empty"),
        ({"gang_gpus": [1, 0]}, "gang_gpus", "at least 1"),
        ({"gpus": [0]}, "gpus", "at least 1"),
    ],
)
def test_bad_input_is_refused_by_field(changed, field, message):
    data = {"rates": [[1.0], [2.0]], "gang_gpus": [1, 1], "gpus": [2], "queue": [0, 1], "weights": [1.0, 2.0]}
    with pytest.raises(eq.InvalidInput, match=message) as error:
        eq.HierarchicalFairness(**data | changed)
    assert error.value.field == field
