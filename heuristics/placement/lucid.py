"""Lucid's packing on the placement engine: short jobs first, and pairs of light jobs that share GPUs."""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush, heapreplace
from typing import ClassVar

from ...formulations.checks import as_integer
from ...formulations.errors import InvalidInput
from ...simulation.placement.actions import Action, Start
from ...simulation.placement.job import PlacementJob
from ...simulation.placement.policy import PlacementState
from ...simulation.placement.ticks import ticks
from .queue import check_placement

#: Greatest share score: the job loads its GPUs heavily.
HEAVIEST = 2


@dataclass(kw_only=True, eq=False)
class LucidPolicy:
    """Short jobs first, without preemption; where GPUs are short, a job shares those of one other job.

    Waiting jobs are taken in order of their GPUs times their exclusive times. A job starts on free GPUs if there are
    enough. Otherwise it is packed: it starts on the GPUs of a running job of equally many GPUs that shares none of
    them, if the share scores of the two add up to at most `capacity`. Among several such jobs it takes the one with the
    least score. A job that can do neither is passed over.

    Parameters
    ----------
    scores : mapping of str to int, optional
        Share score of each model: 0 (light), 1 or 2 (heavy).
    default_score : int
        Score of a model without one.
    capacity : int
        Largest sum of the scores of two jobs on a GPU.
    placement : {"consolidated", "first_fit", "least_loaded"}
        Rule that chooses free GPUs; see `Occupancy.find`.

    Notes
    -----
    After the packing of Q. Hu et al., "Lucid: A Non-intrusive, Scalable and Interpretable Scheduler for Deep Learning
    Training Jobs", ASPLOS 2023. Lucid predicts durations and scores from profiles; here both are given. The rule
    `jobs_per_gpu` must be at least 2 for any packing. Ties go to the lower trace index.
    """

    scores: Mapping[str, int] | None = None
    default_score: int = 1
    capacity: int = 2
    placement: str = "consolidated"
    name: str = field(default="lucid", init=False)
    engine: ClassVar[str] = "placement"
    knows: ClassVar[frozenset[str]] = frozenset({"durations"})

    def __post_init__(self) -> None:
        given = {} if self.scores is None else self.scores
        if not isinstance(given, Mapping):
            raise InvalidInput("scores", type(given).__name__, "must map models to scores")
        self._scores = {
            model: as_integer(f"scores[{model!r}]", score, minimum=0, maximum=HEAVIEST)
            for model, score in given.items()
        }
        self.default_score = as_integer("default_score", self.default_score, minimum=0, maximum=HEAVIEST)
        self.capacity = as_integer("capacity", self.capacity, minimum=0)
        check_placement(self.placement)
        self._clear()

    def _clear(self) -> None:
        """Forget the jobs of an earlier run."""
        # Waiting jobs as (GPU time in ticks, trace index), a heap for each gang and score.
        self._waiting: dict[tuple[int, int], list[tuple[int, int]]] = {}
        # Running jobs that share no GPU as (score, trace index), in order, by gang; and pairs that share their GPUs.
        self._alone: dict[int, list[tuple[int, int]]] = {}
        self._beside: dict[int, PlacementJob] = {}

    def score(self, job: PlacementJob) -> int:
        """Return the share score of a job's model."""
        return self._scores.get(job.model, self.default_score)

    def decide(self, state: PlacementState) -> Iterator[Action]:
        """Start or pack the waiting jobs in order."""
        if not state.step:
            self._clear()
        for job in state.ended:
            self._leave(job)
        for job in state.arrived:
            entry = ticks(job.gang_gpus * job.total_s), job.trace_index
            heappush(self._waiting.setdefault((job.gang_gpus, self.score(job)), []), entry)
        # The first waiting job of each gang and score. Free GPUs, and jobs alone of a gang that does not fit them, only
        # become fewer: once such a job cannot start, no later one of its gang and score can.
        heads = [(entries[0], gang, score) for (gang, score), entries in self._waiting.items() if entries]
        heapify(heads)
        while heads:
            (_, index), gang, score = heads[0]
            job, entries = state.waiting[index], self._waiting[gang, score]
            gpu_ids = state.gpus.find(gang, self.placement)
            partner = None if gpu_ids is not None or state.jobs_per_gpu == 1 else self._partner(state, gang, score)
            if partner is not None:
                gpu_ids = partner.gpu_ids
            if gpu_ids is None:
                heappop(heads)
                continue
            yield Start(index, gpu_ids)
            if partner is None:
                insort(self._alone.setdefault(gang, []), (score, index))
            else:
                self._alone[gang].pop(0)
                self._beside[index], self._beside[partner.trace_index] = partner, job
            heappop(entries)
            if entries:
                heapreplace(heads, (entries[0], gang, score))
            else:
                heappop(heads)

    def _partner(self, state: PlacementState, gang: int, score: int) -> PlacementJob | None:
        """Return the lightest of the running jobs of a gang that share no GPU; None if it is too heavy."""
        lightest, index = next(iter(self._alone.get(gang, ())), (math.inf, -1))
        return state.running[index] if lightest + score <= self.capacity else None

    def _leave(self, job: PlacementJob) -> None:
        """Remove a job that has ended; the job beside it, if there is one, is alone from now on."""
        partner = self._beside.pop(job.trace_index, None)
        alone = self._alone.setdefault(job.gang_gpus, [])
        if partner is None:
            del alone[bisect_left(alone, (self.score(job), job.trace_index))]
        else:
            del self._beside[partner.trace_index]
            insort(alone, (self.score(partner), partner.trace_index))
