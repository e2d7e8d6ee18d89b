"""The Shockwave planner and the released code's variant: order of rounds, evidence, modes, and small states."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.formulations.errors import InvalidInput
from equipoise.formulations.window.check import schedule_faults
from equipoise.formulations.window.plan import scheduled
from equipoise.formulations.window.problem import ScheduleWindow
from equipoise.heuristics.prediction.predictors import window_job
from equipoise.heuristics.shockwave.artifact import ArtifactPolicy, released_prediction
from equipoise.heuristics.shockwave.artifact_programs import ArtifactJobs, conserve_work, counts_program
from equipoise.heuristics.shockwave.jobs import JobReader
from equipoise.heuristics.shockwave.kernels import advance, rank_jobs, serve
from equipoise.heuristics.shockwave.order import RoundOrder
from equipoise.heuristics.shockwave.policy import ShockwavePolicy
from equipoise.simulation import JobState, Profiles, generate_trace, simulate_rounds
from equipoise.simulation.rounds.policy import RoundJob, RoundState
from equipoise.validation.experiments.shockwave.settings import QUARTER_SIZES, SETTINGS, Load, settings_rows

ROUND_S = 120.0


def round_job(place, *, gpus=1, epochs=20, finished=0, epoch_s=60.0, arrival_s=0.0, time_s=600.0, running=False):
    """A static job with a hundred steps an epoch."""
    attained_s = min(finished * epoch_s, time_s - arrival_s)
    state = JobState(
        id=place, gpus=gpus, mode="static", total_epochs=epochs, finished_epochs=finished, batch_sizes=(32,),
        regime_epochs=(finished,), epoch_s={32: epoch_s}, future=((32, epochs - finished),), attained_s=attained_s,
        waiting_s=time_s - arrival_s - attained_s, running=running,
    )  # fmt: skip
    return RoundJob(
        id=place, trace_index=place, gpus=gpus, model="m", mode="static", weight=1.0, arrival_s=arrival_s,
        batch_size=32, initial_batch_size=32, steps_run=100 * finished, total_steps=100 * epochs, steps_per_epoch=100,
        rates=np.array([100.0 / epoch_s]), attained_s=attained_s, running=running, make_state=lambda: state,
    )  # fmt: skip


def round_state(jobs, *, gpus=4, time_s=600.0, types=("gpu",), arrived=1, completed=0, rescaled=0, number=5):
    return RoundState(
        round=number, time_s=time_s, round_s=ROUND_S, gpu_types=types, gpus=np.full(len(types), gpus), jobs=tuple(jobs),
        arrived=arrived, completed=completed, rescaled=rescaled, since_call_s=ROUND_S,
    )  # fmt: skip


def small_trace(seed, jobs=14):
    return generate_trace(
        np.random.default_rng(seed), num_jobs=jobs, mean_interarrival_s=60.0, size_classes=QUARTER_SIZES,
        gpu_counts=(1, 2, 4), gpu_probabilities=(0.7, 0.2, 0.1),
    )  # fmt: skip


def run(policy, seed=3, gpus=8):
    return simulate_rounds(small_trace(seed), policy, gpus=gpus, profiles=Profiles.builtin())


def policies():
    return [ShockwavePolicy(rounds=30), ArtifactPolicy(rounds=10)]


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["shockwave", "shockwave-artifact"])
def test_a_generated_workload_runs_to_its_end_on_certified_windows(name):
    policy = next(policy for policy in policies() if policy.name == name)
    result = run(policy)
    assert (result.end_s > result.trace.arrival_s).all()
    solves = result.solves
    assert set(solves["reason"]) == {"OPTIMAL"}
    assert (solves["gap"] <= (1e-4 if name == "shockwave" else 1e-3) + 1e-12).all()
    assert (solves["bound"] >= solves["objective"] - 1e-9).all()
    assert set(solves["backend"]) == {"lagrangian" if name == "shockwave" else "highs"}


@pytest.mark.thorough
def test_the_same_run_twice_is_the_same_to_the_last_bit():
    for make in (ShockwavePolicy, lambda: ArtifactPolicy(rounds=10)):
        first, second = run(make()), run(make())
        assert (first.end_s == second.end_s).all()
        assert first.schedule == second.schedule


def test_reactive_plans_again_on_adaptation_and_lazy_does_not():
    for make in (ShockwavePolicy, ArtifactPolicy):
        quiet, changed = round_state([], arrived=0), round_state([], arrived=0, rescaled=1)
        assert not make().due(quiet)
        assert make().due(changed)
        assert not make(reactive=False).due(changed)
        assert make(reactive=False).due(round_state([], arrived=0, completed=1))
        assert make(reactive=False).due(round_state([], arrived=1))
    assert len(run(ShockwavePolicy()).solve_rows) > len(run(ShockwavePolicy(reactive=False)).solve_rows)


def test_a_job_that_has_outlived_its_plan_is_planned_again_beside_idle_gpus():
    waiting = [round_job(0, gpus=2, running=True), round_job(1, gpus=2)]
    policy = ShockwavePolicy()
    assert policy.due(round_state(waiting, gpus=4, arrived=0))
    assert not policy.due(round_state(waiting, gpus=3, arrived=0))
    assert not policy.due(round_state(waiting[:1], gpus=4, arrived=0))


def test_the_first_rounds_go_to_the_shortest_jobs():
    jobs = [round_job(j, epochs=10 * (j + 1), epoch_s=60.0) for j in range(8)]
    schedule = ShockwavePolicy(order="shortest", stay=1.0).decide(round_state(jobs, gpus=3))
    assert set(schedule.rounds[0]) == {0, 1, 2}


def test_a_job_that_sets_the_end_goes_first_though_it_is_the_longest():
    jobs = [round_job(j, epochs=5) for j in range(6)] + [round_job(6, epochs=200)]
    slack = ShockwavePolicy(order="slack").decide(round_state(jobs, gpus=2))
    shortest = ShockwavePolicy(order="shortest").decide(round_state(jobs, gpus=2))
    assert 6 in slack.rounds[0]
    assert 6 not in shortest.rounds[0]


def test_a_job_that_has_waited_goes_before_shorter_ones_the_sooner_the_larger_k_is():
    # Jobs 0 to 2 are short and have just come; job 9 has waited for 600 s, so its rho of Eq. 9 is (600 + 1200)/1200.
    fresh = [round_job(j, epochs=4, arrival_s=600.0) for j in range(3)]
    state = round_state([*fresh, round_job(9, epochs=5, arrival_s=0.0)], gpus=1)
    # 300 s over 1.5^k against 240 s: k of log(1.25)/log(1.5) = 0.55.
    assert 9 not in ShockwavePolicy(ftf_power=0.5, end_margin=0.0).decide(state).rounds[0]
    assert 9 in ShockwavePolicy(ftf_power=0.6, end_margin=0.0).decide(state).rounds[0]


def test_weights_of_jobs_count_in_the_order_too():
    jobs = [round_job(j, epochs=4 + j) for j in range(3)]
    heavy = [*jobs[:2], replace(jobs[2], weight=10.0)]
    assert ShockwavePolicy(end_margin=0.0).decide(round_state(jobs, gpus=1)).rounds[0].keys() == {0}
    assert ShockwavePolicy(end_margin=0.0).decide(round_state(heavy, gpus=1)).rounds[0].keys() == {2}


def running_on(place, *, finished, attained_s, time_s=1e5, epochs=40):
    """A job of 60 s an epoch that has taken another time."""
    job = round_job(place, epochs=epochs, finished=finished, time_s=time_s, running=True)
    return replace(job, attained_s=attained_s)


def test_what_a_job_has_taken_corrects_its_speed_and_warns_of_those_that_have_not_run():
    new = round_job(1, epochs=40, time_s=1e5)
    states = [
        round_state([running_on(0, finished=finished, attained_s=attained_s), new], time_s=1e5)
        for finished, attained_s in ((0, 0.0), (4, 360.0), (10, 900.0))
    ]
    reader = JobReader("restatement", None, "demand", True)
    first, *_, last = [reader.read(state) for state in states]
    assert first.remaining_s == pytest.approx([2400.0, 2400.0])
    assert first.risk.tolist() == [0.0, 0.0]
    factor = (900.0 + 12.0) / (600.0 + 12.0)
    assert last.remaining_s == pytest.approx([30 * 60 * factor, 2400.0])
    assert last.regime_epoch_s == pytest.approx([60 * factor, 60.0])
    assert last.risk == pytest.approx([0.0, factor**2 - 1.0])
    told = JobReader("restatement", None, "demand", False)
    *_, last = [told.read(state) for state in states]
    assert last.remaining_s == pytest.approx([1800.0, 2400.0])
    assert last.risk.tolist() == [0.0, 0.0]


def test_speeds_that_are_as_told_correct_nothing():
    """In the engine jobs run as fast as they are said to: but for restarts and rounded steps nothing is corrected."""

    class Watched(ShockwavePolicy):
        def window(self, state, jobs):
            seen.append((state.jobs, jobs))
            return super().window(state, jobs)

    seen = []
    run(Watched())
    for known, jobs in seen:
        starts = jobs.regime_starts[:-1]
        for job, start in zip(known, starts, strict=True):
            first = job.state.epoch_s[job.batch_size]
            others = set(job.state.epoch_s.values())
            assert min(abs(jobs.regime_epoch_s[start] / told - 1.0) for told in {first, *others}) < 0.02
        assert jobs.risk.max() < 0.02


def test_a_long_job_is_tried_early_where_speeds_proved_wrong_and_only_there():
    # Eight jobs of 300 s, one of 900 s and one that runs; H is 3600 s / 2 GPUs, so the end is not in sight.
    rest = [round_job(j, epochs=5, time_s=1e5) for j in range(8)] + [round_job(8, epochs=15, time_s=1e5)]
    for times, tried in ((1.0, False), (2.0, True)):
        policy = ShockwavePolicy()
        for finished in (10, 15):
            ran = running_on(9, epochs=20, finished=finished, attained_s=60.0 * finished * times)
            schedule = policy.decide(round_state([ran, *rest], gpus=2, time_s=1e5))
        assert (8 in schedule.rounds[0]) == tried


@st.composite
def states(draw):
    gpus = draw(st.integers(1, 6))
    jobs = []
    for place in range(draw(st.integers(1, 7))):
        epochs = draw(st.integers(1, 30))
        jobs.append(
            round_job(
                place,
                gpus=draw(st.integers(1, gpus)),
                epochs=epochs,
                finished=draw(st.integers(0, epochs - 1)),
                epoch_s=draw(st.sampled_from([20.0, 60.0, 150.0])),
                arrival_s=draw(st.sampled_from([0.0, 300.0, 600.0])),
                running=draw(st.booleans()),
            )
        )
    return round_state(jobs, gpus=gpus)


@given(states(), st.sampled_from(["slack", "shortest", "packed"]), st.integers(1, 25), st.integers(1, 25))
def test_every_round_fits_idles_nobody_and_the_evidence_holds(state, order, rounds, replan):
    policy = ShockwavePolicy(order=order, rounds=rounds, replan_rounds=replan)
    schedule = policy.decide(state)
    assert len(schedule.rounds) == min(rounds, replan)
    for wanted in schedule.rounds:
        assert sum(state.jobs[key].gpus for key in wanted) <= state.total_gpus
    idle = state.total_gpus - sum(state.jobs[key].gpus for key in schedule.rounds[0])
    assert all(job.gpus > idle for job in state.jobs if job.id not in schedule.rounds[0])
    evidence = schedule.evidence
    assert evidence.bound >= evidence.objective - 1e-9
    assert evidence.reason == "OPTIMAL"
    assert evidence.gap <= 1e-4 + 1e-8
    # The window is the one of `window_job`, job by job: the policy's columns are no other program.
    jobs = JobReader("restatement", None, "demand", False).read(state)
    for row, job in enumerate(state.jobs):
        told = window_job(job.state)
        assert jobs.ftf[row] == pytest.approx(told.ftf, rel=1e-12)
        assert jobs.remaining_s[row] == pytest.approx(sum(r.epochs * r.epoch_s for r in told.regimes), rel=1e-12)


@st.composite
def packed_windows(draw):
    gpus, count = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    epochs = rng.integers(1, 12, size=count).astype(float)
    window = ScheduleWindow.from_columns(
        gang_gpus=rng.integers(1, gpus + 1, size=count), finished_epochs=np.zeros(count), total_epochs=epochs,
        regime_starts=np.arange(count + 1), regime_epochs=epochs, regime_epoch_s=rng.uniform(50.0, 300.0, size=count),
        gpus=gpus, rounds=draw(st.integers(1, 8)),
    )  # fmt: skip
    return window, scheduled(window, rng.integers(0, 9, size=count)), rng


@given(packed_windows(), st.integers(1, 8), st.sampled_from(["slack", "shortest"]))
def test_putting_rounds_in_order_costs_no_job_a_round_and_no_rule(drawn, lead, rule):
    window, plan, rng = drawn
    order = RoundOrder(rule=rule, end_margin=0.1, stay=0.8)
    left = window.tables.remaining[:, 0] * window.round_s
    ordered = order.applied(plan, remaining_s=left, risk=rng.uniform(0.0, 1.0, len(left)), lead=lead)
    assert (ordered.rounds_granted >= plan.rounds_granted).all()
    assert ordered.objective >= plan.objective - 1e-12
    assert schedule_faults(window, ordered.grants, ordered.regime_of) == ()


@pytest.mark.thorough
@given(packed_windows(), st.integers(1, 8))
def test_exchanges_keep_counts_and_capacity_and_compiled_equals_plain(drawn, lead):
    window, plan, rng = drawn
    count = len(window.gang_gpus)
    rank = (
        rng.random(count) < 0.5, rng.uniform(0.0, 20.0, count), rng.uniform(-5.0, 20.0, count),
        rng.uniform(0.0, 3.0, count), rng.uniform(0.1, 3.0, count), 0.8,
    )  # fmt: skip
    compiled, plain = np.array(plan.grants), np.array(plan.grants)
    advance(compiled, lead, window.gang_gpus, window.gpus, *rank)
    advance.py_func(plain, lead, window.gang_gpus, window.gpus, *rank)
    assert (compiled == plain).all()
    assert (compiled.sum(axis=1) == plan.rounds_granted).all()
    assert (window.gang_gpus @ compiled <= window.gpus).all()
    counts = [np.array(plan.rounds_granted) for _ in range(2)]
    steps = min(lead, window.rounds)
    given_first = serve(counts[0], steps, window.rounds, window.gang_gpus, window.gpus, *rank)
    assert (given_first == serve.py_func(counts[1], steps, window.rounds, window.gang_gpus, window.gpus, *rank)).all()
    assert (counts[0] == plan.rounds_granted - given_first.sum(axis=1)).all()
    assert (counts[0] >= 0).all()
    assert (window.gang_gpus @ given_first <= window.gpus).all()


def test_ranks_by_hand():
    # Rounds left 9, 5, 3, 2; the first sets the end, the second has three times the weight, the third runs.
    left, end_slack = np.array([9.0, 5.0, 3.0, 2.0]), np.array([0.0, 4.0, 6.0, 7.0])
    margin, weights = np.full(4, 0.5), np.array([1.0, 3.0, 1.0, 1.0])
    was = np.array([False, False, True, False])
    order = rank_jobs(0, np.zeros(4, np.int64), was, left, end_slack, margin, weights, 0.5)
    assert order.tolist() == [0, 2, 1, 3]  # 1.5, 5/3 and 2
    order = rank_jobs(0, np.zeros(4, np.int64), was, left, end_slack, margin, weights, 1.0)
    assert order.tolist() == [0, 1, 3, 2]
    # Four rounds later, all of them waited: the second comes to set the end too, after the longer first.
    order = rank_jobs(4, np.zeros(4, np.int64), was, left, end_slack, margin, np.array([1.0, 0.1, 1.0, 1.0]), 1.0)
    assert order.tolist() == [0, 1, 3, 2]
    # One that has had all its rounds is behind those that set the end, and before all others.
    order = rank_jobs(3, np.array([0, 0, 3, 0]), was, left, end_slack, margin, weights, 1.0)
    assert order.tolist() == [0, 2, 1, 3]


def test_a_penalty_for_restarts_is_in_the_window_and_keeps_the_solvers_order():
    jobs = [round_job(j, epochs=40, running=j >= 4) for j in range(8)]
    schedule = ShockwavePolicy(restart_penalty=1.0, rounds=4, ftf_power=0.0).decide(round_state(jobs, gpus=4))
    assert set(schedule.rounds[0]) == {4, 5, 6, 7}


def test_a_solver_that_finds_nothing_in_time_leaves_a_packed_schedule_and_says_so():
    policy = ShockwavePolicy(backend="highs", time_limit=1e-9, rounds=10)
    schedule = policy.decide(round_state([round_job(j, gpus=1 + j % 2) for j in range(9)]))
    assert schedule.evidence.reason == "NO_SOLUTION_FOUND"
    assert schedule.evidence.gap > 0.0
    assert all(sum(1 + key % 2 for key in wanted) <= 4 for wanted in schedule.rounds)
    assert sum(1 + key % 2 for key in schedule.rounds[0]) >= 3


def test_the_window_binds_where_sight_is_short_and_its_weights_then_decide():
    """Eight jobs on one GPU, one of them late: a greater power of rho gives it more of a window of four rounds."""
    jobs = [round_job(j, epochs=40, arrival_s=600.0) for j in range(7)]
    late = round_job(7, epochs=40, arrival_s=0.0)
    granted = []
    for power in (0.0, 60.0):
        policy = ShockwavePolicy(rounds=4, ftf_power=power, contention="demand", order="packed", makespan_weight=0.0)
        schedule = policy.decide(round_state([*jobs, late], gpus=1))
        granted.append(sum(7 in wanted for wanted in schedule.rounds))
    assert granted[1] > granted[0]


def test_sight_covers_the_work_and_a_plan_stays_small():
    policy = ShockwavePolicy(replan_rounds=10_000)
    assert len(policy.decide(round_state([round_job(0, epochs=1)])).rounds) == 20
    assert len(policy.decide(round_state([round_job(0, epochs=100)])).rounds) == 101  # 6000 s: 50 rounds, twice


@pytest.mark.parametrize("policy", policies(), ids=lambda policy: policy.name)
def test_what_it_cannot_plan_it_refuses_by_name(policy):
    with pytest.raises(InvalidInput, match="one GPU type"):
        policy.decide(round_state([round_job(0)], types=("a", "b")))
    with pytest.raises(InvalidInput, match=r"jobs.gpus\[1\].*wider than the cluster of 4"):
        policy.decide(round_state([round_job(0), round_job(1, gpus=8)]))
    assert list(policy.decide(round_state([])).rounds) == [{}]
    assert list(policy.decide(round_state([round_job(0)])).rounds[0]) == [0]


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("ftf_power", -1.0), ("makespan_weight", math.nan), ("rounds", 0), ("replan_rounds", 0), ("predictor", "tarot"),
        ("contention", "none"), ("order", "random"), ("end_margin", 1.5), ("measured_speeds", 1), ("stay", 0.0),
        ("restart_penalty", -1.0), ("utility_floor", 1.0), ("rel_gap", -1.0), ("time_limit", 0.0), ("max_regimes", 0),
        ("reactive", "yes"), ("gang_weighted", 2),
    ],
)  # fmt: skip
def test_options_out_of_range_are_refused_by_name(option, value):
    with pytest.raises(InvalidInput) as caught:
        ShockwavePolicy(**{option: value})
    assert caught.value.field == option


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("makespan_weight", -1.0), ("rho_power", -1.0), ("most_rho", 0.0), ("rounds", 0), ("reactive", 1),
        ("rel_gap", -1.0), ("time_limit", 0.0), ("backend", "lagrangian"),
    ],
)  # fmt: skip
def test_options_of_the_variant_out_of_range_are_refused_by_name(option, value):
    with pytest.raises(InvalidInput) as caught:
        ArtifactPolicy(**{option: value})
    assert caught.value.field == option


def test_the_released_prediction_by_hand():
    # 92 epochs, 28 at 36 s and 12 at 31 s run; the current one counts as observed: Dir(46 + 28, 46 + 13) over 92.
    state = JobState(
        id=0, gpus=1, mode="accordion", total_epochs=92, finished_epochs=40, batch_sizes=(32, 256),
        regime_epochs=(28, 12), epoch_s={32: 36.36, 256: 30.91}, future=((256, 52),), attained_s=1000.0, waiting_s=0.0,
    )  # fmt: skip
    epoch_s, remaining_s = released_prediction(state)
    assert epoch_s == pytest.approx(1411 / 41)
    assert remaining_s == pytest.approx((92 * 74 / 133 - 28) * 36 + (92 * 59 / 133 - 13) * 31)


def test_the_variants_program_by_hand():
    # One GPU, two rounds of 100 s; both jobs have 4 epochs of 50 s: 2 rounds for one, or 1 each.
    jobs = ArtifactJobs(
        gang_gpus=np.array([1, 1]), total_epochs=np.array([4.0, 4.0]), finished_epochs=np.zeros(2),
        epoch_s=np.array([50.0, 50.0]), remaining_s=np.array([200.0, 200.0]), target_s=np.array([1e6, 1e6]),
    )  # fmt: skip
    from equipoise.solvers.solve import solve

    for by_round in (False, True):
        program = counts_program(
            jobs, weights=np.ones(2), gpus=1, rounds=2, round_s=100.0, makespan_weight=0.0, by_round=by_round
        )
        result = solve(program, "highs", rel_gap=0.0)
        half = 0.5 * (math.log(0.4) + math.log(0.6))  # between the nodes .4 and .6
        assert result.objective == pytest.approx(2 * half / 4)
        assert result.plan["run"].sum(axis=1).tolist() == pytest.approx([1, 1])


def test_conserving_work_fills_in_order_and_stops_at_the_need():
    grants = np.zeros((3, 3), dtype=bool)
    grants[0, 0] = True
    conserve_work(grants, np.array([2, 1, 1]), np.array([1, 2, 9]), np.array([1, 2, 0]), 2)
    assert grants.astype(int).tolist() == [[1, 0, 0], [0, 1, 1], [0, 1, 1]]


def test_the_benchmark_of_settings_ranks_the_defaults_above_the_papers_window():
    load = Load(name="tiny", jobs=20, gpus=4, mean_interarrival_s=30.0)
    names = ("default", "T = 20, packed (the paper's)")
    rows = list(settings_rows(settings={name: SETTINGS[name] for name in names}, loads=(load,), seeds=(5,)))
    assert [row["setting"] for row in rows] == list(names)
    assert rows[0]["score"] < rows[1]["score"]
    for row in rows:
        assert row["makespan_ratio"] >= 0.9
        assert row["worst_gap"] <= 1e-4 + 1e-8
    with pytest.raises(InvalidInput):
        next(settings_rows(loads=()))
