"""What must hold in every run of the rounds engine, on random traces under random policies."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.simulation import Profiles, RoundRules, Schedule, Shares, Trace, due_on_events, simulate_rounds

BUILTIN = Profiles.builtin()
SLOW = replace(BUILTIN, name="slow", rates={key: rate / 3.0 for key, rate in BUILTIN.rates.items() if key[0] != "LM"})
SIZES = {"ResNet-18": (16, 64, 256), "LM": (5, 40), "Transformer": (16, 128), "Recommendation": (512, 8192)}
CLUSTERS = ({"fast": 4}, {"fast": 4, "slow": 3})


class Erratic:
    """Shares or schedules drawn from a seed and the round alone, so that equal states get equal answers."""

    name = "erratic"

    def __init__(self, seed, schedules, interval_s=400.0):
        self.seed, self.schedules, self.interval_s = seed, schedules, interval_s
        self.seen = []

    def due(self, state):
        return due_on_events(state, self.interval_s)

    def decide(self, state):
        self.seen.append((state.round, state.time_s, [job.state for job in state.jobs]))
        rng = np.random.default_rng([self.seed, state.round])
        if not self.schedules:
            # Few levels, so that ties and zeros are common.
            return Shares(rng.integers(0, 3, size=state.rates.shape) / 2.0)
        rounds = []
        for _ in range(int(rng.integers(1, 4))):
            free, wanted = list(state.gpus), {}
            for place in rng.permutation(len(state.jobs)).tolist():
                job = state.jobs[place]
                kinds = [k for k, rate in enumerate(job.rates) if rate > 0 and free[k] >= job.gpus]
                if kinds:
                    kind = kinds[int(rng.integers(len(kinds)))]
                    wanted[job.id] = kind
                    free[kind] -= job.gpus
            rounds.append(wanted)
        return Schedule(rounds)


@st.composite
def traces(draw):
    count = draw(st.integers(1, 7))
    jobs = []
    for _ in range(count):
        model = draw(st.sampled_from(sorted(SIZES)))
        size = draw(st.sampled_from(SIZES[model]))
        epochs = draw(st.integers(1, 30))
        per_epoch = BUILTIN.steps_per_epoch(model, size)
        last = draw(st.integers(1, per_epoch))
        jobs.append(
            (
                model,
                size,
                draw(st.sampled_from((1, 2, 4))),
                draw(st.sampled_from(("static", "accordion", "gns"))),
                (epochs - 1) * per_epoch + last,
                float(draw(st.integers(0, 12)) * 97),
            )
        )
    model, size, gang, mode, steps, arrival = zip(*jobs, strict=True)
    return Trace(
        job_id=draw(st.permutations([*range(count - 1), "last"])),
        model=model,
        batch_size=np.array(size),
        gang_gpus=np.array(gang),
        mode=mode,
        total_steps=np.array(steps),
        arrival_s=np.array(arrival),
    )


def played(trace, cluster, seed, schedules, plan_ahead, backfill_new=False):
    profiles = BUILTIN if len(cluster) == 1 else {"fast": BUILTIN, "slow": SLOW}
    policy = Erratic(seed, schedules)
    rules = RoundRules(plan_ahead=plan_ahead, backfill_new=backfill_new)
    return simulate_rounds(trace, policy, gpus=cluster, profiles=profiles, rules=rules), policy


cases = st.tuples(traces(), st.sampled_from(CLUSTERS), st.integers(0, 99), st.booleans(), st.booleans(), st.booleans())


@settings(deadline=None, max_examples=60)
@given(cases)
def test_gangs_are_whole_and_no_gpu_is_given_twice(case):
    trace, cluster, *_ = case
    run, _ = played(*case)
    width = dict(zip(trace.job_id, trace.gang_gpus.tolist(), strict=True))
    for _, rows in run.runs.groupby("round"):
        assert rows["job_id"].is_unique
        for kind, held in rows.groupby("gpu_type"):
            gpus = [gpu for ids in held["gpu_ids"] for gpu in ids]
            assert len(set(gpus)) == len(gpus)
            assert set(gpus) <= set(range(cluster[kind]))
            assert all(len(ids) == width[job] for ids, job in zip(held["gpu_ids"], held["job_id"], strict=True))


@settings(deadline=None, max_examples=60)
@given(cases)
def test_no_job_is_lost_and_time_goes_on(case):
    trace, cluster, *_ = case
    run, _ = played(*case)
    assert np.isfinite(run.end_s).all()
    assert (run.start_s >= trace.arrival_s).all()
    assert (run.end_s >= run.start_s).all()
    assert set(run.ended_by) <= {"completed", "overrun", "stalled"}
    rounds = run.rounds
    assert (rounds["end_s"] >= rounds["start_s"]).all()
    assert (rounds["start_s"].to_numpy()[1:] >= rounds["end_s"].to_numpy()[:-1]).all()
    assert rounds["ended"].sum() == rounds["arrived"].sum() == len(trace)
    busy_s = (run.run_s * trace.gang_gpus).sum()
    assert busy_s <= sum(cluster.values()) * (rounds["end_s"] - rounds["start_s"]).sum() * (1 + 1e-12)
    assert (run.runs["run_s"] + run.runs["restart_s"] <= 120.0 + 1e-9).all()


@settings(deadline=None, max_examples=60)
@given(cases)
def test_steps_are_conserved_and_rescaling_keeps_whole_epochs(case):
    trace = case[0]
    run, _ = played(*case)
    for place, job in enumerate(trace.job_id):
        model, size = trace.model[place], int(trace.batch_size[place])
        done, total = 0, int(trace.total_steps[place])
        rows = run.runs[run.runs["job_id"] == job]
        for row in rows.itertuples():
            assert row.batch_size == size
            done += row.steps
            per_epoch = BUILTIN.steps_per_epoch(model, size)
            if row.next_batch_size == size:
                assert (row.steps_run, row.total_steps) == (done, total)
            else:
                after = BUILTIN.steps_per_epoch(model, row.next_batch_size)
                assert row.steps_run == -(-done // per_epoch) * after
                assert -(-row.total_steps // after) == -(-total // per_epoch)
            done, total, size = row.steps_run, row.total_steps, row.next_batch_size
        if run.ended_by[place] == "completed":
            assert done >= total
        if trace.mode[place] == "static":
            assert rows["steps"].sum() <= trace.total_steps[place]
            assert (rows["batch_size"] == trace.batch_size[place]).all()


@settings(deadline=None, max_examples=30)
@given(cases, st.randoms(use_true_random=False))
def test_same_inputs_give_the_same_bits_and_rows_may_be_permuted(case, random):
    trace, *rest = case
    first, _ = played(trace, *rest)
    again, _ = played(trace, *rest)
    order = list(range(len(trace)))
    random.shuffle(order)
    moved, _ = played(trace.select(order), *rest)
    for name in ("start_s", "end_s", "run_s", "ftf", "restarts", "rounds_run"):
        assert getattr(first, name).tobytes() == getattr(again, name).tobytes()
        assert getattr(first, name)[order].tobytes() == getattr(moved, name).tobytes()
    assert first.schedule == again.schedule == moved.schedule
    assert list(first.runs["gpu_ids"]) == list(moved.runs["gpu_ids"])


@settings(deadline=None, max_examples=40)
@given(cases)
def test_what_a_policy_is_told_of_the_past_adds_up(case):
    trace = case[0]
    run, policy = played(*case)
    arrival_s = dict(zip(trace.job_id, trace.arrival_s.tolist(), strict=True))
    most = max(1.0, trace.gang_gpus.sum() / run.gpus)
    for _, time_s, jobs in policy.seen:
        for job in jobs:  # JobState itself checks regimes, epochs and future against each other
            assert abs(job.attained_s + job.waiting_s - (time_s - arrival_s[job.id])) < 1e-6
            assert 1.0 <= job.contention <= most + 1e-9
            assert job.future
            assert set(job.batch_sizes) <= set(job.epoch_s)
