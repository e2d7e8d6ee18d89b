"""Policy of the rounds engine that replays a recorded schedule."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...formulations.errors import InvalidInput
from .policy import Evidence, RoundState, Schedule


class ReplayedSchedule:
    """Policy that runs the jobs of a recorded schedule, round by round, until they end.

    Parameters
    ----------
    schedule : sequence of iterable of str or int
        Ids of the jobs that ran in each round, such as `RoundResult.schedule`.
    gpu_type : int
        Index of the GPU type of all runs.

    Notes
    -----
    After the last recorded round it runs every job that fits, in order of arrival, so that every job ends.
    """

    name = "replay"

    def __init__(self, schedule: Sequence[Iterable[str | int]], gpu_type: int = 0) -> None:
        self._rounds = [tuple(ids) for ids in schedule]
        if not self._rounds:
            raise InvalidInput("schedule", "[]", "must hold at least one round")
        self._gpu_type = gpu_type

    def due(self, state: RoundState) -> bool:
        """Return False: the engine calls the policy whenever its schedule of one round is used up."""
        return False

    def decide(self, state: RoundState) -> Schedule:
        """Return the jobs that ran in this round."""
        if state.round < len(self._rounds):
            present = {job.id for job in state.jobs}
            ids = [key for key in self._rounds[state.round] if key in present]
        else:
            ids, free = [], int(state.gpus[self._gpu_type])
            for job in state.jobs:
                if job.gpus <= free:
                    ids.append(job.id)
                    free -= job.gpus
        return Schedule([dict.fromkeys(ids, self._gpu_type)], Evidence(reason="replay"))
