"""GpuSharing: all backends against enumeration, its arithmetic, its program and warm starts, its picture, bad input."""

from dataclasses import replace

import numpy as np
import pytest
from examples import examples

import equipoise as eq
from equipoise.formulations.gpu_sharing.slot_lists import list_schedule, no_partners, shortest_first
from equipoise.validation.contract.clusters import cluster_trouble
from equipoise.validation.instances.clusters import random_cluster
from equipoise.validation.oracles.clusters import least_total_time, slot_ends

DATA = {
    "work_slots": [4, 2, 3],
    "gang_gpus": [2, 1, 1],
    "gpus": 2,
    "ratios": [[1, 1.5, 1.25], [2, 1, 1.1], [1.2, 1.3, 1]],
    "arrival_slots": [0, 1, 1],
}
EXAMPLE = eq.GpuSharing(**DATA)
ROWS = eq.backends(EXAMPLE, usable=True)
# These take a second or more for each program.
SLOW = [row.name for row in ROWS if row.name != "highs"]


def drawn(seed, **size):
    rng = np.random.default_rng(seed)
    return random_cluster(rng, **{"jobs": 3, "gpus": 2, "most_slots": 4, "last_arrival": 3, **size})


def placed(plan):
    return list(zip(plan.start.tolist(), plan.gpu_ids, strict=True))


@pytest.mark.parametrize("weighted", [False, True])
def test_highs_agrees_with_enumeration(weighted):
    for seed in range(examples(40)):
        problem = drawn(seed, weighted=weighted)
        assert cluster_trouble(problem, eq.solve(problem, "highs", rel_gap=0.0)) == "", seed


@pytest.mark.thorough
@pytest.mark.parametrize("name", SLOW)
def test_every_backend_agrees_with_enumeration(name):
    for seed in range(100, 100 + examples(12)):
        problem = drawn(seed, weighted=seed % 2 == 0)
        assert cluster_trouble(problem, eq.solve(problem, name, time_limit=60.0)) == "", seed


def test_without_sharing_and_with_fractions_of_slots():
    rng = np.random.default_rng(5)
    for jobs_per_gpu in (1, 2):
        for seed in range(examples(24)):
            work = np.round(rng.uniform(0.3, 3.5, 3), 3)
            problem = replace(drawn(seed), work_slots=work, jobs_per_gpu=jobs_per_gpu)
            assert cluster_trouble(problem, eq.solve(problem, "highs", rel_gap=0.0)) == "", (seed, jobs_per_gpu)


def test_gangs_of_three_share_by_levels():
    """Pairs of gangs of three share at least two of four GPUs, those of three and two at least one."""
    rng = np.random.default_rng(8)
    for _ in range(examples(8)):
        problem = replace(drawn(0, most_slots=2), gpus=4, gang_gpus=rng.integers(2, 4, 3), work_slots=[2, 1, 2])
        assert cluster_trouble(problem, eq.solve(problem, "highs", rel_gap=0.0)) == ""


# -- The arithmetic ----------------------------------------------------------------------------------------------------


def test_the_slot_in_which_the_progress_reaches_the_work_is_the_last():
    jobs = {"work_slots": [2, 1], "gang_gpus": [1, 1], "gpus": 1, "ratios": [[1, 1.5], [3, 1]]}
    plan = eq.SlotSchedule.of_starts(eq.GpuSharing(**jobs), np.zeros(2, dtype=int), [(0,), (0,)])
    # Three slots at 1.5 are two slots of work, and three at 3 are one, although neither is a whole number of units.
    assert plan.end.tolist() == [3, 3]
    assert plan.progress_units.tolist() == [[667, 667, 667], [334, 334, 334]]


def test_a_gang_moves_at_its_slowest_worker():
    problem = replace(EXAMPLE, arrival_slots=[0, 0, 0])
    plan = eq.SlotSchedule.of_starts(problem, np.array([0, 0, 1]), [(0, 1), (0,), (1,)])
    assert plan.progress_units[0].tolist() == [667, 667, 667, 667, 800, 1000]
    assert plan.end.tolist() == [6, 4, 5]
    assert plan.fault() == 0.0


def test_ends_are_those_of_a_simulation_gpu_by_gpu():
    for seed in range(examples(100)):
        problem = drawn(seed, jobs=5, gpus=4)
        plan = problem.list_plan
        assert plan.end.tolist() == slot_ends(problem, placed(plan)), seed
        assert plan.fault() == 0.0


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"end": [4, 6, 8]}, 1.0),  # later than the progress reaches the work
        ({"start": [0, 0, 4]}, 1.0),  # before the arrival
        ({"gpu_ids": ((0, 1), (0,), (0,)), "start": [0, 1, 1]}, 1.0),  # three on a GPU
        ({"gpu_ids": ((0, 0), (0,), (1,))}, np.inf),
        ({"gpu_ids": ((0,), (0,), (1,))}, np.inf),
        ({"gpu_ids": ((0, 2), (0,), (1,))}, np.inf),
        ({"start": [-1, 4, 4]}, np.inf),
    ],
)
def test_a_fault_is_measured(change, fault):
    plan = eq.SlotSchedule.of_starts(EXAMPLE, np.array([0, 4, 4]), [(0, 1), (0,), (1,)])
    assert plan.end.tolist() == [4, 6, 7]
    assert EXAMPLE.evaluate(plan)[1].worst == 0.0
    assert EXAMPLE.evaluate(plan)[0] == 4 + 5 + 6
    broken = replace(plan, **change)
    if "end" not in change:
        recomputed = not np.isinf(fault)
        broken = eq.SlotSchedule.of_starts(EXAMPLE, broken.start, broken.gpu_ids) if recomputed else broken
    assert EXAMPLE.evaluate(broken)[1].worst == fault


