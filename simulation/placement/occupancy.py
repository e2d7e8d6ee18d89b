"""GPUs of a cluster with the jobs on them, and the rules that choose free GPUs for a gang."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Sequence

from ...formulations.errors import InvalidInput
from ..cluster import Cluster
from .ticks import ticks


class Occupancy:
    """Jobs on each GPU of a cluster; `find` chooses free GPUs.

    Policies read it; the engine alone adds and removes jobs.

    Attributes
    ----------
    cluster : Cluster
    jobs_on : sequence of sequence of int
        Jobs on each GPU, by trace index, in the order of their starts.
    free_gpus : int
        Number of GPUs without jobs.
    load_s : sequence of float
        Seconds for which each GPU has held jobs, up to the last time that it became free.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.jobs_on: list[list[int]] = [[] for _ in range(cluster.gpus)]
        self.free_gpus = cluster.gpus
        self.load_s = [0.0] * cluster.gpus
        self._since_s = [0.0] * cluster.gpus
        # A cluster without machines counts as one machine.
        self._size = cluster.gpus_per_machine or cluster.gpus
        count = cluster.gpus // self._size
        self._per_rack = count // (cluster.racks or 1)
        # Bit g of a machine's mask: its GPU g is free. Machines are listed in order by their number of free GPUs.
        self._free = [(1 << self._size) - 1] * count
        self._by_free: list[list[int]] = [[] for _ in range(self._size)] + [list(range(count))]
        self._free_in_rack = [self._per_rack * self._size] * (count // self._per_rack)

    @property
    def machine_gpus(self) -> int:
        """GPUs of each machine; a cluster without machines counts as one machine."""
        return self._size

    @property
    def rack_gpus(self) -> int:
        """GPUs of each rack."""
        return self._size * self._per_rack

    def fewest_machines(self, gpus: int) -> int:
        """Return the least number of machines that hold so many GPUs."""
        return -(-gpus // self._size)

    def fewest_racks(self, gpus: int) -> int:
        """Return the least number of racks that hold so many GPUs."""
        return -(-gpus // (self._size * self._per_rack))

    def least_tier(self, gpus: int) -> int:
        """Return the least network tier that so many GPUs span; see `Cluster.tier`."""
        return 0 if gpus <= self._size else 1 if gpus <= self._size * self._per_rack else 2

    def span(self, gpu_ids: Iterable[int]) -> tuple[int, int]:
        """Return the number of machines that hold these GPUs, and the network tier that connects them."""
        machines = {gpu // self._size for gpu in gpu_ids}
        if len(machines) == 1:
            return 1, 0
        return len(machines), 1 if len({machine // self._per_rack for machine in machines}) == 1 else 2

    def racks(self, gpu_ids: Iterable[int]) -> int:
        """Return the number of racks that hold these GPUs."""
        return len({gpu // (self._size * self._per_rack) for gpu in gpu_ids})

    def add(self, trace_index: int, gpu_ids: Sequence[int], time_s: float) -> None:
        """Put a job on these GPUs."""
        for gpu in gpu_ids:
            if not self.jobs_on[gpu]:
                self._since_s[gpu] = time_s
                self._flip(gpu, -1)
            self.jobs_on[gpu].append(trace_index)

    def remove(self, trace_index: int, gpu_ids: Sequence[int], time_s: float) -> None:
        """Take a job off these GPUs."""
        for gpu in gpu_ids:
            self.jobs_on[gpu].remove(trace_index)
            if not self.jobs_on[gpu]:
                self.load_s[gpu] += time_s - self._since_s[gpu]
                self._flip(gpu, 1)

    def _flip(self, gpu: int, change: int) -> None:
        """Mark a GPU as free (change 1) or in use (change -1)."""
        machine, index = divmod(gpu, self._size)
        before = self._free[machine].bit_count()
        listed = self._by_free[before]
        del listed[bisect_left(listed, machine)]
        self._free[machine] ^= 1 << index
        insort(self._by_free[before + change], machine)
        self._free_in_rack[machine // self._per_rack] += change
        self.free_gpus += change

    def find(self, gpus: int, rule: str = "consolidated", own: Sequence[int] = ()) -> tuple[int, ...] | None:
        """Return so many free GPUs by a placement rule, in ascending order; None if fewer are free.

        Parameters
        ----------
        gpus : int
        rule : {"consolidated", "first_fit", "least_loaded"}
            "consolidated" takes the machine with the fewest free GPUs that suffice; without one, as few racks and then
            as few machines as possible, the last of them again with the fewest free GPUs that suffice. "first_fit"
            takes the GPUs with the lowest numbers, and "least_loaded" those that have held jobs for the least time
            (to the nearest 2^-20 s). Ties go to the lowest number.
        own : sequence of int
            GPUs that count as free too, unless several jobs hold them: those of a job that is to move.
        """
        if rule not in _RULES:
            raise InvalidInput("placement", rule, f"must be one of {', '.join(_RULES)}")
        if gpus < 1:
            raise InvalidInput("gpus", gpus, "must be at least 1")
        alone = [gpu for gpu in own if len(self.jobs_on[gpu]) == 1]
        for gpu in alone:
            self._flip(gpu, 1)
        found = None if gpus > self.free_gpus else tuple(sorted(_RULES[rule](self, gpus)))
        for gpu in alone:
            self._flip(gpu, -1)
        return found

    def _consolidated(self, gpus: int) -> list[int]:
        for machines in self._by_free[gpus:]:
            if machines:
                return self._take(machines[0], gpus)
        racks = self._free_in_rack
        enough = [rack for rack, free in enumerate(racks) if free >= gpus]
        # Stable sorts: ties go to the lowest number.
        order = [min(enough, key=racks.__getitem__)] if enough else sorted(range(len(racks)), key=lambda r: -racks[r])
        chosen: list[int] = []
        for rack in order:
            inside = range(rack * self._per_rack, (rack + 1) * self._per_rack)
            chosen += self._from_machines(inside, min(gpus - len(chosen), racks[rack]))
            if len(chosen) == gpus:
                break
        return chosen

    def _from_machines(self, machines: Iterable[int], gpus: int) -> list[int]:
        """Take GPUs of as few of these machines as possible; they have enough."""
        free = {machine: self._free[machine].bit_count() for machine in machines}
        chosen: list[int] = []
        while len(chosen) < gpus:
            rest = gpus - len(chosen)
            fitting = [machine for machine, count in free.items() if count >= rest]
            machine = min(fitting, key=free.__getitem__) if fitting else max(free, key=free.__getitem__)
            chosen += self._take(machine, min(rest, free.pop(machine)))
        return chosen

    def _first_fit(self, gpus: int) -> list[int]:
        chosen: list[int] = []
        for machine, mask in enumerate(self._free):
            if mask:
                chosen += self._take(machine, min(gpus - len(chosen), mask.bit_count()))
                if len(chosen) == gpus:
                    break
        return chosen

    def _least_loaded(self, gpus: int) -> list[int]:
        free = [gpu for gpu, jobs in enumerate(self.jobs_on) if not jobs]
        return sorted(free, key=lambda gpu: ticks(self.load_s[gpu]))[:gpus]

    def _take(self, machine: int, gpus: int) -> list[int]:
        """Return the free GPUs of a machine with the lowest numbers."""
        mask, chosen = self._free[machine], []
        for _ in range(gpus):
            lowest = mask & -mask
            chosen.append(machine * self._size + lowest.bit_length() - 1)
            mask ^= lowest
        return chosen


_RULES: dict[str, Callable[[Occupancy, int], list[int]]] = {
    "consolidated": Occupancy._consolidated,
    "first_fit": Occupancy._first_fit,
    "least_loaded": Occupancy._least_loaded,
}
#: Names of the placement rules.
PLACEMENTS = tuple(_RULES)
