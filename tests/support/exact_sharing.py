"""SJF-FFS and SJF-BSBF in exact fractions for `exact_placement`: slow, written from docs/placement-policies.md alone.

Pairs are simulated event by event, and each waiting job is compared with each running one at each call.
"""

import math
from fractions import Fraction

from exact_placement import TICK, ticks

from equipoise.simulation.placement import Running, Start


def sjf_ffs(gpu_memory_gb, order, placement):
    return ExactSharing(gpu_memory_gb, order, placement, None, False)


def sjf_bsbf(gpu_memory_gb, order, placement, rule, count_waiting):
    return ExactSharing(gpu_memory_gb, order, placement, rule, count_waiting)


def ends(running_s, waiting_s, x, y, start_s):
    """Ends of a running job and of one that starts at `start_s`, at most the end of the first, event by event."""
    now, left, found = Fraction(0), [Fraction(running_s), Fraction(waiting_s)], [None, None]
    while None in found:
        here = [job for job in (0, 1) if found[job] is None and (job == 0 or now >= start_s)]
        slower = (x, y) if len(here) == 2 else (1, 1)
        events = [now + left[job] * slower[job] for job in here]
        if found[1] is None and now < start_s:
            events.append(start_s)
        then = min(events)
        for job in here:
            left[job] -= (then - now) / slower[job]
            if not left[job]:
                found[job] = then
        now = then
    return found


class ExactSharing:
    """Policy that also notes, of the jobs that share, the partners and whether their batches are divided.

    `gains` notes whether each pair that was compared may share.
    """

    def __init__(self, gpu_memory_gb, order, placement, rule, count_waiting):
        self.gpu_memory_gb, self.order, self.placement = gpu_memory_gb, order, placement
        self.rule, self.count_waiting = rule, count_waiting
        self.spans, self.parts, self.gains = [], [], []

    def __call__(self, state):
        self.state = state
        self.waiting_others = len(state.waiting) - 1 if self.count_waiting else 0
        for job in sorted(state.waiting.values(), key=self.place):
            gang = job.gang_gpus
            free = [gpu for gpu, on in enumerate(state.gpus.jobs_on) if not on]
            if len(free) >= gang:
                yield Start(job.trace_index, state.find(gang, self.placement))
            elif state.jobs_per_gpu > 1:
                yield from self.share(job, len(free))

    def place(self, job):
        time = ticks(self.state.total_s(job))
        return (job.gang_gpus if self.order == "gpus" else 0, time, job.trace_index)

    def share(self, job, free):
        partners = []
        for other in self.state.running.values():
            if not self.state.beside(other):
                found = self.best(job, other)
                self.gains.append(found is not None)
                if found is not None:
                    rank, part = found
                    partners.append((rank, other.trace_index, part, other))
        if free + sum(len(other.gpu_ids) for *_, other in partners) < job.gang_gpus:
            return
        chosen, parts = [], [job.batch_size]
        for *_, part, other in sorted(partners, key=lambda each: each[:2]):
            if len(chosen) < job.gang_gpus:
                chosen += sorted(other.gpu_ids)[: job.gang_gpus - len(chosen)]
                parts.append(part)
        if len(chosen) < job.gang_gpus:
            chosen += self.state.find(job.gang_gpus - len(chosen), self.placement)
        self.spans.append(len(parts) - 1)
        self.parts.append(min(parts) < job.batch_size)
        yield Start(job.trace_index, tuple(chosen), sub_batch=min(parts))

    def best(self, job, other):
        """Rank and sub-batch of the best setting that gains; None if there is none."""
        found = []
        for part in self.sub_batches(job, other):
            if self.rule is None:
                return min(other.gpu_ids), part
            mine, beside = self.alone(job, part), self.alone(other, other.run.sub_batch)
            x, y = self.state.ratio(beside, [mine]), self.state.ratio(mine, [beside])
            whole_s = self.state.total_s(job)
            slower = self.state.rate(self.alone(job, job.batch_size)) / self.state.rate(mine)
            part_s = whole_s * max(1, slower)
            end = ticks(self.state.end_of(other))
            # The end counts to the nearest tick: a gain half a tick later is one.
            later_s = (end + Fraction(1, 2)) * TICK - self.state.time_s
            if self.rule == "sign":
                gains = 2 / Fraction(x) + 1 / Fraction(y) >= 2
            else:
                shared = self.cost(job, other, *ends(later_s, part_s, x, y, 0))
                # One after the other, each holds its GPUs for its own time.
                apart = sum(ends(later_s, whole_s, x, y, later_s))
                apart += self.behind() * (other.gang_gpus * later_s + job.gang_gpus * whole_s)
                gains = shared <= apart
            if gains:
                running_s = end * TICK - self.state.time_s
                found.append((ticks(self.cost(job, other, *ends(running_s, part_s, x, y, 0))), -part))
        return (min(found)[0], -min(found)[1]) if found else None

    def behind(self):
        return Fraction(self.waiting_others, self.state.gpu_count)

    def cost(self, job, other, running_end_s, waiting_end_s):
        """The ends, and the GPU-seconds of the pair GPU by GPU: the two jobs overlap on as many as possible."""
        held = 0
        for gpu in range(max(job.gang_gpus, other.gang_gpus)):
            here = [running_end_s] * (gpu < other.gang_gpus) + [waiting_end_s] * (gpu < job.gang_gpus)
            held += max(here)
        return running_end_s + waiting_end_s + self.behind() * held

    def sub_batches(self, job, other):
        """Sub-batches that fit the memory, in descending order."""
        memory = self.state.worker_gb
        steps = [
            math.ceil(Fraction(job.batch_size, 2**halvings)) for halvings in range(job.batch_size.bit_length() + 1)
        ]
        sizes = sorted(set(steps), reverse=True) if memory else [job.batch_size]
        for size in sizes:
            if not memory or memory(job.model, size) + memory(other.model, other.run.sub_batch) <= self.gpu_memory_gb:
                yield size

    def alone(self, job, part):
        gang, size, per_rack = job.gang_gpus, self.state.size, self.state.per_rack
        fewest, racks = math.ceil(Fraction(gang, size)), math.ceil(Fraction(gang, size * per_rack))
        tier = 0 if gang <= size else 1 if gang <= size * per_rack else 2
        return Running(job.trace_index, job.model, gang, gang, fewest, fewest, tier, job.batch_size, part, racks)
