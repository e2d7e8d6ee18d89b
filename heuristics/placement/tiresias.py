"""Tiresias: queues by attained GPU-seconds, promotion of jobs that wait long, and consolidation of skewed models."""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush, heapreplace
from typing import Any, ClassVar

from ...formulations.checks import as_flag, as_real, as_reals, store_checked
from ...formulations.errors import InvalidInput
from ...simulation.placement.actions import Action, Move, Start, Stop, Wake
from ...simulation.placement.job import PlacementJob
from ...simulation.placement.model_table import ModelTable
from ...simulation.placement.policy import PlacementState
from ...simulation.placement.ticks import TICK_S, ticks
from .assignment import check_consolidation
from .service_distribution import ServiceDistribution

# Place of a job in the order; its last items are the trace index, which breaks ties, and the gang.
Entry = tuple[Any, ...]


@dataclass(slots=True)
class _Standing:
    """Queue of a job, its sums at its latest promotion, its wait since then, and its next change of queue."""

    queue: int = 0
    from_gpu_s: float = 0.0
    from_s: float = 0.0
    waited_s: float = 0.0
    due_s: float = math.inf
    entry: Entry = ()


@dataclass(kw_only=True, eq=False)
class TiresiasPolicy:
    """Discretised two-dimensional least attained service (Gu et al., NSDI 2019, Section 3), with preemption.

    Jobs are taken by queue, in a queue by their first start (jobs that never ran come last, by arrival), each that fits
    the GPUs not taken yet. The jobs taken run, on their present GPUs if they ran before; the others are preempted.

    Parameters
    ----------
    thresholds : sequence of float
        Attained service, in GPU-seconds since the latest promotion, at which a job leaves each queue but the last;
        positive and ascending.
    promote : float or None
        A waiting job returns to the first queue, with its service counted anew, when it has waited `promote` times as
        long as it has made progress, both since the latest promotion (PROMOTEKNOB). None: never.
    skew : mapping of str to float, optional
        Size of the largest tensor relative to the model, by model; by default that of the built-in `ModelTable`. Other
        models count as not skewed.
    skew_threshold : float
        Jobs of a model with a larger skew run consolidated, or wait (PACKLIMIT).
    consolidate : {"machines", "tier"}
        What consolidated jobs run on: as few machines as their gang needs; or the lowest tier of the network (machine,
        rack, across racks) that their gang can have.
    migrate : bool
        Whether running jobs move to a lower tier when free GPUs and their own permit it.

    Notes
    -----
    Times count to the nearest 2^-20 s; ties go to the lower trace index.
    """

    thresholds: Sequence[float] = (3250.0, 7200.0)
    promote: float | None = 8.0
    skew: Mapping[str, float] | None = None
    skew_threshold: float = 0.5
    consolidate: str = "machines"
    migrate: bool = False
    name: str = field(default="tiresias", init=False)
    knows: frozenset[str] = field(default=frozenset(), init=False)
    engine: ClassVar[str] = "placement"

    def __post_init__(self) -> None:
        limits = as_reals("thresholds", self.thresholds, above=0.0).tolist()
        for index in range(1, len(limits)):
            if not limits[index] > limits[index - 1]:
                raise InvalidInput("thresholds", limits[index], "must be above the one before", index=index)
        self.thresholds = tuple(limits)
        if self.promote is not None:
            store_checked(self, as_real, "promote", above=0.0)
        store_checked(self, as_real, "skew_threshold", minimum=0.0, maximum=1.0)
        check_consolidation(self.consolidate)
        self.migrate = as_flag("migrate", self.migrate)
        if self.skew is None:
            self.skew = ModelTable.builtin().skews
        elif not isinstance(self.skew, Mapping):
            raise InvalidInput("skew", type(self.skew).__name__, "must map models to their skew")
        skews = {
            model: as_real(f"skew of {model}", value, above=0.0, maximum=1.0) for model, value in self.skew.items()
        }
        self._skewed = {model for model, skew in skews.items() if skew > self.skew_threshold}
        self._clear()

    def _clear(self) -> None:
        """Forget the jobs of an earlier run."""
        self._standings: dict[int, _Standing] = {}
        self._running: list[Entry] = []
        self._waiting: dict[int, list[Entry]] = {}  # by gang
        self._due: list[tuple[float, int]] = []  # heap of changes of queue: time, trace index
        self._wake_s = math.inf

    # -- Order ---------------------------------------------------------------------------------------------------------

    def entry(self, job: PlacementJob, queue: int, service_gpu_s: float) -> Entry:
        """Return the place of a job in the order, by its queue and its service since the latest promotion."""
        never_ran = math.isnan(job.start_s)
        since_s = job.arrival_s if never_ran else job.start_s
        return (queue, never_ran, ticks(since_s), job.trace_index, job.gang_gpus)

    def _place(self, job: PlacementJob) -> None:
        """Insert a job into the order, as its standing and its state require."""
        standing = self._standings[job.trace_index]
        standing.entry = self.entry(job, standing.queue, job.attained_gpu_s - standing.from_gpu_s)
        insort(self._running if job.run is not None else self._waiting.setdefault(job.gang_gpus, []), standing.entry)

    def _take_out(self, standing: _Standing, entries: list[Entry]) -> None:
        del entries[bisect_left(entries, standing.entry)]

    # -- Calls ---------------------------------------------------------------------------------------------------------

    def decide(self, state: PlacementState) -> Iterator[Action]:
        """Change queues, preempt the jobs that are not taken, and start those that are."""
        if not state.step:
            self._clear()
        for job in state.ended:
            self._take_out(self._standings.pop(job.trace_index), self._running)
        for job in state.arrived:
            self._standings[job.trace_index] = _Standing()
            self._place(job)
        changed = self._change_queues(state)
        if changed or state.arrived or state.ended:
            yield from self._reschedule(state)
        if self._wake_s <= state.time_s:
            self._wake_s = math.inf
        while self._due and self._is_stale(*self._due[0]):
            heappop(self._due)
        if self._due and self._due[0][0] < self._wake_s:
            # Rounding could put it just within the tick in which the engine refuses it.
            self._wake_s = max(self._due[0][0], math.nextafter(state.time_s + TICK_S, math.inf))
            yield Wake(self._wake_s)

    def _reschedule(self, state: PlacementState) -> Iterator[Action]:
        stopped, started = self._choose(state)
        for entry in stopped:
            index = entry[-2]
            job, standing = state.jobs[index], self._standings[index]
            self._take_out(standing, self._running)
            yield Stop(index)
            self._expect(job, standing, state.time_s)
            if standing.due_s <= state.time_s + TICK_S:
                self._promote(job, standing)
            self._place(job)
        for entry in started:
            index = entry[-2]
            job, standing = state.jobs[index], self._standings[index]
            gpu_ids = self._find(state, job)
            if gpu_ids is None:
                continue
            if ticks(job.attained_s - standing.from_s) > 0:
                standing.waited_s += state.time_s - job.last_stop_s
            self._take_out(standing, self._waiting[job.gang_gpus])
            yield Start(index, gpu_ids)
            self._place(job)
            self._expect(job, standing, state.time_s)
        if self.migrate and state.gpus.free_gpus:
            yield from self._migrate(state)

    def _migrate(self, state: PlacementState) -> Iterator[Action]:
        """Move running jobs to lower tiers, in order."""
        for entry in self._running:
            job = state.jobs[entry[-2]]
            assert job.run is not None
            if job.run.tier == state.gpus.least_tier(job.gang_gpus):
                continue
            gpu_ids = state.gpus.find(job.gang_gpus, own=job.gpu_ids)
            assert gpu_ids is not None
            if state.gpus.span(gpu_ids)[1] < job.run.tier:
                yield Move(job.trace_index, gpu_ids)
                self._expect(job, self._standings[job.trace_index], state.time_s)

    def _choose(self, state: PlacementState) -> tuple[list[Entry], list[Entry]]:
        """Return the running jobs that are not taken, and the waiting jobs that are, in order."""
        stopped: list[Entry] = []
        started: list[Entry] = []
        # The first waiting job of each gang that is not passed yet, with its position among those of its gang. GPUs
        # that are left only become fewer: once a gang does not fit, no later job of this gang does.
        heads = [(entries[0], 0) for entries in self._waiting.values() if entries]
        heapify(heads)
        left, last = state.cluster.gpus, (math.inf,)
        for entry in (*self._running, last) if heads else ():
            while heads and heads[0][0] < entry:
                waiting, position = heads[0]
                if waiting[-1] > left:
                    heappop(heads)
                    continue
                started.append(waiting)
                left -= waiting[-1]
                entries = self._waiting[waiting[-1]]
                if position + 1 < len(entries):
                    heapreplace(heads, (entries[position + 1], position + 1))
                else:
                    heappop(heads)
            if entry is last:
                break
            if entry[-1] <= left:
                left -= entry[-1]
            else:
                stopped.append(entry)
        return stopped, started

    def _find(self, state: PlacementState, job: PlacementJob) -> tuple[int, ...] | None:
        """Return GPUs for a job; None if its model is skewed and they are not consolidated."""
        gpus, gang = state.gpus, job.gang_gpus
        gpu_ids = gpus.find(gang)
        assert gpu_ids is not None
        if job.model not in self._skewed:
            return gpu_ids
        machines, tier = gpus.span(gpu_ids)
        if self.consolidate == "tier":
            return gpu_ids if tier == gpus.least_tier(gang) else None
        return gpu_ids if machines == gpus.fewest_machines(gang) else None

    # -- Changes of queue ----------------------------------------------------------------------------------------------

    def _expect(self, job: PlacementJob, standing: _Standing, now_s: float) -> None:
        """Note when the job changes its queue, if it runs or waits on until then."""
        due_s = math.inf
        if job.run is not None:
            if standing.queue < len(self.thresholds):
                missing_gpu_s = self.thresholds[standing.queue] - (job.attained_gpu_s - standing.from_gpu_s)
                due_s = max(now_s, job.progress_from_s) + missing_gpu_s / job.gang_gpus
        elif standing.queue and self.promote is not None:
            wait_s = self.promote * (job.attained_s - standing.from_s) - standing.waited_s
            due_s = job.last_stop_s + wait_s
        standing.due_s = due_s
        if due_s < math.inf:
            heappush(self._due, (due_s, job.trace_index))

    def _is_stale(self, due_s: float, index: int) -> bool:
        standing = self._standings.get(index)
        return standing is None or standing.due_s != due_s

    def _change_queues(self, state: PlacementState) -> bool:
        """Demote and promote the jobs that are due; return whether there is one."""
        changed = False
        while self._due and self._due[0][0] <= state.time_s + TICK_S:
            due = heappop(self._due)
            if self._is_stale(*due):
                continue
            job, standing = state.jobs[due[1]], self._standings[due[1]]
            if job.run is not None:
                self._take_out(standing, self._running)
                standing.queue += 1
            else:
                self._take_out(standing, self._waiting[job.gang_gpus])
                self._promote(job, standing)
            self._place(job)
            self._expect(job, standing, state.time_s)
            changed = True
        return changed

    def _promote(self, job: PlacementJob, standing: _Standing) -> None:
        """Put a job into the first queue, with its service counted anew."""
        standing.queue, standing.waited_s, standing.due_s = 0, 0.0, math.inf
        standing.from_gpu_s, standing.from_s = job.attained_gpu_s, job.attained_s


