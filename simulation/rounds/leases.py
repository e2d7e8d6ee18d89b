"""Which GPUs a job gets in a round, and whether it keeps those of the round before: leases."""

from __future__ import annotations

from collections.abc import Sequence


class GpuLeases:
    """Gives jobs GPUs by number, and remembers them for one round.

    Notes
    -----
    Type by type, wide jobs first. Among jobs of one width, first each that ran on this type in the round before keeps
    its GPUs if none of them is taken by now, which extends its lease; then the others take the lowest free numbers.
    """

    def __init__(self, counts: Sequence[int]) -> None:
        """Start with GPUs 0 to M_k - 1 of each type, all free."""
        self._counts = tuple(counts)
        self._before: dict[int, tuple[int, tuple[int, ...]]] = {}

    def assign(self, runs: Sequence[tuple[int, int, int]]) -> list[tuple[tuple[int, ...], bool]]:
        """Return the GPUs of each (job's number, GPU type, gang) of a round, and whether its lease is extended."""
        before = self._before
        now: dict[int, tuple[int, tuple[int, ...]]] = {}
        answer: list[tuple[tuple[int, ...], bool]] = [((), False)] * len(runs)
        free = [[True] * count for count in self._counts]
        lowest = [0] * len(free)
        by_width: dict[int, list[int]] = {}
        for index, (_, _, gang) in enumerate(runs):
            by_width.setdefault(gang, []).append(index)
        for gang in sorted(by_width, reverse=True):
            others = []
            for index in by_width[gang]:
                job, kind, _ = runs[index]
                held = before.get(job)
                if held is None or held[0] != kind or not all(free[kind][gpu] for gpu in held[1]):
                    others.append(index)
                    continue
                for gpu in held[1]:
                    free[kind][gpu] = False
                answer[index] = (held[1], True)
                now[job] = held
            for index in others:
                job, kind, _ = runs[index]
                gpus: list[int] = []
                gpu = lowest[kind]
                while len(gpus) < gang:
                    if free[kind][gpu]:
                        free[kind][gpu] = False
                        gpus.append(gpu)
                    gpu += 1
                lowest[kind] = gpu
                answer[index] = (tuple(gpus), False)
                now[job] = (kind, tuple(gpus))
        self._before = now
        return answer
