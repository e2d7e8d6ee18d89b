"""Invariants of the placement engine under drawn actions, and interrupts at any call."""

import math
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.heuristics.placement.queue import FifoPolicy, SjfPolicy, SrtfPolicy
from equipoise.simulation import Cluster, SimulationInterrupted, Trace
from equipoise.simulation.placement import (
    PLACEMENTS,
    ConstantInterference,
    DurationSpeeds,
    Move,
    PlacementRules,
    Start,
    Stop,
    Wake,
    simulate_placement,
)

COLUMNS = (
    "start_s", "end_s", "run_s", "gpu_s", "held_s", "shared_gpu_s", "exposed_s", "restarts", "preemptions", "moves",
    "machines", "tier",
)  # fmt: skip


class AnySize(DurationSpeeds):
    """Jobs run at one speed on any number of GPUs: rates are 1, or 1/2 on shared GPUs, and sums of times are exact."""

    def rate(self, run):
        return 1.0


@st.composite
def setups(draw):
    """Return the arguments of a simulation, but for the policy; all times are whole seconds."""
    machines, size = draw(st.sampled_from([(1, 1), (1, 4), (2, 2), (2, 3), (4, 2)]))
    count = draw(st.integers(1, 6))
    whole = st.integers(0, 20)
    trace = Trace(
        job_id=[f"job-{index}" for index in range(count)],
        model=["m"] * count,
        gang_gpus=draw(st.lists(st.integers(1, machines * size), min_size=count, max_size=count)),
        arrival_s=draw(st.lists(whole, min_size=count, max_size=count)),
        duration_s=draw(st.lists(whole.map(lambda value: value + 1), min_size=count, max_size=count)),
    )
    rules = PlacementRules(
        jobs_per_gpu=draw(st.integers(1, 3)),
        checkpoint_s=draw(st.integers(0, 3)),
        restart_s=draw(st.integers(0, 5)),
    )
    racks = draw(st.sampled_from([1, machines]))
    cluster = Cluster(gpus_by_type={"gpu": machines * size}, machines=machines, racks=racks)
    return {
        "trace": trace, "cluster": cluster, "speeds": AnySize(), "interference": ConstantInterference(2.0),
        "rules": rules,
    }  # fmt: skip


class Player:
    """Draws feasible actions in the first calls, then runs all jobs; checks the state before and after each action."""

    name, knows = "player", frozenset({"durations"})

    def __init__(self, draw, setup):
        self.draw, self.trace, self.most = draw, setup["trace"], setup["rules"].jobs_per_gpu
        self.free_of_costs = not (setup["rules"].checkpoint_s or setup["rules"].restart_s)
        self.jobs, self.held = {}, {}  # arrived jobs; the GPUs that each was last given
        self.attained, self.done, self.rates = {}, {}, {}
        self.time_s, self.ended, self.log = -1.0, set(), []

    def decide(self, state):
        drawing, actions = len(self.log) < 8, []
        self.log.append(actions)
        self.pass_time(state)
        self.check(state)
        for action in self.actions(state, drawing):
            actions.append(action)
            if isinstance(action, Start | Move):
                self.held[action.trace_index] = action.gpu_ids
            yield action
            self.check(state)
        # Leases that were not renewed end after this call.
        kept = {action.trace_index for action in actions if not isinstance(action, Wake)}
        gone = {job.trace_index for job in state.expired} - kept
        running = {index: set(job.gpu_ids) for index, job in state.running.items() if index not in gone}
        for index, ids in running.items():
            shared = any(ids & others for other, others in running.items() if other != index)
            self.rates[index] = 0.5 if shared else 1.0

    def pass_time(self, state):
        """Check time, arrivals, ends, and the progress since the last call."""
        assert state.time_s > self.time_s
        assert state.step == len(self.log) - 1
        for job in state.arrived:
            assert job.arrival_s == state.time_s
            assert job.trace_index not in self.jobs
            self.jobs[job.trace_index] = job
            self.attained[job.trace_index] = self.done[job.trace_index] = 0.0
        ended = {job.trace_index for job in state.ended}
        assert not ended & self.ended
        for index in self.jobs.keys() - self.ended:
            job = self.jobs[index]
            made = job.attained_s - self.attained[index]
            assert 0.0 <= made <= state.time_s - self.time_s
            if self.free_of_costs and index in self.rates and index not in ended:
                assert made == state.time_s - self.time_s or not job.gpu_ids
            self.attained[index] += made
            self.done[index] += made * self.rates.get(index, 0.0)
            assert self.done[index] == job.total_s - job.remaining_s or index in ended
            if index in ended:
                assert self.done[index] == self.trace.duration_s[index]
        self.ended |= ended
        self.time_s, self.rates = state.time_s, {}
        assert set(self.jobs) == {i for i, arrival_s in enumerate(self.trace.arrival_s) if arrival_s <= state.time_s}

    def check(self, state):
        """Check that no job is lost, and who holds which GPUs."""
        assert state.time_s == self.time_s
        assert set(state.jobs) == self.jobs.keys() - self.ended
        assert not state.waiting.keys() & state.running.keys()
        assert state.waiting.keys() | state.running.keys() == set(state.jobs)
        assert all(not job.gpu_ids and job.run is None for job in state.waiting.values())
        for index, job in state.running.items():
            assert job.gpu_ids == tuple(sorted(self.held[index]))
        for gpu, jobs in enumerate(state.gpus.jobs_on):
            assert len(jobs) <= self.most
            assert sorted(jobs) == sorted(i for i, job in state.running.items() if gpu in job.gpu_ids)
        assert state.gpus.free_gpus == sum(not jobs for jobs in state.gpus.jobs_on)

    def actions(self, state, drawing):
        """Yield feasible actions; after the first calls, those that let every job run to its end."""
        for job in state.expired:
            if not drawing or self.draw(st.booleans()):
                yield Start(job.trace_index, job.gpu_ids, lease_s=self.lease_s(drawing))
        for _ in range(self.draw(st.integers(0, 3)) if drawing else 0):
            if state.jobs:
                index = self.draw(st.sampled_from(sorted(state.jobs)))
                runs, free = index in state.running, self.usable(state, index)
                if runs and self.draw(st.booleans()):
                    yield Stop(index)
                elif free:
                    gpu_ids = self.draw(st.sets(st.sampled_from(free), min_size=1))
                    yield (Move if runs else Start)(index, tuple(gpu_ids), lease_s=self.lease_s(drawing))
        for index in sorted(state.waiting) if not drawing else ():
            free = self.usable(state, index)
            if free:
                yield Start(index, tuple(free[: state.jobs[index].gang_gpus]))
        if drawing:
            yield Wake(state.time_s + self.draw(st.integers(1, 8)))

    def usable(self, state, index):
        return [g for g, jobs in enumerate(state.gpus.jobs_on) if len(set(jobs) - {index}) < self.most]

    def lease_s(self, drawing):
        return self.draw(st.sampled_from([math.inf, 1.0, 4.0, 7.0])) if drawing else math.inf


