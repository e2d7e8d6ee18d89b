"""Delay scheduling checked call by call: each offer of a policy beside the rules, written from docs/dally.md alone."""

import math
from collections import defaultdict

import numpy as np

from equipoise.simulation.placement import TICK_S, Start, Stop, Wake


class CheckedDelays:
    """Passes a policy's actions on, after checks of who was offered GPUs, who accepted, and on which tier.

    The GPUs of an accepted placement are the policy's own choice; their tier and number are not. `timers` is the pair
    of fixed timers, or the settings of the auto-tuner.
    """

    knows = frozenset()

    def __init__(self, policy, timers):
        self.policy, self.timers, self.name = policy, timers, policy.name
        self.since, self.held, self.leases, self.waits = {}, {}, {}, defaultdict(list)
        self.offers_s = []
        self.accepted = self.refused = 0

    @property
    def timer_log(self):
        return getattr(self.policy, "timer_log", None)

    def decide(self, state):
        self.cluster, self.now_s = state.cluster, state.time_s
        for job in state.ended:
            del self.held[job.trace_index], self.since[job.trace_index]
        for job in state.arrived:
            self.since[job.trace_index] = job.arrival_s
        assert {index: job.gpu_ids for index, job in state.running.items()} == self.held
        before = dict(self.held)
        keys = {index: self.key(job) for index, job in state.jobs.items()}
        actions = list(self.policy.decide(state))
        yield from actions
        order = [Wake, *(Stop, Start)] if not actions else [Stop, Start, Wake]
        assert [type(each) for each in actions] == sorted((type(each) for each in actions), key=order.index)
        starts = {each.trace_index: each for each in actions if isinstance(each, Start)}
        expired = {job.trace_index for job in state.expired}
        if self.policy.offer_s is not None and not self.is_offer(self.now_s):
            assert not starts
            assert not expired
            return
        self.offers_s.append(self.now_s)
        self.check_offers(state, keys, starts, expired)
        for index, job in state.jobs.items():
            if index in starts:
                assert len(set(starts[index].gpu_ids)) == job.gang_gpus
                self.check_lease(starts[index].lease_s)
                self.held[index] = starts[index].gpu_ids
            elif index in expired:
                del self.held[index]
            if self.held.get(index) != before.get(index):
                self.since[index] = self.now_s
        assert {each.trace_index for each in actions if isinstance(each, Stop)} == {
            index for index in expired if self.held.get(index) != before[index]
        }

    def key(self, job):
        """Return the place in the order of offers."""
        sensitivity = job.computed_s / job.attained_s if job.attained_s else 0.0
        held = len(self.held.get(job.trace_index, ()))
        return (round(sensitivity / TICK_S), held, round(self.since[job.trace_index] / TICK_S), job.trace_index)

    def check_offers(self, state, keys, starts, expired):
        running = {gpu for index, ids in self.held.items() if index not in expired for gpu in ids}
        free = set(range(self.cluster.gpus)) - running
        for _, *_, index in sorted(keys[index] for index in keys if index not in self.held or index in expired):
            job, own = state.jobs[index], set(self.held.get(index, ()))
            wait_s = 0.0 if index in expired else self.now_s - self.since[index]
            accepted = set(starts[index].gpu_ids) if index in starts else None
            tightest = self.tightest(job.gang_gpus, free)
            assert accepted is None or accepted <= free
            if tightest is None:
                assert accepted is None
                continue
            if index in expired and self.policy.keep and own <= free:
                own_tier = self.tier(own)
                assert accepted == own if own_tier <= tightest else self.tier(accepted) == tightest
            elif self.accepts(tightest, job.gang_gpus, wait_s):
                assert self.tier(accepted) == tightest
                if tightest < 2:
                    self.waits[tightest, job.gang_gpus].append((self.now_s, wait_s))
                self.accepted += 1
            else:
                assert accepted is None
                self.refused += 1
            free -= accepted or set()

    def accepts(self, tier, demand, wait_s):
        """Return whether a job accepts GPUs of this tier, the tightest that it can have (steps 2 to 6)."""
        if tier == 0:
            return True
        machine_s, rack_s = (self.timer_s(each, demand) for each in (0, 1))
        if demand > self.cluster.gpus_per_machine:
            machine_s = 0.0
        if demand > self.cluster.gpus // self.cluster.racks:
            rack_s = 0.0
        late_s = wait_s + TICK_S
        return late_s >= machine_s if tier == 1 else late_s >= max(machine_s, rack_s)

    def timer_s(self, tier, demand):
        if isinstance(self.timers, tuple):
            return self.timers[tier]
        found = self.timers
        waits = [wait_s for time_s, wait_s in self.waits[tier, demand] if self.now_s - time_s <= found.history_s]
        waits = [wait_s for wait_s in waits if wait_s >= found.least_wait_s]
        if not waits:
            return found.empty_s[tier]
        deviation = np.std(waits, ddof=found.ddof) if len(waits) > found.ddof else 0.0
        return min(max(float(np.mean(waits) + 2 * deviation), found.floor_s[tier]), found.cap_s[tier])

    def tightest(self, demand, free):
        """Return the tier of the tightest placement on free GPUs; None if they are too few."""
        racks = self.cluster.gpus // self.cluster.racks
        for tier, size in enumerate((self.cluster.gpus_per_machine, racks, self.cluster.gpus)):
            if any(sum(gpu // size == part for gpu in free) >= demand for part in range(self.cluster.gpus // size)):
                return tier
        return None

    def tier(self, gpu_ids):
        sizes = self.cluster.gpus_per_machine, self.cluster.gpus // self.cluster.racks, self.cluster.gpus
        return next(tier for tier, size in enumerate(sizes) if len({gpu // size for gpu in gpu_ids}) == 1)

    def check_lease(self, lease_s):
        policy = self.policy
        if policy.offer_s is None:
            assert lease_s == policy.lease_s
            return
        assert policy.lease_s - 2 * TICK_S <= lease_s <= policy.lease_s + policy.offer_s
        assert self.is_offer(self.now_s + lease_s)

    def is_offer(self, time_s):
        offers = time_s / self.policy.offer_s
        return math.isclose(offers, round(offers), rel_tol=1e-12, abs_tol=TICK_S / self.policy.offer_s)
