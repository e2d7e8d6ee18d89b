"""The parts of the window planner: bounds that hold, cuts that hold, kernels that equal plain Python."""

import itertools
import math
import os
import subprocess
import sys

import numpy as np
import pytest
from examples import examples

import equipoise as eq
from equipoise.formulations.window import kernels as window_kernels
from equipoise.solvers.window import kernels as planner_kernels
from equipoise.solvers.window.cuts import _deepest, _patterns, violated_cuts
from equipoise.solvers.window.dual import branches, rounded, solve_dual
from equipoise.validation.instances.window import random_window


def holds(bound, value, window):
    """A bound may be short of a value by the rounding of their sums only."""
    return bound >= value - 1e-12 * max(1.0, abs(value), window.tables.weight_sum)


@pytest.mark.parametrize("restarts", [False, True])
def test_the_dual_bounds_the_optimum_and_every_branch(draw_small, exhausted, restarts):
    rng = np.random.default_rng(31 + restarts)
    tight = []
    for _ in range(120):
        window = draw_small(rng, restarts=restarts)
        found = exhausted(window)
        dual = solve_dual(window)
        assert dual.bound <= 0.0
        assert holds(dual.bound, found.best, window)
        tight.append((dual.bound - found.best) / window.tables.weight_sum)
        counts = np.array(list(found.values))
        value = np.array(list(found.values.values()))
        most = np.minimum(window.tables.needs, window.rounds)
        for _ in range(4):
            ends = np.sort(rng.integers(0, most + 1, size=(2, len(most))), axis=0)
            floor, ceiling = ends[0], np.where(rng.random(len(most)) < 0.3, window.rounds, ends[1])
            if window.gang_gpus @ floor > window.gpus * window.rounds:
                continue  # nothing is in it; see the next test
            inside = ((counts >= floor) & (counts <= ceiling)).all(axis=1)
            branch = solve_dual(window, floor, ceiling)
            if inside.any():
                assert holds(branch.bound, value[inside].max(), window)
    assert np.median(tight) < 0.2  # and it is no bound that anything would satisfy


def test_a_branch_that_asks_more_than_there_is_bounds_nothing_above_its_floor():
    jobs = [eq.WindowJob(id=i, gpus=1, finished_epochs=1, total_epochs=9, regimes=[eq.Regime(8, 120.0)]) for i in "ab"]
    window = eq.ScheduleWindow(jobs, gpus=1, rounds=4)
    full = np.array([4, 4])
    assert solve_dual(window, np.array([3, 3]), full).bound < -1e6
    # As much as there is: the bound is finite, and near the one schedule's value.
    half = solve_dual(window, np.array([2, 2]), np.array([2, 2])).bound
    value = window.tables.value[:, 2].sum() - window.tables.makespan_price * window.tables.makespan(np.array([2, 2]))
    assert half == pytest.approx(value, abs=1e-9)


def test_multipliers_are_dual_feasible_and_the_bound_is_theirs(draw_small):
    rng = np.random.default_rng(32)
    for _ in range(60):
        window = draw_small(rng)
        dual, tables = solve_dual(window), window.tables
        assert dual.gpu_price >= 0.0
        assert (dual.own_rates >= 0.0).all()
        split = dual.rates - dual.own_rates
        mu = float(split[0] / tables.branch_weights[0])  # the price of the sum branch
        assert split == pytest.approx(mu * tables.branch_weights, abs=1e-15)
        assert mu >= -1e-15
        assert mu + dual.own_rates.sum() <= tables.makespan_price * (1 + 1e-12) + 1e-300
        terms = dual.gpu_price * window.gpus * window.rounds
        for j in range(len(window.gang_gpus)):
            terms += max(
                tables.value[j, n] - dual.gpu_price * window.gang_gpus[j] * n - dual.rates[j] * tables.remaining[j, n]
                for n in range(min(window.rounds, int(tables.needs[j])) + 1)
            )
        assert dual.bound == pytest.approx(min(terms, 0.0), rel=1e-9, abs=1e-12)