@dataclass(kw_only=True, eq=False)
class TiresiasGittinsPolicy(TiresiasPolicy):
    """Tiresias with the Gittins index inside each queue (discretised two-dimensional Gittins index).

    In a queue the job with the largest Gittins index comes first. The index is that of its service since the latest
    promotion, for a quantum as large as the threshold of the queue; the last queue has no threshold, and its quantum is
    infinite. It is computed when the job arrives, changes its queue or is preempted, and stays while the job runs. Ties
    follow the order of `TiresiasPolicy`.

    Parameters
    ----------
    service : ServiceDistribution or sequence of float, optional
        Service of the jobs in GPU-seconds, or that of past jobs; by default the empirical distribution of the trace.

    Other parameters are those of `TiresiasPolicy`. Service counts to the nearest 2^-20 GPU-s.
    """

    service: ServiceDistribution | Sequence[float] | None = None
    name: str = field(default="tiresias-gittins", init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.service is None:
            self.knows = frozenset({"service"})
        else:
            if not isinstance(self.service, ServiceDistribution):
                self.service = ServiceDistribution(as_reals("service", self.service, above=0.0))
            self._distribution = _in_ticks(self.service)
        # Quantum of each queue, in ticks of GPU-seconds.
        self._quanta = [*(ticks(limit) for limit in self.thresholds), math.inf]

    def entry(self, job: PlacementJob, queue: int, service_gpu_s: float) -> Entry:
        """Return the place of a job in the order, by its queue and the reciprocal of its Gittins index."""
        ending, service = self._distribution.completion(ticks(service_gpu_s), self._quanta[queue])
        reciprocal = service // ending if ending else math.inf
        return (queue, reciprocal, *super().entry(job, queue, service_gpu_s)[1:])

    def decide(self, state: PlacementState) -> Iterator[Action]:
        """Change queues, preempt the jobs that are not taken, and start those that are."""
        if not state.step and self.service is None:
            self._distribution = _in_ticks(ServiceDistribution(state.service_gpu_s))
        yield from super().decide(state)


def _in_ticks(service: ServiceDistribution) -> ServiceDistribution:
    return ServiceDistribution([max(1, ticks(value)) for value in service.values], service.weights)