# -- The program -------------------------------------------------------------------------------------------------------


def test_the_lower_bound_and_the_list_enclose_the_optimum():
    for seed in range(examples(40)):
        problem = drawn(seed, weighted=seed % 2 == 0)
        best = least_total_time(problem)
        assert problem.lower_bound <= best + 1e-9
        assert problem.evaluate(problem.list_plan)[0] >= best - 1e-9


def test_the_bound_by_gpu_slots_is_the_optimum_of_one_gpu_without_sharing():
    problem = eq.GpuSharing(
        work_slots=[3, 1, 2], gang_gpus=[1, 1, 1], gpus=1, ratios=np.ones((3, 3)), jobs_per_gpu=1
    )  # fmt: skip
    assert eq.solve(problem).objective == 1 + 3 + 6
    assert problem.lower_bound == pytest.approx(10.0, abs=0.01)


def test_a_plan_is_a_point_of_the_program_with_its_own_objective():
    for seed in range(examples(100)):
        problem = drawn(seed, jobs=5, gpus=4, weighted=seed % 2 == 0)
        program, point = problem.program(), problem.encode(problem.list_plan)
        assert program.residuals_at(point).worst < 1e-12
        assert program.objective_at(point) == pytest.approx(problem.evaluate(problem.list_plan)[0])
        again = problem.decode(point)
        assert (again.start.tolist(), again.end.tolist()) == (
            problem.list_plan.start.tolist(),
            problem.list_plan.end.tolist(),
        )
        assert problem.evaluate(again)[1].worst == 0.0


def test_a_late_plan_is_no_start_and_a_list_is_one():
    late = eq.SlotSchedule.of_starts(EXAMPLE, np.array([50, 60, 70]), [(0, 1), (0,), (0,)])
    assert np.isnan(EXAMPLE.encode(late)).all()
    assert eq.solve(EXAMPLE, "highs", warm_start=late).objective == eq.solve(EXAMPLE, "highs").objective
    plan = list_schedule(EXAMPLE, shortest_first(EXAMPLE), no_partners)
    assert eq.solve(EXAMPLE, "highs", warm_start=plan, rel_gap=0.0).objective == least_total_time(EXAMPLE)


def test_equal_gpus_have_no_columns():
    """Ten times the GPUs and gangs: the same program but for the numbers of GPUs."""
    alone = eq.GpuSharing(work_slots=[2, 2], gang_gpus=[1, 1], gpus=1, ratios=np.full((2, 2), 1.4))
    many = replace(alone, gang_gpus=[10, 10], gpus=10)
    assert many.program().num_columns == alone.program().num_columns
    assert eq.solve(many).objective == eq.solve(alone).objective == 6.0


# -- Plans -------------------------------------------------------------------------------------------------------------


def test_a_schedule_is_a_table_and_a_picture(tmp_path):
    plan = eq.solve(EXAMPLE, "highs").plan
    frame = plan.to_frame()
    assert list(frame.columns) == ["arrival", "start", "end", "gpus"]
    assert frame["end"].tolist() == plan.end.tolist()
    picture = plan.to_svg(tmp_path / "plan.svg")
    assert (tmp_path / "plan.svg").read_text() == picture == plan._repr_svg_()
    assert "GPU 1 too" in picture
    assert repr(plan) == f"<SlotSchedule: 3 jobs on 2 GPUs, {plan.makespan} slots>"


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("work_slots", [4, 0, 3], r"work_slots\[1\]"),
        ("work_slots", [4, np.nan, 3], r"work_slots\[1\]"),
        ("work_slots", [], "work_slots"),
        ("work_slots", [4, 2], "gang_gpus"),
        ("work_slots", [4, 2, 20_000], r"work_slots\[2\]"),
        ("gang_gpus", [2, 0, 1], r"gang_gpus\[1\]"),
        ("gang_gpus", [2, 3, 1], "the cluster has 2 GPUs"),
        ("gang_gpus", [2, 1.5, 1], r"gang_gpus\[1\]"),
        ("gpus", 0, "gpus"),
        ("gpus", True, "gpus"),
        ("ratios", [[1, 1.5], [2, 1]], "must have shape"),
        ("ratios", [[1, 1.5, 1.25], [2, 1, 0.9], [1.2, 1.3, 1]], r"ratios\[1, 2\]"),
        ("ratios", [[1, 1.5, 1.25], [2, 1, 2000], [1.2, 1.3, 1]], r"ratios\[1, 2\]"),
        ("ratios", "none", "ratios"),
        ("arrival_slots", [0, -1, 0], r"arrival_slots\[1\]"),
        ("arrival_slots", [0, 0.5, 0], r"arrival_slots\[1\]"),
        ("weights", [1, 0, 1], r"weights\[1\]"),
        ("weights", [1, 1], "weights"),
        ("jobs_per_gpu", 3, "must be 1 or 2"),
    ],
)
def test_bad_input_is_named(field, value, words):
    with pytest.raises(eq.InvalidInput, match=words):
        eq.GpuSharing(**{**DATA, field: value})


def test_a_plan_of_other_jobs_and_a_program_too_large_are_refused():
    other = eq.solve(drawn(0, jobs=2), "highs").plan
    with pytest.raises(eq.InvalidInput, match="must be a SlotSchedule of these jobs"):
        eq.solve(EXAMPLE, "highs", warm_start=other)
    with pytest.raises(eq.InvalidInput, match="would have"):
        replace(EXAMPLE, weights=[1e-6, 1, 1]).program()