def best_multipliers(window):
    """The least bound any multipliers give, by linear programming."""
    from scipy.optimize import linprog

    tables, (N, columns) = window.tables, window.tables.value.shape
    n, rows = np.tile(np.arange(columns), N), np.repeat(np.arange(N), columns)
    left = tables.remaining.ravel()
    at = np.arange(N * columns)
    # Columns: GPU price, mu_0, mu_j, and the best net value of each job.
    matrix = np.zeros((N * columns + 1, 2 + 2 * N))
    matrix[at, 0], matrix[at, 1] = -window.gang_gpus[rows] * n, -tables.branch_weights[rows] * left
    matrix[at, 2 + rows], matrix[at, 2 + N + rows] = -left, -1.0
    matrix[-1, 1 : 2 + N] = 1.0
    cost = np.concatenate(([window.gpus * window.rounds, 0.0], np.zeros(N), np.ones(N)))
    sides = np.append(-tables.value.ravel(), tables.makespan_price)
    free = [(0, None)] * (2 + N) + [(None, None)] * N
    return min(0.0, float(linprog(cost, A_ub=matrix, b_ub=sides, bounds=free).fun))


@pytest.mark.parametrize("makespan_weight", [0.0, 1e-3, 1.0, 10.0, 100.0])
def test_its_multipliers_are_nearly_the_best_there_are(makespan_weight):
    for seed in range(3):
        window = random_window(np.random.default_rng(seed), jobs=80, gpus=24, makespan_weight=makespan_weight)
        least, dual = best_multipliers(window), solve_dual(window)
        assert dual.bound >= least - 1e-7 * window.tables.weight_sum
        assert dual.bound <= least + 1e-6 * window.tables.weight_sum


def test_its_multipliers_are_nearly_the_best_on_small_windows_too(draw_small):
    rng = np.random.default_rng(37)
    for _ in range(examples(300)):
        window = draw_small(rng)
        least, dual = best_multipliers(window), solve_dual(window)
        assert dual.bound >= least - 1e-7 * window.tables.weight_sum
        assert dual.bound <= least + 1e-6 * window.tables.weight_sum


@pytest.mark.parametrize("restarts", [False, True])
def test_branches_cover_what_they_split(draw_small, exhausted, restarts):
    rng = np.random.default_rng(33 + restarts)
    split = 0
    for _ in range(800):
        window = draw_small(rng, restarts=restarts)
        queue, found = [solve_dual(window)], None
        for _ in range(3):  # branches of branches too
            dual = queue.pop(0)
            children = branches(window, dual)
            if not children:
                break
            split += 1
            found = found or exhausted(window)
            for counts, value in found.values.items():
                n = np.array(counts)
                if (n >= dual.floor).all() and (n <= dual.ceiling).all():
                    mine = [c for c in children if (n >= c.floor).all() and (n <= c.ceiling).all()]
                    assert mine
                    assert all(holds(child.bound, value, window) for child in mine)
            queue += children
    assert split > 20


@pytest.mark.parametrize("restarts", [False, True])
def test_what_could_be_better_includes_all_that_is(draw_small, exhausted, restarts):
    rng = np.random.default_rng(35 + restarts)
    dropped = 0
    for _ in range(120):
        window = draw_small(rng, restarts=restarts)
        found, dual = exhausted(window), solve_dual(window)
        for objective in (found.best, found.best - 1e-3 * window.tables.weight_sum, sorted(found.values.values())[0]):
            possible = dual.possible(objective)
            dropped += int((~possible).sum())
            for counts, value in found.values.items():
                if value >= objective:
                    assert possible[np.arange(len(counts)), list(counts)].all(), (window, counts, value, objective)
    assert dropped > 100


def test_the_nearest_choices_are_those_that_forgo_least(draw_small):
    rng = np.random.default_rng(37)
    for _ in range(40):
        dual = solve_dual(draw_small(rng))
        for count in (1, 2, 3, 9):
            near = dual.nearest(count)
            assert (near.sum(axis=1) >= min(count, dual.net.shape[1])).all()
            for row, chosen in zip(dual.net, near, strict=True):
                assert chosen.all() or row[chosen].min() > row[~chosen].max()


def test_rounding_fits_the_cluster_and_bounds_of_branches(draw_small):
    rng = np.random.default_rng(38)
    windows = [draw_small(rng) for _ in range(80)]
    windows += [random_window(rng, jobs=60, gpus=16, makespan_weight=w) for w in (0.0, 1e-3, 10.0)]
    for window in windows:
        dual = solve_dual(window)
        counts = rounded(window, dual)
        assert counts.shape == window.gang_gpus.shape
        assert (counts >= 0).all()
        assert (counts <= window.rounds).all()


