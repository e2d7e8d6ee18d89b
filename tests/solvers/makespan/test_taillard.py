"""Taillard's sixty open shops, from the published generator, solved to their known optima."""

from importlib.util import find_spec

import numpy as np
import pytest

import equipoise as eq
from equipoise.validation.benchmarks.open_shop import open_shop_rows, preemptive_rows
from equipoise.validation.instances.taillard import SEEDS, open_shop_times, taillard_instances

# E. Taillard, "Benchmarks for basic scheduling problems", European Journal of Operational Research 64, 1993: the upper
# bounds of its open-shop tables, with what later work proved to be optimal (P. Brucker, J. Hurink, B. Jurisch and
# B. Wöstmann, "A branch & bound algorithm for the open-shop problem", Discrete Applied Mathematics 76, 1997; C. Guéret
# and C. Prins, "A new lower bound for the open-shop problem", Annals of Operations Research 92, 1999; P. Laborie,
# "Complete MCS-based search", IJCAI 2005, which closed the last of them).
OPTIMA = {
    4: [193, 236, 271, 250, 295, 189, 201, 217, 261, 217],
    5: [300, 262, 323, 310, 326, 312, 303, 300, 353, 326],
    7: [435, 443, 468, 463, 416, 451, 422, 424, 458, 398],
    10: [637, 588, 598, 577, 640, 538, 616, 595, 595, 596],
    15: [937, 918, 871, 934, 946, 933, 891, 893, 899, 902],
    20: [1155, 1241, 1257, 1248, 1256, 1204, 1294, 1169, 1289, 1241],
}
# The paper's lower bounds of the 10 x 10 instances are the longest loads: this holds the generator to the seeds.
LOADS_10 = [637, 588, 598, 577, 640, 538, 616, 595, 595, 596]
LOADS_4 = [186, 229, 262, 245, 287, 185, 197, 212, 258, 213]


def twin(size, time_seed, machine_seed):
    """Draw an instance by Schrage's method in 32 bits, as the paper codes it."""

    def uniform(state, low, high):
        high_part = state // 127773
        state = 16807 * (state % 127773) - high_part * 2836
        state += 2147483647 if state < 0 else 0
        return state, low + int(state / 2147483647 * (high - low + 1))

    times = np.zeros((size, size), dtype=int)
    lengths, state = [], time_seed
    for _ in range(size * size):
        state, length = uniform(state, 1, 99)
        lengths.append(length)
    state = machine_seed
    for i in range(size):
        order = list(range(size))
        for j in range(size):
            state, other = uniform(state, j, size - 1)
            order[j], order[other] = order[other], order[j]
        for j, machine in enumerate(order):
            times[i, machine] = lengths[i * size + j]
    return times


@pytest.mark.parametrize("size", SEEDS)
def test_the_generator_is_the_published_one(size):
    for seeds in SEEDS[size]:
        times = open_shop_times(size, *seeds)
        assert times.tolist() == twin(size, *seeds).tolist()
        assert times.min() >= 1
        assert times.max() <= 99


@pytest.mark.parametrize(("size", "loads"), [(4, LOADS_4), (10, LOADS_10)])
def test_the_longest_loads_are_the_papers_lower_bounds(size, loads):
    assert [each.shop().lower_bound for each in taillard_instances((size,))] == loads


def test_there_are_sixty_instances_of_known_optimum():
    instances = list(taillard_instances())
    assert len(instances) == 60
    assert len({each.name for each in instances}) == 60
    assert [each.optimum for each in instances] == [best for row in OPTIMA.values() for best in row]


def test_cp_sat_solves_them_all():
    if find_spec("ortools") is None:  # not imported here: it cannot share a process with highspy
        pytest.skip("CP-SAT is an extra")
    for instance in taillard_instances():
        shop = instance.shop()
        result = eq.solve(shop, "cp_sat_schedule", rel_gap=0.0, time_limit=600.0)
        plan = result.require_optimal()
        assert plan.makespan == OPTIMA[instance.size][instance.number - 1] == result.bound, instance.name
        assert shop.evaluate(plan)[1].worst == 0.0, instance.name


@pytest.mark.parametrize("size", SEEDS)
def test_with_preemption_the_longest_load_is_enough(size):
    for instance in taillard_instances((size,)):
        shop = eq.OpenShop(instance.shop().times, preemptive=True)
        plan = eq.solve(shop, rel_gap=0.0).require_optimal()
        assert plan.makespan == shop.lower_bound <= instance.optimum


@pytest.mark.thorough
def test_highs_beside_it():
    rows = list(open_shop_rows(sizes=(4,), names=["highs"], time_limit=3.0))
    assert [row["size"] for row in rows] == ["4x4"]
    assert rows[0]["optimal"] == rows[0]["right"]  # what it proves is right
    assert rows[0]["right"] >= 5
    assert 0.0 <= rows[0]["gap_pct"] < 20.0


def test_the_benchmark_counts_and_refuses():
    counts = []
    rows = list(preemptive_rows(sizes=(3, 5)))
    assert [row["makespan"] for row in rows] == [row["bound"] for row in rows]
    assert all(row["fault"] == 0.0 for row in rows)
    with pytest.raises(eq.InvalidInput, match="4, 5, 7, 10, 15, 20"):
        list(open_shop_rows(sizes=(6,), on_solve=lambda done, total: counts.append((done, total))))
    assert not counts
