"""Gandiva in exact fractions for `exact_placement`: slow, and written from docs/placement-policies.md alone."""

import math
from collections import Counter

from exact_placement import TICK, ticks

from equipoise.simulation.placement import Move, Running, Start, Stop, Wake


def gandiva(quantum_s, utilization, defragment, adaptive, grow_after_s):
    return ExactGandiva(quantum_s, utilization, defragment, adaptive, grow_after_s)


class ExactGandiva:
    """All quantities are computed anew from the units and the parts of spread jobs.

    A unit is a tuple of trace indexes: one job, or the partner and the job that was packed. `fired` counts the rules
    that applied.
    """

    def __init__(self, quantum_s, utilization, defragment, adaptive, grow_after_s):
        self.quantum_s, self.utilization, self.defragment = quantum_s, utilization, defragment
        self.adaptive, self.grow_after_s = adaptive, grow_after_s
        self.rings = []  # units of each machine, in order
        self.affinity, self.changed_s = [], []  # by machine
        self.parts = {}  # GPUs by machine of each spread job
        self.pairs = []  # units of two jobs in the order of packing
        self.slice_end_s = self.wake_s = math.inf
        self.fired = Counter()

    def __call__(self, state):
        self.state = state
        if not self.rings:
            self.machines = range(state.gpu_count // state.size)
            self.rings = [[] for _ in self.machines]
            self.affinity, self.changed_s = [0 for _ in self.machines], [None for _ in self.machines]
        # Of this call: jobs that were put somewhere, machines on which a job was put, units that migrated in order,
        # and jobs that joined a partner.
        self.placed, self.receiving, self.migrated, self.joined = set(), set(), [], set()
        slice_ends = self.slice_end_s <= state.time_s + TICK
        for job in state.ended:
            self.leave((job.trace_index,))
        self.place_queued()
        if state.ended or slice_ends:
            self.rescue_suspended()
            self.separate_pairs()
            self.gather_spread()
            self.defragment_machines()
        if slice_ends and state.jobs_per_gpu >= 2:
            self.pack()
        chosen = self.take_turns(slice_ends)
        yield from self.stop_and_shrink(chosen)
        yield from self.move_migrated()
        yield from self.start(chosen)
        yield from self.grow()
        if not any(map(self.is_oversubscribed, self.machines)):
            self.slice_end_s = math.inf
        elif slice_ends or self.slice_end_s == math.inf:
            self.slice_end_s = state.time_s + self.quantum_s
        # One wake at a time, unless an earlier one is needed: each is a call, and ends events that are one.
        if self.wake_s <= state.time_s:
            self.wake_s = math.inf
        next_s = min(self.slice_end_s, self.growth_s())
        if next_s < self.wake_s:
            self.wake_s = next_s
            yield Wake(next_s)

    # -- Units and machines --------------------------------------------------------------------------------------------

    def gang(self, unit):
        return self.state.all[unit[0]].gang_gpus

    def arrival(self, index):
        return (ticks(self.state.all[index].arrival_s), index)

    def spread_gpus(self, machine):
        return sum(parts.get(machine, 0) for parts in self.parts.values())

    def load(self, machine):
        return sum(self.gang(unit) for unit in self.rings[machine]) + self.spread_gpus(machine)

    def free(self, machine):
        return max(0, self.state.size - self.load(machine))

    def is_oversubscribed(self, machine):
        return self.load(machine) > self.state.size

    def is_running(self, unit):
        """Return whether the unit ran before this call; the packed job of a new pair does not count."""
        return bool(self.state.all[unit[0]].gpu_ids)

    def queued(self):
        """Jobs that are on no machine, in order of arrival."""
        assigned = {index for ring in self.rings for unit in ring for index in unit} | set(self.parts)
        present = {*self.state.waiting, *self.state.running}
        return sorted(present - assigned, key=self.arrival)

    def leave(self, jobs):
        """Take a unit, a job of a pair, or a spread job off its machines."""
        left = self.parts.pop(jobs[0], {})
        for machine, ring in enumerate(self.rings):
            for unit in [unit for unit in ring if set(unit) & set(jobs)]:
                rest = tuple(index for index in unit if index not in jobs)
                place = ring.index(unit)
                ring[place : place + 1] = [rest] if rest else []
                if rest:
                    self.pairs.remove(unit)
                left = {machine: self.gang(unit)}
        for machine in left:
            self.changed_s[machine] = self.state.time_s
            if not self.load(machine):
                self.affinity[machine] = 0

    def put(self, jobs, parts):
        """Put a unit on a machine, or a job on its parts of several."""
        for machine in parts:
            if not self.load(machine):
                self.affinity[machine] = self.gang(jobs)
            self.changed_s[machine] = self.state.time_s
        self.receiving |= set(parts)
        self.placed |= set(jobs)
        if len(parts) == 1:
            self.rings[min(parts)].append(jobs)
        else:
            self.parts[jobs[0]] = parts

    def migrate(self, jobs, parts):
        self.leave(jobs)
        self.put(jobs, parts)
        self.migrated.append(jobs)

    # -- 1. Place ------------------------------------------------------------------------------------------------------

    def find_machine(self, gang):
        """Machine by the rules 1.1 to 1.3, and the rule; None if there is none."""
        able = [machine for machine in self.machines if self.free(machine) >= gang]
        same = [machine for machine in able if self.affinity[machine] == gang]
        if same:
            return min(same, key=lambda machine: (self.load(machine), machine)), "1.1"
        empty = [machine for machine in able if not self.load(machine)]
        if empty:
            return empty[0], "1.2"
        if able:
            return min(able, key=lambda machine: (self.free(machine), machine)), "1.3"
        return None, None

    def find_parts(self, gang, free):
        """GPUs by machine by rule 1.4 from those that are free on each machine; none if too few are."""
        parts = {}
        while sum(free) >= gang and (rest := gang - sum(parts.values())):
            left = [machine for machine in self.machines if free[machine] and machine not in parts]
            holding = [machine for machine in left if free[machine] >= rest]
            if holding:
                machine = min(holding, key=lambda machine: (free[machine], machine))
            else:
                machine = min(left, key=lambda machine: (-free[machine], machine))
            parts[machine] = min(rest, free[machine])
        return parts

    def place_queued(self):
        for index in self.queued():
            gang = self.gang((index,))
            machine, rule = self.find_machine(gang)
            parts = {} if machine is None else {machine: gang}
            if not parts:
                parts, rule = self.find_parts(gang, [self.free(machine) for machine in self.machines]), "1.4"
            if not parts:
                shared = [
                    (self.load(machine), machine)
                    for machine in self.machines
                    if self.affinity[machine] == gang and self.state.size - self.spread_gpus(machine) >= gang
                ]
                parts, rule = ({min(shared)[1]: gang}, "1.5") if shared else ({}, "1.6")
            if parts:
                self.put((index,), parts)
            self.fired[rule] += 1

    # -- 2. Migrate ----------------------------------------------------------------------------------------------------

    def rescue_suspended(self):
        while (found := self.first_rescue()) is not None:
            unit, machine = found
            self.migrate(unit, {machine: self.gang(unit)})
            self.fired["2.1"] += 1

    def first_rescue(self):
        """First suspended unit for which there is a machine."""
        for source in sorted(self.machines, key=lambda machine: (-self.load(machine), machine)):
            for unit in self.rings[source]:
                if self.is_oversubscribed(source) and not self.is_running(unit) and not self.placed & set(unit):
                    machine, _ = self.find_machine(self.gang(unit))
                    if machine is not None:
                        return unit, machine
        return None

    def separate_pairs(self):
        if any(map(self.is_oversubscribed, self.machines)) or self.queued():
            return
        for _, packed in list(self.pairs):
            gang = self.gang((packed,))
            machine, _ = self.find_machine(gang)
            if machine is not None and packed not in self.placed:
                self.migrate((packed,), {machine: gang})
                self.fired["2.2"] += 1

    def gather_spread(self):
        for index in sorted(self.parts, key=self.arrival):
            own = self.parts[index]
            free = [self.free(machine) + own.get(machine, 0) for machine in self.machines]
            parts = self.find_parts(self.gang((index,)), free)
            if len(parts) < len(own) and index not in self.placed:
                self.migrate((index,), parts)
                self.fired["2.3"] += 1

    def defragment_machines(self):
        visited = set()
        while True:
            sparse = [
                (-self.free(machine), machine)
                for machine in self.machines
                if self.load(machine)
                and self.free(machine) >= self.defragment * self.state.size
                and machine not in visited
            ]
            if not sparse:
                return
            source = min(sparse)[1]
            visited.add(source)
            for unit in list(self.rings[source]):
                targets = [
                    (self.free(machine), machine)
                    for machine in self.machines
                    if machine != source
                    and self.load(machine)
                    and self.gang(unit) <= self.free(machine) <= self.free(source)
                ]
                if targets and not self.placed & set(unit):
                    self.migrate(unit, {min(targets)[1]: self.gang(unit)})
                    self.fired["2.4"] += 1

    # -- 3. Pack -------------------------------------------------------------------------------------------------------

    def pack(self):
        units = {index: unit for ring in self.rings for unit in ring for index in unit}
        home = {index: machine for machine in self.machines for unit in self.rings[machine] for index in unit}
        order = sorted(units, key=lambda index: (self.utilization.get(self.state.all[index].model, 1), index))
        crowded = [index for index in order if self.is_oversubscribed(home[index])]
        for index in crowded:
            if self.is_oversubscribed(home[index]) and self.is_packable(index):
                partners = [other for other in order if other != index and self.is_packable(other)]
                partner = next((other for other in partners if self.pays(index, other)), None)
                if partner is not None:
                    self.join(index, partner, home[partner])
                    self.fired["3"] += 1

    def is_packable(self, index):
        single = any((index,) in ring for ring in self.rings)
        return single and index not in self.placed and ticks(self.state.all[index].run_s) > 0

    def pays(self, first, second):
        """Whether the two jobs make more progress together than in turns."""
        jobs = self.state.all[first], self.state.all[second]
        if jobs[0].gang_gpus != jobs[1].gang_gpus:
            return False
        mine, other = [self.run_on(job, job.gang_gpus) for job in jobs]
        return 1 / self.state.ratio(mine, [other]) + 1 / self.state.ratio(other, [mine]) > 1

    def run_on(self, job, gpus):
        """Run on so many GPUs of one machine."""
        return Running(job.trace_index, job.model, job.gang_gpus, gpus, 1, 1, 0, job.batch_size, job.batch_size)

    def join(self, index, partner, machine):
        self.leave((index,))
        ring = self.rings[machine]
        ring[ring.index((partner,))] = (partner, index)
        self.pairs.append((partner, index))
        self.joined.add(index)
        self.receiving.add(machine)
        self.changed_s[machine] = self.state.time_s

    # -- 4. Take turns -------------------------------------------------------------------------------------------------

    def take_turns(self, slice_ends):
        """Return the jobs that run after this call."""
        chosen = []
        for machine, ring in enumerate(self.rings):
            room = self.state.size - self.spread_gpus(machine)
            running = [unit for unit in ring if self.is_running(unit)]
            others = [unit for unit in ring if not self.is_running(unit)]
            if slice_ends and self.is_oversubscribed(machine):
                ring[:] = others + running
                going, candidates = [], ring
            else:
                going, candidates = running, others
            for unit in candidates:
                if self.gang(unit) <= room - sum(map(self.gang, going)):
                    going.append(unit)
            self.fired["4"] += any(unit not in going for unit in running)
            chosen += going
        return {index for unit in chosen for index in unit} | set(self.parts)

    # -- GPUs ----------------------------------------------------------------------------------------------------------

    def stop_and_shrink(self, chosen):
        moving = {index for unit in self.migrated for index in unit}
        for index in self.state.running:
            if index not in chosen or index in self.joined:
                yield Stop(index)
        for machine in sorted(self.receiving):
            for index in [index for unit in self.rings[machine] for index in unit]:
                job = self.state.all[index]
                if index not in moving and len(job.gpu_ids) > job.gang_gpus:
                    yield Move(index, job.gpu_ids[: job.gang_gpus])
                    self.fired["shrink"] += 1

    def move_migrated(self):
        for unit in self.migrated:
            if self.is_running(unit):
                ids = self.lowest_gpus(unit[0])
                for index in unit:
                    yield Move(index, ids)

    def start(self, chosen):
        partners = {packed: partner for partner, packed in self.pairs}
        waiting = sorted(set(self.state.waiting) & chosen)
        for index in waiting:
            if index not in partners:
                yield Start(index, self.lowest_gpus(index))
        for index in waiting:
            if index in partners:
                yield Start(index, self.state.all[partners[index]].gpu_ids)

    def lowest_gpus(self, index):
        """GPUs with the lowest numbers on the job's machines that no other job holds."""
        gang = self.gang((index,))
        homes = {m: gang for m in self.machines if any(index in unit for unit in self.rings[m])}
        found = []
        for machine, gpus in self.parts.get(index, homes).items():
            found += self.unheld_gpus(machine, index)[:gpus]
        return tuple(sorted(found))

    def unheld_gpus(self, machine, index=None):
        """GPUs of a machine that nobody holds; those of the job itself do not count."""
        size = self.state.size
        jobs_on = self.state.gpus.jobs_on
        return [gpu for gpu in range(machine * size, (machine + 1) * size) if not set(jobs_on[gpu]) - {index}]

    # -- 5. Grow -------------------------------------------------------------------------------------------------------

    def grow(self):
        if self.queued() or any(map(self.is_oversubscribed, self.machines)):
            return
        more = Counter()
        for machine in self.machines:
            if self.load(machine) and self.changed_s[machine] + self.grow_after_s <= self.state.time_s + TICK:
                singles = [self.state.all[unit[0]] for unit in self.rings[machine] if len(unit) == 1]
                able = [job for job in singles if job.model in self.adaptive]
                for _ in self.unheld_gpus(machine):
                    factors = [(-ticks(self.growth(job, more[job.trace_index])), job.trace_index) for job in able]
                    if factors and -min(factors)[0] > ticks(1):
                        more[min(factors)[1]] += 1
                        self.changed_s[machine] = self.state.time_s
        for index in sorted(more):
            own = self.state.all[index].gpu_ids
            machine = own[0] // self.state.size
            yield Move(index, tuple(sorted([*own, *self.unheld_gpus(machine)[: more[index]]])))
            self.fired["grow"] += 1

    def growth(self, job, more):
        """Factor by which the speed of a job with so many further GPUs grows with another one."""
        gpus = len(job.gpu_ids) + more
        return self.state.rate(self.run_on(job, gpus + 1)) / self.state.rate(self.run_on(job, gpus))

    def growth_s(self):
        """Next time at which growth can be due."""
        if not self.adaptive:
            return math.inf
        due = [self.changed_s[machine] + self.grow_after_s for machine in self.machines if self.load(machine)]
        return min((time_s for time_s in due if time_s > self.state.time_s + TICK), default=math.inf)