@pytest.mark.thorough
def test_cuts_are_kept_by_every_packable_schedule_and_broken_by_what_they_cut(draw_small, exhausted):
    rng = np.random.default_rng(39)
    found_any = 0
    for _ in range(150):
        window = draw_small(rng)
        packable = exhausted(window).packable
        known = {tuple(n) for n in packable.tolist()}
        most = np.minimum(window.tables.needs, window.rounds)
        every = [n for n in itertools.product(*(range(m + 1) for m in most))
                 if window.gang_gpus @ n <= window.gpus * window.rounds]  # fmt: skip
        for n in [every[i] for i in rng.permutation(len(every))[:12]]:
            cuts = violated_cuts(window, np.array(n))
            assert not (cuts and n in known), (window, n)  # nothing packable is ever cut off
            found_any += len(cuts)
            for cut in cuts:
                assert cut.coefficients @ np.array(n) > cut.upper
                assert (packable @ cut.coefficients <= cut.upper + 1e-9).all()
    assert found_any > 20


def test_the_deepest_cut_is_the_dual_of_mixing_patterns():
    from scipy.optimize import linprog

    rng = np.random.default_rng(40)
    mixed = 0
    for _ in range(60):
        widths = np.unique(rng.integers(2, 9, size=3))
        gpus, total = int(rng.integers(8, 20)), int(rng.integers(2, 8))
        patterns = _patterns(widths, gpus)
        most = np.minimum(int(rng.integers(1, 5)), gpus - patterns @ widths).astype(float)
        rounds = rng.integers(0, 2 * total, size=len(widths)).astype(float)
        alpha = _deepest(patterns, most, rounds, total)
        mix = linprog(-most, A_eq=np.vstack([np.ones(len(patterns)), patterns.T]), b_eq=np.append(total, rounds))
        assert (alpha is None) == (mix.status == 2)
        if alpha is None:
            continue
        mixed += 1
        assert total * (most - patterns @ alpha).max() + alpha @ rounds == pytest.approx(-mix.fun, abs=1e-6)
    assert mixed > 20


def test_patterns_are_all_that_fit_a_round():
    widths, gpus = np.array([2, 3, 5]), 11
    patterns = {tuple(p) for p in _patterns(widths, gpus).tolist()}
    assert patterns == {p for p in itertools.product(range(12), repeat=3) if widths @ p <= gpus}
    assert _patterns(np.array([1, 2, 3]), 5000) is None


def test_best_fit_equals_all_subsets():
    rng = np.random.default_rng(41)
    for _ in range(examples(300)):
        count = int(rng.integers(0, 9))
        changes = rng.integers(-6, 7, size=count)
        changes[changes == 0] = 1
        losses = rng.choice([0.0, 0.1, 0.5, 1.0, 2.5], size=count) * rng.uniform(0.5, 1.0, size=count)
        slack, price = int(rng.integers(0, 12)), float(rng.uniform(0.0, 1.0))
        chosen = planner_kernels.best_fit(changes, losses, slack, price, 64)
        best = math.inf
        for subset in itertools.product((False, True), repeat=count):
            filled = int(changes[list(subset)].sum()) if count else 0
            if filled <= slack:
                best = min(best, float(losses[list(subset)].sum()) + price * (slack - filled))
        filled = int(changes[chosen].sum())
        assert filled <= slack
        assert float(losses[chosen].sum()) + price * (slack - filled) == pytest.approx(best, abs=1e-12)


def test_best_fit_never_overfills_however_short_its_span():
    rng = np.random.default_rng(42)
    for _ in range(examples(200)):
        changes = rng.choice([-4, -3, -2, -1, 1, 2, 3, 4], size=10)
        losses, slack = rng.uniform(0.0, 1.0, size=10), int(rng.integers(0, 9))
        span = int(rng.integers(1, 8))
        chosen = planner_kernels.best_fit(changes, losses, slack, 0.3, span)
        filled = int(changes[chosen].sum())
        assert filled <= min(slack, span)
        assert losses[chosen].sum() + 0.3 * (slack - filled) <= 0.3 * slack + 1e-12


def test_the_nearest_change_is_the_cheapest_allowed():
    rng = np.random.default_rng(43)
    for _ in range(60):
        N, T, span = 6, 5, int(rng.integers(1, 9))
        net, counts, gang_gpus = rng.normal(size=(N, T + 1)), rng.integers(0, T + 1, size=N), rng.integers(1, 4, size=N)
        floor = np.minimum(counts, rng.integers(0, 2, size=N))
        ceiling, needs = np.maximum(counts, rng.integers(2, T + 1, size=N)), rng.integers(1, 2 * T, size=N)
        movable = rng.random(N) < 0.8
        to, loss = planner_kernels.nearest_change(net, counts, gang_gpus, movable, floor, ceiling, needs, span)
        for j in range(N):
            allowed = [n for n in range(floor[j], min(ceiling[j], needs[j]) + 1)
                       if n != counts[j] and abs(n - counts[j]) * gang_gpus[j] <= span and movable[j]]  # fmt: skip
            cheapest = min((max(0.0, net[j, counts[j]] - net[j, n]) for n in allowed), default=math.inf)
            assert loss[j] == pytest.approx(cheapest)
            assert to[j] in allowed if allowed else to[j] == counts[j]


