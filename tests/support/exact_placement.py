"""Second placement engine in exact fractions, for tests: slow, and written from docs/placement.md alone."""

import math
from fractions import Fraction
from types import SimpleNamespace

from equipoise.simulation.placement import Move, Running, Start, Stop, Wake

TICK = Fraction(1, 2**20)


def ticks(seconds):
    return round(seconds / TICK)


class ExactJob:
    """Job with its sums so far; times and work are fractions."""

    def __init__(self, index, model, gang_gpus, batch_size, arrival_s, work):
        self.trace_index, self.model, self.gang_gpus, self.batch_size = index, model, gang_gpus, batch_size
        self.arrival_s, self.work = arrival_s, work
        self.present, self.run, self.gpu_ids = False, None, ()
        self.done = self.run_s = self.gpu_s = self.shared_gpu_s = self.exposed_s = self.held_s = Fraction(0)
        self.start_s = self.end_s = self.lease_end_s = None
        self.started_s = self.saved_s = self.progress_from_s = Fraction(0)
        self.restarts = self.preemptions = self.moves = self.machines = self.tier = 0


class ExactSimulation:
    """Simulation of jobs on machines and racks; also the state that its policies read.

    `rate` and `exposed` are functions of a `Running`, `ratio` one of a `Running` and those beside it; all return
    fractions. So does `worker_gb`, a function of model and samples, if memory counts.
    """

    def __init__(
        self, jobs, policy, *, gpus, size, per_rack, rate, exposed, ratio, checkpoint_s, restart_s, jobs_per_gpu=1,
        worker_gb=None,
    ):  # fmt: skip
        self.all, self.policy, self.gpu_count, self.size, self.per_rack = jobs, policy, gpus, size, per_rack
        self.rate, self.exposed, self.ratio = rate, exposed, ratio
        self.checkpoint_s, self.restart_s, self.jobs_per_gpu = checkpoint_s, restart_s, jobs_per_gpu
        self.worker_gb = worker_gb
        self.time_s, self.load_s = Fraction(0), [Fraction(0)] * gpus
        self.blocked_s = [Fraction(0)] * gpus  # a job that starts on the GPU makes no progress until then
        self.wakes, self.stretches, self.calls = [], [], []
        self.arrived, self.ended, self.expired = [], [], []

    # -- State, as a policy reads it -----------------------------------------------------------------------------------

    @property
    def waiting(self):
        return {job.trace_index: job for job in self.all if job.present and not job.gpu_ids}

    @property
    def running(self):
        return {job.trace_index: job for job in self.all if job.gpu_ids}

    @property
    def gpus(self):
        return SimpleNamespace(
            jobs_on=[[i for i, job in self.running.items() if gpu in job.gpu_ids] for gpu in range(self.gpu_count)]
        )

    def exclusive_rate(self, job):
        """Progress per second alone on the whole gang, as consolidated as the cluster permits."""
        gang, size = job.gang_gpus, self.size
        fewest, racks = math.ceil(Fraction(gang, size)), math.ceil(Fraction(gang, size * self.per_rack))
        tier = 0 if gang <= size else 1 if gang <= size * self.per_rack else 2
        batch = job.batch_size
        return self.rate(Running(job.trace_index, job.model, gang, gang, fewest, fewest, tier, batch, batch, racks))

    def total_s(self, job):
        return job.work / self.exclusive_rate(job)

    def remaining_s(self, job):
        return max(Fraction(0), job.work - job.done) / self.exclusive_rate(job)

    def find(self, gpus, rule):
        """Free GPUs by a placement rule, ascending; None if there are too few."""
        free = [gpu for gpu, jobs in enumerate(self.gpus.jobs_on) if not jobs]
        if len(free) < gpus:
            return None
        if rule == "first_fit":
            return tuple(free[:gpus])
        if rule == "least_loaded":
            return tuple(sorted(sorted(free, key=lambda gpu: (ticks(self.load_s[gpu]), gpu))[:gpus]))
        return tuple(sorted(self._consolidated(gpus, free)))

    def _consolidated(self, gpus, free):
        machines = range(self.gpu_count // self.size)
        free_on = {m: [gpu for gpu in free if gpu // self.size == m] for m in machines}
        for _, machine in sorted((len(free_on[m]), m) for m in machines):
            if len(free_on[machine]) >= gpus:
                return free_on[machine][:gpus]
        inside = {}
        for machine in machines:
            inside.setdefault(machine // self.per_rack, []).append(machine)
        free_in = {rack: sum(len(free_on[m]) for m in members) for rack, members in inside.items()}
        enough = sorted((count, rack) for rack, count in free_in.items() if count >= gpus)
        racks = [enough[0][1]] if enough else sorted(free_in, key=lambda rack: (-free_in[rack], rack))
        chosen = []
        for rack in racks:
            left = list(inside[rack])
            while len(chosen) < gpus and left:
                rest = gpus - len(chosen)
                holding = [m for m in left if len(free_on[m]) >= rest]
                if holding:
                    machine = min(holding, key=lambda m: (len(free_on[m]), m))
                else:
                    machine = min(left, key=lambda m: (-len(free_on[m]), m))
                chosen += free_on[machine][:rest]
                left.remove(machine)
        return chosen

    # -- Time ----------------------------------------------------------------------------------------------------------

    def beside(self, job):
        return [other for other in self.running.values() if other is not job and set(other.gpu_ids) & set(job.gpu_ids)]

    def rate_now(self, job):
        others = self.beside(job)
        rate = self.rate(job.run)
        return rate / self.ratio(job.run, [other.run for other in others]) if others else rate

    def advance(self, time_s):
        """Let all jobs make the progress of the time until then."""
        for job in self.running.values():
            seconds = max(Fraction(0), time_s - max(self.time_s, job.progress_from_s))
            shared = {gpu for other in self.beside(job) for gpu in other.gpu_ids} & set(job.gpu_ids)
            job.done += self.rate_now(job) * seconds
            job.run_s += seconds
            job.gpu_s += seconds * len(job.gpu_ids)
            job.shared_gpu_s += seconds * len(shared)
            job.exposed_s += seconds * self.exposed(job.run)
            job.held_s += time_s - self.time_s
        for gpu, jobs in enumerate(self.gpus.jobs_on):
            self.load_s[gpu] += (time_s - self.time_s) if jobs else 0
        self.time_s = time_s

    def end_of(self, job):
        return max(self.time_s, job.progress_from_s) + (job.work - job.done) / self.rate_now(job)

    def simulate(self):
        while any(job.end_s is None for job in self.all):
            events = [(job.arrival_s, "arrival", job) for job in self.all if not job.present and job.end_s is None]
            events += [(time_s, "wake", None) for time_s in self.wakes]
            for job in self.running.values():
                events.append((self.end_of(job), "end", job))
                if job.lease_end_s is not None:
                    events.append((job.lease_end_s, "lease", job))
            first_s = min(time_s for time_s, *_ in events)
            due = [event for event in events if event[0] <= first_s + TICK]
            call_s = max(self.time_s, *(time_s for time_s, *_ in due))
            for time_s, kind, job in sorted(due, key=lambda event: event[0]):
                if kind == "end":
                    self.advance(max(self.time_s, time_s))
                    self.vacate(job)
                    job.present, job.end_s = False, self.time_s
            self.advance(call_s)
            self.ended = [job for job in self.all if (job, "end") in {(who, kind) for _, kind, who in due}]
            self.arrived = [job for time_s, kind, job in due if kind == "arrival"]
            self.expired = [job for time_s, kind, job in due if kind == "lease" and job.gpu_ids]
            for job in self.arrived:
                job.present = True
            for time_s, kind, _ in due:
                if kind == "wake":
                    self.wakes.remove(time_s)
            self.calls.append(self.time_s)
            unrenewed = list(self.expired)
            for action in self.policy(self):
                self.act(action, unrenewed)
            for job in unrenewed:
                self.stop(job)
        return self

    # -- Actions -------------------------------------------------------------------------------------------------------

    def act(self, action, unrenewed):
        if isinstance(action, Wake):
            self.wakes.append(action.time_s)
            return
        job = self.all[action.trace_index]
        renewed = isinstance(action, Start) and job in unrenewed
        if job in unrenewed:
            unrenewed.remove(job)
        if isinstance(action, Stop):
            self.stop(job)
        elif renewed:
            assert tuple(sorted(action.gpu_ids)) == job.gpu_ids
            self.lease(job, action)
        elif isinstance(action, Move):
            self.save(job)
            job.moves += 1
            self.occupy(job, action)
        else:
            job.restarts += job.start_s is not None
            self.occupy(job, action)

    def stop(self, job):
        self.save(job)
        job.preemptions += 1

    def save(self, job):
        """Take a job off its GPUs; it saves its state there."""
        if self.checkpoint_s:
            job.saved_s = self.time_s + self.checkpoint_s
            for gpu in job.gpu_ids:
                self.blocked_s[gpu] = max(self.blocked_s[gpu], job.saved_s)
        self.vacate(job)

    def vacate(self, job):
        self.stretches.append((job.trace_index, job.started_s, self.time_s, job.gpu_ids))
        job.gpu_ids, job.run, job.lease_end_s = (), None, None

    def occupy(self, job, action):
        ids = tuple(sorted(action.gpu_ids))
        machines = {gpu // self.size for gpu in ids}
        racks = {machine // self.per_rack for machine in machines}
        tier = 0 if len(machines) == 1 else 1 if len(racks) == 1 else 2
        fewest = math.ceil(Fraction(len(ids), self.size))
        batch = job.batch_size if action.batch_size is None else action.batch_size
        part = batch if action.sub_batch is None else action.sub_batch
        job.run = Running(
            job.trace_index, job.model, job.gang_gpus, len(ids), len(machines), fewest, tier, batch, part, len(racks)
        )
        begin_s = max(self.time_s, job.saved_s, *(self.blocked_s[gpu] for gpu in ids))
        job.progress_from_s = begin_s + (0 if job.start_s is None else self.restart_s)
        job.gpu_ids, job.started_s = ids, self.time_s
        job.start_s = self.time_s if job.start_s is None else job.start_s
        job.machines, job.tier = max(job.machines, len(machines)), max(job.tier, tier)
        self.lease(job, action)

    def lease(self, job, action):
        job.lease_end_s = None if math.isinf(action.lease_s) else self.time_s + action.lease_s


# -- Policies ----------------------------------------------------------------------------------------------------------


def queue(key, backfill, placement):
    """Waiting jobs in the order of `key(state, job)` in ticks; without backfill none passes one that does not fit."""

    def decide(state):
        ordered = sorted(state.waiting.values(), key=lambda job: (ticks(key(state, job)), job.trace_index))
        for job in ordered:
            gpu_ids = state.find(job.gang_gpus, placement)
            if gpu_ids is not None:
                yield Start(job.trace_index, gpu_ids)
            elif not backfill:
                return

    return decide


def fifo(backfill=False, placement="consolidated"):
    return queue(lambda state, job: job.arrival_s, backfill, placement)


def sjf(backfill=False, placement="consolidated"):
    return queue(lambda state, job: state.total_s(job), backfill, placement)


def srtf(placement="consolidated"):
    """The jobs with the least remaining time that fit the cluster run; the others wait."""

    def decide(state):
        present = [*state.running.values(), *state.waiting.values()]
        present.sort(key=lambda job: (ticks(state.remaining_s(job)), not job.gpu_ids, job.trace_index))
        left, taken = state.gpu_count, []
        for job in present:
            if job.gang_gpus <= left:
                left -= job.gang_gpus
                taken.append(job)
        for job in present:
            if job.gpu_ids and job not in taken:
                yield Stop(job.trace_index)
        for job in taken:
            if not job.gpu_ids:
                yield Start(job.trace_index, state.find(job.gang_gpus, placement))

    return decide


def lucid(scores, default_score, capacity, placement="consolidated"):
    """Short jobs start on free GPUs, or on those of one other job of equally many that shares none."""

    def score(job):
        return scores.get(job.model, default_score)

    def decide(state):
        size = {job.trace_index: ticks(job.gang_gpus * state.total_s(job)) for job in state.waiting.values()}
        for index in sorted(size, key=lambda index: (size[index], index)):
            job = state.all[index]
            gpu_ids = state.find(job.gang_gpus, placement)
            if gpu_ids is None and state.jobs_per_gpu > 1:
                partners = [
                    (score(other), other.trace_index)
                    for other in state.running.values()
                    if other.gang_gpus == job.gang_gpus
                    and not state.beside(other)
                    and score(other) + score(job) <= capacity
                ]
                gpu_ids = state.all[min(partners)[1]].gpu_ids if partners else None
            if gpu_ids is not None:
                yield Start(index, gpu_ids)

    return decide
