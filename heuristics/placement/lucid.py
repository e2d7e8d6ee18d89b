"""Lucid's packing on the placement engine: short jobs first, and pairs of light jobs that share GPUs."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
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
        # Waiting jobs as (GPU time in ticks, trace index), in order.
        self._queue: list[tuple[int, int]] = []

    def score(self, job: PlacementJob) -> int:
        """Return the share score of a job's model."""
        return self._scores.get(job.model, self.default_score)

    def decide(self, state: PlacementState) -> Iterator[Action]:
        """Start or pack the waiting jobs in order."""
        if not state.step:
            self._queue = []
        for job in state.arrived:
            insort(self._queue, (ticks(job.gang_gpus * job.total_s), job.trace_index))
        alone = self._alone(state)
        kept: list[tuple[int, int]] = []
        for entry in self._queue:
            job = state.waiting[entry[1]]
            ids = state.gpus.find(job.gang_gpus, self.placement)
            partner = None if ids is not None else self._partner(job, alone.get(job.gang_gpus, {}))
            if ids is None and partner is None:
                kept.append(entry)
                continue
            if partner is not None:
                del alone[job.gang_gpus][partner.trace_index]
            yield Start(job.trace_index, partner.gpu_ids if partner is not None else ids or ())
            if partner is None and state.jobs_per_gpu > 1:
                alone.setdefault(job.gang_gpus, {})[job.trace_index] = job
        self._queue = kept

    def _alone(self, state: PlacementState) -> dict[int, dict[int, PlacementJob]]:
        """Return the running jobs that share no GPU, by number of GPUs and trace index; none if jobs cannot share."""
        found: dict[int, dict[int, PlacementJob]] = {}
        if state.jobs_per_gpu > 1 and self._queue:
            for index, job in state.running.items():
                if not state.sharing(job):
                    found.setdefault(job.gang_gpus, {})[index] = job
        return found

    def _partner(self, job: PlacementJob, alone: Mapping[int, PlacementJob]) -> PlacementJob | None:
        most = self.capacity - self.score(job)
        able = [other for other in alone.values() if self.score(other) <= most]
        return min(able, key=lambda other: (self.score(other), other.trace_index), default=None)