def same(left, right):
    left, right = (x if isinstance(x, tuple) else (x,) for x in (left, right))
    for a, b in zip(left, right, strict=True):
        if a is None and b is None:
            continue
        np.testing.assert_allclose(np.asarray(a, dtype=float), np.asarray(b, dtype=float), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    "name", ["longest_branch", "best_rounds", "gpu_rounds", "best_price", "best_fit", "nearest_change"]
)
def test_kernels_of_the_dual_equal_their_plain_twins(name):
    rng = np.random.default_rng(44)
    kernel = getattr(planner_kernels, name)
    for _ in range(25):
        N, T = int(rng.integers(2, 9)), int(rng.integers(1, 7))
        worth = -np.sort(rng.exponential(size=(N, T + 1)), axis=1)[:, ::-1].copy()
        left = np.maximum(
            0.0, rng.uniform(1.0, 9.0, size=(N, 1)) - np.arange(T + 1) * rng.uniform(0.5, 1.0, size=(N, 1))
        )
        gang_gpus = rng.integers(1, 5, size=N)
        gang_gpus.setflags(write=False)  # as the planner passes it: another type is compiled anew
        floor, ceiling = rng.integers(0, 2, size=N), np.full(N, T)
        order = rng.permutation(N)
        long, free = np.sort(order[: N // 2]), np.sort(order[N // 2 :])
        outs = [[np.zeros(N), np.zeros(N, np.int64), np.zeros(N, np.int64)] for _ in range(2)]
        price, budget = float(rng.uniform(0.0, 0.5)), float(rng.uniform(0.01, 1.0))
        for function, (rates, small, large) in zip((kernel, kernel.py_func), outs, strict=True):
            changes, losses = worth.shape[1] - gang_gpus, np.abs(worth[:, 0])
            arguments = {
                "longest_branch": (worth, left, gang_gpus, long, price, budget, floor, ceiling, rates, small, large),
                "best_rounds": (worth, gang_gpus, free, price, floor, ceiling, small, large),
                "gpu_rounds": (gang_gpus, free, ceiling),
                "best_price": (
                    worth,
                    left,
                    gang_gpus,
                    rng.random(N) * 0 + 0.25,
                    free,
                    long,
                    float(N * T),
                    budget,
                    0.1,
                    floor,
                    ceiling,
                ),
                "best_fit": (changes, losses, 7, price, 20),
                "nearest_change": (
                    worth,
                    ceiling - 1 + floor * 0,
                    gang_gpus,
                    gang_gpus > 1,
                    floor,
                    ceiling,
                    ceiling,
                    6,
                ),
            }
            rates[:] = 0
            result = function(*arguments[name])
            outs[0 if function is kernel else 1].append(result)
        same(tuple(outs[0][:3]), tuple(outs[1][:3]))
        same(outs[0][3], outs[1][3])


@pytest.mark.parametrize("name", ["longest_branch", "best_price", "best_rounds", "best_fit", "nearest_change"])
@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf, 1e308])
def test_kernels_of_the_dual_stay_within_their_arrays_whatever_the_numbers(name, odd):
    """Plain first, where an index beyond an array is an IndexError; compiled, it would read or write other memory."""
    rng = np.random.default_rng(47)
    kernel = getattr(planner_kernels, name)
    N, T = 4, 3
    for _ in range(40):
        worth = -np.sort(rng.exponential(size=(N, T + 1)), axis=1)[:, ::-1].copy()
        left = np.sort(rng.uniform(0.0, 9.0, size=(N, T + 1)), axis=1)[:, ::-1].copy()
        for numbers in (worth, left):
            numbers[rng.random((N, T + 1)) < rng.choice([0.0, 0.3, 1.0])] = odd
        price, budget, guess = (odd if rng.random() < 0.5 else rng.random() for _ in range(3))
        gang_gpus, floor, ceiling = rng.integers(1, 5, size=N), rng.integers(0, 2, size=N), np.full(N, T)
        gang_gpus.setflags(write=False)
        order = rng.permutation(N)
        long, free = np.sort(order[: N // 2]), np.sort(order[N // 2 :])
        results = []
        for function in (kernel.py_func, kernel):
            rates, small, large = np.zeros(N), np.zeros(N, np.int64), np.zeros(N, np.int64)
            arguments = {
                "longest_branch": (worth, left, gang_gpus, order, price, budget, floor, ceiling, rates, small, large),
                "best_price": (
                    worth,
                    left,
                    gang_gpus,
                    np.full(N, 0.25),
                    free,
                    long,
                    8.0,
                    budget,
                    guess,
                    floor,
                    ceiling,
                ),
                "best_rounds": (worth, gang_gpus, free, price, floor, ceiling, small, large),
                "best_fit": (T - gang_gpus, left[:, 0].copy(), 7, price, 20),
                "nearest_change": (worth, floor, gang_gpus, gang_gpus > 1, floor, ceiling, ceiling, 6),
            }
            with np.errstate(all="ignore"):
                results.append((function(*arguments[name]), small, large))
        for _, small, large in results:
            assert ((small >= 0) & (small <= T) & (large >= 0) & (large <= T)).all()
        if name == "best_price":
            for found, _, _ in results:
                assert all(((rounds >= 0) & (rounds <= T)).all() for rounds in found[-2:])


@pytest.mark.parametrize("name", ["pack", "pack_blocks", "settle", "progress", "regimes_run"])
def test_kernels_of_the_window_equal_their_plain_twins(name):
    rng = np.random.default_rng(45)
    kernel = getattr(window_kernels, name)
    for seed in range(25):
        window = random_window(
            np.random.default_rng(seed), jobs=int(rng.integers(1, 14)), gpus=8, rounds=int(rng.integers(1, 8))
        )
        tables, N, T = window.tables, len(window.gang_gpus), window.rounds
        counts = rng.integers(0, np.minimum(tables.needs, T) + 1)
        order, is_running = rng.permutation(N), rng.random(N) < 0.5
        is_running.setflags(write=False)
        packed = window_kernels.pack(order, counts, window.gang_gpus, window.gpus, T)
        results = []
        for function in (kernel, kernel.py_func):
            grants = packed.copy()
            arguments = {
                "pack": (order, counts, window.gang_gpus, window.gpus, T),
                "pack_blocks": (order, counts, window.gang_gpus, window.gpus, T, is_running),
                "settle": (grants, order, tables.needs, window.gang_gpus, window.gpus, is_running),
                "progress": (window.regime_starts, window.regime_epochs, window.regime_epoch_s, tables.regime_needs,
                             window.round_s, T),
                "regimes_run": (grants, window.regime_starts, tables.regime_needs),
            }  # fmt: skip
            results.append((grants, function(*arguments[name])))
        same(results[0][0], results[1][0])
        if name != "settle":
            same(results[0][1], results[1][1])


def test_packing_keeps_capacity_and_never_gives_more_than_asked():
    rng = np.random.default_rng(46)
    for _ in range(80):
        N, T, M = int(rng.integers(1, 10)), int(rng.integers(1, 8)), int(rng.integers(1, 10))
        gang_gpus, counts = rng.integers(1, M + 1, size=N), rng.integers(0, T + 3, size=N)
        gang_gpus.setflags(write=False)
        running, order = rng.random(N) < 0.5, rng.permutation(N)
        for grants in (
            window_kernels.pack(order, counts, gang_gpus, M, T),
            window_kernels.pack_blocks(order, counts, gang_gpus, M, T, running),
        ):
            assert (gang_gpus @ grants <= M).all()
            assert (grants.sum(axis=1) <= counts).all()
        for row in window_kernels.pack_blocks(order, counts, gang_gpus, M, T, running):
            assert np.count_nonzero(np.diff(np.concatenate(([0], row, [0])))) <= 2  # one block


def test_no_kernel_is_compiled_within_the_time_limit():
    """In a process that has loaded none; the small window that it plans first must reach them all."""
    compiled = """if True:
        from equipoise.formulations.window.kernels import pack, progress, settle
        from equipoise.solvers.window.backend import compile_kernels
        from equipoise.solvers.window.kernels import best_fit, best_price, nearest_change
        compile_kernels()
        kernels = [best_fit, best_price, nearest_change, pack, progress, settle]
        print([kernel.__name__ for kernel in kernels if not kernel.signatures])
        """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    child = subprocess.run(
        [sys.executable, "-c", compiled], env=environment, capture_output=True, text=True, check=True
    )
    assert child.stdout == "[]\n"