class Replay:
    """The same actions again, call by call; a KeyboardInterrupt in one call after some of its actions."""

    name, knows = "player", frozenset({"durations"})

    def __init__(self, log, interrupted=None):
        self.log, self.interrupted = log, interrupted

    def decide(self, state):
        for place, action in enumerate(self.log[state.step]):
            if (state.step, place) == self.interrupted:
                raise KeyboardInterrupt
            yield action
        if self.interrupted is not None and state.step == self.interrupted[0]:
            raise KeyboardInterrupt


def assert_whole(result):
    """Check the columns of a result against its stretches and levels."""
    trace, rules, rows = result.trace, result.rules, result.stretches
    assert (result.ended_by == "completed").all()
    assert (result.start_s >= trace.arrival_s).all()
    assert np.array_equal(result.preemptions, result.restarts)
    ids = rows.ids()
    for index in range(len(trace)):
        mine = np.flatnonzero(rows.trace_index == index)
        starts, ends = rows.start_s[mine], rows.end_s[mine]
        assert (starts[0], ends[-1]) == (result.start_s[index], result.end_s[index])
        assert (starts[1:] >= ends[:-1]).all()
        assert len(mine) == 1 + result.preemptions[index] + result.moves[index]
        assert (ends - starts).sum() == pytest.approx(result.held_s[index])
        assert result.run_s[index] <= result.held_s[index] + 1e-9
        assert result.waited_s[index] == pytest.approx(result.jct_s[index] - result.held_s[index], abs=1e-9)
        assert result.gpu_s[index] <= ((ends - starts) * rows.gpus[mine]).sum() + 1e-9
        assert result.shared_gpu_s[index] <= result.gpu_s[index] + 1e-9
        spans = [np.unique(ids[place] // result.cluster.gpus_per_machine).size for place in mine]
        assert result.machines[index] == max(spans)
        assert result.tier[index] == max(result.cluster.tier(ids[place]) for place in mine)
    levels = result.levels
    assert (levels.end_s > levels.start_s).all()
    assert np.array_equal(levels.start_s[1:], levels.end_s[:-1])
    for start_s, end_s, busy, running, waiting in zip(
        levels.start_s, levels.end_s, levels.gpus_busy, levels.running, levels.waiting, strict=True
    ):
        middle_s = (start_s + end_s) / 2
        holding = np.flatnonzero((rows.start_s < middle_s) & (rows.end_s > middle_s))
        on = np.bincount(np.concatenate([ids[place] for place in holding] or [[]]).astype(int), minlength=result.gpus)
        assert on.max() <= rules.jobs_per_gpu
        assert (np.count_nonzero(on), len(holding)) == (busy, running)
        present = np.count_nonzero((trace.arrival_s < middle_s) & (result.end_s > middle_s))
        assert waiting == present - running


def assert_equal_bits(one, other):
    for name in COLUMNS:
        assert getattr(one, name).tolist() == getattr(other, name).tolist(), name
    for name in ("trace_index", "start_s", "end_s", "gpus", "gpu_ids"):
        assert np.array_equal(getattr(one.stretches, name), getattr(other.stretches, name))
    assert one.levels.to_frame().equals(other.levels.to_frame())


def assert_interrupted(found, whole, call):
    """Compare the tables of an interrupted run with the rows of the whole run up to this call."""
    now_s = whole.solve_rows[call].time_s
    ended = whole.jobs["end_s"] <= now_s
    assert found.total == len(ended)
    pd.testing.assert_frame_equal(found.jobs, whole.jobs[ended].reset_index(drop=True))
    timed = ["wall_s"]
    pd.testing.assert_frame_equal(
        found.solves.drop(columns=timed), whole.solves.head(call).drop(columns=timed), check_dtype=False
    )
    levels = whole.levels.to_frame()
    before = levels[levels["end_s"] <= now_s].reset_index(drop=True)
    pd.testing.assert_frame_equal(found.tables["levels"], before, check_dtype=False)


@given(setup=setups(), data=st.data())
def test_invariants_under_drawn_actions(setup, data):
    player = Player(data.draw, setup)
    whole = simulate_placement(policy=player, **setup)
    assert_whole(whole)
    assert [player.done[index] for index in sorted(player.done)] == setup["trace"].duration_s.tolist()
    assert_equal_bits(simulate_placement(policy=Replay(player.log), **setup), whole)
    call = data.draw(st.integers(0, len(player.log) - 1))
    place = data.draw(st.integers(0, len(player.log[call])))
    with pytest.raises(SimulationInterrupted) as caught:
        simulate_placement(policy=Replay(player.log, (call, place)), **setup)
    assert_interrupted(caught.value, whole, call)


@pytest.mark.thorough
@pytest.mark.parametrize("place", [0.1, 0.35, 0.6, 0.8, 0.9])
@given(setup=setups(), data=st.data())
@settings(max_examples=10)
def test_an_interrupt_at_any_line_leaves_whole_tables(place, setup, data):
    """An interrupt comes between any two lines of the engine, not only while it calls the policy."""
    player = Player(data.draw, setup)
    whole = simulate_placement(policy=player, **setup)

    def lines(interrupted=math.inf):
        """Count the lines that a run executes in steps of the engine; interrupt it at one of them."""
        count, outer = 0, sys.gettrace()

        def trace(frame, event, _):
            nonlocal count
            within_step = frame.f_code.co_name == "step" or frame.f_back.f_trace is not None
            if not within_step or "simulation" not in frame.f_code.co_filename:
                return None
            count += event == "line"
            if count == interrupted:
                count += 1
                raise KeyboardInterrupt
            return trace

        sys.settrace(trace)
        try:
            simulate_placement(policy=Replay(player.log), **setup)
        finally:
            sys.settrace(outer)
        return count

    with pytest.raises(SimulationInterrupted) as caught:
        lines(interrupted=1 + int(place * lines()))
    found = caught.value.jobs
    assert not found.drop(columns=["job_id", "model", "mode", "ended_by"]).isna().any().any()
    same = whole.jobs[whole.jobs["job_id"].isin(found["job_id"])].reset_index(drop=True)
    pd.testing.assert_frame_equal(found, same)
    assert len(caught.value.solves) <= len(whole.solves)


@pytest.mark.parametrize("policy", [FifoPolicy, SjfPolicy, SrtfPolicy])
@given(setup=setups(), placement=st.sampled_from(PLACEMENTS), data=st.data())
def test_invariants_of_the_queue_policies(policy, setup, placement, data):
    setup["speeds"] = DurationSpeeds(1.5)
    whole = simulate_placement(policy=policy(placement=placement), **setup)
    assert_whole(whole)
    assert (whole.stretches.gpus == setup["trace"].gang_gpus[whole.stretches.trace_index]).all()
    assert_equal_bits(simulate_placement(policy=policy(placement=placement), **setup), whole)
    stopped = data.draw(st.integers(0, len(whole.solve_rows) - 1))

    def interrupt(call, *_):
        if call == stopped:
            raise KeyboardInterrupt

    with pytest.raises(SimulationInterrupted) as caught:
        simulate_placement(policy=policy(placement=placement), on_event=interrupt, **setup)
    ended = whole.jobs["end_s"] <= whole.solve_rows[stopped].time_s
    pd.testing.assert_frame_equal(caught.value.jobs, whole.jobs[ended].reset_index(drop=True))
    assert len(caught.value.solves) == stopped + 1
