"""Assignment of jobs to machines, whether they run or not: loads, affinities, and the rules that choose a machine."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ...formulations.errors import InvalidInput
from ...simulation.placement.job import PlacementJob
from ...simulation.placement.ticks import ticks


@dataclass(slots=True, eq=False)
class Machine:
    """Machine with the units and the parts of spread jobs that are assigned to it.

    Attributes
    ----------
    number, gpus : int
        Number of the machine, and its GPUs.
    ring : list of Unit
        Its units, in the order in which they take turns.
    parts : dict of int to int
        GPUs of the spread jobs, by trace index.
    load : int
        GPUs of the gangs of all units, and of the parts.
    affinity : int
        Gang of the first job put on it since it was last without load; 0 without load.
    changed_s : float
        Time at which a job was put on it, left it, or grew.
    settled : bool
        Whether no job can grow until the machine changes.
    """

    number: int
    gpus: int
    ring: list[Unit] = field(default_factory=list)
    parts: dict[int, int] = field(default_factory=dict)
    load: int = 0
    affinity: int = 0
    changed_s: float = 0.0
    settled: bool = False

    @property
    def free(self) -> int:
        """GPUs that are not assigned."""
        return max(0, self.gpus - self.load)

    @property
    def ids(self) -> range:
        """Numbers of its GPUs."""
        return range(self.number * self.gpus, (self.number + 1) * self.gpus)

    @property
    def sliced(self) -> int:
        """GPUs on which units take turns: all but those of spread jobs."""
        return self.gpus - sum(self.parts.values())


@dataclass(slots=True, eq=False)
class Unit:
    """Job on one machine, or two packed jobs on the same GPUs of it."""

    jobs: list[PlacementJob]
    machine: Machine

    @property
    def gang(self) -> int:
        """GPUs of the unit."""
        return self.jobs[0].gang_gpus

    @property
    def running(self) -> bool:
        """Whether the unit has GPUs now."""
        return self.jobs[0].run is not None


def by_arrival(job: PlacementJob) -> tuple[int, int]:
    """Return the place of a job in the order of arrival; ties go to the lower trace index."""
    return ticks(job.arrival_s), job.trace_index


def check_consolidation(consolidate: object) -> None:
    """Raise InvalidInput unless the option `consolidate` is "machines" or "tier"."""
    if consolidate not in ("machines", "tier"):
        raise InvalidInput("consolidate", consolidate, "must be machines or tier")


class Assignment:
    """Machines, and the jobs that are assigned to them, spread over them, or queued.

    Attributes
    ----------
    machines : list of Machine
    unit_of : dict of int to Unit
        Units of the jobs on one machine, by trace index.
    spread : dict of int to PlacementJob
        Jobs on parts of several machines.
    queue : list of (int, int, PlacementJob)
        Jobs without GPUs, with their places in the order of arrival.
    crowded : dict of Machine to None
        Oversubscribed machines: their load exceeds their GPUs.
    pairs : dict of Unit to None
        Units of two packed jobs, in the order of packing.
    put : dict of int to PlacementJob
        Jobs put on machines in this call, by trace index, in order.
    touched : dict of Machine to None
        Machines that this call changed.
    """

    def __init__(self, machines: int, gpus: int, racks: int = 1) -> None:
        self.machines = [Machine(number, gpus) for number in range(machines)]
        self.rack_of = [number * racks // machines for number in range(machines)]
        self.unit_of: dict[int, Unit] = {}
        self.spread: dict[int, PlacementJob] = {}
        self.queue: list[tuple[int, int, PlacementJob]] = []
        self.crowded: dict[Machine, None] = {}
        self.pairs: dict[Unit, None] = {}
        self.put: dict[int, PlacementJob] = {}
        self.touched: dict[Machine, None] = {}
        self._now_s = 0.0

    def begin_call(self, now_s: float, arrived: Iterable[PlacementJob], ended: Iterable[PlacementJob]) -> None:
        """Queue the jobs that arrived, and take out those that ended."""
        self._now_s = now_s
        self.put.clear()
        self.touched.clear()
        for job in ended:
            self.leave(job)
        for job in arrived:
            insort(self.queue, (*by_arrival(job), job))

    # -- Rules ---------------------------------------------------------------------------------------------------------

    def place_queue(self) -> None:
        """Put the queued jobs on machines, in order, where a rule permits it."""
        queue, self.queue = self.queue, []
        refused: set[int] = set()  # the rules depend on the gang alone, and placing only reduces what they find
        for entry in queue:
            job = entry[2]
            if job.gang_gpus in refused or not self._place(job):
                refused.add(job.gang_gpus)
                self.queue.append(entry)

    def _place(self, job: PlacementJob) -> bool:
        gang = job.gang_gpus
        if (machine := self.find(gang)) is not None:
            self.join(Unit([job], machine))
        elif (parts := self.find_parts(gang, {})) is not None:
            self.join_parts(job, parts)
        else:
            able = [each for each in self.machines if each.affinity == gang and each.sliced >= gang]
            if not able:
                return False
            self.join(Unit([job], min(able, key=lambda each: each.load)))
        return True

    def find(self, gang: int) -> Machine | None:
        """Return a machine for a gang by affinity, without load, or by best fit; ties go to the lowest number."""
        able = [each for each in self.machines if each.free >= gang]
        if not able:
            return None
        alike = [each for each in able if each.affinity == gang]
        if alike:
            return min(alike, key=lambda each: each.load)
        return next((each for each in able if not each.load), None) or min(able, key=lambda each: each.free)

    def find_parts(self, gang: int, own: Mapping[int, int], *, by_rack: bool = False) -> dict[int, int] | None:
        """Return parts of few machines for a gang, by machine; GPUs in `own`, by machine, count as free.

        With `by_rack` they are parts of few racks first, and then of few machines of each.
        """
        free = {each.number: each.free + own.get(each.number, 0) for each in self.machines}
        if sum(free.values()) < gang:
            return None
        if not by_rack or max(free.values()) >= gang:
            return _few(free, gang)
        racks: dict[int, dict[int, int]] = {}
        for number, count in free.items():
            racks.setdefault(self.rack_of[number], {})[number] = count
        shares = _few({rack: sum(counts.values()) for rack, counts in racks.items()}, gang)
        return {number: count for rack, share in shares.items() for number, count in _few(racks[rack], share).items()}

    def span(self, parts: Mapping[int, int], *, by_rack: bool) -> tuple[int, int]:
        """Return the number of racks, 0 if they do not count, and of machines, of parts by machine."""
        return len({self.rack_of[number] for number in parts}) if by_rack else 0, len(parts)

    # -- Changes -------------------------------------------------------------------------------------------------------

    def join(self, unit: Unit) -> None:
        """Put a unit on its machine, last in the ring."""
        unit.machine.ring.append(unit)
        for job in unit.jobs:
            self.unit_of[job.trace_index] = unit
            self.put[job.trace_index] = job
        self._load(unit.machine, unit.gang, unit.gang)

    def join_parts(self, job: PlacementJob, parts: Mapping[int, int]) -> None:
        """Put a job on parts of machines; on one machine it becomes a unit."""
        if len(parts) == 1:
            self.join(Unit([job], self.machines[next(iter(parts))]))
            return
        self.spread[job.trace_index] = self.put[job.trace_index] = job
        for number, count in parts.items():
            self.machines[number].parts[job.trace_index] = count
            self._load(self.machines[number], count, job.gang_gpus)

    def parts_of(self, job: PlacementJob) -> dict[int, int]:
        """Return the GPUs of a spread job by machine."""
        index = job.trace_index
        return {each.number: each.parts[index] for each in self.machines if index in each.parts}

    def pack(self, job: PlacementJob, unit: Unit) -> None:
        """Let a job leave its machine, and join a unit of one job."""
        self.leave(job)
        unit.jobs.append(job)
        self.pairs[unit] = None
        self.unit_of[job.trace_index] = unit
        self.put[job.trace_index] = job
        self._load(unit.machine, 0, unit.gang)

    def leave(self, job: PlacementJob) -> None:
        """Take a job off its machines; a packed job leaves its GPUs to the other one."""
        unit = self.unit_of.pop(job.trace_index, None)
        if unit is None:
            del self.spread[job.trace_index]
            for number in self.parts_of(job):
                machine = self.machines[number]
                self._load(machine, -machine.parts.pop(job.trace_index), 0)
            return
        if unit in self.pairs:
            del self.pairs[unit]
            self._load(unit.machine, 0, 0)
        else:
            unit.machine.ring.remove(unit)
            self._load(unit.machine, -unit.gang, 0)
        unit.jobs.remove(job)

    def move(self, unit: Unit, machine: Machine) -> None:
        """Put a unit on another machine."""
        unit.machine.ring.remove(unit)
        self._load(unit.machine, -unit.gang, 0)
        unit.machine = machine
        self.join(unit)

    def _load(self, machine: Machine, change: int, gang: int) -> None:
        machine.load += change
        machine.affinity = (machine.affinity or gang) if machine.load else 0
        machine.changed_s, machine.settled = self._now_s, False
        self.touched[machine] = None
        if machine.load > machine.gpus:
            self.crowded[machine] = None
        else:
            self.crowded.pop(machine, None)


def _few(free: dict[int, int], gang: int) -> dict[int, int]:
    """Divide a gang among few of the places that have enough free GPUs together; ties go to the lowest number.

    The last place is the one with the fewest free GPUs that hold the rest, and those before it have the most.
    """
    parts: dict[int, int] = {}
    while gang:
        holding = [number for number, count in free.items() if count >= gang]
        number = min(holding, key=free.__getitem__) if holding else max(free, key=free.__getitem__)
        parts[number] = min(gang, free.pop(number))
        gang -= parts[number]
    return parts
