"""`find` on small clusters against all choices of free GPUs."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise import InvalidInput
from equipoise.simulation import Cluster
from equipoise.simulation.placement import PLACEMENTS, Occupancy


@st.composite
def occupied(draw):
    """Return an occupancy of up to 9 GPUs after random starts and stops, the load of each GPU, and machines, racks."""
    racks, per_rack, size = draw(st.sampled_from([(1, 1, 6), (1, 3, 3), (1, 4, 2), (2, 2, 2), (3, 1, 3), (2, 1, 4)]))
    gpus = racks * per_rack * size
    found = Occupancy(Cluster(gpus_by_type={"gpu": gpus}, gpus_per_machine=size, racks=racks))
    held, load_s, time_s = {}, [0] * gpus, 0
    for job in range(draw(st.integers(0, 12))):
        chosen = draw(st.sets(st.integers(0, gpus - 1), min_size=1, max_size=4))
        found.add(job, tuple(chosen), time_s)
        held[job] = chosen
        passed = draw(st.integers(0, 2))
        for gpu in set().union(*held.values()):
            load_s[gpu] += passed
        time_s += passed
        if draw(st.booleans()):
            gone = draw(st.sampled_from(sorted(held)))
            found.remove(gone, tuple(held.pop(gone)), time_s)
    return found, held, load_s, (size, per_rack)


@given(occupied())
def test_the_occupancy_is_that_of_the_jobs(case):
    found, held, load_s, (size, per_rack) = case
    for gpu, jobs in enumerate(found.jobs_on):
        assert jobs == [job for job in held if gpu in held[job]]
        if not jobs:
            assert found.load_s[gpu] == load_s[gpu]
    assert found.free_gpus == sum(not jobs for jobs in found.jobs_on)
    for gpu_ids in held.values():
        machines = {gpu // size for gpu in gpu_ids}
        racks = {machine // per_rack for machine in machines}
        assert found.span(gpu_ids) == (len(machines), (len(machines) > 1) + (len(racks) > 1))
        assert found.racks(gpu_ids) == len(racks)
        assert found.span(gpu_ids)[1] == found.cluster.tier(sorted(gpu_ids))


@given(occupied())
def test_find_is_the_best_of_all_choices(case):
    found, _, load_s, (size, per_rack) = case
    free = [gpu for gpu, jobs in enumerate(found.jobs_on) if not jobs]

    def groups(gpu_ids, width):
        return {gpu // width for gpu in gpu_ids}

    def left(gpu_ids, width):
        """Free GPUs of the machines or racks of these GPUs."""
        return sum(gpu // width in groups(gpu_ids, width) for gpu in free)

    for gpus in range(1, found.cluster.gpus + 1):
        choices = list(combinations(free, gpus))
        answers = {rule: found.find(gpus, rule) for rule in PLACEMENTS}
        if not choices:
            assert set(answers.values()) == {None}
            continue
        # Combinations are in lexicographic order, so the first of equal ones has the lowest numbers.
        assert answers["first_fit"] == choices[0]
        assert answers["least_loaded"] == min(choices, key=lambda ids: sorted((load_s[gpu], gpu) for gpu in ids))
        chosen = answers["consolidated"]
        assert chosen in choices
        assert found.find(gpus) == chosen
        racks = min(len(groups(ids, size * per_rack)) for ids in choices)
        assert len(groups(chosen, size * per_rack)) == racks
        alone = [ids for ids in choices if len(groups(ids, size)) == 1]
        if alone:
            assert chosen == min(alone, key=lambda ids: (left(ids, size), ids))
        elif racks == 1:
            inside = [ids for ids in choices if len(groups(ids, size * per_rack)) == 1]
            rack = min(inside, key=lambda ids: (left(ids, size * per_rack), ids))[0] // (size * per_rack)
            inside = [ids for ids in inside if ids[0] // (size * per_rack) == rack]
            assert chosen in inside
            assert len(groups(chosen, size)) == min(len(groups(ids, size)) for ids in inside)


def busy(cluster, gpu_ids):
    found = Occupancy(cluster)
    found.add(0, gpu_ids, 0.0)
    return found


# Two racks of two machines of four GPUs.
RACKS = Cluster(gpus_by_type={"gpu": 16}, gpus_per_machine=4, racks=2)


@pytest.mark.parametrize(
    ("taken", "gpus", "chosen"),
    [
        ((), 1, (0,)),
        ((), 4, (0, 1, 2, 3)),
        ((0,), 2, (1, 2)),  # the fullest machine that suffices
        ((0, 4, 5), 2, (6, 7)),
        ((0, 4, 5, 8, 9, 10), 4, (12, 13, 14, 15)),
        ((0, 1, 4), 5, (2, 3, 5, 6, 7)),  # the fullest rack that suffices, its emptiest machine first
        ((8,), 5, (9, 12, 13, 14, 15)),
        ((0, 1, 4, 8, 12), 6, (9, 10, 11, 13, 14, 15)),
        ((0, 1, 4), 6, (8, 9, 10, 11, 12, 13)),
        # Both racks: 8 to 15 are six GPUs, then the machine of the other rack that holds the rest.
        ((0, 4, 5, 8, 12), 7, (6, 9, 10, 11, 13, 14, 15)),
    ],
)
def test_consolidated_by_hand(taken, gpus, chosen):
    assert busy(RACKS, taken).find(gpus) == chosen


def test_without_a_machine_that_holds_the_rest_the_emptiest_comes_first():
    machines = Cluster(gpus_by_type={"gpu": 12}, machines=3)
    assert busy(machines, (0, 1, 4)).find(7) == (5, 6, 7, 8, 9, 10, 11)


def test_a_cluster_without_machines_is_one_machine():
    found = busy(Cluster.of(6), (1, 2))
    assert found.find(4) == (0, 3, 4, 5)
    assert found.span((0, 5)) == (1, 0)
    assert found.find(5) is None


def test_the_gpus_of_a_job_that_moves_count_as_free_unless_another_job_holds_them_too():
    found = Occupancy(Cluster.of(4))
    found.add(0, (0, 1), 0.0)
    found.add(1, (1,), 0.0)
    found.add(2, (2,), 0.0)
    assert found.find(2, own=(0, 1)) == (0, 3)
    assert found.find(3, own=(0, 1)) is None
    assert (found.find(1), found.find(2), found.free_gpus) == ((3,), None, 1)


def test_an_unknown_rule_is_refused():
    with pytest.raises(InvalidInput, match=r"^placement = 'best'"):
        Occupancy(RACKS).find(1, "best")


@pytest.mark.parametrize("gpus", [0, -1])
@pytest.mark.parametrize("rule", PLACEMENTS)
def test_no_gang_has_no_gpus(gpus, rule):
    with pytest.raises(InvalidInput, match=f"^gpus = {gpus}"):
        Occupancy(RACKS).find(gpus, rule)
