"""Tiresias in exact fractions for `exact_placement`: slow, and written from docs/placement-policies.md alone."""

import math
from collections import Counter
from fractions import Fraction
from types import SimpleNamespace

from exact_placement import TICK, ticks

from equipoise.simulation.placement import Start, Stop, Wake


def tiresias(thresholds, promote, skew, skew_threshold):
    return ExactTiresias(thresholds, promote, skew, skew_threshold)


def tiresias_gittins(thresholds, promote, skew, skew_threshold, service):
    return ExactTiresias(thresholds, promote, skew, skew_threshold, service)


def gittins(values, weights, attained, quantum):
    """Gittins index of integer service for one quantum, by its definition."""
    above = [(value - attained, weight) for value, weight in zip(values, weights, strict=True) if value > attained]
    mass = sum(weight for _, weight in above)
    ending = Fraction(sum(weight for rest, weight in above if rest <= quantum))
    if not ending:
        return Fraction(0)
    return (ending / mass) / (Fraction(sum(min(rest, quantum) * weight for rest, weight in above)) / mass)


class ExactTiresias:
    """At each call the queue of every job is checked, all jobs are sorted, and the next change of queue is a wake."""

    def __init__(self, thresholds, promote, skew, skew_threshold, service=None):
        self.thresholds, self.promote, self.service = thresholds, promote, service
        self.promotions = Counter()
        self.skewed = {model for model in skew if skew[model] > skew_threshold}
        self.facts, self.wake_s = {}, math.inf

    def __call__(self, state):
        present = [*state.running.values(), *state.waiting.values()]
        for job in present:
            if job.trace_index not in self.facts:
                zero = Fraction(0)
                fact = SimpleNamespace(queue=0, gpu_s=zero, run_s=zero, waited_s=zero, since_s=None, order=0)
                self.facts[job.trace_index] = fact
                self.rank(job, fact)
        changed = [self.requeue(state, job) for job in present]
        if any(changed) or state.arrived or state.ended:
            yield from self.serve(state, present)
        # One wake at a time, unless a change comes earlier: each is a call, and ends events that are one.
        if self.wake_s <= state.time_s:
            self.wake_s = math.inf
        next_s = min((self.change_s(state, job) for job in present), default=math.inf)
        if next_s < self.wake_s:
            self.wake_s = next_s
            yield Wake(next_s)

    @property
    def amplification(self):
        """Factor by which a rounding error of a time can grow in a run: `promote` for each promotion of a job."""
        return max(1, self.promote or 0) ** max(self.promotions.values(), default=0)

    def change_s(self, state, job):
        """Time at which the job changes its queue if it runs or waits on; inf if it does not."""
        fact = self.facts[job.trace_index]
        if job.gpu_ids and fact.queue < len(self.thresholds):
            need = self.thresholds[fact.queue] - (job.gpu_s - fact.gpu_s)
            return max(state.time_s, job.progress_from_s) + need / job.gang_gpus
        if not job.gpu_ids and fact.queue and self.promote is not None:
            waited_s = fact.waited_s + state.time_s - fact.since_s
            return state.time_s + self.promote * (job.run_s - fact.run_s) - waited_s
        return math.inf

    def requeue(self, state, job):
        """Demote or promote a job that is due, to a tick; return whether it was."""
        fact, changed = self.facts[job.trace_index], False
        while (due_s := self.change_s(state, job)) < math.inf and due_s <= state.time_s + TICK:
            if job.gpu_ids:
                fact.queue += 1
            else:
                fact.queue, fact.gpu_s, fact.run_s, fact.waited_s = 0, job.gpu_s, job.run_s, Fraction(0)
                self.promotions[job.trace_index] += 1
            self.rank(job, fact)
            changed = True
        return changed

    def rank(self, job, fact):
        """Compute the Gittins index: smaller orders come first."""
        if self.service is not None:
            values = [ticks(value) for value in self.service.values]
            quantum = ticks(self.thresholds[fact.queue]) if fact.queue < len(self.thresholds) else math.inf
            index = gittins(values, self.service.weights, ticks(job.gpu_s - fact.gpu_s), quantum)
            fact.order = math.floor(1 / index) if index else math.inf

    def key(self, job):
        fact = self.facts[job.trace_index]
        first = (1, ticks(job.arrival_s)) if job.start_s is None else (0, ticks(job.start_s))
        return (fact.queue, fact.order, first, job.trace_index)

    def serve(self, state, present):
        left, taken = state.gpu_count, []
        for job in sorted(present, key=self.key):
            if job.gang_gpus <= left:
                left -= job.gang_gpus
                taken.append(job)
        for job in sorted(present, key=self.key):
            if job.gpu_ids and job not in taken:
                yield Stop(job.trace_index)
                self.facts[job.trace_index].since_s = state.time_s
                self.rank(job, self.facts[job.trace_index])
                self.requeue(state, job)
        for job in taken:
            gpu_ids = None if job.gpu_ids else state.find(job.gang_gpus, "consolidated")
            if gpu_ids is None:
                continue
            machines = len({gpu // state.size for gpu in gpu_ids})
            if job.model in self.skewed and machines > math.ceil(Fraction(job.gang_gpus, state.size)):
                continue
            fact = self.facts[job.trace_index]
            if ticks(job.run_s - fact.run_s) > 0:
                fact.waited_s += state.time_s - fact.since_s
            yield Start(job.trace_index, gpu_ids)
