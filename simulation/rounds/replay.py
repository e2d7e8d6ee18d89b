"""A policy of the rounds engine that plays a recorded schedule again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...formulations.errors import InvalidInput
from .policy import Evidence, RoundState, Schedule


class ReplayedSchedule:
    """Runs the jobs of a recorded schedule, round by round, as long as they have not ended.

    Parameters
    ----------
    schedule : sequence of iterable of str or int
        Ids of the jobs that ran in each round, such as `SimulationResult.schedule`.
    gpu_type : int
        Index of the GPU type that all of them ran on.

    Notes
    -----
    Past the last recorded round it runs everybody that fits, by arrival, so that every job ends.
    """

    name = "replay"

    def __init__(self, schedule: Sequence[Iterable[str | int]], gpu_type: int = 0) -> None:
        """Take the schedule."""
        self._rounds = [tuple(ids) for ids in schedule]
        if not self._rounds:
            raise InvalidInput("schedule", "[]", "must hold at least one round")
        self._gpu_type = gpu_type

    def due(self, state: RoundState) -> bool:
        """Never: it is called whenever its one round is used up."""
        return False

    def decide(self, state: RoundState) -> Schedule:
        """Return who ran in this round."""
        if state.round < len(self._rounds):
            there = {job.id for job in state.jobs}
            ids = [key for key in self._rounds[state.round] if key in there]
        else:
            ids, free = [], int(state.gpus[self._gpu_type])
            for job in state.jobs:
                if job.gpus <= free:
                    ids.append(job.id)
                    free -= job.gpus
        return Schedule([dict.fromkeys(ids, self._gpu_type)], Evidence(reason="replay"))
