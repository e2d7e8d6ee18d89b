"""The rounds engine against a plain second one, to the last bit: shares on one or two GPU types."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.simulation import Profiles, RoundRules, Shares, due_on_events, generate_trace, simulate_rounds
from equipoise.simulation.rounds.leases import GpuLeases

BUILTIN = Profiles.builtin()
SLOW = replace(BUILTIN, name="slow", rates={key: rate / 2.7 for key, rate in BUILTIN.rates.items() if key[0] != "LM"})


@dataclass
class Job:
    """What the plain engine keeps of a job; all in lists by GPU type where it says so."""

    place: int
    gang: int
    arrival_s: float
    size: int
    wanted: int
    total: int
    done: int = 0
    ran_s: float = 0.0
    stalled: int = 0
    last: int = -9
    end_s: float = math.nan
    x: Any = None  # by type, None until the policy was asked
    got: Any = None
    deficit: Any = None


def plain(trace, counts, profiles, answer, interval_s, limit_s):
    """Return each job's end and run time, and who ran in each round."""
    kinds = range(len(counts))
    book = profiles[0]

    def rate(job, k):
        return (
            profiles[k].rates.get((trace.model[job.place], job.size, job.gang), 0.0) if job.gang <= counts[k] else 0.0
        )

    def rule(job):
        i, mode = job.place, trace.mode[job.place]
        model, initial = trace.model[i], int(trace.batch_size[i])
        largest = book.max_batch_sizes[model]
        if mode == "static" or initial == largest:
            return job.size
        e = math.ceil(job.done / book.steps_per_epoch(model, job.size))
        if mode == "accordion":
            spans = book.critical_epochs(model, initial, 10**4, use="runtime")
            return initial if any(first <= e < end for first, end in spans) else largest
        asked = [size for when in (e, e + 1) for first, size in book.gns[model, initial, job.gang] if first <= when]
        return 2 * job.size if max(asked) > job.size < largest else job.size

    coming = [
        Job(i, int(trace.gang_gpus[i]), float(trace.arrival_s[i]), int(trace.batch_size[i]), int(trace.batch_size[i]),
            int(trace.total_steps[i]))
        for i in range(len(trace))
    ]  # fmt: skip
    jobs, ended, rounds, now_s, called_s, events = [], [], [], 0.0, None, False
    used_s = [0.0 for _ in kinds]
    while coming or jobs:
        if not jobs:
            now_s = max(now_s, coming[0].arrival_s)
        while coming and coming[0].arrival_s <= now_s:
            jobs.append(coming.pop(0))
            jobs[-1].got, jobs[-1].deficit = [60.0 for _ in kinds], [0.0 for _ in kinds]
            events = True
        if called_s is None or (events and (now_s - called_s >= interval_s or called_s == 0.0)):
            for job in jobs:
                for k in kinds:
                    promised = 0.0 if job.x is None else job.x[k] * (now_s - called_s)
                    job.deficit[k] += promised - (job.got[k] - 60.0)
                    job.got[k] = 60.0
            values = answer(len(rounds), len(jobs), len(counts))
            for job, row in zip(jobs, values.tolist(), strict=True):
                job.x = row
            used_s = [60.0 * len(jobs) for _ in kinds]
            called_s, events = now_s, False
        queue = [(job, k) for k in kinds for job in jobs if job.x is not None]
        queue.sort(
            key=lambda p: (p[0].x[p[1]] / (p[0].got[p[1]] / used_s[p[1]]), p[0].deficit[p[1]], p[0].x[p[1]]),
            reverse=True,
        )
        free, running = list(counts), []
        for job, k in queue:
            if job.gang <= free[k] and rate(job, k) > 0 and all(other is not job for other, _ in running):
                running.append((job, k))
                free[k] -= job.gang
        next_s = now_s if running else now_s + 120.0
        for job, k in running:
            steps = max(0, min(int(rate(job, k) * 120.0), job.total - job.done))
            stop_s = now_s + steps / rate(job, k)
            run_s = stop_s - now_s
            if rounds and job.last != len(rounds) - 1 and run_s > 115:
                steps, run_s = int(steps * (run_s - 20.0) / run_s), run_s - 20.0
            job.last = len(rounds)
            job.done += steps
            job.ran_s += run_s
            job.got[k] += run_s
            used_s[k] += run_s
            next_s = max(next_s, stop_s)
            job.stalled = 0 if steps else job.stalled + 1
            over = job.ran_s > limit_s[job.place] or job.stalled == 5
            if (steps and job.done >= job.total) or over:
                job.end_s = stop_s
                events = True
            elif steps:
                if job.wanted != job.size:
                    old, new = (book.steps_per_epoch(trace.model[job.place], s) for s in (job.size, job.wanted))
                    total = math.ceil(job.total / (job.wanted / job.size))
                    kept = math.ceil(total / new) == math.ceil(job.total / old)
                    job.done = math.ceil(job.done / old) * new
                    job.total = total if kept else math.ceil(job.total / old) * new
                    job.size = job.wanted
                    events = True
                job.wanted = rule(job)
        rounds.append([job.place for job, _ in running])
        ended += [job for job, _ in running if not math.isnan(job.end_s)]
        jobs = [job for job in jobs if math.isnan(job.end_s)]
        now_s = next_s
    ended.sort(key=lambda job: job.place)
    return [job.end_s for job in ended], [job.ran_s for job in ended], rounds


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    num_jobs=st.integers(1, 12),
    counts=st.sampled_from(((8,), (8, 8), (3, 8))),
    levels=st.integers(1, 3),
    gap_s=st.sampled_from((0.0, 30.0, 900.0)),
)
def test_both_engines_agree_to_the_last_bit(seed, num_jobs, counts, levels, gap_s):
    trace = generate_trace(np.random.default_rng(seed), num_jobs=num_jobs, mean_interarrival_s=gap_s, profiles=BUILTIN)
    # A tenth of the work, so that a run has some hundred rounds; several share sizes, so that some come from GNS.
    trace = replace(
        trace,
        total_steps=np.maximum(1, trace.total_steps // 10),
        total_epochs=None,
        schedule=None,
        model=["ResNet-18" if name == "LM" and len(counts) > 1 else name for name in trace.model],
        batch_size=np.where(np.array(trace.model) == "LM", 16, trace.batch_size)
        if len(counts) > 1
        else trace.batch_size,
    )

    def answer(number, jobs, kinds):
        # Few levels make ties; 0 is one of them.
        return np.random.default_rng([seed, number]).integers(0, levels + 1, size=(jobs, kinds)) / levels

    class Drawn:
        name = "drawn"

        def due(self, state):
            return due_on_events(state, 1000.0)

        def decide(self, state):
            return Shares(answer(state.round, *state.rates.shape))

    profiles = [BUILTIN, SLOW][: len(counts)]
    run = simulate_rounds(
        trace,
        Drawn(),
        gpus=dict(zip("ab", counts, strict=False)),
        profiles=dict(zip("ab", profiles, strict=False)),
        rules=RoundRules(overrun=None),
    )
    ends, ran_s, rounds = plain(trace, counts, profiles, answer, 1000.0, [math.inf] * num_jobs)
    assert [list(ids) for ids in run.schedule] == rounds
    assert run.end_s.tolist() == ends
    assert run.run_s.tolist() == ran_s


@given(st.lists(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 1)), unique_by=lambda run: run[0]), max_size=6))
def test_leases_keep_what_it_can_and_takes_the_lowest_otherwise(rounds):
    gang_gpus = (4, 2, 2, 1, 1, 3)
    leases, before = GpuLeases((8, 8)), {}
    for wanted in rounds:
        runs, used = [], [0, 0]
        for job, kind in wanted:
            if used[kind] + gang_gpus[job] <= 8:
                runs.append((job, kind, gang_gpus[job]))
                used[kind] += gang_gpus[job]
        answer = leases.assign(runs)
        taken, now = [set(), set()], {}
        for width in sorted(set(gang_gpus), reverse=True):
            keep = [r for r in runs if r[2] == width and before.get(r[0], (None,))[0] == r[1]]
            keep = [r for r in keep if not set(before[r[0]][1]) & taken[r[1]]]
            for job, kind, _ in keep:
                now[job] = before[job]
                taken[kind] |= set(before[job][1])
            for job, kind, gang in (r for r in runs if r[2] == width and r not in keep):
                gpus = tuple(sorted(set(range(8)) - taken[kind])[:gang])
                now[job] = (kind, gpus)
                taken[kind] |= set(gpus)
        kept = {job for job in now if before.get(job) == now[job]}
        assert [(gpus, more) for gpus, more in answer] == [(now[job][1], job in kept) for job, _, _ in runs]
        before = now
