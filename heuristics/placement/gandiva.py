"""Gandiva: affinity, turns on short GPUs, packing, migration, and growth of jobs that can use more GPUs."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from ...formulations.checks import as_real, store_checked
from ...formulations.errors import InvalidInput
from ...simulation.placement.actions import Action, Move, Start, Stop, Wake
from ...simulation.placement.job import PlacementJob
from ...simulation.placement.policy import PlacementState
from ...simulation.placement.speeds import Running
from ...simulation.placement.ticks import TICK_S, ticks
from .assignment import Assignment, Machine, Unit, by_arrival, check_consolidation

# Model, GPUs and batch size of a job.
Kind = tuple[str, int, int]


@dataclass(kw_only=True, eq=False)
class GandivaPolicy:
    """Gandiva (Xiao et al., OSDI 2018): jobs start early, take turns where GPUs are short, are packed, moved and grown.

    docs/placement-policies.md states the rules.

    Parameters
    ----------
    quantum_s : float
        Seconds for which the jobs of an oversubscribed machine run in turn: more than the rules `checkpoint_s` and
        `restart_s` together, or no job makes progress in its turn.
    utilization : mapping of str to float, optional
        GPU utilisation of each model, from 0 to 1; jobs with little are packed first. Other models have 1.
    defragment : float
        Part of a machine's GPUs, from 0 to 1: if as many are free, its jobs migrate to fuller machines.
    adaptive : collection of str
        Models whose jobs can use more GPUs than they ask for; they need speeds that are known on other numbers of GPUs.
    grow_after_s : float
        Seconds for which a machine does not change before its jobs grow.
    consolidate : {"machines", "tier"}
        What spread jobs migrate to: fewer machines; or a lower tier of the network, that is fewer racks first, and then
        fewer machines.

    Notes
    -----
    Packing needs the rule `jobs_per_gpu` of at least 2. Times count to the nearest 2^-20 s.
    """

    quantum_s: float = 60.0
    utilization: Mapping[str, float] | None = None
    defragment: float = 0.75
    adaptive: Collection[str] = ()
    grow_after_s: float = 600.0
    consolidate: str = "machines"
    name: str = field(default="gandiva", init=False)
    knows: frozenset[str] = field(default=frozenset({"interference"}), init=False)
    engine: ClassVar[str] = "placement"

    def __post_init__(self) -> None:
        store_checked(self, as_real, "quantum_s", "grow_after_s", above=TICK_S)
        store_checked(self, as_real, "defragment", minimum=0.0, maximum=1.0)
        check_consolidation(self.consolidate)
        given = {} if self.utilization is None else self.utilization
        if not isinstance(given, Mapping):
            raise InvalidInput("utilization", type(given).__name__, "must map models to their GPU utilisation")
        self._utilization = {
            model: as_real(f"utilization of {model}", value, minimum=0.0, maximum=1.0) for model, value in given.items()
        }
        models = self.adaptive
        if isinstance(models, str) or not isinstance(models, Collection) or not all(isinstance(m, str) for m in models):
            raise InvalidInput("adaptive", self.adaptive, "must be a collection of names of models")
        if models:
            self.knows |= {"speeds"}
        self._clear(1, 1, 1)

    def _clear(self, machines: int, gpus: int, racks: int) -> None:
        """Forget the jobs of an earlier run."""
        self._jobs = Assignment(machines, gpus, racks)
        self._slice_s = self._wake_s = math.inf
        self._pays: dict[tuple[Kind, Kind], bool] = {}  # whether packing jobs of these kinds pays

    def decide(self, state: PlacementState) -> Iterator[Action]:
        """Place, migrate, pack, take turns, and grow."""
        if not state.step:
            size = state.cluster.gpus_per_machine or state.cluster.gpus
            self._clear(state.cluster.gpus // size, size, state.cluster.racks or 1)
        jobs, now_s = self._jobs, state.time_s
        jobs.begin_call(now_s, state.arrived, state.ended)
        slice_ends = self._slice_s <= now_s + TICK_S
        jobs.place_queue()
        if state.ended or slice_ends:
            self._migrate()
        if slice_ends and state.jobs_per_gpu > 1:
            self._pack(state)
        if slice_ends:
            jobs.touched.update(jobs.crowded)
        yield from self._apply(state, {machine: self._chosen(machine, slice_ends) for machine in jobs.touched})
        if not jobs.crowded:
            self._slice_s = math.inf
        elif slice_ends or self._slice_s == math.inf:
            self._slice_s = now_s + self.quantum_s
        if self.adaptive and not jobs.queue and not jobs.crowded:
            yield from self._grow(state)
        yield from self._wake(now_s)

    def _wake(self, now_s: float) -> Iterator[Action]:
        """Ask for a call at the end of the slice, or when a machine may have been unchanged for long enough."""
        due_s = self._slice_s
        if self.adaptive:
            unchanged = (each.changed_s + self.grow_after_s for each in self._jobs.machines if each.load)
            due_s = min(due_s, min((time_s for time_s in unchanged if time_s > now_s + TICK_S), default=math.inf))
        if self._wake_s <= now_s:
            self._wake_s = math.inf
        if due_s < self._wake_s:
            # Rounding could put it just within the tick in which the engine refuses it.
            self._wake_s = max(due_s, math.nextafter(now_s + TICK_S, math.inf))
            yield Wake(self._wake_s)

    # -- Migration and packing -----------------------------------------------------------------------------------------

    def _migrate(self) -> None:
        """Let suspended jobs run elsewhere, separate pairs, consolidate spread jobs, and empty machines."""
        jobs, by_rack = self._jobs, self.consolidate == "tier"
        while self._move_suspended():
            pass
        if not jobs.crowded and not jobs.queue:
            for unit in list(jobs.pairs):
                if self._not_put(unit) and (machine := jobs.find(unit.gang)) is not None:
                    packed = unit.jobs[1]
                    jobs.leave(packed)
                    jobs.join(Unit([packed], machine))
        for job in sorted(jobs.spread.values(), key=by_arrival):
            own = jobs.parts_of(job)
            parts = jobs.find_parts(job.gang_gpus, own, by_rack=by_rack)
            if parts is None or job.trace_index in jobs.put:
                continue
            if jobs.span(parts, by_rack=by_rack) < jobs.span(own, by_rack=by_rack):
                jobs.leave(job)
                jobs.join_parts(job, parts)
        self._defragment()

    def _not_put(self, unit: Unit) -> bool:
        """Return whether no job of the unit was put anywhere in this call."""
        return all(job.trace_index not in self._jobs.put for job in unit.jobs)

    def _move_suspended(self) -> bool:
        """Put the first suspended unit that fits elsewhere on another machine; return whether there is one."""
        jobs, refused = self._jobs, set[int]()
        for machine in sorted(jobs.crowded, key=lambda each: (-each.load, each.number)):
            for unit in machine.ring:
                if unit.gang in refused or unit.running or not self._not_put(unit):
                    continue
                target = jobs.find(unit.gang)
                if target is not None:
                    jobs.move(unit, target)
                    return True
                refused.add(unit.gang)
        return False

    def _defragment(self) -> None:
        """Move the units of machines with many free GPUs to fuller ones."""
        jobs, left = self._jobs, set(self._jobs.machines)
        while sources := [each for each in left if each.load and each.free >= self.defragment * each.gpus]:
            source = min(sources, key=lambda each: (-each.free, each.number))
            left.remove(source)
            for unit in list(source.ring):
                able = [
                    each
                    for each in jobs.machines
                    if each is not source and each.load and unit.gang <= each.free <= source.free
                ]
                if able and self._not_put(unit):
                    jobs.move(unit, min(able, key=lambda each: each.free))

    def _pack(self, state: PlacementState) -> None:
        """Pack jobs of oversubscribed machines with jobs beside which they make more progress than in turns."""
        jobs = self._jobs
        singles = [
            unit.jobs[0]
            for unit in dict.fromkeys(jobs.unit_of.values())
            if len(unit.jobs) == 1 and self._not_put(unit) and ticks(unit.jobs[0].attained_s) > 0
        ]
        singles.sort(key=lambda job: (self._utilization.get(job.model, 1.0), job.trace_index))
        # The jobs that are not packed yet, with their places in the order; and all, in order, by kind.
        order = {job: place for place, job in enumerate(singles)}
        by_kind: dict[Kind, deque[PlacementJob]] = {}
        for job in singles:
            by_kind.setdefault(_kind(job), deque()).append(job)
        for job in singles:
            if job not in order or jobs.unit_of[job.trace_index].machine not in jobs.crowded:
                continue
            partners = []
            for alike in by_kind.values():
                while alike and alike[0] not in order:
                    alike.popleft()
                first = next((each for each in alike if each is not job and each in order), None)
                if first is not None and self._packing_pays(state, job, first):
                    partners.append(first)
            if partners:
                other = min(partners, key=order.__getitem__)
                jobs.pack(job, jobs.unit_of[other.trace_index])
                del order[job], order[other]

    def _packing_pays(self, state: PlacementState, job: PlacementJob, other: PlacementJob) -> bool:
        """Return whether two jobs of equal gangs make more progress together than in turns; by kinds of jobs, once."""
        if job.gang_gpus != other.gang_gpus:
            return False
        kinds = _kind(job), _kind(other)
        if kinds not in self._pays:
            mine, beside = (_alone(state, each, each.gang_gpus) for each in (job, other))
            one, two = state.interference.ratio(mine, [beside]), state.interference.ratio(beside, [mine])
            # 1/one + 1/two > 1: in turns, two jobs make the progress of one.
            self._pays[kinds] = one + two > one * two
        return self._pays[kinds]

    # -- Turns and actions ---------------------------------------------------------------------------------------------

    def _chosen(self, machine: Machine, slice_ends: bool) -> list[Unit]:
        """Return the units of a machine that run from now on, after the ring has turned if a slice ends."""
        going = [unit for unit in machine.ring if unit.running]
        waiting = [unit for unit in machine.ring if not unit.running]
        chosen: list[Unit] = []
        left = machine.sliced
        if slice_ends and machine in self._jobs.crowded:
            machine.ring = waiting + going
        for unit in machine.ring if slice_ends and machine in self._jobs.crowded else going + waiting:
            if unit.gang <= left:
                chosen.append(unit)
                left -= unit.gang
        return chosen

    def _apply(self, state: PlacementState, chosen: Mapping[Machine, list[Unit]]) -> Iterator[Action]:
        """Stop, shrink, move and start jobs, so that the chosen units and the spread jobs run where they are put."""
        jobs = self._jobs
        for machine, units in chosen.items():
            yield from self._stop_and_shrink(machine, units)
        # A job migrates at most once in a call, so that in this order each finds the GPUs that it needs.
        for job in jobs.put.values():
            if job.run is not None:
                yield Move(job.trace_index, self._gpus_for(state, job))
        running = [unit for units in chosen.values() for unit in units]
        started = [job for index, job in jobs.put.items() if index in jobs.spread and job.run is None]
        started += [unit.jobs[0] for unit in running if not unit.running]
        for job in sorted(started, key=lambda job: job.trace_index):
            yield Start(job.trace_index, self._gpus_for(state, job))
        for job in (job for unit in running for job in unit.jobs[1:] if job.run is None):
            yield Start(job.trace_index, self._gpus_for(state, job))

    def _stop_and_shrink(self, machine: Machine, units: list[Unit]) -> Iterator[Action]:
        """Stop the jobs of a machine that do not go on where they are, and shrink grown ones if a job is put on it."""
        put = self._jobs.put
        for unit in machine.ring:
            first = unit.jobs[0]
            for job in unit.jobs:
                joins = job is not first and job.trace_index in put and first.trace_index not in put
                if job.run is not None and (joins or unit not in units):
                    yield Stop(job.trace_index)
        here = [*machine.parts, *(job.trace_index for unit in machine.ring for job in unit.jobs)]
        if any(index in put for index in here):
            for first in (unit.jobs[0] for unit in machine.ring):
                if first.trace_index not in put and len(first.gpu_ids) > first.gang_gpus:
                    yield Move(first.trace_index, first.gpu_ids[: first.gang_gpus])

    def _gpus_for(self, state: PlacementState, job: PlacementJob) -> tuple[int, ...]:
        """Return the GPUs of a job's partner, or the first on its machines that no other job holds."""
        jobs, on = self._jobs, state.gpus.jobs_on
        unit = jobs.unit_of.get(job.trace_index)
        if unit is not None and job is not unit.jobs[0]:
            return unit.jobs[0].gpu_ids
        parts = jobs.parts_of(job) if unit is None else {unit.machine.number: unit.gang}
        found: list[int] = []
        for number, count in parts.items():
            ids = jobs.machines[number].ids
            found += [gpu for gpu in ids if not on[gpu] or on[gpu] == [job.trace_index]][:count]
        return tuple(found)

    # -- Growth --------------------------------------------------------------------------------------------------------

    def _grow(self, state: PlacementState) -> Iterator[Action]:
        """Give unheld GPUs to jobs of adaptive models, on machines that did not change for long enough."""
        for machine in self._jobs.machines:
            if machine.settled or not machine.load or machine.changed_s + self.grow_after_s > state.time_s + TICK_S:
                continue
            machine.settled = True
            able = [
                unit.jobs[0] for unit in machine.ring if len(unit.jobs) == 1 and unit.jobs[0].model in self.adaptive
            ]
            unheld = [gpu for gpu in machine.ids if not state.gpus.jobs_on[gpu]]
            for job, count in self._shares(state, able, len(unheld)):
                yield Move(job.trace_index, (*job.gpu_ids, *unheld[:count]))
                del unheld[:count]
                machine.changed_s, machine.settled = state.time_s, False

    def _shares(self, state: PlacementState, able: Iterable[PlacementJob], gpus: int) -> list[tuple[PlacementJob, int]]:
        """Return the jobs that grow, by trace index, and their additional GPUs."""
        more = dict.fromkeys(sorted(able, key=lambda job: job.trace_index), 0)
        gain = {job: self._gain(state, job, len(job.gpu_ids)) for job in more} if gpus else {}
        for _ in range(gpus if gain else 0):
            job = max(gain, key=gain.__getitem__)
            if gain[job] <= ticks(1.0):
                break
            more[job] += 1
            gain[job] = self._gain(state, job, len(job.gpu_ids) + more[job]) if more[job] < gpus else 0
        return [(job, count) for job, count in more.items() if count]

    @staticmethod
    def _gain(state: PlacementState, job: PlacementJob, gpus: int) -> int:
        """Return the factor by which one more GPU speeds up a job on one machine, to the nearest 2^-20."""
        now, then = (state.speeds.rate(_alone(state, job, count)) for count in (gpus, gpus + 1))
        return ticks(then / now)


def _alone(state: PlacementState, job: PlacementJob, gpus: int) -> Running:
    """Return the job alone on GPUs of one machine."""
    return state.run_on(job, range(gpus), job.batch_size, job.batch_size)


def _kind(job: PlacementJob) -> Kind:
    return job.model, job.gang_gpus, job.batch_size
